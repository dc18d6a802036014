"""Decoder: compiled searches of a Keras model, many shapes, threads, new weights."""

import gc
import threading
import weakref

import keras
import numpy as np
import pytest
from keras import ops

import zoo
from tests.memory import resident
from tests.test_decoding_references import same, values
from zoo.decoding import (
    Decoder,
    EnsembleStepper,
    beam_search,
    ensemble,
    greedy_search,
    sample,
)
from zoo.stepping import stepper_for

B, S, V, UNITS = 3, 5, 13, 11
BACKEND = keras.backend.backend()


class Stepper:
    """A GRU that attends to embedded source tokens; its weights are a `keras.Model`'s.

    `traces` counts the times Python runs through a step.
    """

    def __init__(self, seed):
        keras.utils.set_random_seed(seed)
        source = keras.Input((None,), dtype="int32")
        self.embedding = keras.layers.Embedding(
            V, UNITS, embeddings_initializer=keras.initializers.RandomNormal(stddev=2.0)
        )
        self.cell = keras.layers.GRUCell(UNITS)
        self.head = keras.layers.Dense(V, kernel_initializer="random_normal")
        embedded = self.embedding(source)
        state, _ = self.cell(embedded[:, 0], embedded[:, 0])
        self.model = keras.Model(source, self.head(ops.concatenate([state] * 2, -1)))
        kernel = self.head.kernel
        kernel.assign(np.random.default_rng(seed).normal(0, 1, kernel.shape))
        self.traces = 0

    def start(self, source_ids):
        keys, mask = self.embedding(source_ids), ops.not_equal(source_ids, 0)
        count = ops.maximum(ops.sum(ops.cast(mask, "float32"), 1, keepdims=True), 1)
        state = ops.sum(ops.where(mask[..., None], keys, 0.0), axis=1) / count
        return {"keys": keys, "mask": mask}, (state,)

    def next_token(self, state, token, memory):
        self.traces += 1
        state, _ = self.cell(self.embedding(token), state[0])
        scores = ops.einsum("rd,rsd->rs", state, memory["keys"])
        weights = ops.where(memory["mask"], ops.exp(ops.tanh(scores)), 0.0)
        total = ops.maximum(ops.sum(weights, axis=-1, keepdims=True), 1e-6)
        weights = weights / total
        context = ops.einsum("rs,rsd->rd", weights, memory["keys"])
        return self.head(ops.concatenate([state, context], -1)), (state,), weights


@pytest.fixture(scope="module")
def stepper():
    return Stepper(1)


def sources(seed=0, batch=B, length=S):
    rng = np.random.default_rng(seed)
    ids = rng.integers(4, V, (batch, length))
    return np.where(np.arange(length) < rng.integers(1, length + 1, (batch, 1)), ids, 0)


def eager(stepper, search, ids, **options):
    ids = ops.convert_to_tensor(ids, "int32")
    if options.get("coverage_penalty"):
        options["source_mask"] = ids != 0
    memory, state = stepper.start(ids)
    return search(stepper.next_token, state, memory=memory, **options)


@pytest.mark.parametrize(
    ("search", "options", "given"),
    [
        (beam_search, {"num_beams": 4, "num_return": 3, "coverage_penalty": 0.2}, {}),
        (beam_search, {"num_beams": 1, "min_length": 2}, {}),
        (greedy_search, {"length_rule": "average"}, {}),
        (sample, {"num_return": 2, "temperature": 2.0, "top_p": 0.9}, {"seed": 3}),
    ],
)
def test_compiled_and_eager_agree(stepper, search, options, given):
    options["max_length"] = 7
    decoder, ids = Decoder(stepper, search, **options), sources()
    found = decoder(ids, **given)
    assert all(isinstance(x, np.ndarray) for x in found)
    assert same(found, eager(stepper, search, ids, **options, **given))
    limited = decoder(ids, [2, 7, 1], **given)
    expected = eager(
        stepper, search, ids, **options, **given, max_lengths=np.array([2, 7, 1])
    )
    assert same(limited, expected)


