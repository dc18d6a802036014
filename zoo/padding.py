"""Lists of ids as one array: 0 behind the shorter ones."""

import numpy as np


def padded(rows, multiple_of=1):
    """Lists of ids -> one array (B, S), 0 behind the shorter ones.

    Args:
        rows: A list of B lists of ids.
        multiple_of: What S is rounded up to a multiple of; it is 1 at least.

    Example:

    >>> padded([[7, 8, 9], [4]], multiple_of=2).tolist()
    [[7, 8, 9, 0], [4, 0, 0, 0]]
    """
    longest = max(1, *map(len, rows))
    array = np.zeros((len(rows), -(-longest // multiple_of) * multiple_of), "int32")
    for place, row in zip(array, rows, strict=True):
        place[: len(row)] = row
    return array


def cut_and_pad(rows, maxlen, multiple_of=1):
    """`padded` of the ends of rows, `maxlen` ids of each at most.

    Example:

    >>> cut_and_pad([[7, 8, 9], [4]], maxlen=2).tolist()
    [[8, 9], [4, 0]]
    """
    return padded([list(row)[-maxlen:] for row in rows], multiple_of)
