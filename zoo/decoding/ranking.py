"""The best of many logits, and their sum, as fast as the backends can be made to."""

import keras
from keras import ops

BLOCK = 32
MANY = 1024  # Logits of a row from which looking at blocks first is worth it.


def best_logits(logits, count):
    """The `count` greatest logits of each row, the greatest first.

    As `keras.ops.top_k`, which on TensorFlow and JAX takes two to three times as long
    for a vocabulary of thousands. The greatest are in the `count` blocks with the
    greatest maxima. Of equal ones the lowest id comes first, but on PyTorch, whose
    `topk` promises no order of them.

    Args:
        logits: (R, V), V static.
        count: At most V.

    Returns:
        Logits and ids (int32), (R, count).

    Example:

    >>> logits, ids = best_logits(np.array([[5.0, 9.0, 7.0]], "float32"), 2)
    >>> keras.ops.convert_to_numpy(ids).tolist()
    [[1, 2]]
    """
    size = logits.shape[-1]
    if size < max(MANY, 2 * BLOCK * count) or keras.backend.backend() == "torch":
        values, ids = ops.top_k(logits, count)
        return values, ops.cast(ids, "int32")
    num_blocks = -(-size // BLOCK)
    if size % BLOCK:
        more = ((0, 0), (0, num_blocks * BLOCK - size))
        logits = ops.pad(logits, more, constant_values=-float("inf"))
    rows = ops.shape(logits)[0]
    blocks = ops.reshape(logits, (rows, num_blocks, BLOCK))
    chosen = ops.top_k(ops.max(blocks, axis=-1), count)[1]
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=-1)  # (R, count)
    first = first_of_each(rows, num_blocks)
    blocks = ops.reshape(blocks, (rows * num_blocks, BLOCK))
    blocks = ops.take(blocks, chosen + first, axis=0)  # (R, count, BLOCK)
    values, places = ops.top_k(ops.reshape(blocks, (rows, count * BLOCK)), count)
    places = ops.cast(places, "int32")
    ids = take_places(chosen, places // BLOCK) * BLOCK + places % BLOCK
    return values, ops.minimum(ids, size - 1)  # NaN may come in any order


def log_totals(logits, greatest):
    """log sum exp of each row, whose greatest (R, 1) is known: (R, 1).

    NaN where nothing is possible, or a logit is NaN.

    Example:

    >>> total = log_totals(np.log(np.array([[1.0, 3.0]])), np.log(np.array([[3.0]])))
    >>> float(np.exp(total[0, 0]).round(6))
    4.0
    """
    sums = ops.sum(ops.exp(logits - greatest), axis=-1, keepdims=True)
    return ops.log(sums) + greatest


def number_or_never(values):
    """values, but -inf, which nothing is ranked below, in place of NaN."""
    return ops.where(ops.isnan(values), -float("inf"), values)


def take_places(values, places):
    """values (B, C, ...) at places (B, k) of the second axis: (B, k, ...).

    Example:

    >>> taken = take_places(np.array([[1, 2, 3], [4, 5, 6]]), np.array([[2], [0]]))
    >>> keras.ops.convert_to_numpy(taken).tolist()
    [[3], [4]]
    """
    batch, width, *rest = ops.shape(values)
    flat = ops.reshape(values, (batch * width, *rest))
    return ops.take(flat, places + first_of_each(batch, width), axis=0)


def first_of_each(batch, width):
    """(B, 1): 0, width, 2 width, ...: the place of each sentence's first row."""
    return ops.arange(batch, dtype="int32")[:, None] * width