def test_hundreds_of_sentences_of_thirty_lengths(stepper):
    """F45: few traces, and memory that does not grow."""
    decoder = Decoder(stepper, beam_search, num_beams=3, max_length=7)
    results = []

    def decode(rounds):
        for i in range(rounds):
            length = 1 + i % 30
            padded = -(-length // 16) * 16  # as a caller does who has few shapes
            ids = sources(i, batch=1, length=length)
            found = decoder(np.pad(ids, ((0, 0), (0, padded - length))))
            results.append(weakref.ref(found.attention))

    before = stepper.traces
    decode(30)
    traces, memory = stepper.traces, resident()
    if BACKEND != "torch":
        assert traces - before <= 8  # two steps a trace, and JAX has two shapes
    decode(300 if BACKEND != "torch" else 60)  # not compiled, so slower
    if BACKEND != "torch":
        assert stepper.traces == traces
    gc.collect()
    assert resident() - memory < 10e6
    assert not any(kept() is not None for kept in results)


def test_nothing_is_left_of_the_batch_before(stepper):
    """F30: A, B, A; then both in threads."""
    decoder = Decoder(stepper, beam_search, num_beams=3, max_length=7)
    batches = [sources(1), sources(2, batch=2, length=7)]
    first, second, third = decoder(batches[0]), decoder(batches[1]), decoder(batches[0])
    assert same(first, third, 0)
    found = [[], []]

    def work(which):
        found[which] += [decoder(batches[which]) for _ in range(10)]

    threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for results, expected in zip(found, (first, second), strict=True):
        assert len(results) == 10
        assert all(same(result, expected, 0) for result in results)


def test_weights_that_change_count():
    stepper, ids = Stepper(2), sources()
    decoder = Decoder(stepper, greedy_search, max_length=7)
    before = decoder(ids)
    stepper.model.set_weights(
        [w + 0.5 * np.cos(w) for w in stepper.model.get_weights()]
    )
    after = decoder(ids)
    assert not np.allclose(before.log_probabilities, after.log_probabilities)
    assert same(after, eager(stepper, greedy_search, ids, max_length=7))


def test_an_ensemble_decodes(stepper):
    both, ids = EnsembleStepper([stepper, Stepper(4)]), sources()
    decoder = Decoder(both, beam_search, num_beams=3, max_length=7)
    starts = [s.start(ops.convert_to_tensor(ids, "int32")) for s in both.steppers]
    found = beam_search(
        ensemble([s.next_token for s in both.steppers]),
        [state for _, state in starts],
        memory=[memory for memory, _ in starts],
        num_beams=3,
        max_length=7,
    )
    assert same(decoder(ids), found)
    both.steppers[1].model.set_weights(
        [w * 1.5 for w in both.steppers[1].model.get_weights()]
    )
    assert not np.allclose(decoder(ids).scores, values(found.scores))


@pytest.mark.parametrize("search", [beam_search, greedy_search, sample])
def test_no_sentences_and_sentences_of_no_words(stepper, search):
    """F26."""
    compiled = Decoder(stepper, search, max_length=7)

    def decoder(ids, **given):
        if search is sample:
            given["seed"] = 3
        return compiled(ids, **given)

    none = decoder(np.zeros((0, S)))
    assert none.ids.shape == (0, 1, 7) and none.attention.shape == (0, 1, 7, S)
    ids = sources()
    ids[1] = 0
    numbers = {"sentence_ids": [0, 2]} if search is sample else {}
    found, alone = decoder(ids), decoder(ids[[0, 2]], **numbers)
    assert np.isfinite(found.scores).all() and not found.attention[1].any()
    assert same(alone, [x[[0, 2]] for x in found])


def test_padding_of_the_source_does_not_matter(stepper):
    decoder = Decoder(
        stepper, beam_search, num_beams=3, max_length=7, coverage_penalty=0.2
    )
    ids = sources()
    found, padded = decoder(ids), decoder(np.pad(ids, ((0, 0), (0, 6))))
    assert not padded.attention[..., S:].any()
    assert same(found, padded._replace(attention=padded.attention[..., :S]))


def test_no_gradients_are_kept(stepper):
    found = Decoder(stepper, greedy_search, max_length=3)._run(
        *(np.asarray(x, "int32") for x in (sources(), [3] * B, range(B), 0))
    )
    assert not getattr(found["scores"], "requires_grad", False)


def test_attention_that_is_not_asked_for(stepper):
    decoder = Decoder(stepper, beam_search, max_length=7, return_attention=False)
    assert decoder(sources()).attention is None


def test_options_and_arguments_that_do_not_fit(stepper):
    with pytest.raises(TypeError, match=r"options of beam_search are .*'num_beam'"):
        Decoder(stepper, beam_search, max_length=7, num_beam=3)
    with pytest.raises(TypeError, match=r"max_length must be given"):
        Decoder(stepper, greedy_search)
    with pytest.raises(TypeError, match=r"argument of the call"):
        Decoder(stepper, sample, max_length=7, seed=3)
    greedy = Decoder(stepper, greedy_search, max_length=7)
    with pytest.raises(ValueError, match=r"shape \(5,\). For one sentence"):
        greedy(sources()[0])
    with pytest.raises(ValueError, match=r"`seed` goes with.*Received: seed=3"):
        greedy(sources(), seed=3)
    with pytest.raises(ValueError, match=r"Received: seed=None"):
        Decoder(stepper, sample, max_length=7)(sources())


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"max_lengths": [3, 4]}, r"\(2,\) for 3 sentences. Leave it out, or give 3"),
        ({"max_lengths": [3, 4, 5, 6]}, r"`max_lengths` must be integers \(sentences"),
        ({"max_lengths": [3]}, r"shape \(1,\) for 3"),
        ({"max_lengths": 3}, r"shape \(\) for 3"),
        ({"max_lengths": [3, 4.5, 5]}, "`max_lengths` must be integers. .* float64"),
        ({"max_lengths": [3, 0, 5]}, "from 1 to under .*Received: 0 to 5"),
        ({"max_lengths": [3, 2**40, 5]}, "Received: 3 to 1099511627776"),
        ({"sentence_ids": [3, 4]}, r"`sentence_ids` must be integers \(sentences,\)"),
        ({"sentence_ids": [-1, 4, 5]}, "`sentence_ids` must be integers from 0"),
        ({"source_ids": sources() - 1}, "`source_ids` must be integers from 0"),
        ({"source_ids": sources() + 0.5}, "`source_ids` must be integers. .* float64"),
        ({"source_ids": sources() + np.nan}, "`source_ids` must be .* no whole"),
        ({"source_ids": sources() + np.inf}, "`source_ids` must be .* no whole"),
        ({"source_ids": sources() > 0}, "`source_ids` must be integers. .* bool"),
    ],
)
def test_numbers_are_neither_guessed_nor_rounded(stepper, given, message):
    decoder = Decoder(stepper, sample, max_length=7)
    with pytest.raises(ValueError, match=message):
        decoder(**{"source_ids": sources(), "seed": 3, **given})


