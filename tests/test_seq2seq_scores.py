"""The metrics of texts, against counts by hand."""

import pytest

from training.seq2seq_scores import (
    METRICS,
    better,
    bleu,
    chosen_by,
    exact_match,
    pronunciation_errors,
    word_errors,
)
from training.seq2seq_tasks import METRICS as NAMES


def test_any_reference_counts_as_right():
    texts, references = ["a", "b", "c"], [["x", "a"], ["b"], ["d"]]
    assert exact_match(texts, references) == {"exact": pytest.approx(2 / 3)}


def test_bleu_takes_different_numbers_of_references():
    # by hand: 4 of 5, 2 of 4, 1 of 3 n-grams, and no 4-gram, without references two
    texts = ["the cat sat on it", "go away now please"]
    one = bleu(texts, [["the cat sat on it"], ["go away now please"]])["bleu"]
    two = bleu(texts, [["x", "the cat sat on it"], ["go away now please"]])["bleu"]
    assert one == two == pytest.approx(100)
    worse = bleu(texts, [["x"], ["go away now please"]])["bleu"]
    assert worse < 60


def test_bleu_of_a_sentence_by_its_equation():
    text, reference = "a b c d e", "a b c d f"
    precisions = [4 / 5, 3 / 4, 2 / 3, 1 / 2]
    mean = 1.0
    for precision in precisions:
        mean *= precision**0.25
    assert bleu([text], [[reference]])["bleu"] == pytest.approx(100 * mean)


def test_bleu_says_how_it_was_computed():
    signature = bleu(["a b"], [["a b"]])["signature"]
    assert "tok:13a" in signature
    assert "version:" in signature
    assert "case:mixed" in signature


def test_bleu_without_case_says_so():
    text, reference = "the big cat sat down", "The big cat sat down"
    assert bleu([text], [[reference]])["bleu"] < 99
    found = bleu([text], [[reference]], lowercase=True)
    assert found["bleu"] == pytest.approx(100)
    assert "case:lc" in found["signature"]


def test_phones_are_counted_against_the_nearest_pronunciation():
    texts = ["K AE T", "D AO", ""]
    references = [["K AE T"], ["D AA G Z", "D AO G"], ["AH"]]
    # edits 0, 1 (of 3 phones) and 1 (of 1); phones 3 + 3 + 1
    assert pronunciation_errors(texts, references) == {
        "wer": pytest.approx(2 / 3),
        "per": pytest.approx(2 / 7),
    }


def test_errors_of_sentences_are_counted_by_the_word():
    texts = ["the cat sat", "go"]
    references = [["a cat sat down now"], ["stay", "go away"]]
    # edits 3 (of 5 words); 1 of 1 and 1 of 2 are equally near: the first
    assert word_errors(texts, references) == {"wer": pytest.approx(4 / 6)}


def test_every_metric_has_a_function_and_a_direction():
    assert set(NAMES) == set(METRICS)
    for name, function in METRICS.items():
        perfect = function(["A B C D"], [["A B C D"]])[chosen_by(name)]
        poor = function(["A C D B"], [["A B C D"]])[chosen_by(name)]
        assert better(name) * perfect > better(name) * poor
