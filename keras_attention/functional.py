"""The formulas of attention as pure functions that compose: project, score, mix."""

import math

from keras import ops

from keras_attention.additive_scores import additive_scores
from keras_attention.masking import masked_softmax

__all__ = [
    "additive_scores",
    "dot_scores",
    "merge_heads",
    "project",
    "scale_factor",
    "scaled_dot_product_attention",
    "split_heads",
    "weighted_sum",
]


def project(inputs, kernel, bias=None):
    """A linear map of the last axis: y = x W + b.

    Args:
        inputs: Tensor (..., D).
        kernel: Matrix (D, U).
        bias: Vector (U,), or None.

    Returns:
        Tensor (..., U).

    Example:

    >>> tuple(project(np.ones((1, 5, 4)), np.ones((4, 3))).shape)
    (1, 5, 3)
    """
    inputs = ops.convert_to_tensor(inputs)
    # One step without its axis: inside TensorFlow's loops XLA has a gradient for
    # products of matrices, of unknown sizes, but not of three axes with two.
    one = len(inputs.shape) == 3 and inputs.shape[1] == 1
    outputs = ops.matmul(inputs[:, 0] if one else inputs, kernel)
    outputs = outputs[:, None] if one else outputs
    # Under PyTorch Keras multiplies float64 in float32.
    outputs = ops.cast(outputs, inputs.dtype)
    return outputs if bias is None else outputs + bias


def dot_scores(query, key, scale=False):
    """Dot-product scores: e[t, s] = q[t] . k[s], times a scale.

    Luong, Pham & Manning (2015), section 3.1 ("dot"); with `scale=True` Vaswani et al.
    (2017), equation 1: q . k / sqrt(d).

    Args:
        query: Queries (..., T, d).
        key: Keys (..., S, d).
        scale: True for 1 / sqrt(d), False for none, or a number to multiply by.

    Returns:
        Scores (..., T, S).

    Example:

    >>> float(dot_scores(np.ones((1, 1, 4)), np.ones((1, 1, 4)), scale=True)[0, 0, 0])
    2.0
    """
    factor = scale_factor(scale, query.shape[-1])
    if factor != 1:
        query = ops.multiply(query, factor)
    return ops.einsum("...td,...sd->...ts", query, key)


def scale_factor(scale, width):
    """The number that `scale` stands for: True is 1 / sqrt(width), False and None 1.

    Example:

    >>> scale_factor(True, 16), scale_factor(False, 16), scale_factor(0.125, 16)
    (0.25, 1.0, 0.125)
    """
    if scale is True:
        return 1 / math.sqrt(width)
    return 1.0 if scale is None or scale is False else scale


def weighted_sum(weights, value):
    """Mixes values by weights: c[t] = sum over s of a[t, s] v[s].

    Bahdanau, Cho & Bengio (2015), equation 5.

    Args:
        weights: Attention weights (..., T, S).
        value: Values (..., S, F).

    Returns:
        Contexts (..., T, F).

    Example:

    >>> tuple(weighted_sum(np.ones((1, 2, 3)) / 3, np.ones((1, 3, 5))).shape)
    (1, 2, 5)
    """
    return ops.matmul(weights, value)


def scaled_dot_product_attention(query, key, value, mask=None, scale=None):
    """Scaled dot-product attention: softmax(Q K^T / sqrt(d)) V.

    Vaswani et al. (2017), equation 1. With `project`, self-attention is five calls:

        query = project(x, query_kernel)
        key = project(x, key_kernel)
        value = project(x, value_kernel)
        context, weights = scaled_dot_product_attention(query, key, value)
        output = project(context, output_kernel)

    Args:
        query: Queries (..., T, d).
        key: Keys (..., S, d).
        value: Values (..., S, F).
        mask: Boolean (or 0/1) mask that broadcasts to (..., T, S), True where query t
            may attend to key s; or None.
        scale: A number the scores are multiplied by. None or True is 1 / sqrt(d), False
            is no scale.

    Returns:
        `(output, weights)`: (..., T, F) and (..., T, S). A query with nothing to attend
        to gets zeros in both. What is in masked slots of `value` must be finite.

    Example:

    >>> x = np.eye(3)[None]
    >>> output, weights = scaled_dot_product_attention(x, x, x, scale=False)
    >>> print(keras.ops.convert_to_numpy(weights)[0].round(2))
    [[0.58 0.21 0.21]
     [0.21 0.58 0.21]
     [0.21 0.21 0.58]]
    """
    scores = dot_scores(query, key, scale=True if scale is None else scale)
    weights = masked_softmax(scores, mask)
    return weighted_sum(ops.cast(weights, value.dtype), value), weights


def split_heads(inputs, num_heads):
    """(B, T, H x d) -> (B, H, T, d).

    Example:

    >>> tuple(split_heads(np.ones((2, 3, 20)), 4).shape)
    (2, 4, 3, 5)
    """
    batch, length, width = ops.shape(inputs)
    heads = ops.reshape(inputs, (batch, length, num_heads, width // num_heads))
    return ops.transpose(heads, (0, 2, 1, 3))


def merge_heads(inputs):
    """(B, H, T, d) -> (B, T, H x d), the inverse of `split_heads`.

    Example:

    >>> tuple(merge_heads(np.ones((2, 4, 3, 5))).shape)
    (2, 3, 20)
    """
    batch, num_heads, length, width = ops.shape(inputs)
    rows = ops.transpose(inputs, (0, 2, 1, 3))
    return ops.reshape(rows, (batch, length, num_heads * width))
