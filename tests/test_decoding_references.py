"""What the searches are held against: toys, enumeration, and plain Python searches."""

import itertools
import math

import numpy as np
from keras import ops

from zoo.decoding import beam_search

START, END = 1, 3


def values(x):
    return ops.convert_to_numpy(x)


class Toy:
    """Sentences whose next token hangs on all tokens before, by a random table.

    The history is a number below `num_histories` in the state, which a search has to
    carry along with each hypothesis; the tables are the memory.
    """

    def __init__(self, seed, batch=3, vocabulary=7, source=5, scale=2.0):
        rng = np.random.default_rng(seed)
        self.num_histories, self.vocabulary, self.source = 11, vocabulary, source
        shape = (batch, self.num_histories)
        logits = rng.normal(0, scale, (*shape, vocabulary))
        weights = rng.exponential(1, (*shape, source))
        self.mask = np.arange(source) < rng.integers(1, source + 1, (batch, 1))
        weights = weights * self.mask[:, None]
        weights /= weights.sum(-1, keepdims=True)
        self.logits, self.weights = logits.astype("float32"), weights.astype("float32")
        self.calls = 0

    @property
    def memory(self):
        return {"logits": self.logits, "weights": [self.weights]}

    @property
    def state(self):
        return [np.zeros((len(self.logits), 1), "int32")]

    def rows(self, which):
        """The same toy with only these sentences, in this order."""
        toy = object.__new__(Toy)
        toy.__dict__.update(self.__dict__)
        for name in ("logits", "weights", "mask"):
            setattr(toy, name, getattr(self, name)[which])
        return toy

    def next_token(self, state, token, memory):
        self.calls += 1
        history = ops.convert_to_tensor(state[0])
        history = (history * 3 + ops.cast(token, "int32")[:, None]) % self.num_histories
        here = history[:, :, None]
        logits = ops.take_along_axis(memory["logits"], here, axis=1)[:, 0]
        weights = ops.take_along_axis(memory["weights"][0], here, axis=1)[:, 0]
        return logits, [history], weights

    def replay(self, sentence, tokens):
        """log P of each next token after each of the tokens, and the attention."""
        history, logs, attention = 0, [], []
        for token in [START, *tokens]:
            history = (history * 3 + token) % self.num_histories
            logits = self.logits[sentence, history].astype("float64")
            logs.append(logits - math.log(sum(math.exp(x) for x in logits)))
            attention.append(self.weights[sentence, history])
        return np.array(logs), np.array(attention)


def score(toy, sentence, tokens, alpha, rule, beta):
    """Wu et al. (2016), eq. 14, token by token; and log P."""
    logs, attention = toy.replay(sentence, tokens)
    total = sum(logs[t, token] for t, token in enumerate(tokens))
    n = len(tokens)
    divisor = ((5 + n) / 6) ** alpha if rule == "gnmt" else n**alpha
    covered = 0.0
    for s in range(toy.source):
        if toy.mask[sentence, s]:
            summed = sum(attention[t, s] for t in range(n))
            covered += math.log(min(max(summed, 1e-6), 1.0))
    return total / divisor + beta * covered, total


def enumerated(toy, sentence, max_length, min_length=0, forbidden=(), **penalties):
    """All hypotheses there are, by score: [(score, tokens), ...]."""
    never = {0, START, END, *forbidden}
    words = [v for v in range(toy.vocabulary) if v not in never]
    found = []
    for length in range(max_length + 1):
        for middle in itertools.product(words, repeat=length):
            ends = [*middle, END]
            if min_length <= len(ends) <= max_length:
                found.append(ends)
            if length == max_length:
                found.append([*middle])
    scored = [(score(toy, sentence, x, **penalties)[0], x) for x in found]
    return sorted(scored, key=rank)


def rank(pair):
    """What hypotheses are put in order by: those without an end come last."""
    score, tokens = pair
    return tokens[-1:] != [END], -score


def searched(toy, sentence, num_beams, max_length, min_length=0, **penalties):
    """Beam search in plain Python, of one sentence, that never stops early."""
    beams, pool = [(0.0, [])], []
    for length in range(1, max_length + 1):
        candidates = []
        for total, tokens in beams:
            logs, _ = toy.replay(sentence, tokens)
            for token in range(toy.vocabulary):
                too_soon = token == END and length < min_length
                if token not in (0, START) and not too_soon:
                    candidates.append((total + logs[-1, token], [*tokens, token]))
        candidates.sort(key=lambda pair: -pair[0])
        for _, tokens in candidates[:num_beams]:
            if tokens[-1] == END or length == max_length:
                pool.append((score(toy, sentence, tokens, **penalties)[0], tokens))
        going_on = [c for c in candidates if c[1][-1] != END]
        beams = going_on[:num_beams]
    return sorted(pool, key=rank)


def tokens_of(found, sentence, n=0):
    """The tokens of a hypothesis, by its length."""
    length = int(values(found.lengths)[sentence, n])
    return values(found.ids)[sentence, n, :length].tolist()


def same(a, b, tolerance=1e-5):
    """Whether two `Hypotheses` say the same."""
    for x, y in zip(a, b, strict=True):
        np.testing.assert_allclose(values(x), values(y), tolerance, tolerance)
    return True


def test_a_beam_as_wide_as_all_there_is_equals_enumeration():
    toy = Toy(3, batch=1, vocabulary=6)
    penalties = {"alpha": 0.7, "rule": "average", "beta": 0.3}
    wide = searched(toy, 0, 200, 3, **penalties)
    narrow = searched(toy, 0, 1, 3, **penalties)
    everything = enumerated(toy, 0, 3, **penalties)
    assert wide == everything
    assert 0 < len(narrow) < len(wide)


def test_the_toy_is_its_own_replay():
    toy = Toy(5)
    state, token = toy.state, np.array([START] * 3)
    for t, tokens in enumerate([[4, 5, 6], [2, 4, 4]]):
        logits, state, weights = toy.next_token(state, token, toy.memory)
        for sentence in range(3):
            before = [[4, 5, 6], [2, 4, 4]][0][sentence : sentence + 1][:t]
            logs, attention = toy.replay(sentence, before)
            expected = toy.logits[sentence]
            assert np.any(np.all(np.isclose(values(logits)[sentence], expected), -1))
            np.testing.assert_allclose(values(weights)[sentence], attention[-1], 1e-5)
            difference = values(logits)[sentence] - logs[-1]
            np.testing.assert_allclose(difference, difference[0], 1e-4)
        token = np.array(tokens)


def test_hypotheses_say_their_length_once():
    toy = Toy(7)
    found = beam_search(toy.next_token, toy.state, memory=toy.memory, max_length=13)
    assert values(found.ids).shape == (3, 1, 13)
    for sentence in range(3):
        length = int(values(found.lengths)[sentence, 0])
        rows = values(found.attention)[sentence, 0].sum(-1)
        np.testing.assert_allclose(rows, np.arange(13) < length, atol=1e-5)
        assert (values(found.ids)[sentence, 0] > 0).sum() == length
