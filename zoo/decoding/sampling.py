"""Draws of tokens: numbers at random that only seed, row and step decide."""

import numpy as np
from keras import ops

from zoo.decoding.arguments import integers
from zoo.decoding.ranking import best_logits, take_places

NEVER = -float("inf")
GOLDEN = 0x9E3779B9 - 2**32  # 2^32 / the golden ratio, as int32 throughout
TEMPERATURES = 1e-30, 1e30  # further out nothing changes but that float32 ends
BITS = 23  # so many that the greatest number below 1 stays below when multiplied


def row_keys(seed, sentence_ids, batch, num_return):
    """(B N,) int32: a key for each hypothesis.

    Args:
        seed: Integer, or a scalar int32 tensor.
        sentence_ids: (B,) integers; None for 0..B-1.
        batch: B.
        num_return: N.
    """
    if sentence_ids is None:
        sentence_ids = ops.arange(batch, dtype="int32")
    elif isinstance(sentence_ids, list | tuple | np.ndarray):
        number = batch if isinstance(batch, int) else len(sentence_ids)
        sentence_ids = integers("sentence_ids", sentence_ids, 0, number)
    seed = ops.cast(seed, "int32")
    sentences = _mixed(_mixed(seed + GOLDEN) + ops.cast(sentence_ids, "int32"))
    numbers = ops.arange(num_return, dtype="int32")
    keys = _mixed(sentences[:, None] + _mixed(numbers + GOLDEN))
    return ops.reshape(keys, (-1,))


def uniform(keys, step):
    """(R,) numbers in [0, 1) of the keys, others in each step.

    Example:

    >>> keys = row_keys(7, None, batch=2, num_return=1)
    >>> numbers = keras.ops.convert_to_numpy(uniform(keys, 0))
    >>> bool(0 <= numbers.min() and numbers.max() < 1 and numbers[0] != numbers[1])
    True
    """
    step = ops.cast(step, "int32")
    bits = _mixed(_mixed(keys + step * GOLDEN) + step)
    return ops.cast(_shifted(bits, 32 - BITS), "float32") / 2.0**BITS


def _mixed(x):
    """The last mixing of MurmurHash3, on int32: any bit in changes half those out."""
    x = ops.bitwise_xor(x, _shifted(x, 16)) * (0x85EBCA6B - 2**32)
    x = ops.bitwise_xor(x, _shifted(x, 13)) * (0xC2B2AE35 - 2**32)
    return ops.bitwise_xor(x, _shifted(x, 16))


def _shifted(x, count):
    """x shifted right with zeros coming in: int32 shifts bring its sign."""
    return ops.bitwise_and(ops.right_shift(x, count), 2 ** (32 - count) - 1)


def draw(logits, numbers, temperature=1.0, top_k=None, top_p=None):
    """A token for each row, by the probabilities of its logits.

    Args:
        logits: (R, V), -inf for what may not be drawn.
        numbers: (R,) in [0, 1): where in the sum of the probabilities to stop.
        temperature: What logits are divided by.
        top_k: To draw from so many most probable tokens; None for all.
        top_p: To draw from the fewest most probable tokens that come to this
            probability; None for all.

    Returns:
        (R,) int32.

    Example:

    >>> logits = np.log(np.array([[0.1, 0.6, 0.3]], "float32"))
    >>> [int(draw(logits, np.array([n], "float32"))[0]) for n in (0.05, 0.2, 0.9)]
    [0, 1, 2]
    """
    vocabulary = logits.shape[-1]
    tokens = None
    if top_k is not None or top_p is not None:
        logits, tokens = best_logits(logits, min(top_k or vocabulary, vocabulary))
    greatest = best_logits(logits, 1)[0]
    greatest = ops.where(greatest > NEVER, greatest, 0.0)
    least, most = TEMPERATURES
    chances = ops.exp((logits - greatest) / min(max(temperature, least), most))
    chances = chances / ops.sum(chances, axis=-1, keepdims=True)
    if top_p is not None:
        before = ops.cumsum(chances, axis=-1) - chances
        # The first is in it at any top_p.
        first = ops.arange(chances.shape[-1], dtype="int32") == 0
        nucleus = ops.logical_or(before < top_p, first)
        chances = ops.where(nucleus, chances, 0.0)
    possible = chances > 0
    sums = ops.where(possible, ops.cumsum(chances, axis=-1), 0.0)
    stop = numbers[:, None] * best_logits(sums, 1)[0]
    places = ops.argmax(ops.cast(sums > stop, "int32"), axis=-1)
    places = ops.cast(places, "int32")
    if tokens is None:
        return places
    return take_places(tokens, places[:, None])[:, 0]
