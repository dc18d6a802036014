"""Sentences per second of our searches, of keras_hub's, and of a loop over predict.

    python -m benchmarks.decoding

All sides drive one `zoo.seq2seq_transformer` with the same weights (random ones: speed
does not depend on their values), on sources of 8 tokens. The end token is forbidden, so
that all write exactly `--length` tokens: keras_hub's beam search does not stop a beam
at its end token, and this sets that aside. keras_hub's samplers drive our stepper; the
plain loop calls `model.predict` on all that was written so far and sorts in NumPy.

Then the cost of a token at different lengths, and tokens per second in training.
"""

import argparse
import functools
import time

import keras
import numpy as np

import zoo
from training.losses import TokenCrossentropy
from zoo.compiled import compiled
from zoo.decoding import Decoder, beam_search, greedy_search
from zoo.stepping import TransformerStepper
from zoo.tokens import END_ID, START_ID

VOCABULARY, SOURCE, BEAMS = 6_000, 8, 5
LENGTHS = 32, 128, 512
NEVER = [0, START_ID, END_ID]


class Endless(TransformerStepper):
    """A stepper that never gives the ids which end or start a sentence a chance."""

    def next_token(self, state, token, memory):
        logits, state, attention = super().next_token(state, token, memory)
        barred = keras.ops.sum(keras.ops.one_hot(np.array(NEVER), VOCABULARY), axis=0)
        return logits - 1e9 * barred, state, attention


# ---- the sides: a function from sources (B, S) to ids (B, length)


def ours(model, length, beams):
    """Our searches, compiled."""
    search = beam_search if beams > 1 else greedy_search
    options = {"num_beams": beams} if beams > 1 else {}
    decoder = Decoder(
        Endless(model, length),
        search,
        max_length=length,
        return_attention=False,
        **options,
    )
    return lambda sources: decoder(sources).ids[:, 0]


def keras_hub_search(model, length, beams):
    """keras_hub's samplers on our stepper, compiled in the same way."""
    import keras_hub

    stepper = Endless(model, length)
    if beams > 1:
        sampler = keras_hub.samplers.BeamSampler(num_beams=beams)
    else:
        sampler = keras_hub.samplers.GreedySampler()

    def run(sources):
        memory, state = stepper.start(sources)
        cache = {"memory": memory, "self": state["self"]}

        def following(prompt, cache, index):
            token = keras.ops.take(prompt, index - 1, axis=1)
            state = {"self": cache["self"], "position": index - 1}
            logits, state, _ = stepper.next_token(state, token, cache["memory"])
            cache = {"memory": cache["memory"], "self": state["self"]}
            return logits, None, cache

        rows = keras.ops.shape(sources)[0]
        start = keras.ops.full((rows, 1), START_ID, "int32")
        empty = keras.ops.zeros((rows, length), "int32")
        prompt = keras.ops.concatenate([start, empty], axis=1)
        return sampler(following, prompt, cache=cache, index=1, model=model)[:, 1:]

    function = compiled(run, model.variables, ranks=(2,))
    return lambda sources: keras.ops.convert_to_numpy(function(sources))


def plain_loop(model, length, beams):
    """What a tutorial does: model.predict on the whole prefix, for each token."""

    def run(sources):
        batch = len(sources)
        repeated = np.repeat(sources, beams, axis=0)
        ids = np.full((batch * beams, 1), START_ID)
        scores = np.tile([0.0] + [-np.inf] * (beams - 1), batch)
        for _ in range(length):
            logits = model.predict([repeated, ids], verbose=0)[:, -1]
            logits[:, NEVER] = -1e9
            logs = logits - logits.max(axis=-1, keepdims=True)
            logs -= np.log(np.exp(logs).sum(axis=-1, keepdims=True))
            totals = (scores[:, None] + logs).reshape(batch, -1)
            best = np.argsort(-totals, axis=-1)[:, :beams]
            rows = best // VOCABULARY + np.arange(batch)[:, None] * beams
            tokens = (best % VOCABULARY).reshape(-1, 1)
            ids = np.concatenate([ids[rows.ravel()], tokens], axis=1)
            scores = np.take_along_axis(totals, best, axis=-1).ravel()
        return ids.reshape(batch, beams, -1)[:, 0, 1:]

    return run


