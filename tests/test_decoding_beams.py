"""Beam search against enumeration, a plain Python search, and the faults of others."""

import math

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
from keras import ops

from tests.test_decoding_references import (
    END,
    START,
    Toy,
    enumerated,
    same,
    score,
    searched,
    tokens_of,
    values,
)
from zoo.decoding import beam_search, greedy_search

B, S, V = 3, 5, 7
EXAMPLES = 3 if keras.backend.backend() == "jax" else 12  # it compiles each anew
QUICK = hypothesis.settings(max_examples=EXAMPLES, deadline=None, derandomize=True)


def search(toy, alpha=0.6, rule="gnmt", beta=0.0, **options):
    if beta:
        options["source_mask"] = toy.mask
    return beam_search(
        toy.next_token,
        toy.state,
        memory=toy.memory,
        length_penalty=alpha,
        length_rule=rule,
        coverage_penalty=beta,
        **options,
    )


def by_table(chances):
    """A next-token function of the token before, by a dict of dicts of chances."""
    size = 11
    table = np.full((size, size), 1e-30)
    for before, after in chances.items():
        for token, chance in after.items():
            table[before, token] = chance
        rest = 1 - sum(after.values())
        if rest > 1e-9:
            table[before, 6:11] += rest / 5
    logits = np.log(table).astype("float32")

    def next_token(state, token):
        state = [state[0] + 1]
        return ops.take(ops.convert_to_tensor(logits), token, axis=0), state, None

    return next_token


# ---- F08, F56: when to stop, and what a length is


A, C = 4, 5
OTHERS = {token: {token: 0.9} for token in range(6, 11)}
STOPS = {START: {END: 0.40, A: 0.35}, A: {C: 0.95}, C: {END: 0.95}, **OTHERS}


@pytest.mark.parametrize("num_return", [1, 2])
@pytest.mark.parametrize("rule", ["average", "gnmt"])
@pytest.mark.parametrize("alpha", [0, 1])
def test_a_better_sentence_is_found_after_the_first_end(alpha, rule, num_return):
    found = beam_search(
        by_table(STOPS),
        [np.zeros((2, 1), "float32")],
        num_beams=2,
        num_return=num_return,
        max_length=17,
        length_penalty=alpha,
        length_rule=rule,
    )
    long = math.log(0.35 * 0.95 * 0.95)
    expected = {
        (0, "average"): ([END], math.log(0.4)),
        (0, "gnmt"): ([END], math.log(0.4)),
        (1, "average"): ([A, C, END], long / 3),  # -0.38
        (1, "gnmt"): ([A, C, END], long * 6 / 8),  # -0.86
    }[alpha, rule]
    for sentence in range(2):
        assert tokens_of(found, sentence) == expected[0]
        assert values(found.scores)[sentence, 0] == pytest.approx(expected[1], 1e-4)
        assert values(found.finished)[sentence, 0]
    if num_return == 2:
        other = {0: [A, C, END], 1: [END]}[alpha]
        assert tokens_of(found, 0, 1) == other


@pytest.mark.skipif(keras.backend.backend() == "jax", reason="the loop is traced")
def test_the_search_stops_as_soon_as_nothing_better_can_come():
    calls = []
    table = by_table(STOPS)

    def next_token(state, token):
        calls.append(len(token))
        return table(state, token)

    options = {"num_beams": 2, "max_length": 17, "length_penalty": 0}
    state = [np.zeros((2, 1), "float32")]
    beam_search(next_token, state, **options)
    # After END (-0.92) the best beam stands at ln .35 = -1.05.
    assert calls == [2]
    calls.clear()
    beam_search(next_token, state, num_return=2, **options)
    # The second is found in the third step: no beam that is left comes to ln .316.
    assert calls == [2, 4, 4]
    calls.clear()
    beam_search(next_token, state, **options | {"length_penalty": 1})
    # ln .316 / (8 / 6) = -0.86; beams at ln .05 + ... reach / (22 / 6) at best.
    assert 3 < len(calls) <= 17


# ---- Exactness


