"""Rounds maps of weights and packs them into text, as small as a page needs them."""

import zlib
from base64 import b64encode
from typing import NamedTuple

import numpy as np

# The finest at which the maps fit is taken. A code has 16 bits: 1 / 0.0001 fits.
STEPS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
LIMIT = 14_500_000  # characters of all data: with the rest of a page under 15 MB
THUMBNAIL = 32  # cells a side, at most


class Packed(NamedTuple):
    """Maps as text: each weight is a whole number of `step`, for all maps the same."""

    step: float
    texts: list


def pack(maps, limit):
    """Packs maps into text, rounded no more than their size demands.

    Each text is, in base64, a zlib stream of a map's codes, row by row: the low bytes
    of all, then the high bytes of all, if any is not 0. A weight is its code times the
    step, and half a step off at most.

    Args:
        maps: list of float64 arrays of shape `(T, S)`, values 0 to 1.
        limit: how many characters all texts may have together.

    Returns:
        `Packed`, or None where they do not fit unless most weights are rounded to 0.

    >>> step, (text,) = pack([np.array([[0.25, 0.75]])], LIMIT)
    >>> step
    0.0001
    """
    largest = max(float(weights.max()) for weights in maps)
    for step in STEPS:
        if step > STEPS[0] and step > largest / 2:
            break
        texts = _texts(maps, step, limit)
        if texts is not None:
            return Packed(step, texts)
    return None


def _texts(maps, step, limit):
    texts, size = [], 0
    for weights in maps:
        texts.append(_text(np.rint(weights / step).astype("<u2")))
        size += len(texts[-1])
        if size > limit:
            return None
    return texts


def _text(codes):
    low, high = (codes & 255).astype("u1"), (codes >> 8).astype("u1")
    data = low.tobytes() + (high.tobytes() if high.any() else b"")
    # Runs of equal bytes and Huffman codes: of all zlib's strategies the quickest here,
    # and on weights of a softmax the smallest too.
    packer = zlib.compressobj(strategy=zlib.Z_RLE)
    return b64encode(packer.compress(data) + packer.flush()).decode("ascii")


def thumbnail(weights, side=THUMBNAIL):
    """Returns a map at a small size, as bytes: the means of blocks of its cells.

    Args:
        weights: array of shape `(T, S)`, values at least 0.
        side: the most rows and columns of the result.

    Returns:
        Array of uint8: 255 is the largest mean. A map that is small already keeps its
        shape.

    >>> thumbnail(np.array([[1.0, 0.0, 0.5], [1.0, 0.0, 0.0]]), side=2)
    array([[255,  64],
           [255,   0]], dtype=uint8)
    """
    means = weights
    for axis, size in enumerate(weights.shape):
        count = min(size, side)
        starts = np.arange(count) * size // count
        shape = [-1 if each == axis else 1 for each in range(2)]
        counts = np.diff(starts, append=size).reshape(shape)
        means = np.add.reduceat(means, starts, axis) / counts
    return np.rint(255 * means / (means.max() or 1.0)).astype("u1")


def spread(weights):
    """Returns over how many columns a row's attention spreads, on average.

    It is the exponential of the rows' mean entropy: 1 where every row looks at one
    column, S where all look at S alike. Rows of zeros do not count.

    >>> spread(np.array([[0.25, 0.25, 0.25, 0.25], [0.0, 0.0, 1.0, 0.0]]))
    2.0
    """
    sums = weights.sum(axis=1, keepdims=True)
    shares = weights[sums[:, 0] > 0] / sums[sums > 0][:, None]
    if not len(shares):
        return 0.0
    logs = np.log2(shares, where=shares > 0, out=np.zeros_like(shares))
    return float(2 ** -(shares * logs).sum(axis=1).mean())