# ---- what a next-token function gives


STATE = np.zeros((2, 1), "float32")
LOGITS = np.zeros((2, 6), "float32")


@pytest.mark.parametrize("search", [greedy_search, beam_search])
@pytest.mark.parametrize(
    ("found", "message"),
    [
        (lambda r: (np.zeros((r, 1, 6)), STATE, None), r"must be \(rows, ids\)"),
        (lambda r: (np.zeros((r, 6)), STATE), "must return.*three. Received: tuple"),
        (
            lambda r: (np.zeros((r, 6)), STATE, np.zeros((r, 4, 3))),
            r"attention of `next_token` must be \(rows, source tokens\)",
        ),
    ],
)
def test_what_cannot_be_searched_is_refused_in_a_sentence(search, found, message):
    options = {"num_beams": 2} if search is beam_search else {}
    with pytest.raises(ValueError, match=message):
        search(lambda state, token: found(len(token)), STATE, max_length=3, **options)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_the_weights_of_a_layers_step_are_taken_as_they_come(search):
    def next_token(state, token):
        rows = len(token)
        return np.zeros((rows, 6)), state, np.full((rows, 4, 1), 0.25, "float32")

    found = search(next_token, STATE, max_length=np.int64(3), end_id=np.int64(3))
    assert tuple(found.attention.shape) == (2, 1, 3, 4)


@pytest.mark.parametrize("limits", [[1, 2, 3], 4, [[1, 2]]])
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_limits_are_one_a_sentence(search, limits):
    def next_token(state, token):
        return np.zeros((len(token), 6)), state, None

    with pytest.raises(ValueError, match="`max_lengths` must be integers"):
        search(next_token, STATE, max_length=4, max_lengths=limits)


def test_a_mask_may_be_a_list():
    def next_token(state, token):
        rows = len(token)
        return np.zeros((rows, 6)), state, np.full((rows, 3), 1 / 3, "float32")

    masks = [[True, True, False], [True, True, True]]
    one, other = (
        beam_search(
            next_token,
            STATE,
            max_length=3,
            num_beams=np.int64(2),
            coverage_penalty=0.5,
            source_mask=mask,
        )
        for mask in (masks, np.array(masks))
    )
    np.testing.assert_array_equal(
        keras.ops.convert_to_numpy(one.scores), keras.ops.convert_to_numpy(other.scores)
    )


