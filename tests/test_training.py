"""Training runs: whole files, resume without a trace, own data, any classes."""

import csv
import dataclasses
import json
import random

import keras
import numpy as np
import pytest

import zoo
from tests.killed_runs import check_same_end, kill_in_the_second_epoch
from training import batches, run_folder
from training.compare import compare, mean_and_spread, table
from training.config import SentimentConfig
from training.evaluate import evaluate, evaluate_source
from training.options import from_options
from training.sentiment import targets, train, usual_epochs
from training.start import imdb_tokenizer, trained_start
from zoo.padding import cut_and_pad
from zoo.pipelines import SentimentClassifier
from zoo.text import UNKNOWN_ID, Tokenizer

GOOD = ["superb", "great", "lovely", "wonderful"]
BAD = ["dull", "awful", "boring", "poor"]
ODD = ["strange", "weird", "curious", "puzzling"]
FILL = ["the", "film", "was", "a", "story", "of", "two", "people", "in", "town"]
TINY = {"embedding_dim": 8, "lstm_units": 6, "batch_size": 16, "maxlen": 30}
QUICK = {**TINY, "epochs": 2, "learning_rate": 0.02}


def make_table(path, classes=(("good", GOOD), ("bad", BAD)), rows=160):
    """Reviews whose class is that of the words among them: easy to learn."""
    rng = random.Random(1)
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "sentiment"])
        for i in range(rows):
            label, signs = classes[i % len(classes)]
            words = rng.choices(FILL, k=rng.randint(2, 25))
            for _ in range(3):
                words.insert(rng.randrange(len(words)), rng.choice(signs))
            writer.writerow([" ".join(words), label])
    return path


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    return make_table(tmp_path_factory.mktemp("data") / "reviews.csv")


def config(data, out, **options):
    return SentimentConfig(
        **{
            "name": "imdb_bilstm_attention",
            "data": str(data),
            "out": str(out),
            "text_column": "review",
            "label_column": "sentiment",
            **QUICK,
            **options,
        }
    )


