"""Greedy search and samples: against NumPy loops, and what draws may depend on."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from tests.test_decoding_references import END, START, Toy, same, tokens_of, values
from zoo.decoding import greedy_search, sample
from zoo.decoding.sampling import draw, row_keys, uniform

B, S, V = 3, 5, 7


def greedy(toy, **options):
    options = {"max_length": 9} | options
    return greedy_search(toy.next_token, toy.state, memory=toy.memory, **options)


def samples(toy, **options):
    options = {"max_length": 9, "seed": 5, "num_return": 4} | options
    return sample(toy.next_token, toy.state, memory=toy.memory, **options)


# ---- Greedy


def test_rows_end_at_their_own_step_and_the_loop_with_the_last():
    """F21: sentence b says 4 for b steps, then ends."""
    lengths = np.array([3, 1, 6, 2])
    calls = []
    go_on, end = (np.eye(V, dtype="float32")[[token]] * 9 for token in (4, END))
    weights = np.ones((4, S), "float32") / S

    def next_token(state, token):
        calls.append(token)
        return ops.where(state > 1, go_on, end), state - 1, weights

    found = greedy_search(next_token, lengths[:, None], max_length=17)
    assert values(found.lengths)[:, 0].tolist() == lengths.tolist()
    for b, length in enumerate(lengths):
        expected = [4] * (length - 1) + [END] + [0] * (17 - length)
        assert values(found.ids)[b, 0].tolist() == expected
        rows = values(found.attention)[b, 0].sum(-1)
        np.testing.assert_allclose(rows, np.arange(17) < length, atol=1e-6)
        each = 9 - math.log(math.exp(9) + V - 1)
        total = values(found.log_probabilities)[b, 0]
        assert total == pytest.approx(each * length, abs=1e-5)
        by_length = total / ((5 + length) / 6) ** 0.6
        assert values(found.scores)[b, 0] == pytest.approx(by_length, 1e-5)
    assert values(found.finished).all()
    if keras.backend.backend() != "jax":  # where the loop is not traced
        assert len(calls) == 6
        assert values(calls[0]).tolist() == [START] * 4
        assert values(calls[1]).tolist() == [4, END, 4, 4]


def test_what_is_cut_has_no_end():
    found = greedy(Toy(3), max_length=2, min_length=2, forbidden_ids=())
    for b in range(B):
        ended = END in values(found.ids)[b, 0]
        assert values(found.finished)[b, 0] == ended
        assert values(found.lengths)[b, 0] == 2
    long = greedy(Toy(3), max_length=1, min_length=1)
    assert values(long.ids).shape == (B, 1, 1)


def test_of_equal_logits_the_lowest_id_is_taken():
    logits = np.array([[9.0, 9.0, 1.0, 1.0, 5.0, 5.0, 5.0]], "float32")
    found = greedy_search(
        lambda state, token: (logits, state, None), np.zeros((1, 1)), max_length=2
    )
    assert values(found.ids).tolist() == [[[4, 4]]]


# ---- Draws


def hashed(x):
    """fmix32 of MurmurHash3, in Python's integers."""
    x ^= x >> 16
    x = x * 0x85EBCA6B % 2**32
    x ^= x >> 13
    x = x * 0xC2B2AE35 % 2**32
    return x ^ x >> 16


def test_numbers_are_those_of_the_hash_on_every_backend():
    golden, seed, sentences = 0x9E3779B9, 2**31 - 1, [0, 17, 5]
    keys = row_keys(seed, np.array(sentences), B, 2)
    for step in (0, 1, 2, 60):
        got = values(uniform(keys, step)).reshape(B, 2)
        for b, sentence in enumerate(sentences):
            first = hashed((hashed((seed + golden) % 2**32) + sentence) % 2**32)
            for n in range(2):
                key = hashed((first + hashed((n + golden) % 2**32)) % 2**32)
                bits = hashed((key + step * golden) % 2**32)
                bits = hashed((bits + step) % 2**32)
                assert got[b, n] == (bits >> 9) / 2**23


def test_numbers_are_spread_evenly_and_go_their_own_ways():
    keys = row_keys(3, None, 1000, 20)
    first, second = values(uniform(keys, 0)), values(uniform(keys, 1))
    other = values(uniform(row_keys(4, None, 1000, 20), 0))
    counts = np.histogram(first, bins=50, range=(0, 1))[0]
    assert ((counts - 400) ** 2 / 400).sum() < 49 + 5 * math.sqrt(2 * 49)
    for x, y in ((first, second), (first, other), (first[:-1], first[1:])):
        assert abs(np.corrcoef(x, y)[0, 1]) < 5 / math.sqrt(20000)
    steps = np.array([values(uniform(keys[:1], t))[0] for t in range(500)])
    assert abs(steps.mean() - 0.5) < 5 * math.sqrt(1 / 12 / 500)


def drawn(logits, number, temperature, top_k, top_p):
    """The token at `number` of the sum of the probabilities, in plain NumPy."""
    logits = logits.astype("float64") / temperature
    order = list(range(len(logits)))
    if top_k is not None or top_p is not None:
        order = sorted(order, key=lambda i: -logits[i])[:top_k]
    chances = {i: math.exp(logits[i]) for i in order}
    total = sum(chances.values())
    if top_p is not None:
        kept, before = [], 0.0
        for i in order:
            if before < top_p or not kept:
                kept.append(i)
            before += chances[i] / total
        order = kept
    total, before = sum(chances[i] for i in order), 0.0
    for i in order:
        before += chances[i] / total
        if number < before:
            return i
    return order[-1]


