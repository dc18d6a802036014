"""Shipped files: half the size, checked by hash, never pickled; a true registry."""

import dataclasses
import inspect
import json
import re

import h5py
import keras
import numpy as np
import pytest

import zoo
from training.config import SentimentConfig
from training.datasets import load_task
from training.evaluate import evaluate_source
from training.seq2seq_evaluate import evaluate, evaluate_task
from training.ship import ship
from zoo import registry, sentiment, seq2seq, weight_files
from zoo.pipelines import SentimentClassifier
from zoo.seq2seq_architecture import architecture_of
from zoo.seq2seq_sizes import DEFAULTS
from zoo.text import Tokenizer

FACTORIES = {**sentiment.FACTORIES, **seq2seq.FACTORIES}
options = dataclasses.fields(SentimentConfig)

SMALL = {"weights": None, "vocabulary_size": 41, "embedding_dim": 7, "lstm_units": 5}
SIZES = [  # of models of two texts, beside the defaults
    ("seq2seq_bahdanau", ("units", 6), ("attention_units", 3), ("cell", "lstm")),
    ("seq2seq_bahdanau", ("num_layers", 2), ("dropout", 0.5)),
    ("seq2seq_luong", ("units", 6), ("input_feeding", False), ("score", "concat")),
    ("seq2seq_luong", ("local", "predictive"), ("window", 3), ("score", "dot")),
    ("seq2seq_luong", ("share_embeddings", True), ("source_vocabulary_size", 8)),
    ("seq2seq_transformer", ("num_layers", 2), ("num_heads", 2), ("dropout", 0.3)),
    ("seq2seq_transformer", ("intermediate_dim", 7)),
]
IDS = np.array([[1, 14, 22, 16, 3], [1, 9, 0, 0, 0]])
TRAINED = [
    (entry, name, trained)
    for entry in registry.ENTRIES
    for name, trained in entry.weights.items()
]
trained = pytest.mark.parametrize(
    ("entry", "name", "trained"), TRAINED, ids=[f"{e.name}-{n}" for e, n, _ in TRAINED]
)


# ---- the files


@trained
def test_shipped_files_are_those_of_the_registry(entry, name, trained):
    weight_files.check_file(registry.WEIGHTS_FOLDER / trained.file, trained.sha256)
    for file, sha256 in trained.tokenizers.values():
        weight_files.check_file(registry.WEIGHTS_FOLDER / file, sha256)
    size = sum(shipped_sizes([(entry, name, trained)]).values())
    assert size < (12e6 if entry.task == "sentiment" else 16e6)


def test_models_of_two_texts_are_small_together():
    of_two_texts = [row for row in TRAINED if row[0].task != "sentiment"]
    assert sum(shipped_sizes(of_two_texts).values()) < 40e6


def test_every_shipped_file_is_named_in_the_registry():
    there = {path.name for path in registry.WEIGHTS_FOLDER.iterdir()}
    assert there == set(shipped_sizes(TRAINED))


def shipped_sizes(rows):
    """Bytes by file name, of weights and tokenizers; what is shared counts once."""
    names = {trained.file for _, _, trained in rows}
    names |= {file for *_, t in rows for file, _ in t.tokenizers.values()}
    return {name: (registry.WEIGHTS_FOLDER / name).stat().st_size for name in names}


@trained
def test_the_registry_says_what_the_model_is(entry, name, trained):
    model = FACTORIES[entry.factory](weights=name)
    assert model.count_params() == trained.parameters
    if entry.task == "sentiment":
        assert trained.architecture["num_classes"] == len(trained.labels)
    loaded = zoo.load(entry.name, weights=name).model
    for one, other in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_what_a_factory_was_given_is_read_off_its_model(sizes):
    factory, *more = sizes
    given = {
        **DEFAULTS[factory],
        "source_vocabulary_size": 9,
        "target_vocabulary_size": 8,
        "embedding_dim": 4,
        **dict(more),
    }
    model = seq2seq.FACTORIES[factory](**given)
    assert architecture_of(model) == given


def test_nothing_is_read_off_another_model():
    model = sentiment.imdb_bilstm(**SMALL)
    with pytest.raises(ValueError, match=r"must be of zoo\.seq2seq_bahdanau"):
        architecture_of(model)


@trained
def test_every_model_has_a_card_with_its_numbers(entry, name, trained):
    card = (registry.CARDS_FOLDER / f"{entry.name}.md").read_text(encoding="utf-8")
    for heading in ("## Data", "## Training", "## Numbers", "## Limits", "## Licence"):
        assert heading in card
    number = re.match(r"[\d.]+", trained.metric).group()
    assert number in card, "the registry's number is the card's"
    assert f"{trained.parameters:,}" in card


@trained
def test_sizes_stand_in_one_way_everywhere(entry, name, trained):
    """The factory's defaults, the registry and the help text of the options agree."""
    if entry.factory in seq2seq.FACTORIES:  # the weights decide the sizes left out
        model = zoo.load(entry.name, weights=name).model
        assert trained.architecture == architecture_of(model)
        return
    signature = inspect.signature(sentiment.FACTORIES[entry.name])
    helps = {f.name: f.metadata["help"] for f in options if "help" in f.metadata}
    for size, value in trained.architecture.items():
        assert signature.parameters[size].default == value
        if size in helps and f"[{value}]" not in helps[size]:
            pytest.fail(f"the help of {size} does not say [{value}]")