@pytest.fixture(scope="module")
def run(reviews, tmp_path_factory):
    """One finished run: (folder, metrics)."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    return folder, train(config(reviews, folder, epochs=4), progress=False)


# ---- what a run leaves


def test_a_run_learns_and_leaves_every_file(run):
    folder, metrics = run
    assert metrics["validation"]["accuracy"] >= 0.9
    assert metrics["test"] is None
    expected = """config.json model.keras model.weights.h5 attention.keras card.md
    tokenizer.json history.csv metrics.json plots/history.png plots/attention-1.png"""
    for name in expected.split():
        assert (folder / name).stat().st_size > 0, name
    assert not list(folder.rglob("tmp.*"))
    assert not (folder / run_folder.CHECKPOINTS).exists()


def test_the_history_has_a_row_an_epoch(run):
    folder, metrics = run
    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3", "4"]
    best = max(float(row["val_accuracy"]) for row in rows)
    assert metrics["validation"]["accuracy"] == pytest.approx(best)


def test_the_run_loads_as_a_pipeline_with_its_class_names(run):
    folder, metrics = run
    clf = zoo.load(folder)
    assert clf.labels == ("bad", "good")
    assert clf.predict(["a superb and lovely story"])[0].label == "good"
    assert clf.predict(["a dull awful film"])[0].label == "bad"
    assert clf.model.count_params() == metrics["parameters"]


def test_the_attention_model_is_the_models_own(run):
    folder, _ = run
    clf = zoo.load(folder)
    both = keras.saving.load_model(folder / "attention.keras", safe_mode=True)
    ids = np.array([clf.tokenizer.encode("the film was superb")])
    output, maps = both.predict(ids, verbose=0)
    np.testing.assert_allclose(
        output, clf.model.predict(ids, verbose=0), rtol=1e-5, atol=1e-6
    )
    weights = clf.explain("the film was superb").weights
    np.testing.assert_allclose(
        maps["attention"][0, 1:, 0], weights, rtol=1e-5, atol=1e-6
    )


def test_the_weights_file_fits_the_factory(run):
    folder, _ = run
    clf = zoo.load(folder)
    model = zoo.imdb_bilstm_attention(
        weights=str(folder / "model.weights.h5"),
        vocabulary_size=clf.model.get_layer("embedding").input_dim,
        embedding_dim=8,
        lstm_units=6,
    )
    ids = np.array([[1, 4, 5, 6]])
    np.testing.assert_array_equal(
        model.predict(ids, verbose=0), clf.model.predict(ids, verbose=0)
    )


def test_the_card_names_command_metric_and_versions(run):
    folder, metrics = run
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert f"{metrics['validation']['accuracy']:.2%}" in card
    assert "python -m training imdb_bilstm_attention" in card
    assert f"keras {keras.__version__}" in card
    assert "--resume" not in card


# ---- stopping and going on


@pytest.mark.slow
def test_two_runs_of_a_seed_are_equal_and_of_two_seeds_not(reviews, run, tmp_path):
    first = run[1]
    again = train(config(reviews, tmp_path / "again", epochs=4), progress=False)
    other = train(config(reviews, tmp_path / "other", epochs=4, seed=1), progress=False)
    assert again["validation"] == first["validation"]
    assert other["validation"]["loss"] != first["validation"]["loss"]


@pytest.mark.slow
def test_a_run_killed_in_its_second_epoch_ends_like_one_left_alone(
    reviews, run, tmp_path
):
    folder, columns = tmp_path / "killed", ["--text-column", "review"]
    words = ["imdb_bilstm_attention", "--data", str(reviews), *columns]
    words += ["--label-column", "sentiment"]
    kill_in_the_second_epoch(words, {**QUICK, "epochs": 4}, folder, tmp_path)
    resumed = train(config(reviews, folder, epochs=4, resume=True), progress=False)
    check_same_end(resumed, run[1], folder, run[0])


def test_a_finished_run_is_not_trained_again(reviews, run):
    folder, metrics = run
    before = (folder / "model.keras").stat().st_mtime_ns
    again = train(config(reviews, folder, epochs=4, resume=True), progress=False)
    assert again == json.loads((folder / "metrics.json").read_text())
    assert again["validation"] == metrics["validation"]
    assert (folder / "model.keras").stat().st_mtime_ns == before


def test_folders_in_use_and_other_options_are_refused(reviews, run, tmp_path):
    folder, _ = run
    with pytest.raises(ValueError, match=r"holds a run already.*--resume.*weights="):
        train(config(reviews, folder), progress=False)
    with pytest.raises(ValueError, match=r"epochs \(was 4, is 7\)"):
        train(config(reviews, folder, epochs=7, resume=True), progress=False)
    (tmp_path / "tmp.0123.config.json").write_text("")  # a kill left it: no obstacle
    assert run_folder.open_run(tmp_path, {}, False) == (tmp_path, None, None)
    run_folder.begin(tmp_path / "new", {}, "", "")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["config.json"]
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match="not empty and holds no run"):
        train(config(reviews, tmp_path), progress=False)
    with pytest.raises(ValueError, match="must be a folder"):
        train(config(reviews, tmp_path / "mine.txt"), progress=False)
    zoo.load(folder).save(tmp_path / "saved")
    with pytest.raises(ValueError, match="saved model, not a training run"):
        train(config(reviews, tmp_path / "saved", resume=True), progress=False)


def test_a_run_is_not_resumed_with_other_data(tmp_path):
    data = make_table(tmp_path / "mine.csv", rows=40)
    plan = config(data, tmp_path / "run", epochs=1)
    train(plan, progress=False)
    (tmp_path / "run" / "metrics.json").unlink()  # as if it had been killed
    make_table(data, rows=60)
    with pytest.raises(ValueError, match="begun with other data than"):
        train(dataclasses.replace(plan, resume=True), progress=False)


def test_ids_of_another_vocabulary_are_refused(run, tmp_path, monkeypatch):
    rows = np.empty(2, dtype=object)
    rows[:] = [[1, 14, 22], [1, 30]]
    part = (rows, np.array([1, 0]))
    monkeypatch.setattr(keras.datasets.imdb, "load_data", lambda: (part, part))
    clf = zoo.load(run[0])
    with pytest.raises(ValueError, match="vocabulary of its own"):
        own = SentimentClassifier(
            clf.model, clf.tokenizer, ("negative", "positive"), clf.maxlen
        )
        evaluate_source(own, "keras")


def test_a_folder_may_be_tested_on_a_table(tmp_path, reviews):
    for label, signs in (("bad", BAD), ("good", GOOD)):
        folder = tmp_path / "mine" / label
        folder.mkdir(parents=True)
        for i in range(20):
            text = f"the {signs[i % 4]} film {i}"
            (folder / f"{i}.txt").write_text(text, encoding="utf-8")
    plan = config(tmp_path / "mine", tmp_path / "run", test_data=str(reviews), epochs=1)
    assert train(plan, progress=False)["test"]["texts"] == 160


def test_checkpoints_are_whole_or_absent(tmp_path):
    checkpoints = run_folder.Checkpoints(tmp_path)
    assert checkpoints.latest() is None
    checkpoints.save(1, {"a": 1}, lambda folder: (folder / "w").write_text("one"))

    def fail(folder):
        (folder / "w").write_text("half")
        raise RuntimeError

    with pytest.raises(RuntimeError):
        checkpoints.save(2, {"a": 2}, fail)
    assert checkpoints.latest().name == "epoch-0001"
    assert (checkpoints.latest() / "w").read_text() == "one"
    checkpoints.save(2, {"a": 2}, lambda folder: (folder / "w").write_text("two"))
    assert [p.name for p in checkpoints.folder.iterdir()] == ["epoch-0002"]


# ---- own data


def test_any_number_of_classes(tmp_path):
    classes = (("good", GOOD), ("bad", BAD), ("odd", ODD))
    data = make_table(tmp_path / "three.csv", classes, rows=240)
    metrics = train(config(data, tmp_path / "run", epochs=5), progress=False)
    clf = zoo.load(tmp_path / "run")
    assert clf.labels == ("bad", "good", "odd")
    assert metrics["validation"]["accuracy"] >= 0.8
    assert clf.predict(["a weird and puzzling film"])[0].label == "odd"


def test_going_on_from_a_run_keeps_its_head_and_its_order(reviews, run, tmp_path):
    folder, before = run
    fresh = dict.fromkeys(("embedding_dim", "lstm_units"))
    go_on = config(
        reviews, tmp_path / "on", weights=str(folder), epochs=1, **fresh,
        learning_rate=0.0, average=0.0,
    )  # fmt: skip
    after = train(go_on, progress=False)
    assert after["validation"] == before["validation"], "a rate of 0 changes nothing"
    assert zoo.load(tmp_path / "on").labels == ("bad", "good")


def test_other_classes_get_a_new_head_on_the_same_body(run, tmp_path):
    folder, _ = run
    data = make_table(tmp_path / "odd.csv", (("odd", ODD), ("plain", GOOD)), rows=40)
    fresh = dict.fromkeys(("embedding_dim", "lstm_units"))
    go_on = config(
        data, tmp_path / "on", weights=str(folder), epochs=1, **fresh,
        learning_rate=0.0, average=0.0,
    )  # fmt: skip
    train(go_on, progress=False)
    start, end = zoo.load(folder), zoo.load(tmp_path / "on")
    assert end.labels == ("odd", "plain")
    assert end.tokenizer.words == start.tokenizer.words
    for name, same in (("embedding", True), ("bilstm", True), ("classifier", False)):
        one = start.model.get_layer(name).get_weights()[0]
        other = end.model.get_layer(name).get_weights()[0]
        assert np.array_equal(one, other) is same, name


def test_a_vocabulary_of_its_own_has_the_size_asked_for(reviews, tmp_path):
    train(
        config(reviews, tmp_path / "run", vocabulary_size=9, epochs=1), progress=False
    )
    clf = zoo.load(tmp_path / "run")
    assert clf.tokenizer.vocabulary_size == 9
    assert clf.model.get_layer("embedding").input_dim == 9


def test_a_test_file_is_measured_once_and_left_out_of_training(reviews, tmp_path):
    more = make_table(tmp_path / "more.csv", rows=200)
    plan = config(
        more, tmp_path / "run", test_data=str(reviews), validation_fraction=0.0
    )
    metrics = train(plan, progress=False)
    assert metrics["validation"] is None and metrics["test"]["texts"] == 160
    # Both tables are drawn by one seed, so the first 160 rows are the same.
    assert metrics["train_texts"] <= 40
    assert metrics["best_epoch"] == 2, "without validation the last epoch is kept"


def test_a_folder_is_a_source(tmp_path):
    rng = random.Random(2)
    for part in ("train", "test"):
        for label, signs in (("neg", BAD), ("pos", GOOD)):
            folder = tmp_path / "aclImdb" / part / label
            folder.mkdir(parents=True)
            for i in range(20):
                words = [*rng.choices(FILL, k=9), rng.choice(signs), f"{part}{i}"]
                (folder / f"{i}_1.txt").write_text(" ".join(words), encoding="utf-8")
    columns = {"text_column": "text", "label_column": "label"}
    plan = config(tmp_path / "aclImdb", tmp_path / "run", epochs=1, **columns)
    metrics = train(plan, progress=False)
    assert metrics["test"]["texts"] == 40
    assert zoo.load(tmp_path / "run").labels == ("negative", "positive")


def test_ids_of_keras_datasets_are_a_source(tmp_path, monkeypatch):
    texts = ["a superb film", "a dull film"] * 20
    ids = [e.ids for e in imdb_tokenizer().encode_batch(texts)]
    rows = np.empty(40, dtype=object)
    rows[:] = [[*row, 50 + i] for i, row in enumerate(ids)]
    part = (rows, np.array([1, 0] * 20))
    monkeypatch.setattr(keras.datasets.imdb, "load_data", lambda: (part, part))
    columns = {"text_column": "text", "label_column": "label"}
    plan = config("keras", tmp_path / "run", epochs=1, vocabulary_size=3000, **columns)
    with pytest.raises(ValueError, match=r"left: all stand in keras\.datasets\.imdb"):
        train(plan, progress=False)  # every training text is a test text: none is left
    assert not (tmp_path / "run").exists(), "a run that could not begin leaves nothing"
    other = np.empty(2, dtype=object)
    other[:] = [[1, 14, 22], [1, 30]]
    test = (other, np.array([1, 0]))
    monkeypatch.setattr(keras.datasets.imdb, "load_data", lambda: (part, test))
    metrics = train(plan, progress=False)
    assert metrics["train_texts"] == 36 and metrics["test"]["texts"] == 2
    clf = zoo.load(tmp_path / "run")
    assert clf.tokenizer.encode("film") == [1, 22], "the ids are those of Keras"
    assert (tmp_path / "run" / "plots" / "attention-1.png").exists()


def test_the_plain_model_trains_and_has_no_attention_file(reviews, tmp_path):
    train(config(reviews, tmp_path / "run", name="imdb_bilstm"), progress=False)
    assert not (tmp_path / "run" / "attention.keras").exists()


@pytest.mark.slow
def test_compare_trains_both_and_tabulates(reviews, tmp_path):
    plan = config(reviews, tmp_path, epochs=1, attention_units=5)
    rows = compare(plan, seeds=2, progress=False)
    assert [row["model"] for row in rows] == ["imdb_bilstm_attention", "imdb_bilstm"]
    for row in rows:
        values = [
            json.loads((tmp_path / f"{row['model']}-{seed}/metrics.json").read_text())
            for seed in (0, 1)
        ]
        accuracies = [value["validation"]["accuracy"] for value in values]
        assert row["validation"] == pytest.approx(np.mean(accuracies))
        assert row["validation_spread"] == pytest.approx(np.std(accuracies, ddof=1))
    assert table(rows) == (tmp_path / "comparison.md").read_text()
    with pytest.raises(ValueError, match="`seeds` must be at least 1"):
        compare(plan, seeds=0)


def test_a_home_folder_is_one_for_runs_their_starts_and_their_table(
    reviews, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "before/imdb_bilstm-0").mkdir(parents=True)
    sizes = dict.fromkeys(("embedding_dim", "lstm_units"))
    plan = config(reviews, "~/all", weights="~/before", **sizes)
    seen = []

    def train(run, progress):
        seen.append((run.out, run.weights))
        return {"validation": {"accuracy": 0.5}, "test": None, "seconds": 1.0}

    monkeypatch.setattr("training.compare.train", train)
    monkeypatch.setattr("training.compare.trained_start", lambda run: None)
    (tmp_path / "all").mkdir()
    compare(plan, seeds=1)
    assert (tmp_path / "all/comparison.md").exists()
    assert seen[1] == (
        str(tmp_path / "all/imdb_bilstm-0"),
        str(tmp_path / "before/imdb_bilstm-0"),
    )


def test_a_comparison_whose_start_does_not_fit_trains_nothing(
    reviews, tmp_path, monkeypatch
):
    zoo.load("imdb_bilstm_attention").save(tmp_path / "start")
    monkeypatch.setattr("training.compare.train", None)
    sizes = dict.fromkeys(("embedding_dim", "lstm_units"))
    plan = config(reviews, tmp_path / "all", weights=str(tmp_path / "start"), **sizes)
    with pytest.raises(ValueError, match="must be a run of imdb_bilstm\\."):
        compare(plan, seeds=1)


def test_a_start_is_the_folder_even_if_it_is_called_like_a_model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    name = "imdb_bilstm_attention"
    model = zoo.imdb_bilstm_attention(weights=None, vocabulary_size=30, lstm_units=3)
    tokenizer = Tokenizer.from_words([f"w{i}" for i in range(26)])
    SentimentClassifier(model, tokenizer, ("bad", "good"), 9, name).save(name)
    sizes = dict.fromkeys(("embedding_dim", "lstm_units"))
    start = trained_start(config("x.csv", "out", weights=name, **sizes))
    assert start.maxlen == 9


def test_a_single_run_has_no_spread():
    row = {"model": "m", "runs": 1, "test": 0.5, "test_spread": 0.0, "seconds": 7.0}
    assert table([row]).splitlines()[-1] == "| m | 1 | - | 50.00% | 7 |"
    assert "50.00% ± 0.00%" in table([{**row, "runs": 2}])


# ---- the parts


def test_batches_hold_every_text_once_and_texts_of_like_length():
    lengths = np.random.default_rng(0).integers(1, 400, size=1003)
    plan = batches.plan(lengths, 16, np.random.default_rng(1))
    assert sorted(np.concatenate(plan)) == list(range(1003))
    assert max(len(batch) for batch in plan) == 16
    padded = sum(lengths[batch].max() * len(batch) for batch in plan)
    assert padded < 1.1 * lengths.sum()
    other = batches.plan(lengths, 16, np.random.default_rng(2))
    assert [b.tolist() for b in plan] != [b.tolist() for b in other]


def test_rows_keep_their_ends():
    array = cut_and_pad([[1, 4, 5, 6, 7], [1, 8]], 3)
    assert array.tolist() == [[5, 6, 7], [1, 8, 0]]


def test_word_dropout_hides_words_alone():
    ids = [[1] + [9] * 200 for _ in range(4)]
    data = batches.dataset(
        ids, np.zeros((4, 1)), 4, 201, np.random.default_rng(0), word_dropout=0.25
    )
    ((batch, _),) = list(data.as_numpy_iterator())
    assert (batch[:, 0] == 1).all() and set(np.unique(batch)) == {1, UNKNOWN_ID, 9}
    assert 0.2 < (batch == UNKNOWN_ID).mean() < 0.3


def test_targets_by_number_of_classes():
    assert targets(np.array([1, 0]), 2).tolist() == [[1.0], [0.0]]
    assert targets(np.array([2, 0]), 3).tolist() == [[0, 0, 1], [1, 0, 0]]


def test_evaluation_is_what_it_says(run):
    from training.datasets import LabelledTexts

    clf = zoo.load(run[0])
    texts, labels = ["a superb film", "dull", "awful town", ""], np.array([1, 0, 1, 0])
    measured = evaluate(clf, LabelledTexts(texts, labels, ("bad", "good"), "here"))
    p = [prediction.probabilities for prediction in clf.predict(texts)]
    right = [
        (p["good"] > p["bad"]) == bool(label)
        for p, label in zip(p, labels, strict=True)
    ]
    assert measured["accuracy"] == pytest.approx(np.mean(right))
    truth = [p["good" if label else "bad"] for p, label in zip(p, labels, strict=True)]
    assert measured["loss"] == pytest.approx(-np.log(truth).mean(), abs=1e-5)
    with pytest.raises(ValueError, match=r"tells .* apart"):
        evaluate(clf, LabelledTexts(texts, labels, ("no", "yes"), "here"))


@pytest.mark.parametrize(("steps", "epochs"), [(8, 40), (50, 20), (352, 4), (1, 40)])
def test_few_texts_are_passed_over_more_often(steps, epochs):
    assert usual_epochs(steps) == epochs


def test_mean_and_spread():
    assert mean_and_spread([1.0, 3.0]) == (2.0, pytest.approx(np.sqrt(2)))
    assert mean_and_spread([5.0]) == (5.0, 0.0)


# ---- options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"name": "lstm"}, "no training program for 'lstm'"),
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"dropout": 1.5}, "`dropout` must be at least 0 and at most"),
        ({"name": "imdb_bilstm", "attention_units": 5}, "has no effect"),
        ({"weights": "imdb"}, "decide embedding_dim, lstm_units already"),
        ({"vocabulary": "mine"}, "'imdb' or 'own'"),
        ({"data": "keras", "vocabulary": "own"}, "gives ids of the vocabulary"),
        ({"taught_epochs": 2}, "learn from `unlabelled` texts"),
        ({"seed": 2**40}, "`seed` must be at least 0 and at most"),
        ({"data": "keras", "unlabelled": "x.txt"}, "source 'keras' gives ids"),
        ({"learning_rate": float("nan")}, "`learning_rate` must be at least 0"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        config(options.pop("data", "tfds"), "out", **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    "option",
    [
        {"epochs": 3},
        {"batch_size": 8},
        {"maxlen": 5},
        {"learning_rate": 0.005},
        {"embedding_dim": 7},
        {"lstm_units": 5},
        {"attention_units": 3},
        {"dropout": 0.6},
        {"word_dropout": 0.5},
        {"label_smoothing": 0.3},
        {"average": 0.0},
        {"validation_fraction": 0.25},
        {"vocabulary_size": 12},
        {"seed": 5},
    ],
    ids=lambda option: next(iter(option)),
)
def test_no_option_does_nothing(reviews, base, tmp_path, option):
    metrics = train(config(reviews, tmp_path / "run", **option), progress=False)
    assert metrics["validation"]["loss"] != base["validation"]["loss"]


@pytest.fixture(scope="module")
def base(reviews, tmp_path_factory):
    """What the run without any of those options reaches."""
    folder = tmp_path_factory.mktemp("base") / "run"
    return train(config(reviews, folder), progress=False)


@pytest.mark.slow
def test_training_goes_on_from_the_last_step_not_from_the_average(
    reviews, base, tmp_path
):
    """An average that reaches back a whole epoch slows nothing down."""
    plan = config(reviews, tmp_path / "run", average=1.0, epochs=6)
    plain = config(reviews, tmp_path / "plain", average=0.0, epochs=6)
    slow, fast = (train(p, progress=False) for p in (plan, plain))
    assert slow["validation"]["accuracy"] >= fast["validation"]["accuracy"] - 0.15


@pytest.mark.slow
def test_a_start_may_have_another_dropout(run, reviews, tmp_path):
    fresh = dict.fromkeys(("embedding_dim", "lstm_units"))
    plan = config(
        reviews, tmp_path / "run", weights=str(run[0]), dropout=0.0, epochs=1, **fresh
    )
    train(plan, progress=False)
    again = config(
        reviews,
        tmp_path / "again",
        weights=str(tmp_path / "run"),
        dropout=0.7,
        epochs=1,
        **fresh,
    )
    train(again, progress=False)
    for folder, rate in (("run", 0.0), ("again", 0.7)):
        layers = zoo.load(tmp_path / folder).model.layers
        rates = {x.rate for x in layers if isinstance(x, keras.layers.Dropout)}
        assert rates == {rate}


def test_a_start_of_another_model_is_refused(run, reviews, tmp_path):
    fresh = dict.fromkeys(("embedding_dim", "lstm_units"))
    plan = config(
        reviews, tmp_path / "x", name="imdb_bilstm", weights=str(run[0]), **fresh
    )
    with pytest.raises(ValueError, match="must be a run of imdb_bilstm"):
        train(plan, progress=False)


def test_starts_that_are_not_there_are_refused(reviews, tmp_path):
    fresh = dict.fromkeys(("embedding_dim", "lstm_units"))
    with pytest.raises(ValueError, match=r"one of \['imdb'\] or the folder"):
        train(config(reviews, tmp_path / "a", weights="imdbb", **fresh))


def test_a_config_is_made_from_parsed_words():
    import argparse

    from training.options import add_options

    parser = argparse.ArgumentParser()
    add_options(parser, SentimentConfig, leave_out=("name",))
    options = parser.parse_args(["--out", "x", "--dropout", "0.3", "--resume"])
    made = from_options(SentimentConfig, options, name="imdb_bilstm")
    assert made == SentimentConfig("imdb_bilstm", "x", dropout=0.3, resume=True)
