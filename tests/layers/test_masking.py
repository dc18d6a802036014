"""Masks: one polarity, refusals, and the softmax that never leaks."""

import keras
import numpy as np
import pytest
from keras import ops
from scipy.special import softmax

from keras_attention import masking
from tests.layers.contract import normal, to_numpy


@pytest.mark.parametrize(
    "mask", [[[True, False]], np.array([[1, 0]]), np.array([[1.0, 0.0]], "float16")]
)
def test_booleans_and_zero_one_mean_the_same(mask):
    got = to_numpy(masking.as_boolean_mask(mask))
    assert got.dtype == bool and got.tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("mask", "stranger"),
    [([[0.0, -1e9]], "-1000000000"), ([[0, 2]], "2"), ([[1.0, np.nan]], "nan")],
)
def test_other_values_are_refused_by_name(mask, stranger):
    with pytest.raises(ValueError, match=f"`value_mask` must hold.*{stranger}"):
        masking.as_boolean_mask(np.array(mask), "value_mask")


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="runs eagerly")
def test_an_additive_mask_inside_a_compiled_function_attends_to_nothing():
    if keras.backend.backend() == "jax":
        from jax import jit
    else:
        from tensorflow import function as jit
    compiled = jit(masking.as_boolean_mask)
    additive, floats = (ops.convert_to_tensor([x]) for x in ([0.0, -1e9], [1.0, 0.0]))
    assert not to_numpy(compiled(additive)).any()
    assert to_numpy(compiled(floats)).tolist() == [[True, False]]


def test_padding_and_causal_masks():
    assert to_numpy(masking.padding_mask(np.array([[4, 0]]))).tolist() == [
        [True, False]
    ]
    np.testing.assert_array_equal(
        to_numpy(masking.causal_mask(3, 5))[0], np.tri(3, 5, dtype=bool)
    )


def test_combine_masks_broadcasts_and_skips_none():
    rows, columns = np.array([[[True], [False]]]), np.array([[[True, False, True]]])
    both = to_numpy(masking.combine_masks(None, rows, columns))
    assert both.tolist() == [[[True, False, True], [False] * 3]]
    assert masking.combine_masks(None, None) is None


def test_masked_softmax_is_the_softmax_of_what_is_left():
    scores = normal(3, 5, 7, scale=10)
    mask = np.random.default_rng(1).random((3, 5, 7)) > 0.3
    mask[1, 2] = False
    got = to_numpy(masking.masked_softmax(scores, mask))
    for place in np.ndindex(3, 5):
        left = mask[place]
        want = np.zeros(7)
        if left.any():
            want[left] = softmax(scores[place][left].astype("float64"))
        np.testing.assert_allclose(got[place], want, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("filler", [np.nan, np.inf, -np.inf, 3e38])
def test_masked_scores_have_no_influence(filler):
    scores, mask = normal(2, 5), np.array([[1, 1, 0, 1, 0]] * 2, bool)
    want = to_numpy(masking.masked_softmax(scores, mask))
    got = to_numpy(masking.masked_softmax(np.where(mask, scores, filler), mask))
    np.testing.assert_array_equal(got, want)


def test_additive_masks_are_refused_everywhere():
    additive = np.array([[0.0, -1e9]])
    with pytest.raises(ValueError, match="must hold booleans"):
        masking.masked_softmax(np.zeros((1, 2)), additive)
    with pytest.raises(ValueError, match="must hold booleans"):
        masking.combine_masks(additive, None)


def test_softmax_over_another_axis():
    scores = normal(3, 5)
    got = to_numpy(masking.masked_softmax(scores, axis=0))
    np.testing.assert_allclose(got, softmax(scores, axis=0), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_sixteen_bit_scores_are_lifted(dtype):
    scores = ops.cast(normal(2, 5, scale=1000), dtype)
    weights = to_numpy(masking.masked_softmax(scores))
    assert weights.dtype == np.float32
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


def test_no_keys_at_all_gives_no_weights():
    assert to_numpy(masking.masked_softmax(np.zeros((2, 0), "float32"))).shape == (2, 0)