def test_a_run_is_shipped_small_and_with_its_registry_row(tmp_path):
    model = sentiment.imdb_bilstm_attention(**SMALL)
    words = [f"w{i}" for i in range(37)]
    SentimentClassifier(
        model, Tokenizer.from_words(words), ("bad", "good"), 9, "imdb_bilstm_attention"
    ).save(tmp_path / "run")
    measured = {"test": None, "validation": {"accuracy": 0.75}}
    (tmp_path / "run" / "metrics.json").write_text(json.dumps(measured))
    told = ship(tmp_path / "run", folder=tmp_path)
    assert told["measured"] == {"accuracy": 0.75}
    assert told["parameters"] == model.count_params()
    weight_files.check_file(tmp_path / told["file"], told["sha256"])
    again = sentiment.imdb_bilstm_attention(
        **{**SMALL, "weights": str(tmp_path / told["file"])}
    )
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3)


def test_every_public_factory_is_in_the_registry():
    names = {entry.name for entry in registry.ENTRIES if entry.task == "sentiment"}
    assert set(sentiment.FACTORIES) == names
    assert {entry.factory for entry in registry.ENTRIES} <= set(FACTORIES)
    assert set(FACTORIES) <= set(zoo.__all__)


def test_list_models_is_a_table_with_every_column():
    table = zoo.list_models()
    assert [row["name"] for row in table] == [entry.name for entry, _, _ in TRAINED]
    columns = "name weights task data metric parameters megabytes licence"
    assert all(" ".join(row) == columns for row in table)
    json.dumps(table)
    shown = repr(table)
    assert all(entry.name in shown for entry in registry.ENTRIES)


# ---- trained models at work


@pytest.fixture(scope="module")
def clf():
    return zoo.load("imdb_bilstm_attention")


CLEAR = [
    ("A superb film. I loved every minute, and the acting is wonderful.", "positive"),
    ("This is the worst movie I have ever seen: dull, stupid, a waste.", "negative"),
    ("One of the best films of the year, moving and beautifully shot.", "positive"),
    ("Terrible script, awful acting. I want my two hours back.", "negative"),
]


@pytest.mark.parametrize("name", list(sentiment.FACTORIES))
def test_clear_reviews_are_classified(name):
    texts, labels = zip(*CLEAR, strict=True)
    predictions = zoo.load(name).predict(texts)
    assert [p.label for p in predictions] == list(labels)
    assert all(p.score > 0.8 for p in predictions)


def test_the_attention_lies_on_words_that_matter(clf):
    explanation = clf.explain("The film was shown on a Monday and it is superb.")
    assert explanation.top(1)[0][0] == "superb"


def test_curly_and_straight_give_one_answer(clf):
    straight = "It's superb: I can't fault the café."
    curly = "It\u2019s superb: I can\u2019t fault the cafe\u0301."
    one, other = clf.predict([straight, curly])
    assert one == other


def test_the_answer_is_that_of_the_plain_model_on_keras_ids(clf):
    text = CLEAR[0][0]
    model = zoo.imdb_bilstm_attention()
    ids = keras.utils.pad_sequences([clf.tokenizer.encode(text)], 50)  # pads left
    p = float(model.predict(ids, verbose=0)[0, 0])
    assert clf.predict([text])[0].probabilities["positive"] == pytest.approx(
        p, abs=1e-5
    )


def test_another_number_of_classes_keeps_the_body_and_says_so():
    with pytest.warns(UserWarning, match=r"head .* for 5 classes is new"):
        model = zoo.imdb_bilstm_attention(num_classes=5, dropout=0.7)
    rates = [x.rate for x in model.layers if isinstance(x, keras.layers.Dropout)]
    assert rates == [0.7, 0.7]
    trained_model = zoo.imdb_bilstm_attention()
    assert model.predict(IDS, verbose=0).shape == (2, 5)
    np.testing.assert_array_equal(
        model.get_layer("embedding").get_weights()[0],
        trained_model.get_layer("embedding").get_weights()[0],
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entry", "name", "trained"), [row for row in TRAINED if row[0].task == "sentiment"]
)
def test_evaluation_gives_the_number_in_the_registry(entry, name, trained, imdb_files):
    clf = zoo.load(entry.name, weights=name)
    measured = evaluate_source(clf, str(imdb_files / "test.tsv.gz"), "2", "1")
    assert measured["texts"] == 25_000
    assert trained.metric.startswith(f"{measured['accuracy']:.2%}")


@pytest.mark.parametrize("name", ["reverse_bahdanau", "reverse_luong"])
def test_strings_are_reversed_and_the_alignment_runs_backwards(name):
    measured = evaluate(
        zoo.load(name), load_task("reverse").test, "exact", mirrored=True
    )
    (trained,) = registry.find(name).weights.values()
    assert trained.metric.startswith(f"{measured['exact']:.2%}")
    assert measured["exact"] >= 0.999
    assert measured["mirrored"] >= 0.99


