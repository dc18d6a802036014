"""SentimentClassifier: any texts in, one answer each, whatever they hold."""

import json
import pathlib

import keras
import numpy as np
import pytest

import zoo
from zoo import sentiment
from zoo.pipelines import SentimentClassifier
from zoo.text import Tokenizer

WORDS = ["the", "film", "is", "superb", "dull", "and", "i", "loved", "hated", "it"]
ODD = [
    "",
    "   ",
    "!!!",
    "xyzzy qwerty",
    "\U0001f642\U0001f9d1\u200d\U0001f680",
    "\ufeffthe film",
    "half \ud83d",
    "\x00\x01",
    "the " * 100_000,
    "a" * 100_000,
]


def classifier(labels=("bad", "good"), maxlen=6, attention=True):
    tokenizer = Tokenizer.from_words(WORDS)
    factory = sentiment.imdb_bilstm_attention if attention else sentiment.imdb_bilstm
    model = factory(
        weights=None,
        vocabulary_size=tokenizer.vocabulary_size,
        embedding_dim=5,
        lstm_units=4,
        num_classes=len(labels),
    )
    return SentimentClassifier(model, tokenizer, labels, maxlen)


@pytest.fixture(scope="module")
def clf():
    keras.utils.set_random_seed(3)
    return classifier()


def numbers(prediction):
    return list(prediction.probabilities.values())


def test_one_answer_a_text_in_order_and_independent_of_neighbours(clf):
    texts = ["the film is superb", "dull", "i loved it and the film", "", "hated"] * 7
    together = clf.predict(iter(texts), batch_size=4)
    assert len(together) == len(texts)
    for text, prediction in zip(texts, together, strict=True):
        (alone,) = clf.predict([text])
        np.testing.assert_allclose(numbers(prediction), numbers(alone), atol=1e-6)
    assert clf.predict([]) == []


def test_a_prediction_is_consistent(clf):
    for prediction in clf.predict(["the film is superb", "dull", ""]):
        assert set(prediction.probabilities) == {"bad", "good"}
        assert sum(numbers(prediction)) == pytest.approx(1, abs=1e-6)
        assert prediction.score == max(numbers(prediction))
        assert prediction.probabilities[prediction.label] == prediction.score


@pytest.mark.parametrize("text", ODD, ids=lambda text: ascii(text[:12]))
def test_odd_texts_get_an_answer(clf, text):
    (prediction,) = clf.predict([text])
    assert np.isfinite(prediction.score)
    explanation = clf.explain(text)
    assert explanation.score == pytest.approx(prediction.score, abs=1e-6)
    assert len(explanation.tokens) == len(explanation.weights)
    total = 1 if explanation.tokens else 0
    assert sum(explanation.weights) == pytest.approx(total, abs=1e-5)
    assert [text[a:b] for a, b in explanation.offsets] == explanation.tokens
    assert explanation.to_html()
    json.dumps(explanation.to_dict())


@pytest.mark.parametrize(("words", "cut"), [(4, 0), (5, 0), (6, 0), (7, 1), (20, 14)])
def test_what_was_cut_off_is_said(clf, words, cut):
    text = " ".join(WORDS[i % len(WORDS)] for i in range(words))
    (prediction,) = clf.predict([text])
    explanation = clf.explain(text)
    assert prediction.words_cut == explanation.words_cut == cut
    assert explanation.tokens == text.split(" ")[cut:]
    assert sum(explanation.weights) == pytest.approx(1, abs=1e-6)
    layer = clf.model.get_layer("attention")
    maps = keras.Model(clf.model.inputs, layer.output[1])
    ids = np.array([clf.tokenizer.encode(text)[-clf.maxlen :]])
    seen = maps.predict(ids, verbose=0)[0, :, 0][ids[0] > 1]
    np.testing.assert_allclose(explanation.weights, seen, atol=1e-6)
    assert explanation.cut == ([(0, explanation.offsets[0][0])] if cut else [])
    assert ("not read" in explanation.summary) is (cut > 0)
    assert ("not read" in explanation.to_html()) is (cut > 0)