@QUICK
@hypothesis.given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.6, 1.0, 1.7]),
    rule=st.sampled_from(["gnmt", "average"]),
    beta=st.sampled_from([0.0, 0.4]),
    min_length=st.integers(0, 4),
)
def test_a_wide_beam_finds_the_best_of_all_sentences(
    seed, alpha, rule, beta, min_length
):
    toy = Toy(seed, vocabulary=6)
    num_return, penalties = 5, {"alpha": alpha, "rule": rule, "beta": beta}
    found = search(
        toy,
        num_beams=120,
        num_return=num_return,
        max_length=4,
        min_length=min_length,
        **penalties,
    )
    for sentence in range(B):
        best = enumerated(toy, sentence, 4, min_length, **penalties)[:num_return]
        got = values(found.scores)[sentence]
        np.testing.assert_allclose(got, [x for x, _ in best], 1e-4, 1e-5)
        for n, (_, tokens) in enumerate(best):
            assert tokens_of(found, sentence, n) == tokens


@QUICK
@hypothesis.given(
    seed=st.integers(0, 10**6),
    num_beams=st.integers(2, 6),
    alpha=st.sampled_from([0.0, 0.6, 1.0]),
    rule=st.sampled_from(["gnmt", "average"]),
    beta=st.sampled_from([0.0, 0.4]),
    min_length=st.integers(0, 5),
)
def test_it_is_the_plain_search_that_never_stops_early(
    seed, num_beams, alpha, rule, beta, min_length
):
    toy = Toy(seed)
    penalties = {"alpha": alpha, "rule": rule, "beta": beta}
    limits = {"max_length": 8, "min_length": min_length}
    for num_return in (1, num_beams):
        found = search(
            toy, num_beams=num_beams, num_return=num_return, **limits, **penalties
        )
        for sentence in range(B):
            best = searched(toy, sentence, num_beams, **limits, **penalties)
            for n, (expected, tokens) in enumerate(best[:num_return]):
                assert tokens_of(found, sentence, n) == tokens
                got = values(found.scores)[sentence, n]
                assert got == pytest.approx(expected, 1e-4, 1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_one_beam_is_greedy(seed):
    toy = Toy(seed)
    options = {"max_length": 9, "min_length": 2, "length_penalty": 0.3}
    options |= {"coverage_penalty": 0.2, "source_mask": toy.mask}
    one = beam_search(
        toy.next_token, toy.state, memory=toy.memory, num_beams=1, **options
    )
    greedy = greedy_search(toy.next_token, toy.state, memory=toy.memory, **options)
    assert same(one, greedy, 0)
    for sentence in range(B):  # and greedy is what the plain search has of one beam
        tokens = []
        while len(tokens) < 9 and END not in tokens:
            logs = toy.replay(sentence, tokens)[0][-1]
            logs[[0, START]] = -np.inf
            logs[END] = -np.inf if not tokens else logs[END]
            tokens.append(int(logs.argmax()))
        assert tokens_of(one, sentence) == tokens


# ---- F07: whose attention, whose score


@pytest.mark.parametrize("seed", range(4))
def test_attention_and_score_are_those_of_a_replay(seed):
    toy = Toy(seed, scale=1.0)
    found = search(toy, num_beams=4, num_return=4, max_length=9, beta=0.3)
    for sentence in range(B):
        for n in range(4):
            tokens = tokens_of(found, sentence, n)
            _, attention = toy.replay(sentence, tokens)
            rows = values(found.attention)[sentence, n]
            np.testing.assert_allclose(rows[: len(tokens)], attention[:-1], 1e-5)
            assert not rows[len(tokens) :].any()
            expected, total = score(toy, sentence, tokens, 0.6, "gnmt", 0.3)
            got = values(found.log_probabilities)[sentence, n]
            assert got == pytest.approx(total, 1e-4)
            assert values(found.scores)[sentence, n] == pytest.approx(expected, 1e-4)


def test_winners_have_changed_beams_on_the_way():
    """Else the test above would not see attention taken from the wrong beam."""
    changed = 0
    for seed in range(4):
        toy = Toy(seed, scale=1.0)
        best = values(search(toy, num_beams=4, max_length=9).ids)
        greedy = values(search(toy, num_beams=1, max_length=9).ids)
        # Where they part, the winner is not the first beam: that is the greedy one.
        changed += (best != greedy).any(axis=-1).sum()
    assert changed >= 4


# ---- F21: after the end


def test_there_is_nothing_after_the_end_and_nothing_twice():
    toy = Toy(2, batch=7, scale=1.0)
    found = search(toy, num_beams=5, num_return=5, max_length=11)
    for sentence in range(7):
        seen = [tuple(tokens_of(found, sentence, n)) for n in range(5)]
        assert len(set(seen)) == 5
        for n, tokens in enumerate(seen):
            assert END not in tokens[:-1]
            assert not {0, START} & set(tokens)
            assert (tokens[-1] == END) == values(found.finished)[sentence, n]
            assert not values(found.ids)[sentence, n, len(tokens) :].any()
        ended = values(found.finished)[sentence]
        assert (np.diff(ended.astype(int)) <= 0).all()
        for which in (ended, ~ended):
            assert (np.diff(values(found.scores)[sentence, which]) <= 0).all()


@pytest.mark.parametrize("num_beams", [1, 3])
def test_a_sentence_is_the_same_in_any_batch(num_beams):
    toy = Toy(11, batch=5)
    options = {"num_beams": num_beams, "num_return": num_beams, "max_length": 9}
    together = search(toy, beta=0.2, **options)
    for rows in ([3], [4, 1], [2, 2, 0, 3]):
        part = search(toy.rows(rows), beta=0.2, **options)
        assert same(part, [values(x)[rows] for x in together])


@pytest.mark.parametrize("num_beams", [1, 3])
def test_padding_of_the_source_does_not_matter(num_beams):
    toy, wide = Toy(4), Toy(4)
    wide.weights = np.pad(toy.weights, ((0, 0), (0, 0), (0, 6)))
    wide.mask = np.pad(toy.mask, ((0, 0), (0, 6)))
    options = {"num_beams": num_beams, "max_length": 9, "beta": 0.4}
    found, padded = search(toy, **options), search(wide, **options)
    assert not values(padded.attention)[..., S:].any()
    cut = padded._replace(attention=values(padded.attention)[..., :S])
    assert same(found, cut)


def test_each_sentence_may_have_its_own_limit():
    toy, limits = Toy(8, batch=4), [1, 3, 9, 2]
    options = {"num_beams": 3, "num_return": 2}
    found = search(toy, max_length=9, max_lengths=np.array(limits), **options)
    for sentence, limit in enumerate(limits):
        alone = search(toy.rows([sentence]), max_length=limit, **options)
        assert values(alone.ids).shape == (1, 2, limit)
        for n in range(2):
            assert tokens_of(found, sentence, n) == tokens_of(alone, 0, n)
        expected = values(alone.scores)[0]
        np.testing.assert_allclose(values(found.scores)[sentence], expected, 1e-5)


# ---- What models may do


def test_few_words_and_many_beams():
    toy = Toy(6, vocabulary=5)  # the words are 2 and 4
    found = search(toy, num_beams=7, num_return=7, max_length=2)
    for sentence in range(B):
        best = enumerated(toy, sentence, 2, alpha=0.6, rule="gnmt", beta=0)
        for n, (_, tokens) in enumerate(best):
            assert tokens_of(found, sentence, n) == tokens
    assert len(best) == 7  # END; 2 END, 4 END; 2 2, 2 4, 4 2, 4 4
    short = search(toy, num_beams=7, num_return=7, max_length=1)
    assert values(short.lengths).tolist() == [[1, 1, 1, 0, 0, 0, 0]] * B
    assert (values(short.scores)[:, 3:] == -np.inf).all()
    assert (
        not values(short.ids)[:, 3:].any() and not values(short.finished)[:, 3:].any()
    )
    assert np.isfinite(values(short.attention)).all()


def test_forbidden_words_and_too_early_ends_are_passed_over():
    toy = Toy(9)
    found = search(
        toy, num_beams=4, num_return=4, max_length=6, min_length=4, forbidden_ids=(2, 5)
    )
    assert values(found.lengths).min() >= 4
    assert not {0, START, 2, 5} & {
        token for b in range(B) for n in range(4) for token in tokens_of(found, b, n)
    }


def test_bad_numbers_end_one_sentence_alone():
    toy = Toy(10, batch=4)
    good = search(toy.rows([0, 3]), num_beams=3, max_length=6)
    toy.logits[1] = np.nan
    toy.logits[2] = -np.inf
    for num_beams in (1, 3):
        found = search(toy, num_beams=num_beams, max_length=6)
        assert values(found.scores)[1:3].tolist() == [[-np.inf]] * 2
        assert values(found.lengths)[1:3].tolist() == [[0]] * 2
        assert not values(found.ids)[1:3].any()
        assert not values(found.finished)[1:3].any()
    assert same(good, [values(x)[[0, 3]] for x in found])


def test_impossible_words_are_not_taken():
    toy = Toy(12)
    toy.logits[..., [2, 6]] = -np.inf
    found = search(toy, num_beams=5, num_return=5, max_length=5)
    for sentence in range(B):
        for n in range(5):
            assert not {2, 6} & set(tokens_of(found, sentence, n))
    assert np.isfinite(values(found.scores)).all()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_half_precision_is_summed_in_float32(dtype):
    toy = Toy(13)
    rounded = ops.cast(ops.cast(toy.logits, dtype), "float32")
    exact = Toy(13)
    exact.logits = values(rounded)

    def next_token(state, token, memory):
        logits, state, weights = toy.next_token(state, token, memory)
        return ops.cast(logits, dtype), state, ops.cast(weights, dtype)

    found = beam_search(next_token, toy.state, memory=toy.memory, max_length=7)
    wide = search(exact, max_length=7)
    assert keras.backend.standardize_dtype(found.scores.dtype) == "float32"
    assert same(found[:5], wide[:5])
    half = values(found.attention)
    np.testing.assert_allclose(half, values(wide.attention), 1e-2, 1e-3)


def test_states_may_be_nested_and_hold_scalars():
    toy = Toy(14)

    def next_token(state, token, memory):
        (position, (inner,)), other = state["a"], state["b"]
        logits, inner, weights = toy.next_token([inner], token, memory)
        return logits, {"a": (position + 1, tuple(inner)), "b": other}, weights

    state = {"a": (0, (toy.state[0],)), "b": np.zeros((B, 2, 3), "float32")}
    found = beam_search(next_token, state, memory=toy.memory, max_length=6)
    assert same(found, search(toy, max_length=6))


def test_attention_may_be_absent_or_left_out():
    toy = Toy(15)

    def blind(state, token, memory):
        return *toy.next_token(state, token, memory)[:2], None

    full = search(toy, max_length=6, beta=0.2)
    without = search(toy, max_length=6, beta=0.2, return_attention=False)
    assert without.attention is None and same(full[:5], without[:5])
    found = beam_search(blind, toy.state, memory=toy.memory, max_length=6)
    assert found.attention is None and same(found[:5], search(toy, max_length=6)[:5])
    with pytest.raises(ValueError, match=r"Received: None.*coverage_penalty=0"):
        beam_search(
            blind,
            toy.state,
            memory=toy.memory,
            max_length=6,
            coverage_penalty=0.1,
            source_mask=toy.mask,
        )


# ---- Errors


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"num_beams": 0}, "`num_beams` must be an integer of at least 1. Received: 0"),
        ({"num_beams": True}, "Received: True"),
        ({"num_return": 6}, "num_return=6, num_beams=5. Search with num_beams=6"),
        ({"num_return": 0}, "`num_return` must be an integer of at least 1"),
        ({"max_length": 0}, "`max_length` must be an integer of at least 1"),
        ({"min_length": 10}, "min_length=10, max_length=9"),
        ({"min_length": -1}, "`min_length` must be an integer of at least 0"),
        ({"length_penalty": -0.1}, "`length_penalty` must be a finite number"),
        ({"length_penalty": float("nan")}, "Received: nan"),
        ({"length_rule": "wu"}, "must be one of ('gnmt', 'average'). Received: 'wu'"),
        ({"coverage_penalty": -1}, "`coverage_penalty` must be a finite number"),
        ({"coverage_penalty": 1.0}, "Received: source_mask=None. Give source_mask"),
        ({"start_id": 0}, "`start_id` must be an integer of at least 1"),
        ({"start_id": 3}, "`start_id` and `end_id` must differ"),
        ({"end_id": 7}, "whose size is 7 by the logits. Received: 7"),
        ({"forbidden_ids": (3,)}, "`forbidden_ids` holds 3, the end token"),
        ({"forbidden_ids": (2, 4, 5, 6), "min_length": 2}, "No id is left to emit"),
    ],
)
def test_what_makes_no_sense_is_refused(options, words):
    toy = Toy(0)
    with pytest.raises(ValueError) as error:
        beam_search(
            toy.next_token, toy.state, memory=toy.memory, **{"max_length": 9} | options
        )
    assert words in str(error.value)


def test_sentences_must_be_counted_by_something():
    with pytest.raises(
        ValueError, match=r"reads the number of sentences.*Put a tensor"
    ):
        beam_search(lambda state, token: None, (), max_length=3)
