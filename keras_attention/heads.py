"""Attention by heads: groups of heads that share keys, the fused kernel, the caches."""

import keras
from keras import ops

from keras_attention.functional import dot_scores, weighted_sum


def grouped_scores(query, key):
    """Scaled dot-product scores by heads, where groups of queries share a key head.

    Ainslie et al. (2023), section 2.2; with as many key heads as query heads, Vaswani
    et al. (2017), section 3.2.2.

    Args:
        query: Heads of queries (B, H, T, d).
        key: Heads of keys (B, G, S, d), G a divisor of H.

    Returns:
        Scores (B, H, T, S).

    Example:

    >>> query, key = np.ones((2, 6, 3, 4)), np.ones((2, 2, 5, 4))
    >>> tuple(grouped_scores(query, key).shape)
    (2, 6, 3, 5)
    """
    scores = dot_scores(_below(query, key.shape[1]), key, scale=True)
    return _beside(scores, query.shape[1])


def grouped_sum(weights, value):
    """Mixes heads of values by weights, where groups of weights share a value head.

    Args:
        weights: Attention weights (B, H, T, S).
        value: Heads of values (B, G, S, v), G a divisor of H.

    Returns:
        Contexts (B, H, T, v).

    Example:

    >>> tuple(grouped_sum(np.ones((2, 6, 3, 5)), np.ones((2, 2, 5, 4))).shape)
    (2, 6, 3, 4)
    """
    context = weighted_sum(_below(weights, value.shape[1]), value)
    return _beside(context, weights.shape[1])


def _below(heads, groups):
    """(B, H, T, .) -> (B, G, H / G x T, .): a group's heads one below the other."""
    batch, num_heads, length, width = ops.shape(heads)
    if num_heads == groups:
        return heads
    return ops.reshape(heads, (batch, groups, num_heads // groups * length, width))


def _beside(rows, num_heads):
    """The inverse of `_below`: (B, G, H / G x T, .) -> (B, H, T, .)."""
    batch, groups, length, width = ops.shape(rows)
    if num_heads == groups:
        return rows
    return ops.reshape(rows, (batch, num_heads, length * groups // num_heads, width))


def has_fused_kernel(key_dim, value_dim):
    """Whether the backend has a fused kernel for heads of these widths.

    PyTorch has one, JAX one for values as wide as keys, TensorFlow none.

    Example:

    >>> has_fused_kernel(4, 4) == (keras.backend.backend() in ("torch", "jax"))
    True
    """
    backend = keras.backend.backend()
    return backend == "torch" or (backend == "jax" and key_dim == value_dim)


def fused_attention(query, key, value, may_attend=None):
    """softmax(Q K^T / sqrt(d)) V by heads, in the backend's kernel, without weights.

    The numbers are those of the other path, zeros for queries with nothing to attend to
    included, where the kernel itself would give a mean over the padding.

    Args:
        query: Heads of queries (B, H, T, d).
        key: Heads of keys (B, G, S, d), G a divisor of H.
        value: Heads of values (B, G, S, v).
        may_attend: Boolean that broadcasts to (B, H, T, S), or None.

    Returns:
        Contexts (B, H, T, v).

    Example:

    >>> heads = np.ones((2, 4, 3, 8), "float32")
    >>> tuple(fused_attention(heads, heads, heads).shape)
    (2, 4, 3, 8)
    """
    live = None
    if may_attend is not None:
        live = ops.any(may_attend, axis=-1, keepdims=True)  # (B, H, T, 1)
        # A row of nothing is NaN in some kernels, backwards too: it may see all here.
        may_attend = ops.logical_or(may_attend, ops.logical_not(live))
        steps, length = ops.shape(query)[2], ops.shape(key)[2]
        shape = (*ops.shape(may_attend)[:2], steps, length)
        may_attend = ops.broadcast_to(may_attend, shape)
    query, key, value = (ops.transpose(x, (0, 2, 1, 3)) for x in (query, key, value))
    context = ops.dot_product_attention(query, key, value, mask=may_attend)
    context = ops.transpose(context, (0, 2, 1, 3))
    return context if live is None else ops.where(live, context, 0)


def write_cache(cache, fresh, position):
    """A cache with new keys and values, and which are real, from a slot on.

    Args:
        cache: Heads of keys (B, G, S, d) and of values (B, G, S, v), and a boolean
            (B, S), True where a slot holds a real token.
        fresh: The same of the new tokens: (B, G, T, d), (B, G, T, v) and (B, T).
        position: The first slot to write, a scalar integer.

    Returns:
        The new cache; the old one is as it was.

    Example:

    >>> heads, real = np.zeros((1, 1, 3, 1)), np.zeros((1, 3), bool)
    >>> fresh = np.ones((1, 1, 1, 1)), np.ones((1, 1, 1, 1)), np.ones((1, 1), bool)
    >>> key, value, real = write_cache((heads, heads, real), fresh, position=1)
    >>> keras.ops.convert_to_numpy(key).ravel().tolist()
    [0.0, 1.0, 0.0]
    """
    position = ops.cast(position, "int32")
    starts = (0, 0, position, 0), (0, 0, position, 0), (0, position)
    return tuple(
        ops.slice_update(old, start, ops.cast(new, old.dtype))
        for old, start, new in zip(cache, starts, fresh, strict=True)
    )


def written_slots(position, steps, slots):
    """Boolean (1, 1, T, S): query t may attend to the cache's slots 0..position + t.

    Example:

    >>> seen = written_slots(1, steps=2, slots=4)
    >>> keras.ops.convert_to_numpy(seen)[0, 0].astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0]]
    """
    last = (
        ops.cast(position, "int32") + ops.arange(steps, dtype="int32")[:, None]
    )  # (T, 1)
    return ops.less_equal(ops.arange(slots, dtype="int32")[None], last)[None, None]