def test_the_end_of_a_long_text_is_what_counts(clf):
    text = " ".join(WORDS * 3)
    (prediction,) = clf.predict([text])
    kept = clf.predict_ids([clf.tokenizer.encode(text)[-clf.maxlen :]])[0]
    np.testing.assert_allclose(numbers(prediction), kept, atol=1e-6)
    (other,) = clf.predict(["hated " * 50 + text])
    np.testing.assert_allclose(numbers(other), kept, atol=1e-6)


def test_the_explained_weights_are_the_models(clf):
    text = "the film is superb"
    ids = np.array([clf.tokenizer.encode(text)])
    layer = clf.model.get_layer("attention")
    maps = keras.Model(clf.model.inputs, layer.output[1]).predict(ids, verbose=0)
    explanation = clf.explain(text)
    np.testing.assert_allclose(explanation.weights, maps[0, 1:, 0], atol=1e-6)
    words = [word for word, _ in explanation.top(2)]
    best = np.argsort(-maps[0, 1:, 0])[:2]
    assert words == [text.split(" ")[i] for i in best]


def test_raw_text_and_stored_ids_get_the_same_answer(clf):
    text = "i loved the film"
    by_text = numbers(clf.predict([text])[0])
    by_ids = clf.predict_ids([clf.tokenizer.encode(text)])[0]
    np.testing.assert_allclose(by_ids, by_text, atol=1e-6)


def test_ids_may_come_padded_on_either_side(clf):
    ids = clf.tokenizer.encode("i loved the film")
    plain = clf.predict_ids([ids])[0]
    for padded in ([0] * 30 + ids, ids + [0] * 30):
        np.testing.assert_allclose(clf.predict_ids([padded])[0], plain, atol=1e-6)
    array = np.array([[0] * 9 + ids, ids + [0] * 9])
    np.testing.assert_allclose(clf.predict_ids(array)[1], plain, atol=1e-6)


@pytest.mark.parametrize("ids", [[5, 7, 9], ["a film"], np.arange(3)], ids=str)
def test_one_text_as_ids_is_refused_with_the_way_out(clf, ids):
    with pytest.raises(TypeError, match=r"at place 0\. Write \[ids\] for one text"):
        clf.predict_ids(ids)


def test_no_layer_takes_cudnn_which_refuses_padding_before_words(clf, tmp_path):
    clf.save(tmp_path / "saved")
    for model in (clf.model, zoo.load(tmp_path / "saved").model):
        both = model.get_layer("bilstm")
        assert not both.forward_layer.use_cudnn and not both.backward_layer.use_cudnn


def test_the_model_of_a_pipeline_is_its_own(clf):
    with pytest.raises(AttributeError):
        clf.model = None


def test_names_of_the_zoo_come_before_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    classifier().save(tmp_path / "imdb_bilstm_attention")
    assert zoo.load("imdb_bilstm_attention").labels == ("negative", "positive")
    assert zoo.load("./imdb_bilstm_attention").labels == ("bad", "good")


def test_not_a_string_is_named(clf):
    with pytest.raises(TypeError, match="3 of type int as item 1"):
        clf.predict(["good", 3])
    with pytest.raises(TypeError, match="Put it into a list"):
        clf.predict("good")
    with pytest.raises(TypeError, match="must be a string"):
        clf.explain(["good"])


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, None])
def test_a_batch_size_that_is_none_is_refused(clf, batch_size):
    with pytest.raises(ValueError, match="`batch_size` must be an integer"):
        clf.predict(["the film"], batch_size=batch_size)


def test_a_classifier_of_other_labels_or_no_length_is_refused(clf):
    with pytest.raises(ValueError, match="whose output is 1 wide"):
        SentimentClassifier(clf.model, clf.tokenizer, ("a", "b", "c"), 6)
    with pytest.raises(ValueError, match="`maxlen` must be an integer"):
        SentimentClassifier(clf.model, clf.tokenizer, ("a", "b"), 0)


