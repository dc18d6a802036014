"""The teacher: what it labels is right, and a network that learns from it is better."""

import contextlib
import random

import numpy as np
import pytest
from scipy.sparse import csr_matrix

import zoo
from tests.test_training import BAD, FILL, GOOD, ODD, config, make_table
from training import datasets
from training.naive_bayes import NaiveBayesLogistic
from training.sentiment import right, train
from training.start import (
    imdb_tokenizer,
    load_source,
    make_tokenizer,
    read_data,
    tokenized,
)
from training.teacher import teach
from zoo.text import Tokenizer

CLASSES = (BAD, GOOD, ODD)


def sentences(number, classes, seed=0):
    rng = random.Random(seed)
    labels = [i % classes for i in range(number)]
    texts = [
        " ".join(rng.sample([*rng.choices(FILL, k=8), rng.choice(CLASSES[c])], 9))
        for c in labels
    ]
    return texts, np.array(labels)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_teacher_learns_from_few_and_labels_many(classes):
    texts, labels = sentences(120, classes)
    more, truth = sentences(60, classes, seed=1)
    tokenizer = Tokenizer.train(texts, 100)
    ids, other = ([e.ids for e in tokenizer.encode_batch(t)] for t in (texts, more))
    first, second = teach(ids, labels, classes, [other, other[:7]])
    assert first.shape == (60, classes) and second.shape == (7, classes)
    np.testing.assert_allclose(first.sum(-1), 1, atol=1e-9)
    assert (first.argmax(-1) == truth).mean() > 0.95
    np.testing.assert_allclose(first[:7], second)


def test_too_few_labelled_texts_are_refused():
    texts, labels = sentences(8, 2)
    ids = [e.ids for e in Tokenizer.train(texts, 100).encode_batch(texts)]
    with pytest.raises(ValueError, match=r"5 or more .* Received: 4 of the rarest"):
        teach(ids, labels, 2, [ids])


def test_features_are_weighted_by_their_log_count_ratio():
    """Wang & Manning (2012), section 2.3, by hand."""
    X = csr_matrix(np.array([[1, 0, 1], [1, 1, 0], [0, 1, 0], [0, 1, 1.0]]))
    y = np.array([1, 1, 0, 0])
    p, q = np.array([3, 2, 2]) / 7, np.array([1, 3, 2]) / 6
    model = NaiveBayesLogistic().fit(X, y)
    np.testing.assert_allclose(model.ratio_, np.log(p / q))
    assert (model.predict(X) == y).all()
    assert ((model.decision_function(X) > 0) == y).all()


def write_rows(path, **texts):
    """A table of texts by class."""
    rows = [f"{text},{name}" for name, each in texts.items() for text in each]
    path.write_text("\n".join(["review,sentiment", *rows]) + "\n")


@pytest.mark.parametrize("name", ["keras_reviews.csv", "tfds.csv"])
def test_a_table_called_like_a_source_is_a_table(tmp_path, name):
    """Of its own vocabulary, not IMDB's; ids of it are not those of keras.datasets."""
    make_table(tmp_path / name)
    with contextlib.chdir(tmp_path):
        data = load_source(config(name, "out"), name).train
    tokenizer = make_tokenizer(None, 50, data)
    assert tokenizer.words != imdb_tokenizer().words
    ids = tokenized(tokenizer, data)
    assert tokenized(tokenizer, ids) is ids


def test_a_test_part_that_holds_all_of_a_class_is_refused(tmp_path):
    data, again = tmp_path / "a.csv", tmp_path / "b.csv"
    write_rows(data, pos=("good", "fine", "nice"), neg=("bad", "dull", "poor"))
    write_rows(again, pos=("new", "newer", "newest"), neg=("bad", "dull", "poor"))
    with pytest.raises(ValueError, match=r"of 'neg' is left: .*b\.csv too"):
        read_data(config(data, "out", test_data=str(again)))


def test_the_test_part_of_a_folder_is_its_test_part(tmp_path):
    data = tmp_path / "a.csv"
    classes = {"positive": ("good", "fine", "nice"), "negative": ("bad", "ill", "poor")}
    write_rows(data, **classes)
    for part, name, text in (
        ("train", "neg", "bad"),
        ("train", "pos", "good"),
        ("test", "neg", "dull"),
        ("test", "pos", "superb"),
    ):
        place = tmp_path / "folder" / part / name
        place.mkdir(parents=True)
        (place / "1.txt").write_text(text)
    plan = config(
        data, "out", test_data=str(tmp_path / "folder"), validation_fraction=0
    )
    parts = read_data(plan)
    assert sorted(parts.test.texts) == ["dull", "superb"]
    assert len(parts.train) == 6


@pytest.mark.parametrize(
    ("data", "unlabelled", "given"),
    [("x.csv", "tfds", None), ("x.csv", "y.txt", "d"), ("tfds", None, "d")],
)
def test_a_folder_of_tfds_goes_to_what_is_read_from_it(
    monkeypatch, data, unlabelled, given
):
    seen = {}
    monkeypatch.setattr(
        datasets, "load", lambda source, **options: seen.update(options)
    )
    load_source(config(data, "out", unlabelled=unlabelled, data_dir="d"), data)
    assert seen.get("data_dir") == given  # `load` refuses it where it has no use


def test_a_run_learns_from_unlabelled_texts_and_says_so(tmp_path):
    data = make_table(tmp_path / "few.csv", rows=40)
    texts, _ = sentences(300, 2, seed=2)
    held_out = datasets.load(
        str(data), text_column="review", label_column="sentiment"
    ).train.texts
    more = tmp_path / "more.txt"
    more.write_text("\n".join([*texts, *held_out]), encoding="utf-8")
    plan = config(
        data, tmp_path / "run", unlabelled=str(more), epochs=4, taught_epochs=2
    )
    metrics = train(plan, progress=False)
    validation = metrics["validation"]["texts"]
    assert metrics["unlabelled_texts"] == 300 + 40 - validation, "none is held out"
    assert metrics["teacher_accuracy"] >= 0.5
    assert metrics["validation"]["accuracy"] >= 0.5
    clf = zoo.load(tmp_path / "run")
    assert clf.predict(["the superb film was a story"])[0].label == "good"
    assert clf.predict(["the dull film was a story"])[0].label == "bad"


def test_more_taught_epochs_than_epochs_are_refused():
    with pytest.raises(ValueError, match="Received: 5 of 2"):
        config("tfds", "out", unlabelled="tfds", taught_epochs=5)


def test_soft_targets_count_as_the_class_they_lean_to():
    got = right(np.array([[0.9], [0.2], [0.6]]), np.array([[0.7], [0.6], [0.1]]))
    assert np.asarray(got).ravel().tolist() == [True, False, False]
    got = right(np.array([[0.2, 0.5, 0.3]]), np.array([[0.1, 0.7, 0.2]]))
    assert np.asarray(got).tolist() == [True]
