"""BahdanauAttention against Keras's own layer, and what its constructor refuses."""

import keras
import numpy as np
import pytest

from keras_attention import BahdanauAttention
from tests.layers.contract import normal, to_numpy

REAL = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)


def test_without_projections_it_is_the_layer_of_keras():
    """With W = U = 1 and v = scale, e = scale . tanh(q + k), AdditiveAttention's."""
    query, value, key = normal(2, 3, 7), normal(2, 5, 11), normal(2, 5, 7, seed=1)
    theirs = keras.layers.AdditiveAttention()
    theirs.build([query.shape, value.shape, key.shape])
    theirs.set_weights([normal(7, seed=2)])
    ours = BahdanauAttention(7)
    ours.build(query.shape, value.shape, key.shape)
    identity = np.eye(7, dtype="float32")
    ours.set_weights([identity, identity, theirs.get_weights()[0]])
    want = theirs([query, value, key], mask=[None, REAL], return_attention_scores=True)
    got = ours(query, value, key, value_mask=REAL)
    for one, other in zip(to_numpy(got), to_numpy(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("units", [0, -3, 2.0, True, "4", None])
def test_units_that_are_no_width_are_refused(units):
    with pytest.raises(ValueError, match=r"`units`.*integer of at least 1"):
        BahdanauAttention(units)


def test_units_may_be_numpys_integers():
    layer = BahdanauAttention(np.int64(3))
    assert layer.get_config()["units"] == 3 and type(layer.units) is int


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 2])
def test_dropout_that_is_no_fraction_is_refused(dropout):
    with pytest.raises(ValueError, match="`dropout` must be"):
        BahdanauAttention(4, dropout=dropout)


def test_a_width_that_is_unknown_is_refused():
    with pytest.raises(ValueError, match="last dimension of the inputs must be known"):
        BahdanauAttention(4)(keras.Input((None, None)))


def test_a_query_for_a_layer_built_without_one_is_refused():
    layer = BahdanauAttention(4, name="pool")
    layer(normal(2, 5, 7))
    with pytest.raises(
        ValueError, match=r"'pool' was built by layer\(states\), without"
    ):
        layer(normal(2, 3, 7), normal(2, 5, 7))