def test_a_model_that_does_not_pool_by_one_layer_is_refused():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(20, 8, mask_zero=True)(ids)
    x = keras.layers.MultiHeadAttention(2, 4)(x, x)
    x = keras.layers.Dense(1, activation="sigmoid")(x[:, 0])
    other = SentimentClassifier(
        keras.Model(ids, x), Tokenizer.from_words(WORDS), ("bad", "good"), 6
    )
    with pytest.raises(ValueError, match=r"attention_submodel\(clf\.model\)"):
        other.explain("the film")


def test_a_model_without_attention_cannot_explain():
    plain = classifier(attention=False)
    assert plain.predict(["the film"])[0].label in plain.labels
    with pytest.raises(ValueError, match="no attention layer"):
        plain.explain("the film")


@pytest.mark.parametrize("labels", [("bad", "good"), ("one", "two", "three")])
def test_a_saved_folder_gives_the_pipeline_back(labels, tmp_path):
    clf = classifier(labels)
    clf.save(tmp_path / "mine")
    again = zoo.load(tmp_path / "mine")
    text = "the film is superb"
    assert again.labels == labels and again.maxlen == clf.maxlen
    assert again.predict([text]) == clf.predict([text])
    assert again.explain(text) == clf.explain(text)
    assert not list((tmp_path / "mine").glob("tmp.*"))


def test_weights_that_are_not_there_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be one of \['imdb'\]"):
        zoo.load("imdb_bilstm_attention", weights="mine.weights.h5")
    classifier().save(tmp_path)
    with pytest.raises(ValueError, match="which has its own"):
        zoo.load(tmp_path, weights="imdb")


def test_a_view_for_a_folder_that_is_not_there_is_refused(clf, tmp_path):
    with pytest.raises(FileNotFoundError, match=r"a\.html' cannot be written"):
        clf.explain("the film").to_html(tmp_path / "no" / "a.html")


def test_what_is_not_there_is_refused_by_name(tmp_path):
    with pytest.raises(ValueError, match="Did you mean 'imdb_bilstm_attention'"):
        zoo.load("imdb_bilstm_atention")
    with pytest.raises(ValueError, match="which is not there"):
        zoo.load(tmp_path / "nothing")
    with pytest.raises(ValueError, match="'imdb_bilstm', which is not there"):
        zoo.load(pathlib.Path("imdb_bilstm"))  # a path is a folder
    with pytest.raises(FileNotFoundError, match=r"has no config\.json"):
        zoo.load(tmp_path)
    classifier().save(tmp_path / "mine")
    (tmp_path / "mine" / "model.keras").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"model\.keras' cannot be loaded"):
        zoo.load(tmp_path / "mine")
    (tmp_path / "mine" / "tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"has no tokenizer\.json"):
        zoo.load(tmp_path / "mine")


def test_no_trace_a_text():
    """TensorFlow warns of functions that it traces anew for each length of a text."""
    clf = classifier(maxlen=200)
    for length in (1, 20, 40, 60, 90, 150, 199):
        text = " ".join(WORDS[i % 10] for i in range(length))
        clf.predict([text])
        clf.explain(text)
    for run in (clf._run, clf._run_with_attention):
        assert run.experimental_get_tracing_count() == 1


def test_views_are_written(clf, tmp_path):
    explanation = clf.explain("the film is <b>superb</b> & dull " * 3)
    explanation.plot(tmp_path / "a.png")
    page = explanation.to_html(tmp_path / "a.html")
    assert (tmp_path / "a.png").read_bytes()[1:4] == b"PNG"
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == page
    assert "<b>superb" not in page and "superb" in page
    assert "superb" in explanation._repr_html_()
    assert explanation.to_terminal().plain == explanation.text


@pytest.mark.parametrize("name", [None, 5])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(TypeError, match="`name` must be a name of"):
        zoo.load(name)


def test_a_folder_may_begin_with_a_tilde(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    zoo.load("reverse_luong").save("~/mine")
    assert (tmp_path / "mine" / "model.keras").is_file()
    assert zoo.load("~/mine").translate(["abc"], num_beams=np.int64(3))[0].text == "cba"
