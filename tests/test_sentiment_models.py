"""The sentiment factories: plain models, padding without influence, clear refusals."""

import inspect

import keras
import numpy as np
import pytest

import zoo
from zoo import sentiment

SMALL = {"vocabulary_size": 41, "embedding_dim": 7, "lstm_units": 5}
IDS = np.array([[1, 14, 22, 16, 3], [1, 9, 0, 0, 0]])
FACTORIES = pytest.mark.parametrize("name", list(sentiment.FACTORIES))


def make(name, **options):
    return sentiment.FACTORIES[name](**{"weights": None, **SMALL, **options})


@FACTORIES
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_on_either_side_changes_nothing(name, side):
    model = make(name)
    want = [model.predict(IDS[i : i + 1, :n], verbose=0) for i, n in ((0, 5), (1, 2))]
    longer = np.zeros((2, 9), int)
    for row, n in ((0, 5), (1, 2)):
        place = slice(9 - n, 9) if side == "left" else slice(0, n)
        longer[row, place] = IDS[row, :n]
    got = model.predict(longer, verbose=0)
    np.testing.assert_allclose(got, np.concatenate(want), rtol=1e-5, atol=1e-6)


@FACTORIES
def test_ids_beyond_the_vocabulary_are_unknown_words(name):
    model = make(name)
    beyond = np.where(IDS == 22, 88_000, IDS)
    unknown = np.where(IDS == 22, 2, IDS)
    np.testing.assert_array_equal(
        model.predict(beyond, verbose=0), model.predict(unknown, verbose=0)
    )


@FACTORIES
@pytest.mark.parametrize("row", [[0, 0, 0], [1, 0, 0], [1, 2, 2]])
def test_empty_rows_stay_finite_in_prediction_and_training(name, row):
    model = make(name)
    ids = np.array([[5, 7, 9], row])
    together = model.predict(ids, verbose=0)
    alone = model.predict(ids[:1], verbose=0)
    assert np.isfinite(together).all()
    np.testing.assert_allclose(together[:1], alone, rtol=1e-5, atol=1e-6)
    model.compile("adam", "binary_crossentropy", jit_compile=False)
    assert np.isfinite(model.train_on_batch(ids, np.array([[1.0], [0.0]])))
    assert all(np.isfinite(w).all() for w in model.get_weights())


@FACTORIES
@pytest.mark.parametrize(("classes", "width"), [(2, 1), (3, 3), (7, 7)])
def test_outputs_are_probabilities_or_logits(name, classes, width):
    model = make(name, num_classes=classes)
    output = model.predict(IDS, verbose=0)
    assert output.shape == (2, width)
    assert (output > 0).all() and (output < 1).all()
    if classes > 2:
        np.testing.assert_allclose(output.sum(-1), 1, atol=1e-6)
    logits = make(name, num_classes=classes, classifier_activation=None)
    logits.set_weights(model.get_weights())
    raw = logits.predict(IDS, verbose=0)
    activation = keras.ops.sigmoid if classes == 2 else keras.ops.softmax
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(activation(raw)), output, atol=1e-6
    )


@FACTORIES
def test_factories_take_keywords_of_plain_types_alone(name):
    for parameter in inspect.signature(sentiment.FACTORIES[name]).parameters.values():
        assert parameter.kind is inspect.Parameter.KEYWORD_ONLY
        assert isinstance(parameter.default, int | float | str)


@FACTORIES
def test_models_save_and_load_in_safe_mode(name, tmp_path):
    model = make(name)
    model.save(tmp_path / "model.keras")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    np.testing.assert_array_equal(
        again.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(1)
    other = make(name, weights=str(tmp_path / "model.weights.h5"))
    np.testing.assert_array_equal(
        other.predict(IDS, verbose=0), model.predict(IDS, verbose=0)
    )


@FACTORIES
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": "imdbb"}, "must be one of.*imdb.*None"),
        ({"weights": 5}, "must be one of.*Received: 5"),
        ({"weights": "missing.weights.h5"}, "There is no weight file"),
        ({"num_classes": 1}, "`num_classes` must be an integer of at least 2"),
        ({"dropout": 1.0}, "0 <= dropout < 1"),
        ({"lstm_units": 2.5}, "`lstm_units` must be an integer of at least 1"),
        ({"classifier_activation": "tanh"}, "'auto'.*None"),
        ({"weights": "imdb", "lstm_units": 5}, "Leave `lstm_units` out"),
    ],
)
def test_what_cannot_be_is_refused(name, options, message):
    sizes = {} if options.get("weights") == "imdb" else SMALL
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        sentiment.FACTORIES[name](**{"weights": None, **sizes, **options})


def test_weights_of_another_architecture_are_refused_by_file(tmp_path):
    path = tmp_path / "other.weights.h5"
    make("imdb_bilstm").save_weights(path)
    with pytest.raises(ValueError, match=r"other\.weights\.h5' do not fit"):
        make("imdb_bilstm", lstm_units=6, weights=str(path))
    (tmp_path / "not.weights.h5").write_bytes(b"nonsense")
    with pytest.raises(ValueError, match=r"not\.weights\.h5' do not fit"):
        make("imdb_bilstm", weights=str(tmp_path / "not.weights.h5"))


def test_weights_of_the_model_with_attention_are_refused_by_the_one_without(tmp_path):
    path = tmp_path / "attention.weights.h5"
    make("imdb_bilstm_attention").save_weights(path)
    with pytest.raises(ValueError, match=r"it holds 12 weights, the model 9"):
        make("imdb_bilstm", weights=str(path))
    make("imdb_bilstm_attention").save(tmp_path / "model.keras")
    with pytest.raises(ValueError, match=r"it holds 12 weights, the model 9"):
        make("imdb_bilstm", weights=str(tmp_path / "model.keras"))
    make("imdb_bilstm_attention", weights=str(tmp_path / "model.keras"))


def test_a_new_head_keeps_the_body():
    body = make("imdb_bilstm_attention")
    model = sentiment.with_new_head(body, 5)
    assert model.predict(IDS, verbose=0).shape == (2, 5)
    for layer in ("embedding", "bilstm", "attention"):
        assert model.get_layer(layer) is body.get_layer(layer)


def test_attention_looks_at_words_alone_and_fully():
    model = make("imdb_bilstm_attention")
    pooling = keras.Model(model.inputs, model.get_layer("attention").output[1])
    weights = pooling.predict(IDS, verbose=0)[..., 0]
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert (weights[:, 0] == 0).all(), "the start marker has no weight"
    assert (weights[1, 2:] == 0).all(), "nor has padding"


@pytest.mark.parametrize(
    "y", [[1, 0], np.array([1, 0]), np.array([[1], [0]]), [True, False]]
)
def test_labels_of_any_usual_form_train_alike(y):
    model = make("imdb_bilstm")
    model.compile("sgd", "binary_crossentropy", metrics=["accuracy"], jit_compile=False)
    loss, accuracy = model.evaluate(IDS, np.array(y), verbose=0)
    p = model.predict(IDS, verbose=0)[:, 0]
    assert loss == pytest.approx(-np.log([p[0], 1 - p[1]]).mean(), abs=1e-5)
    assert accuracy == pytest.approx(((p > 0.5) == [True, False]).mean())


def test_factories_are_public():
    for name, factory in sentiment.FACTORIES.items():
        assert getattr(zoo, name) is factory