@pytest.mark.parametrize("name", ["dates_luong", "dates_local"])
def test_dates_of_many_languages_are_read(name):
    """With the Babel that is installed, whose data may differ from the card's."""
    measured = evaluate(zoo.load(name), load_task("dates").test, "exact")
    assert measured["exact"] >= 0.995


def test_words_are_pronounced_in_any_case():
    words = {"cat": "K AE T", "Speech": "S P IY CH", "PHONE": "F OW N"}
    found = zoo.load("g2p_transformer").translate(list(words))
    assert [translation.text for translation in found] == list(words.values())


@pytest.mark.slow
def test_pronunciations_are_as_good_as_the_card_says(cmudict):
    measured = evaluate_task(zoo.load("g2p_transformer"), "g2p", data=str(cmudict))
    (trained,) = registry.find("g2p_transformer").weights.values()
    assert measured["wer"] <= 0.221  # Yolchuyeva et al. (2019)
    told = float(trained.metric.partition("%")[0])
    assert 100 * measured["wer"] == pytest.approx(told, abs=0.05)


@pytest.mark.parametrize("name", ["en_fr_bahdanau", "en_fr_transformer"])
def test_everyday_english_becomes_french(name):
    translator = zoo.load(name)
    texts = ["I love you.", "Thank you very much.", "Where is the station?"]
    found = translator.translate(texts)
    for translation, word in zip(found, ["aime", "Merci", "gare"], strict=True):
        assert word in translation.text
    (cat,) = translator.translate(["The cat is black."])
    looked_at = [cat.source_tokens[i] for i in cat.alignment.argmax(axis=1)]
    assert looked_at[cat.target_tokens.index("chat")] == "cat"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "least"), [("en_fr_bahdanau", 45), ("en_fr_transformer", 50)]
)
def test_english_french_is_as_good_as_the_card_says(name, least, tatoeba):
    measured = evaluate_task(zoo.load(name), "en-fr", data=str(tatoeba))
    (trained,) = registry.find(name).weights.values()
    assert trained.metric.startswith(f"{measured['bleu']:.2f}")
    assert measured["bleu"] >= least


def test_weights_of_one_factory_have_different_names():
    pairs = [(entry.factory, name) for entry, name, _ in TRAINED]
    assert len(set(pairs)) == len(pairs)


# ---- writing and checking


def test_half_files_are_small_and_read_back(tmp_path):
    model = sentiment.imdb_bilstm_attention(**{**SMALL, "vocabulary_size": 5000})
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    model.train_on_batch(IDS, np.array([[1.0], [0.0]]))
    weight_files.save_half(model, tmp_path / "half.weights.h5")
    model.save_weights(tmp_path / "full.weights.h5")
    sizes = [(tmp_path / f"{n}.weights.h5").stat().st_size for n in ("half", "full")]
    assert sizes[0] < 0.5 * sizes[1]
    again = sentiment.imdb_bilstm_attention(**{**SMALL, "vocabulary_size": 5000})
    weight_files.load_file(again, tmp_path / "half.weights.h5")
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        assert other.dtype == np.float32
        np.testing.assert_array_equal(other, one.astype("float16").astype("float32"))
    with h5py.File(tmp_path / "half.weights.h5") as file:
        assert "optimizer" not in file


def test_a_damaged_or_missing_file_is_refused_by_name(tmp_path, monkeypatch):
    entry = registry.find("imdb_bilstm_attention")
    broken = dataclasses.replace(entry.weights["imdb"], sha256="0" * 64)
    monkeypatch.setitem(entry.weights, "imdb", broken)
    with pytest.raises(ValueError, match=r"weights\.h5' is damaged or not ours"):
        zoo.imdb_bilstm_attention()
    gone = dataclasses.replace(entry.weights["imdb"], file="gone.weights.h5")
    monkeypatch.setitem(entry.weights, "imdb", gone)
    with pytest.raises(FileNotFoundError, match=r"gone\.weights\.h5' is missing"):
        zoo.imdb_bilstm_attention()


def test_weights_may_be_in_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    model = sentiment.imdb_bilstm(**SMALL)
    model.save_weights(tmp_path / "w.weights.h5")
    again = sentiment.imdb_bilstm(**{**SMALL, "weights": "~/w.weights.h5"})
    for one, other in zip(model.get_weights(), again.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_pickle_is_not_read(tmp_path):
    import pickle

    path = tmp_path / "evil.weights.h5"
    path.write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match="do not fit"):
        sentiment.imdb_bilstm(**{**SMALL, "weights": str(path)})


def test_keras_files_with_foreign_code_are_refused(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, keras.layers.Lambda(lambda x: x * 2)(ids))
    model.save(tmp_path / "model.keras")
    Tokenizer.from_words(["a"]).save(tmp_path / "tokenizer.json")
    config = {"pipeline": "sentiment", "name": "x", "labels": ["a", "b"], "maxlen": 5}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ValueError, match=r"model\.keras' cannot be loaded"):
        zoo.load(tmp_path)
