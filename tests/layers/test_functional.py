"""The formulas: that they compose, against closed forms and against Keras."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import LuongAttention, ScaledDotProductAttention, SelfAttention
from keras_attention.functional import (
    dot_scores,
    merge_heads,
    project,
    scaled_dot_product_attention,
    split_heads,
)
from keras_attention.masking import masked_softmax, masked_sparsemax
from tests.layers.contract import normal, to_numpy
from tests.layers.gradients import gradients

B, T, S, D, F, H = 2, 3, 5, 12, 7, 4
MASK = np.array([[[1, 1, 0, 1, 0]], [[0, 0, 0, 0, 0]]], bool)


def test_self_attention_is_five_calls():
    x = normal(B, T, D)
    layer = SelfAttention(d_model=F, d_k=H)
    want = to_numpy(layer(x))
    query = project(x, layer.query_kernel)
    key = project(x, layer.key_kernel)
    value = project(x, layer.value_kernel)
    context, weights = scaled_dot_product_attention(query, key, value)
    output = project(context, layer.output_kernel)
    np.testing.assert_allclose(to_numpy(output), want[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_numpy(weights), want[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("scale", "factor"), [(None, D**-0.5), (False, 1), (0.3, 0.3)])
def test_the_function_by_hand(scale, factor):
    query, key, value = normal(B, T, D), normal(B, S, D), normal(B, S, F)
    exponentials = np.exp(np.einsum("btd,bsd->bts", query, key) * factor) * MASK
    total = exponentials.sum(-1, keepdims=True)
    want = np.divide(exponentials, total, out=np.zeros((B, T, S)), where=total > 0)
    output, weights = scaled_dot_product_attention(query, key, value, MASK, scale)
    np.testing.assert_allclose(to_numpy(weights), want, atol=1e-5)
    np.testing.assert_allclose(to_numpy(output), want @ value, atol=1e-5)


def test_heads_are_split_and_merged():
    x = normal(B, T, D)
    heads = to_numpy(split_heads(x, H))
    np.testing.assert_array_equal(heads[1, 2], x[1, :, 6:9])
    np.testing.assert_array_equal(to_numpy(merge_heads(heads)), x)


def test_keras_attention_is_luongs_dot():
    query, value, key = normal(B, T, D), normal(B, S, F), normal(B, S, D)
    padding = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], bool)
    theirs = keras.layers.Attention()(
        [query, value, key], mask=[None, padding], return_attention_scores=True
    )
    ours = LuongAttention("dot")(query, value, key, value_mask=padding)
    for one, other in zip(to_numpy(ours), to_numpy(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_keras_attention_with_its_scale_is_the_scaled_product():
    query, value = normal(B, T, D), normal(B, S, D)
    layer = keras.layers.Attention(use_scale=True)
    layer.build([query.shape, value.shape])
    layer.set_weights([np.asarray(D**-0.5, "float32")])
    theirs = layer([query, value], return_attention_scores=True)
    for ours in (
        ScaledDotProductAttention()(query, value),
        LuongAttention("scaled_dot")(query, value),
    ):
        for one, other in zip(to_numpy(ours), to_numpy(theirs), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-5)


# ---- why the scale is there


@pytest.mark.parametrize("width", [4, 64, 1024])
def test_scaled_scores_of_random_vectors_have_a_spread_of_one(width):
    query, key = normal(8, 64, width), normal(8, 64, width, seed=1)
    for scale, spread in ((True, 1.0), (False, np.sqrt(width))):
        scores = to_numpy(dot_scores(query, key, scale))
        np.testing.assert_allclose(scores.std(), spread, rtol=0.05)


def test_without_the_scale_the_softmax_saturates_and_its_gradient_vanishes():
    query, key = normal(4, 8, 512), normal(4, 16, 512, seed=1)
    probe = normal(4, 8, 16, seed=2)
    sizes, peaks = [], []
    for scale in (True, False):

        def loss(scores):
            return ops.sum(ops.multiply(masked_softmax(scores), probe))

        scores = to_numpy(dot_scores(query, key, scale))
        peaks.append(to_numpy(masked_softmax(scores)).max(-1).mean())
        sizes.append(np.median(np.abs(gradients(loss, [scores])[0])))
    assert peaks[1] > 0.9 > 0.6 > peaks[0] and sizes[1] < sizes[0] / 100


# ---- sparsemax


@pytest.mark.parametrize(
    ("scores", "want"),
    [
        ([0.0, 0.0, 0.0], [1 / 3, 1 / 3, 1 / 3]),
        ([1.0, 0.0, 0.0], [1.0, 0.0, 0.0]),
        ([0.5, 0.0, -9.0], [0.75, 0.25, 0.0]),
        ([0.3, 0.2, 0.1], [1 / 3 + 0.1, 1 / 3, 1 / 3 - 0.1]),
        ([1e30, -1e30, 0.0], [1.0, 0.0, 0.0]),
    ],
)
def test_sparsemax_in_closed_form(scores, want):
    np.testing.assert_allclose(
        to_numpy(masked_sparsemax([scores]))[0], want, rtol=1e-5, atol=1e-6
    )


def test_sparsemax_along_another_axis_and_under_a_mask():
    scores = normal(B, T, S, scale=0.5)
    rows = to_numpy(masked_sparsemax(scores, MASK))
    columns = to_numpy(
        masked_sparsemax(np.swapaxes(scores, 1, 2), np.swapaxes(MASK, 1, 2), axis=1)
    )
    np.testing.assert_allclose(columns, np.swapaxes(rows, 1, 2), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(rows[0].sum(-1), 1, atol=1e-6)
    assert not rows[1].any() and not rows[0][:, [2, 4]].any()


def test_sparsemax_gradient_is_centred_on_its_support():
    """Martins & Astudillo (2016), equation 9: v - mean of v over the support."""
    scores, probe = normal(B, S, scale=0.3), normal(B, S, seed=1)

    def loss(scores):
        return ops.sum(ops.multiply(masked_sparsemax(scores), probe))

    support = to_numpy(masked_sparsemax(scores)) > 0
    mean = (probe * support).sum(-1, keepdims=True) / support.sum(-1, keepdims=True)
    want = np.where(support, probe - mean, 0)
    np.testing.assert_allclose(gradients(loss, [scores])[0], want, rtol=1e-5, atol=1e-6)