@pytest.mark.parametrize(
    ("mask", "message"),
    [
        (
            [[0.0, 0.0, -1e9]] * 2,
            "`source_mask` must hold booleans .* value -1",
        ),
        ([[True], [True]], r"`source_mask` must be .*shape \(2, 1\) with attention of"),
        ([True, True, False], r"`source_mask` must be .*Received: shape \(3,\)"),
    ],
)
@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_a_mask_that_is_none_of_the_sources_tokens_is_refused(search, mask, message):
    def next_token(state, token):
        rows = len(token)
        return np.zeros((rows, 6)), state, np.full((rows, 3), 1 / 3, "float32")

    options = {"max_length": 3, "coverage_penalty": 0.2, "source_mask": mask}
    with pytest.raises(ValueError, match=message):
        search(next_token, STATE, **options)


@pytest.mark.parametrize(
    "given", [{"max_lengths": [2.9, 1]}, {"max_lengths": np.array([0, 4])}]
)
def test_limits_are_not_rounded(given):
    def next_token(state, token):
        return np.zeros((len(token), 6)), state, None

    with pytest.raises(ValueError, match="`max_lengths` must be integers"):
        greedy_search(next_token, STATE, max_length=4, **given)


@pytest.mark.parametrize("ids", [[7], [0, 1.5], [-1, 2]])
def test_the_numbers_of_sentences_are_integers_one_a_sentence(ids):
    def next_token(state, token):
        return np.zeros((len(token), 6)), state, None

    with pytest.raises(ValueError, match="`sentence_ids` must be integers"):
        sample(next_token, STATE, max_length=4, seed=0, sentence_ids=ids)


@pytest.mark.parametrize(
    "seed", [2.5, np.float64(2.5), np.nan, np.array(-3), np.int64(2**31), np.True_]
)
def test_a_seed_is_a_whole_number_whatever_its_type(seed):
    def next_token(state, token):
        return np.zeros((len(token), 6)), state, None

    with pytest.raises(ValueError, match="`seed` must be"):
        sample(next_token, STATE, max_length=4, seed=seed)


def test_caches_have_room_for_what_a_decoder_writes(stepper):
    """Compiled, a step past the end of a cache would write over its last place."""
    model = zoo.seq2seq_transformer(
        source_vocabulary_size=V,
        target_vocabulary_size=V,
        embedding_dim=4,
        num_heads=2,
        num_layers=1,
        intermediate_dim=4,
    )
    steppers = [stepper_for(model, room) for room in (16, 8)]
    for short in (steppers[1], EnsembleStepper(steppers)):
        Decoder(short, greedy_search, max_length=8)
        with pytest.raises(ValueError, match=r"at most 8, .*Received: 9\. Make"):
            Decoder(short, greedy_search, max_length=9)
    assert EnsembleStepper([stepper]).max_length is None


@pytest.mark.parametrize("beta", [None, "0.2", -1.0])
def test_a_penalty_that_is_no_number_is_refused(stepper, beta):
    with pytest.raises(ValueError, match="`coverage_penalty` must be a finite"):
        Decoder(stepper, beam_search, max_length=8, coverage_penalty=beta)


def test_an_ensemble_takes_lists_alone():
    def next_token(state, token):
        return np.zeros((len(token), 6)), state, None

    with pytest.raises(ValueError, match="must be a list of 2, one"):
        beam_search(ensemble([next_token] * 2), np.zeros((2, 2)), max_length=4)


@pytest.mark.parametrize("search", [greedy_search, beam_search])
def test_an_ensemble_has_one_vocabulary(search):
    def next_token(size):
        return lambda state, token: (np.zeros((len(token), size)), state, None)

    state = [np.zeros((2, 2))] * 2
    with pytest.raises(ValueError, match=r"one vocabulary.*logits of 6, 7 ids"):
        search(ensemble([next_token(6), next_token(7)]), state, max_length=4)


@pytest.mark.parametrize("shape", [(3,), (0, 0), (2, 0), (1, 2, 3)])
def test_sources_that_are_no_rows_of_tokens_are_refused(stepper, shape):
    decoder = Decoder(stepper, greedy_search, max_length=4)
    with pytest.raises(ValueError, match=r"must be \(sentences, tokens\)"):
        decoder(np.zeros(shape))
