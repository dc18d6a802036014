"""The formulas of attention as pure functions that compose: score, softmax, mix."""

from keras import ops


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
        Scores (B, T, S); T is 1 without a query. The sum q + k takes B x T x S x units
        numbers of memory.

    Example:

    >>> query, key, vector = np.zeros((1, 2, 4)), np.ones((1, 3, 4)), np.ones(4)
    >>> tuple(additive_scores(query, key, vector).shape)
    (1, 2, 3)
    """
    key = ops.expand_dims(key, 1)  # (B, 1, S, units)
    hidden = key if query is None else ops.expand_dims(query, 2) + key  # (B, T, S, U)
    return ops.matmul(ops.tanh(hidden), ops.expand_dims(vector, -1))[..., 0]


def weighted_sum(weights, value):
    """Mixes values by weights: c[t] = sum over s of a[t, s] v[s].

    Bahdanau, Cho & Bengio (2015), equation 5.

    Args:
        weights: Attention weights (B, T, S).
        value: Values (B, S, F).

    Returns:
        Contexts (B, T, F).

    Example:

    >>> tuple(weighted_sum(np.ones((1, 2, 3)) / 3, np.ones((1, 3, 5))).shape)
    (1, 2, 5)
    """
    return ops.matmul(weights, value)
