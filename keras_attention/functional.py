"""The formulas of attention as pure functions that compose: project, score, mix."""

import math

from keras import ops

from keras_attention.chunks import chunk_length, over_chunks
from keras_attention.masking import masked_softmax

WHOLE = 2**18  # numbers of q + k per example to hold at once; 1 MB in float32


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
    outputs = ops.matmul(inputs, kernel)
    return outputs if bias is None else outputs + bias


def additive_scores(query, key, vector):
    """Additive scores: e[t, s] = v . tanh(q[t] + k[s]).

    Bahdanau, Cho & Bengio (2015), section A.1.2: e_ij = v^T tanh(W s_{i-1} + U h_j),
    for a query (W s) and a key (U h) that are projected already.

    Args:
        query: Projected queries (B, T, units), or None: no query, so that each key is
            scored on its own (attention pooling).
        key: Projected keys (B, S, units).
        vector: The vector v (units,).

    Returns:
        Scores (B, T, S); T is 1 without a query. The sum q + k, B x T x S x units
        numbers, is held whole up to 1 MB per example. A larger one, or one of unknown
        length, is made a few queries at a time, and again in the backward pass; it has
        first derivatives alone.

    Example:

    >>> query, key, vector = np.zeros((1, 2, 4)), np.ones((1, 3, 4)), np.ones(4)
    >>> tuple(additive_scores(query, key, vector).shape)
    (1, 2, 3)
    """
    if query is None or _is_small(*ops.shape(query), ops.shape(key)[1]):
        return _additive_scores_at_once(query, key, vector)
    inputs = map(ops.convert_to_tensor, (query, key, vector))
    return _additive_scores_by_chunks(*inputs)


def _is_small(batch, num_queries, units, num_keys):
    """Whether q + k is known to be small, or has symbols for sizes (no numbers)."""
    if isinstance(num_queries, int) and num_queries <= 1:
        return True  # one query is not divided
    sizes = num_queries, units, num_keys
    if all(isinstance(size, int) for size in sizes) and math.prod(sizes) <= WHOLE:
        return True
    sizes = batch, *sizes
    return not all(isinstance(size, int) or ops.is_tensor(size) for size in sizes)


def _additive_scores_at_once(query, key, vector):
    """`additive_scores` with the whole sum q + k in memory."""
    key = ops.expand_dims(key, 1)  # (B, 1, S, units)
    hidden = key if query is None else ops.expand_dims(query, 2) + key  # (B, T, S, U)
    return ops.matmul(ops.tanh(hidden), ops.expand_dims(vector, -1))[..., 0]


def _additive_scores_by_chunks(query, key, vector):
    """`additive_scores` a few queries at a time, forward and backward.

    The gradient is written out, so that tanh is computed again rather than kept. With
    h = tanh(q[t] + k[s]), g the gradient of e[t, s] and d = g (1 - h^2):
    dq[t] = v sum over s of d, dk[s] = v sum over t of d, dv = sum over t, s of g h.
    """
    batch, num_queries, units = ops.shape(query)
    num_keys = ops.shape(key)[1]
    length = chunk_length(num_queries, batch * num_keys * units)

    @ops.custom_gradient
    def scores(query, key, vector):
        def forward(chunk):
            return (_additive_scores_at_once(chunk, key, vector),)

        def backward(chunk, upstream):
            hidden = ops.tanh(chunk[:, :, None] + key[:, None])  # (B, chunk, S, units)
            slope = 1 - hidden * hidden
            dq = ops.matmul(upstream[:, :, None], slope)[:, :, 0]
            dk = ops.sum(upstream[..., None] * slope, axis=1)
            flat = ops.reshape(upstream, (1, -1)), ops.reshape(hidden, (-1, units))
            return dq, dk, ops.matmul(*flat)[0]

        def gradient(*args, upstream=None):
            upstream = args[0] if upstream is None else upstream  # torch names it
            zeros = ops.zeros_like(key), ops.zeros_like(vector)
            inputs = query, upstream
            dq, dk, dv = over_chunks(backward, length, inputs, units, zeros)
            return dq * vector, dk * vector, dv

        return over_chunks(forward, length, [query], num_keys)[0], gradient

    return scores(query, key, vector)


def dot_scores(query, key, scale=False):
    """Dot-product scores: e[t, s] = q[t] . k[s], times a scale.

    Luong, Pham & Manning (2015), equation 8 ("dot"); with `scale=True` Vaswani et al.
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
