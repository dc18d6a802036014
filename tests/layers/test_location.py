"""LocationSensitiveAttention and its step loop against the equations in loops."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.location import (
    LocationSensitiveAttention,
    location_features,
    over_steps,
)
from tests.layers.contract import (
    DK,
    DQ,
    DV,
    UNITS,
    B,
    S,
    T,
    check_padding_does_nothing,
    normal,
    to_numpy,
)

REAL = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)  # padded right, padded left
FILTERS, TAPS = 19, 3


def make(**kwargs):
    layer = LocationSensitiveAttention(
        **{"units": UNITS, "filters": FILTERS, "kernel_size": TAPS, **kwargs}
    )
    layer.build((B, T, DQ), (B, S, DV))
    rng = np.random.default_rng(3)
    layer.set_weights([0.7 * rng.normal(size=w.shape) for w in layer.get_weights()])
    return layer


def features_by_loops(alignment, filters):
    """Chorowski et al. (2015), equation 8, a number at a time."""
    taps, number = filters.shape
    features = np.zeros((len(alignment), number))
    for s in range(len(alignment)):
        for j in range(taps):
            place = s + j - (taps - 1) // 2
            if 0 <= place < len(alignment):
                features[s] += filters[j] * alignment[place]
    return features


def location_by_loops(layer, query, value, key, may_attend):
    """Chorowski et al. (2015), equations 8 and 9, a number at a time."""
    W, V, F, U, w, b = (to_numpy(x).astype("float64") for x in layer.weights)
    context = np.zeros((*query.shape[:2], value.shape[2]))
    weights = np.zeros((*query.shape[:2], value.shape[1]))
    for i in range(len(query)):
        alignment = np.zeros(value.shape[1])
        for t in range(query.shape[1]):
            features = features_by_loops(alignment, F)
            energies = {
                s: w @ np.tanh(query[i, t] @ W + key[i, s] @ V + features[s] @ U + b)
                for s in range(value.shape[1])
                if may_attend[i, t, s]
            }
            total = sum(np.exp(e) for e in energies.values())
            for s, energy in energies.items():
                weights[i, t, s] = np.exp(energy) / total
                context[i, t] += weights[i, t, s] * value[i, s]
            if energies:
                previous = alignment if layer.accumulate else 0
                alignment = previous + weights[i, t]
    return context, weights


@pytest.mark.parametrize("taps", [1, 2, 3, 4, 7, 12])
def test_the_convolution_is_equation_8(taps):
    alignment, filters = np.abs(normal(B, S)), normal(taps, FILTERS)
    got = to_numpy(location_features(alignment, filters))
    for i in range(B):
        want = features_by_loops(alignment[i], filters)
        np.testing.assert_allclose(got[i], want, atol=1e-5)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("taps", [3, 4])
def test_it_equals_the_equations_in_loops(accumulate, masked, taps):
    layer = make(accumulate=accumulate, kernel_size=taps)
    query, value = normal(B, T, DQ), normal(B, S, DV, scale=2)
    may_attend, masks = np.ones((B, T, S), bool), {}
    if masked:
        pairs = np.random.default_rng(7).random((B, T, S)) > 0.4
        pairs[0, 1] = False
        masks = {"value_mask": REAL, "attention_mask": pairs}
        may_attend = pairs & REAL[:, None]
    got = to_numpy(layer(query, value, **masks))
    want = location_by_loops(layer, query, value, value, may_attend)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("accumulate", [False, True])
def test_steps_with_the_state_by_hand_equal_the_full_form(accumulate):
    layer = make(accumulate=accumulate)
    query, value = normal(B, T, DQ), normal(B, S, DV, scale=2)
    context, weights = to_numpy(layer(query, value, value_mask=REAL))
    assert np.abs(weights[:, 1] - weights[:, 0]).max() > 1e-2
    for state in (None, layer.initial_state(value, REAL)):
        for t in range(T):
            one = layer(query[:, t], value, value_mask=REAL, state=state)
            state = layer.next_state(state, one[1])
            np.testing.assert_allclose(
                to_numpy(one[0]), context[:, t], rtol=1e-5, atol=1e-6
            )
            np.testing.assert_allclose(
                to_numpy(one[1])[..., 0], weights[:, t], atol=1e-6
            )
        want = weights.sum(1) if accumulate else weights[:, -1]
        np.testing.assert_allclose(to_numpy(state)[..., 0], want, rtol=1e-5, atol=1e-6)


def test_the_full_form_goes_on_from_a_state():
    layer, query, value = make(), normal(B, T, DQ), normal(B, S, DV)
    weights = to_numpy(layer(query, value)[1])
    rest = layer(query[:, 1:], value, state=weights[:, 0, :, None])[1]
    np.testing.assert_allclose(to_numpy(rest), weights[:, 1:], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("accumulate", [False, True])
@pytest.mark.parametrize("filler", [7.0, np.nan])
def test_padding_on_any_side_of_keys_and_queries_changes_nothing(accumulate, filler):
    layer = make(accumulate=accumulate, kernel_size=4)
    query, value = normal(B, T, DQ), normal(B, S, DV)
    check_padding_does_nothing(layer, query, value, [1, 2, 4], [2, 3, 4, 5, 6], filler)


def test_equal_keys_are_told_apart_by_where_they_are():
    """A filter that sees one key back moves a peak on, over keys that are alike."""
    layer = LocationSensitiveAttention(1, filters=1, kernel_size=3)
    layer.build((1, 1, 1), (1, 4, 1))
    numbers = [0], [0], [1, 0, 0], [9], [99], [0]  # W, V, F, U, w, b
    shapes = [w.shape for w in layer.get_weights()]
    layer.set_weights([np.reshape(n, s) for n, s in zip(numbers, shapes, strict=True)])
    peak = np.array([1.0, 0, 0, 0]).reshape(1, 4, 1)
    weights = to_numpy(layer(np.ones((1, 3, 1)), np.ones((1, 4, 1)), state=peak)[1])
    np.testing.assert_allclose(weights[0], np.eye(4)[1:], rtol=1e-5, atol=1e-6)


def test_sparsemax_has_its_place():
    weights = to_numpy(
        make(activation="sparsemax")(normal(B, T, DQ), normal(B, S, DV, scale=9))[1]
    )
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert (weights == 0).any()


@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("length", [T, None])
def test_it_trains(jit, length):
    if jit and keras.backend.backend() == "torch":
        pytest.skip("torch.compile takes long")
    query, value = keras.Input((length, DQ)), keras.Input((length and S, DV))
    layer = make(accumulate=True)
    context, _ = layer(query, value, value_mask=ops.convert_to_tensor(REAL))
    model = keras.Model([query, value], context)
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=jit)
    before = layer.get_weights()
    inputs = [normal(B, T, DQ), normal(B, S, DV)]
    for _ in range(2):
        assert np.isfinite(model.train_on_batch(inputs, normal(B, T, DV, seed=9)))
    for old, new in zip(before, layer.get_weights(), strict=True):
        assert np.isfinite(new).all() and np.abs(new - old).max() > 0


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="input_signature")
@pytest.mark.parametrize("jit", [False, True])
def test_lengths_that_are_not_known_give_the_same_gradients(jit):
    import tensorflow as tf

    layer, inputs = make(accumulate=True), (normal(B, T, DQ), normal(B, S, DV))

    def gradients(query, value, mask):
        with tf.GradientTape() as tape:
            tape.watch([query, value])
            context, weights = layer(query, value, value_mask=mask, training=True)
            loss = tf.reduce_sum(context**2) + tf.reduce_sum(weights**2)
        return tape.gradient(loss, [query, value, *layer.trainable_variables])

    arguments = [tf.constant(x) for x in (*inputs, REAL)]
    want = gradients(*arguments)
    unknown = [
        tf.TensorSpec([None] * 2 + list(x.shape[2:]), x.dtype) for x in arguments
    ]
    compiled = tf.function(gradients, input_signature=unknown, jit_compile=jit)
    for one, other in zip(compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("length", [1, 2, 5])
def test_over_steps_hands_the_state_on(length):
    inputs = normal(length, B, S)

    def step(state, x):
        return 0.5 * state + x[0], state

    got = to_numpy(over_steps(step, ops.ones((B, S)), [ops.convert_to_tensor(inputs)]))
    state = np.ones((B, S))
    for t in range(length):
        np.testing.assert_allclose(got[t], state, rtol=1e-5, atol=1e-6)
        state = 0.5 * state + inputs[t]


@pytest.mark.parametrize("name", ["units", "filters", "kernel_size"])
@pytest.mark.parametrize("size", [0, 2.5, None])
def test_sizes_that_are_no_whole_numbers_are_refused(name, size):
    with pytest.raises(ValueError, match=rf"`{name}`.*integer of at least 1"):
        LocationSensitiveAttention(**{"units": 4, name: size})


def test_states_without_a_query_are_refused():
    with pytest.raises(ValueError, match="compares queries with keys"):
        make()(normal(B, S, DV))


def test_the_separate_key_is_scored():
    layer = LocationSensitiveAttention(UNITS, filters=FILTERS, kernel_size=TAPS)
    query, value, key = normal(B, T, DQ), normal(B, S, DV), normal(B, S, DK)
    got = to_numpy(layer(query, value, key))
    want = location_by_loops(layer, query, value, key, np.ones((B, T, S), bool))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
