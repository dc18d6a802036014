"""The loss and the accuracy of tokens: padding is never counted."""

import keras
import numpy as np
import pytest

import zoo
from training.losses import TokenAccuracy, TokenCrossentropy
from zoo.tokens import START_ID

B, T, V = 3, 5, 7


def batch(seed=0, lengths=(5, 3, 2)):
    """Labels (B, T), 0 on padding, and logits (B, T, V)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(1, V, (B, T))
    for row, length in zip(labels, lengths, strict=True):
        row[length:] = 0
    return labels, rng.normal(size=(B, T, V)).astype("float32")


def mean_by_hand(labels, logits, smoothing=0.0, weights=None):
    """The mean over real tokens of the smoothed cross-entropy, token by token."""
    total = count = 0.0
    for b, t in np.ndindex(labels.shape):
        if labels[b, t] == 0:
            continue
        p = np.exp(logits[b, t] - logits[b, t].max())
        p /= p.sum()
        target = np.full(V, smoothing / V)
        target[labels[b, t]] += 1 - smoothing
        weight = 1.0 if weights is None else weights[b, t]
        total += weight * -(target * np.log(p)).sum()
        count += weight
    return total / count


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_it_is_the_mean_over_the_real_tokens(smoothing):
    labels, logits = batch()
    loss = TokenCrossentropy(smoothing)(labels, logits)
    expected = mean_by_hand(labels, logits, smoothing)
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)


@pytest.mark.parametrize("smoothing", [0.0, 0.3])
def test_more_padding_changes_neither_loss_nor_gradient(smoothing):
    tf = pytest.importorskip("tensorflow")
    if keras.backend.backend() != "tensorflow":
        pytest.skip("takes gradients by TensorFlow")
    labels, logits = batch()

    def measured(pad):
        wide = tf.constant(np.pad(logits, ((0, 0), (0, pad), (0, 0))))
        with tf.GradientTape() as tape:
            tape.watch(wide)
            loss = TokenCrossentropy(smoothing)(
                np.pad(labels, ((0, 0), (0, pad))), wide
            )
        return float(loss), tape.gradient(loss, wide).numpy()[:, :T]

    (loss, gradient), (padded_loss, padded_gradient) = measured(0), measured(20)
    assert loss == pytest.approx(padded_loss, rel=1e-6)
    np.testing.assert_allclose(gradient, padded_gradient, atol=1e-7)


def test_sample_weights_and_padding_multiply():
    labels, logits = batch()
    weights = np.random.default_rng(1).uniform(0.5, 2, (B, T)).astype("float32")
    loss = TokenCrossentropy()(labels, logits, weights)
    expected = mean_by_hand(labels, logits, weights=weights)
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)
    rows = np.array([1.0, 0.0, 3.0], "float32")
    loss = TokenCrossentropy()(labels, logits, rows)
    expected = mean_by_hand(labels, logits, weights=np.repeat(rows[:, None], T, 1))
    np.testing.assert_allclose(float(loss), expected, rtol=1e-5)


def test_a_batch_of_padding_alone_has_loss_and_accuracy_0():
    _, logits = batch()
    nothing = np.zeros((B, T), int)
    assert float(TokenCrossentropy(0.1)(nothing, logits)) == 0
    accuracy = TokenAccuracy()
    accuracy.update_state(nothing, logits)
    assert float(accuracy.result()) == 0


def test_an_epoch_with_a_batch_of_padding_alone_stays_finite():
    """F36: its gradient is 0, so the weights stay."""
    labels, _ = batch()
    inputs = np.random.default_rng(1).normal(size=(2 * B, T, 4)).astype("float32")
    model = keras.Sequential([keras.Input((None, 4)), keras.layers.Dense(V)])
    model.compile("sgd", TokenCrossentropy(0.1), metrics=[TokenAccuracy()])
    for rows in (np.concatenate([labels, 0 * labels]), np.zeros((2 * B, T), int)):
        before = model.get_weights()
        options = {"batch_size": B, "shuffle": False, "verbose": 0}
        history = model.fit(inputs, rows, **options).history
        assert np.isfinite([*history["loss"], *history["accuracy"]]).all()
        assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert history == {"accuracy": [0.0], "loss": [0.0]}
    for one, other in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("pad", [0, 20])
def test_of_a_model_of_the_zoo_only_real_tokens_count(pad):
    """Its logits carry the mask of the target ids."""
    keras.utils.set_random_seed(0)
    sizes = {"source_vocabulary_size": V, "target_vocabulary_size": V}
    model = zoo.seq2seq_luong(units=4, embedding_dim=4, **sizes)
    labels, _ = batch()
    inputs = np.where(labels > 0, np.roll(labels, 1, axis=1), 0)
    inputs[:, 0] = START_ID
    expected = mean_by_hand(labels, model.predict([labels, inputs], verbose=0))
    labels, inputs = (np.pad(x, ((0, 0), (0, pad))) for x in (labels, inputs))
    model.compile(loss=TokenCrossentropy(), metrics=[TokenAccuracy()])
    loss, accuracy = model.evaluate([labels, inputs], labels, verbose=0)
    assert loss == pytest.approx(expected, rel=1e-4)
    guesses = model.predict([labels, inputs], verbose=0).argmax(axis=-1)
    assert accuracy == pytest.approx((guesses == labels)[labels > 0].mean())


def test_accuracy_counts_real_tokens_alone():
    labels, logits = batch()
    accuracy = TokenAccuracy()
    accuracy.update_state(labels, logits)
    real = [
        logits[b, t].argmax() == labels[b, t]
        for b, t in np.ndindex(B, T)
        if labels[b, t]
    ]
    assert float(accuracy.result()) == pytest.approx(np.mean(real))


def test_in_fit_padding_is_not_counted_whatever_the_width():
    """Also where no mask reaches the output: the labels alone decide."""
    labels, logits = batch()

    def evaluated(pad):
        inputs = keras.Input((None, V))
        model = keras.Model(inputs, keras.layers.Identity()(inputs))
        model.compile(loss=TokenCrossentropy(), metrics=[TokenAccuracy()])
        wide = np.pad(logits, ((0, 0), (0, pad), (0, 0)))
        return model.evaluate(wide, np.pad(labels, ((0, 0), (0, pad))), verbose=0)

    np.testing.assert_allclose(evaluated(0), evaluated(20), rtol=1e-6)
    assert evaluated(0)[0] == pytest.approx(mean_by_hand(labels, logits), rel=1e-5)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0])
def test_a_smoothing_outside_0_to_1_is_refused(smoothing):
    with pytest.raises(ValueError, match="`label_smoothing` must be at least 0"):
        TokenCrossentropy(smoothing)


def test_it_comes_back_from_its_config():
    loss = TokenCrossentropy(0.2, name="other")
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert (again.label_smoothing, again.name) == (0.2, "other")


def test_class_weights_go_by_token_in_fit_and_padding_has_none():
    """Keras's own `class_weight` takes one label a row; `sample_weight` one a token."""
    labels, _ = batch()
    class_weights = np.array([9.0, 1.0, 0.5, 2.0, 1.0, 0.0, 3.0])  # 9 for padding!
    inputs = np.random.default_rng(1).normal(size=(B, T, 4)).astype("float32")
    model = keras.Sequential([keras.Input((None, 4)), keras.layers.Dense(V)])
    model.compile(keras.optimizers.SGD(0.0), TokenCrossentropy(), jit_compile=False)
    weights = class_weights[labels]
    history = model.fit(inputs, labels, sample_weight=weights, epochs=1, verbose=0)
    logits = model.predict(inputs, verbose=0)
    expected = mean_by_hand(labels, logits, weights=weights)
    assert history.history["loss"][0] == pytest.approx(expected, rel=1e-5)
