"""The parts that rank: best logits against NumPy's sort, penalties, ensembles."""

import math

import numpy as np
import pytest
from keras import ops

from tests.test_decoding_references import Toy, same, values
from zoo.decoding import beam_search, ensemble, length_divisor
from zoo.decoding.ranking import best_logits, log_totals
from zoo.decoding.scoring import coverage_logs, ranks

R = 3


@pytest.mark.parametrize("vocabulary", [7, 1023, 1024, 2048, 4099])
@pytest.mark.parametrize("count", [1, 5, 7])
@pytest.mark.parametrize("kind", ["spread", "ties", "few"])
def test_best_logits_are_those_of_a_stable_sort(vocabulary, count, kind):
    rng = np.random.default_rng(vocabulary)
    logits = rng.normal(0, 3, (R, vocabulary)).astype("float32")
    if kind == "ties":
        logits = logits.round()
    if kind == "few":  # all but count - 1 impossible
        logits[:, count - 1 :] = -np.inf
        logits = np.roll(logits, vocabulary // 2, axis=1)
    got, ids = map(values, best_logits(ops.convert_to_tensor(logits), count))
    order = np.argsort(-logits, axis=1, kind="stable")[:, :count]
    expected = np.take_along_axis(logits, order, axis=1)
    np.testing.assert_array_equal(got, expected)
    assert ids.min() >= 0 and ids.max() < vocabulary
    np.testing.assert_array_equal(np.take_along_axis(logits, ids, axis=1), expected)
    if kind == "spread":
        np.testing.assert_array_equal(ids, order)
    assert all(len(set(row)) == count for row in ids)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_of_bad_logits_there_are_still_ids_of_the_vocabulary(bad):
    logits = np.full((R, 1031), bad, "float32")
    logits[1, ::2] = 1.0
    ids = values(best_logits(ops.convert_to_tensor(logits), 11)[1])
    assert ids.min() >= 0 and ids.max() < 1031


def test_totals_are_exact_at_any_height():
    logits = np.array([[700.0, 701.0, 690.0], [-900.0, -np.inf, -901.0]], "float32")
    greatest = ops.convert_to_tensor(logits.max(-1, keepdims=True))
    expected = [
        701 + math.log(1 + math.exp(-1) + math.exp(-11)),
        -900 + math.log(1 + math.exp(-1)),
    ]
    got = values(log_totals(ops.convert_to_tensor(logits), greatest))[:, 0]
    np.testing.assert_allclose(got, expected, 1e-6)


def test_lengths_divide_as_in_the_paper():
    lengths = np.array([1, 3, 17])
    for alpha in (0.0, 0.6, 1.0, 2.0):
        wu = [((5 + n) / 6) ** alpha for n in (1, 3, 17)]
        np.testing.assert_allclose(values(length_divisor(lengths, alpha)), wu, 1e-5)
        mean = [n**alpha for n in (1, 3, 17)]
        got = values(length_divisor(lengths, alpha, "average"))
        np.testing.assert_allclose(got, mean, 1e-5)
    with pytest.raises(ValueError, match=r"'gnmt', 'average'\). Received: 'none'"):
        length_divisor(lengths, 1.0, "none")


def test_coverage_is_of_the_real_tokens():
    coverage = np.array([[0.5, 2.0, 0.25, 0.1], [0.0, 1.0, 0.3, 0.0]], "float32")
    mask = np.array([[True, True, True, False], [True, True, False, False]])
    expected = [math.log(0.5) + math.log(0.25), math.log(1e-6)]
    np.testing.assert_allclose(
        values(coverage_logs(*map(ops.convert_to_tensor, (coverage, mask)))),
        expected,
        1e-5,
    )


def test_what_was_cut_ranks_behind_all_that_ended():
    scores = np.array([-0.3, -50.0, -0.1, -0.100001, -1e-9, -1e4], "float32")
    ended = np.array([True, True, False, False, False, True])
    order = np.argsort(
        -values(ranks(*map(ops.convert_to_tensor, (scores, ended)))), kind="stable"
    )
    assert order.tolist() == [0, 1, 5, 4, 2, 3]


# ---- Ensembles


def test_an_ensemble_takes_the_mean_of_probabilities():
    toys = [Toy(seed) for seed in (0, 1, 2)]
    both = ensemble([toy.next_token for toy in toys])
    states, memories = [t.state for t in toys], [t.memory for t in toys]
    token = ops.convert_to_tensor([1, 4, 5])
    logits, states, attention = both(states, token, memories)
    mean, weights = 0.0, 0.0
    for toy in toys:
        own, _, seen = toy.next_token(toy.state, token, toy.memory)
        exp = np.exp(values(own).astype("float64"))
        mean = mean + exp / exp.sum(-1, keepdims=True) / 3
        weights = weights + values(seen) / 3
    np.testing.assert_allclose(values(logits), np.log(mean), 1e-4, 1e-5)
    np.testing.assert_allclose(values(attention), weights, 1e-5)
    assert [values(s[0]).shape for s in states] == [(3, 1)] * 3


def test_an_ensemble_of_one_and_of_twins_is_the_model():
    toy = Toy(3)
    options = {"num_beams": 4, "num_return": 3, "max_length": 7}
    alone = beam_search(toy.next_token, toy.state, memory=toy.memory, **options)
    for count in (1, 2):
        found = beam_search(
            ensemble([toy.next_token] * count),
            [toy.state] * count,
            memory=[toy.memory] * count,
            **options,
        )
        assert same(found, alone)


def test_what_no_model_thinks_possible_is_impossible_not_nan():
    def sure(token):
        logits = np.full((R, 5), -np.inf, "float32")
        logits[:, token] = 0.0
        return lambda state, before: (logits, state, None)

    logits, _, attention = ensemble([sure(2), sure(4)])([(), ()], np.array([1] * R))
    half, never = math.log(0.5), -np.inf
    expected = [[never, never, half, never, half]] * R
    np.testing.assert_allclose(values(logits), expected, 1e-6)
    assert attention is None


def test_lists_that_do_not_fit_are_refused():
    toy = Toy(0)
    with pytest.raises(ValueError, match=r"at least one.*Received: an empty list"):
        ensemble([])
    both = ensemble([toy.next_token, toy.next_token])
    with pytest.raises(ValueError, match=r"`state` of an ensemble of 2.*list of 1"):
        both([toy.state], np.array([1, 1, 1]), [toy.memory] * 2)
    with pytest.raises(ValueError, match=r"`memory` of an ensemble.*list of 3"):
        both([toy.state] * 2, np.array([1, 1, 1]), [toy.memory] * 3)
