"""Faithfulness: words that decide are told from words that were only looked at."""

import numpy as np
import pytest

import zoo
from zoo.explanation import Explanation
from zoo.text import Tokenizer
from zoo.word_removal import faithfulness, read_ids

WORDS = ["the", "film", "is", "superb", "dull", "and", "plain"]


class CountingClassifier:
    """P(good) = 0.5 + 0.2 for each "superb" - 0.2 for each "dull": known by hand.

    Args:
        looked_at: The word that gets the attention, whatever decides.
    """

    labels, maxlen = ("bad", "good"), 10

    def __init__(self, looked_at):
        self.tokenizer, self.looked_at = Tokenizer.from_words(WORDS), looked_at

    def predict_ids(self, ids):
        superb, dull = (self.tokenizer.encode(w)[-1] for w in ("superb", "dull"))
        counts = [list(row).count(superb) - list(row).count(dull) for row in ids]
        good = 0.5 + 0.2 * np.array(counts)
        return np.stack([1 - good, good], axis=1)

    def explain(self, text):
        (encoding,) = self.tokenizer.encode_batch([text])
        cut = max(len(encoding.tokens) - self.maxlen, 0)
        tokens = encoding.tokens[cut:]
        weights = np.array([float(word == self.looked_at) for word in tokens]) + 0.01
        good = self.predict_ids([read_ids(self, text)])[0, 1]
        return Explanation(
            text=text,
            label="good" if good >= 0.5 else "bad",
            score=max(good, 1 - good),
            probabilities={},
            tokens=tokens,
            offsets=encoding.offsets[cut:],
            weights=(weights / weights.sum()).tolist(),
            words_cut=cut,
        )


def test_a_word_that_decides_moves_the_answer_more_than_others():
    found = faithfulness(CountingClassifier("superb"), "the film is superb", k=1)
    assert (found.label, found.words) == ("good", ["superb"])
    assert found.score == pytest.approx(0.7)
    assert found.score_without == pytest.approx(0.5)
    assert found.drop == pytest.approx(0.2)
    # A draw hits the one word of four that decides, or none.
    hits = sum(score == pytest.approx(0.5) for score in found.random_scores)
    assert 10 < hits < 40 and len(found.random_scores) == 100
    assert found.random_drop == pytest.approx(0.2 * hits / 100)
    assert found.share_moved_less == pytest.approx(1 - hits / 200)


def test_a_word_that_was_only_looked_at_is_found_out():
    found = faithfulness(CountingClassifier("film"), "the film is superb", k=1)
    assert found.words == ["film"] and found.drop == 0
    assert found.random_drop > 0 and found.share_moved_less < 0.5


def test_the_answer_that_gets_surer_has_a_drop_under_zero():
    text = "superb superb dull and the film"
    found = faithfulness(CountingClassifier("dull"), text, k=1)
    assert found.drop == pytest.approx(-0.2)


def test_only_words_that_were_read_are_removed():
    clf = CountingClassifier("superb")
    text = "superb " * 5 + "the film is plain and the film is plain superb"
    found = faithfulness(clf, text, k=1)
    assert found.score == pytest.approx(0.7), "the first five are over the limit"
    assert found.score_without == pytest.approx(0.5)


def test_the_seed_decides_the_draws():
    clf, text = CountingClassifier("film"), "the film is superb and plain"
    draws = [faithfulness(clf, text, seed=seed).random_scores for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_it_says_it_in_a_sentence():
    found = faithfulness(CountingClassifier("superb"), "the film is superb", k=1)
    assert str(found).startswith(
        "P(good) is 0.700. Without the 1 word most attended (superb) it is 0.500. "
    )


def test_what_cannot_be_is_refused():
    clf = CountingClassifier("superb")
    with pytest.raises(ValueError, match=r"more words .* k=3\. Received: 3 words"):
        faithfulness(clf, "the film is")
    with pytest.raises(ValueError, match="`k` must be an integer of at least 1"):
        faithfulness(clf, "the film is superb", k=0)
    with pytest.raises(TypeError, match=r"`clf` must be a pipeline.*Received: str"):
        faithfulness("the film is superb", clf)
    with pytest.raises(ValueError, match="`draws` must be an integer"):
        faithfulness(clf, "the film is superb", draws=0.5)


def test_the_trained_model_needs_what_it_looks_at_in_a_clear_review():
    clf = zoo.load("imdb_bilstm_attention")
    text = (
        "I went with my sister on a rainy afternoon. The story takes place in a small "
        "town, and it is superb. Everyone in the room was quiet on the way out."
    )
    found = zoo.faithfulness(clf, text, k=2)
    assert found.label == "positive" and "superb" in found.words
    assert found.drop > found.random_drop and found.share_moved_less > 0.9