@pytest.mark.parametrize("vocabulary", [13, 3001])
@pytest.mark.parametrize(
    ("temperature", "top_k", "top_p"),
    [(1.0, None, None), (0.5, 5, None), (2.0, None, 0.7), (1.3, 11, 0.9), (1, 1, 1)],
)
def test_a_draw_is_that_of_the_numpy_loop(vocabulary, temperature, top_k, top_p):
    rng = np.random.default_rng(0)
    rows = 41
    logits = rng.normal(0, 2, (rows, vocabulary)).astype("float32")
    logits[:, 3] = -np.inf
    numbers = rng.uniform(0.001, 0.999, rows).astype("float32")
    numbers[:2] = 0, 1 - 2**-23
    given = map(ops.convert_to_tensor, (logits, numbers))
    got = values(draw(*given, temperature, top_k, top_p))
    settings = temperature, top_k, top_p
    expected = [drawn(x, n, *settings) for x, n in zip(logits, numbers, strict=True)]
    # Sums in float32 may differ at a border, for many words at a few.
    assert (got != expected).sum() <= (0 if vocabulary == 13 else 2)
    assert 3 not in got


def test_draws_are_as_frequent_as_they_are_probable():
    chances = np.array([0.0, 0.0, 0.1, 0.0, 0.45, 0.25, 0.2])
    logits = np.log(chances + 1e-30)[None].astype("float32").repeat(20000, 0)
    numbers = uniform(row_keys(0, None, 20000, 1), 0)
    counts = np.bincount(
        values(draw(ops.convert_to_tensor(logits), numbers)), minlength=V
    )
    spread = 5 * np.sqrt(20000 * chances * (1 - chances))
    assert (np.abs(counts - 20000 * chances) <= spread).all()


# ---- Samples


def test_a_seed_gives_the_same_and_another_something_else():
    toy = Toy(0, scale=0.5)
    assert same(samples(toy), samples(toy))
    ids = values(samples(toy, num_return=5).ids)
    assert (ids != values(samples(toy, seed=6, num_return=5).ids)).any()
    assert len({tuple(row) for row in ids[0]}) > 1


def test_a_sample_does_not_depend_on_its_batch():
    toy = Toy(1, batch=5, scale=0.7)
    together = samples(toy)
    for rows in ([3], [4, 0, 3]):
        part = samples(toy.rows(rows), sentence_ids=np.array(rows))
        assert same(part, [values(x)[rows] for x in together])
    first = samples(toy.rows([0, 1]))  # by default the numbers are 0, 1, ...
    assert same(first, [values(x)[:2] for x in together])


def test_a_sample_is_worth_what_the_model_says_of_it():
    toy = Toy(2, scale=0.7)
    found = samples(toy, temperature=3.0, top_k=5, top_p=0.9, length_rule="average")
    for b in range(B):
        for n in range(4):
            tokens = tokens_of(found, b, n)
            logs, attention = toy.replay(b, tokens)
            total = sum(logs[t, token] for t, token in enumerate(tokens))
            assert values(found.log_probabilities)[b, n] == pytest.approx(total, 1e-4)
            score = total / len(tokens) ** 0.6
            assert values(found.scores)[b, n] == pytest.approx(score, 1e-4)
            rows = values(found.attention)[b, n, : len(tokens)]
            np.testing.assert_allclose(rows, attention[:-1], 1e-5)
            assert not {0, START} & set(tokens) and END not in tokens[:-1]
        ended = values(found.finished)[b]
        order = list(zip(~ended, -values(found.scores)[b], strict=True))
        assert order == sorted(order)


def test_the_coldest_samples_are_greedy():
    toy = Toy(4)
    for options in ({"temperature": 1e-6}, {"top_k": 1}, {"top_p": 1e-6}):
        found = samples(toy, num_return=1, **options)
        assert same(found, greedy(toy))


@pytest.mark.parametrize("temperature", [1e-9, 1e-46, 1e-300])
def test_a_temperature_may_be_as_small_as_a_number_can_be(temperature):
    toy = Toy(4)
    found = samples(toy, num_return=1, temperature=temperature)
    assert same(found, greedy(toy))


@pytest.mark.parametrize("temperature", [1e9, 1e38, 1e300])
def test_at_the_greatest_temperatures_all_that_may_be_is_alike(temperature):
    logits = np.array([[-np.inf, 3.0, 5.0, -40.0]] * 3, "float32")
    numbers = np.array([0.1, 0.5, 0.9], "float32")
    given = map(ops.convert_to_tensor, (logits, numbers))
    assert values(draw(*given, temperature)).tolist() == [1, 2, 3]


def test_samples_keep_to_what_may_be_emitted():
    toy = Toy(5, scale=0.1)
    found = samples(toy, num_return=31, min_length=3, forbidden_ids=(2, 6))
    lengths, ids = values(found.lengths), values(found.ids)
    assert lengths.min() == 3
    real = np.arange(9) < lengths[..., None]
    assert set(ids[real]) == {END, 4, 5}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"temperature": 0}, "must be above 0. Received: 0. For the most probable"),
        ({"temperature": -1}, "`temperature` must be a finite number of at least 0"),
        ({"top_k": 0}, "Received: 0. Use top_k=None for the whole vocabulary."),
        ({"top_p": 0}, "above 0 and at most 1. Received: 0. Use top_p=None"),
        ({"top_p": 1.01}, "Received: 1.01"),
        ({"num_return": 0}, "`num_return` must be an integer of at least 1"),
        ({"seed": -1}, "`seed` must be an integer of at least 0"),
        ({"seed": None}, "Received: None"),
        ({"seed": 2**31}, "`seed` must be under 2**31. Received: 2147483648"),
        ({"seed": np.int64(-5)}, "`seed` must be an integer of at least 0"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    with pytest.raises(ValueError) as error:
        samples(Toy(0), **options)
    assert words in str(error.value)
