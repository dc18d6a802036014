"""The examples, and the validation part taken out of them."""

import numpy as np
import pytest

from training.datasets import (
    LabelledTexts,
    Splits,
    leave_out,
    split_validation,
)

NAMES = ("negative", "neutral", "positive")
COUNTS = (41, 29, 83)  # texts of each class


@pytest.fixture
def data():
    """Different texts, the classes mixed."""
    labels = np.random.default_rng(3).permutation(np.repeat([0, 1, 2], COUNTS))
    return LabelledTexts([f"text {i}" for i in range(153)], labels, NAMES, "a test")


def with_texts(texts, labels, names=("a", "b")):
    return LabelledTexts(texts, labels, names, "a test")


# ---- LabelledTexts and Splits


def test_select_takes_the_examples_asked_for(data):
    chosen = data.select([5, -1, 5])
    assert chosen.texts == ["text 5", "text 152", "text 5"]
    assert chosen.labels.tolist() == data.labels[[5, -1, 5]].tolist()
    assert (chosen.label_names, chosen.source) == (NAMES, "a test")
    in_class = data.select(data.labels == 1)
    assert len(in_class) == COUNTS[1]
    assert set(in_class.labels.tolist()) == {1}
    assert len(data.select([])) == 0


@pytest.mark.parametrize(
    "indices, error, match",
    [
        ([153], IndexError, "153 is out of bounds"),
        ([True, False], IndexError, "boolean"),
        ([0.5], TypeError, "`indices` must be a list of integers.*float64"),
        (3, TypeError, r"shape \(\)"),
    ],
)
def test_select_refuses_what_are_no_indices(data, indices, error, match):
    with pytest.raises(error, match=match):
        data.select(indices)


def test_token_ids_are_texts_too():
    data = with_texts([[1, 14, 22], [1]], [0, 1])
    assert data.is_tokenized
    assert data.select([1]).texts == [[1]]
    assert not with_texts(["x"], [0]).is_tokenized


@pytest.mark.parametrize(
    "texts, labels, names, error, match",
    [
        (["x"], [0, 1], ("a", "b"), ValueError, r"1 texts and labels of shape \(2,\)"),
        (["x"], [[0]], ("a", "b"), ValueError, r"shape \(1, 1\)"),
        (["x"], [0.0], ("a", "b"), TypeError, "must be integers.*float64"),
        (["x", "y"], [0, -1], ("a", "b"), ValueError, r"0\.\.1.*-1 at index 1"),
        (["x", "y"], [2, 0], ("a", "b"), ValueError, "2 at index 0"),
        (["x"], [0], ("a",), ValueError, "two or more names"),
        (["x"], [0], (0, 1), TypeError, "must be a list of strings"),
        (["x", b"y"], [0, 1], ("a", "b"), TypeError, "bytes at index 1.*Decode"),
        ([np.array([1])], [0], ("a", "b"), TypeError, "ndarray at index 0"),
    ],
)
def test_examples_that_do_not_fit_are_refused(texts, labels, names, error, match):
    with pytest.raises(error, match=match):
        LabelledTexts(texts, labels, names, "a test")


def test_splits_have_the_same_classes():
    train = with_texts(["x"], [0])
    assert Splits(train).test is None
    with pytest.raises(ValueError, match=r"\('a', 'b'\) and \('b', 'a'\)"):
        Splits(train, with_texts(["y"], [0], ("b", "a")))


# ---- split_validation


@pytest.mark.parametrize("fraction", [0.001, 0.1, 1 / 3, 0.5, 0.999])
def test_each_class_gives_its_share(data, fraction):
    train, validation = split_validation(data, fraction, seed=7)
    shares = [min(max(1, round(fraction * n)), n - 1) for n in COUNTS]
    assert np.bincount(validation.labels).tolist() == shares
    assert np.bincount(train.labels).tolist() == [
        n - s for n, s in zip(COUNTS, shares, strict=True)
    ]


