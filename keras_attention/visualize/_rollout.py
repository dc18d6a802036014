"""Attention rollout: one map of what every output read, through all the layers."""

import re
from collections.abc import Mapping
from itertools import pairwise
from numbers import Real

import numpy as np

from keras_attention.visualize._checks import check_numbers, check_range

# A row of bfloat16 weights may sum to this much more than 1.
SUM_TOLERANCE = 1e-2


def rollout(maps, *, residual=0.5):
    """Follows the self-attention of all layers back to the tokens that were read.

    A layer's map says which states of the layer below were mixed; those are mixtures
    themselves. With the mean `W` of a layer's heads, each layer is the matrix
    `A = residual * I + (1 - residual) * W`, whose first part stands for the connection
    around the attention, and the rollout is the product `A_L ... A_2 A_1`. Row t of it
    is the share that each token has in the last layer's state t, as far as attention
    and those connections tell: what the layers compute of the states is left out.

    Every row of `A` is divided by its sum. So a row of zeros, that of a query with
    nothing to attend to, leaves a token what it was: its state comes from the
    connection alone. With `residual=0` there is none, and the row is 0 there.

    Args:
        maps: the weights of one example, the first layer first: an array of shape
            `(L, H, T, T)` or `(L, T, T)`, or a list, or a dict by name, of L arrays
            `(H, T, T)` or `(T, T)`, whose numbers of heads may differ. Leave out
            padding: the rows and the columns.
        residual: the share of the connection around the attention, 0 to 1.

    Returns:
        An array of shape `(T, T)`: a row for each output, a column for each token
        read. Rows sum to 1, but for `residual=0` after rows of zeros.

    Raises:
        ValueError: `maps` has other shapes, such as a batch axis, the layers' sizes
            differ, values are not from 0 to 1, a row sums to more than 1, the names
            of a dict have numbers out of order, or `residual` is not from 0 to 1.

    Reference:
        Abnar & Zuidema (2020), "Quantifying Attention Flow in Transformers",
        arXiv:2005.00928, section 3.

    Example:

    >>> from keras_attention.visualize import rollout
    >>> first, second = [[1.0, 0.0], [0.5, 0.5]], [[1.0, 0.0], [1.0, 0.0]]
    >>> rollout([first, second])
    array([[1.   , 0.   ],
           [0.625, 0.375]])
    """
    if not isinstance(residual, Real) or not 0 <= residual <= 1:
        raise ValueError(
            f"`residual` must be a number from 0 to 1. Received: {residual!r}. It is "
            "the share of a state that does not go through the attention."
        )
    layers = [_mean_of_heads(weights, name) for name, weights in _named(maps)]
    _check_one_size(layers)
    total = np.eye(len(layers[0]))
    for weights in layers:
        total = _mixed(weights, residual) @ total
    return total


def _mixed(weights, residual):
    """Returns the shares of the states below in each state of a layer."""
    mixed = residual * np.eye(len(weights)) + (1 - residual) * weights
    sums = mixed.sum(axis=1, keepdims=True)
    return np.divide(mixed, sums, out=np.zeros_like(mixed), where=sums > 0)


def _named(maps):
    """Returns (name, weights) of each layer."""
    if isinstance(maps, Mapping):
        _check_order(list(maps))
        named = [(f"maps[{name!r}]", weights) for name, weights in maps.items()]
    else:
        try:
            named = [(f"maps[{at}]", weights) for at, weights in enumerate(maps)]
        except TypeError:
            named = []
    if not named:
        raise ValueError(
            "`maps` must be the attention of at least one layer, such as an array of "
            f"shape (L, H, T, T). Received: {maps!r}."
        )
    return named


def _check_order(names):
    """Refuses "block_10" before "block_2": some backends sort the names of a dict."""
    for first, second in pairwise(names):
        (start, before), (other, after) = _numbers(first), _numbers(second)
        if start == other and before > after:
            raise ValueError(
                f"`maps` must have the first layer first. Received: {first!r} before "
                f"{second!r}. Give a list of the layers' maps in their order."
            )


def _numbers(name):
    """Returns the text of a name without its numbers, and the numbers."""
    parts = re.split(r"(\d+)", str(name))
    return parts[::2], [int(part) for part in parts[1::2]]


def _mean_of_heads(weights, name):
    weights = check_numbers(weights, name)
    square = weights.ndim > 1 and weights.shape[-1] == weights.shape[-2]
    if weights.ndim not in (2, 3) or not square or not weights.size:
        raise ValueError(
            f"`{name}`, the self-attention of a layer, must have shape (T, T), or "
            f"(H, T, T) with heads. Received shape: {weights.shape}. Of a batch take "
            "one example. Attention to another text has no rollout."
        )
    weights = check_range(weights, name)
    sums = weights.sum(axis=-1)
    if sums.max() > 1 + SUM_TOLERANCE:
        raise ValueError(
            f"The rows of `{name}` must sum to at most 1: a row for each query. "
            f"Received a row that sums to {sums.max():.4g}. If it is the columns that "
            "sum to 1, swap the last two axes."
        )
    return weights if weights.ndim == 2 else weights.mean(axis=0)


def _check_one_size(layers):
    sizes = [len(weights) for weights in layers]
    if len(set(sizes)) > 1:
        raise ValueError(
            "`maps` must have the same T tokens in every layer. Received: T = "
            f"{', '.join(map(str, sizes))}. Leave out padding in all layers alike."
        )
