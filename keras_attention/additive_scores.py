"""Additive scores: at once where they are small, else a few queries at a time."""

import math

from keras import ops

from keras_attention.chunks import chunk_length, over_chunks

WHOLE = 2**18  # numbers of q + k per example to hold at once; 1 MB in float32


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
    rows = ops.reshape(ops.tanh(hidden), (-1, vector.shape[0]))
    return ops.reshape(ops.matmul(rows, vector[:, None]), ops.shape(hidden)[:3])


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