def test_every_example_lies_on_one_side_with_its_label(data):
    train, validation = split_validation(data, 0.2, seed=7)
    label = dict(zip(data.texts, data.labels, strict=True))
    assert sorted(train.texts + validation.texts) == sorted(data.texts)
    for part in (train, validation):
        assert [label[text] for text in part.texts] == part.labels.tolist()
        numbers = [int(text.split()[1]) for text in part.texts]
        assert numbers == sorted(numbers)  # the order of the data is kept


def test_the_seed_decides_the_split(data):
    first, again = (split_validation(data, 0.2, seed=7)[1] for _ in range(2))
    other = split_validation(data, 0.2, seed=8)[1]
    assert first.texts == again.texts
    assert first.texts != other.texts


@pytest.mark.parametrize("tokenized", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_copies_of_a_text_stay_together(tokenized, seed):
    # 11 texts of class a, of which text i stands i + 1 times, and 13 of class b
    numbers = [i for i in range(11) for _ in range(i + 1)] + list(range(11, 24))
    texts = [[1, n] if tokenized else f"text {n}" for n in numbers]
    copies = with_texts(texts, [0] * 66 + [1] * 13)
    train, validation = split_validation(copies, 0.25, seed)
    assert not {str(t) for t in train.texts} & {str(t) for t in validation.texts}
    assert len(train) + len(validation) == len(copies)
    assert 0 < (validation.labels == 0).sum() <= round(0.25 * 66)


def test_a_text_with_two_labels_goes_with_its_first():
    texts = ["both", "a1", "a2", "both", "b1", "b2"]
    train, validation = split_validation(with_texts(texts, [0, 0, 0, 1, 1, 1]), 0.3, 1)
    assert ("both" in train.texts) != ("both" in validation.texts)


def test_where_every_group_is_too_large_the_smallest_goes():
    texts = ["x"] * 5 + ["y"] * 3 + ["z"] * 7 + ["u", "v"]
    _, validation = split_validation(with_texts(texts, [0] * 15 + [1] * 2), 0.1, 3)
    assert [text for text in validation.texts if text in "xyz"] == ["y"] * 3


@pytest.mark.parametrize(
    "texts, received",
    [
        (["x", "y"], "0 examples with 0 different texts"),
        (["x", "y", "z"], "1 example with 1 different text"),
        (["x", "y", "z", "z"], "2 examples with 1 different text"),
        (["x", "y", "x"], "1 example with 0 different texts"),
    ],
)
def test_a_class_that_cannot_be_on_both_sides_is_refused(texts, received):
    labels = [0, 0] + [1] * (len(texts) - 2)
    with pytest.raises(ValueError, match=f"Class 'b' has too few.*{received}"):
        split_validation(with_texts(texts, labels), 0.5, 0)


@pytest.mark.parametrize("fraction", [0, 1, -0.1, 1.5, True, "0.1", float("nan")])
def test_a_fraction_that_is_none_is_refused(data, fraction):
    with pytest.raises(ValueError, match="`fraction` must be a number between 0 and 1"):
        split_validation(data, fraction, 7)


@pytest.mark.parametrize("seed", [None, 0.5, True, -1])
def test_a_seed_that_is_none_is_refused(data, seed):
    with pytest.raises(TypeError, match="`seed` must be an integer"):
        split_validation(data, 0.1, seed)


# ---- leave_out


def test_leave_out_takes_every_copy_of_a_known_text():
    train = with_texts(["x", "y", "x", "z"], [0, 1, 1, 0])
    rest = leave_out(train, with_texts(["x", "w"], [0, 0]))
    assert (rest.texts, rest.labels.tolist()) == (["y", "z"], [1, 0])
    ids = with_texts([[1, 4], [1, 5]], [0, 1])
    assert leave_out(ids, ids.select([0])).texts == [[1, 5]]