SIDES = {"ours": ours, "keras_hub": keras_hub_search, "model.predict": plain_loop}


# ---- measuring


def fastest(run, rounds):
    """The least seconds of several runs, the first, which compiles, left aside."""
    run()
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        run()
        times.append(time.perf_counter() - began)
    return min(times)


def measure_searches(model, length, rounds):
    """Prints sentences per second and ratios of ours to the others."""
    print(f"{'search':<10}{'batch':>6}" + "".join(f"{side:>16}" for side in SIDES))
    for beams, batch in ((1, 1), (1, 32), (BEAMS, 1), (BEAMS, 32)):
        sources = np.random.default_rng(0).integers(4, VOCABULARY, (batch, SOURCE))
        speeds, written = {}, {}
        for name, make in SIDES.items():
            run = make(model, length, beams)
            written[name] = run(sources)
            slow = name == "model.predict"
            seconds = fastest(functools.partial(run, sources), 1 if slow else rounds)
            speeds[name] = batch / seconds
        mine = written.pop("ours")
        alike = np.mean([(mine == other).mean() for other in written.values()])
        cells = "".join(f"{speed:>12.1f}/s  " for speed in speeds.values())
        ratios = ", ".join(
            f"{speeds['ours'] / speed:.2f} x {name}"
            for name, speed in speeds.items()
            if name != "ours"
        )
        name = "greedy" if beams == 1 else f"beam {beams}"
        print(f"{name:<10}{batch:>6}{cells}  ours: {ratios}; ids alike {alike:.1%}")


def measure_lengths(model, rounds):
    """Prints the cost of a token by the number of tokens written, and by the room."""
    sources = np.random.default_rng(0).integers(4, VOCABULARY, (1, SOURCE))
    decoder = Decoder(
        Endless(model, LENGTHS[-1]),
        greedy_search,
        max_length=LENGTHS[-1],
        return_attention=False,
    )
    within = {
        length: functools.partial(decoder, sources, [length]) for length in LENGTHS
    }
    rooms = {
        length: functools.partial(ours(model, length, 1), sources) for length in LENGTHS
    }
    for title, runs in ((f"of a room for {LENGTHS[-1]}", within), ("and room", rooms)):
        costs = {length: fastest(run, rounds) / length for length, run in runs.items()}
        for length, cost in costs.items():
            print(
                f"{length:>5} tokens {title}: {1e3 * cost:.2f} ms a token, "
                f"{cost / costs[LENGTHS[0]]:.2f} x"
            )


def measure_training(model, rounds):
    """Prints target tokens per second of training steps."""
    rng = np.random.default_rng(0)
    arrays = [rng.integers(4, VOCABULARY, (128, 16)) for _ in range(3)]
    model.compile("adam", TokenCrossentropy(0.1), jit_compile=False)
    seconds = fastest(lambda: model.train_on_batch(arrays[:2], arrays[2]), rounds)
    print(f"training: {arrays[2].size / seconds:,.0f} target tokens a second")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--length", type=int, default=32, help="tokens written [32]")
    parser.add_argument("--rounds", type=int, default=5, help="[5]")
    options = parser.parse_args()
    keras.utils.set_random_seed(0)
    model = zoo.seq2seq_transformer(
        weights=None,
        source_vocabulary_size=VOCABULARY,
        target_vocabulary_size=VOCABULARY,
        share_embeddings=True,
    )
    measure_searches(model, options.length, options.rounds)
    measure_lengths(model, options.rounds)
    measure_training(model, options.rounds)


if __name__ == "__main__":
    main()
