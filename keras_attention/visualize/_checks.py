"""Checks attention maps and their labels before anything is made of them."""

import numpy as np

from keras_attention.visualize._spans import TOLERANCE


def check_labels(labels, name):
    """Returns the labels as a list of strings."""
    if isinstance(labels, str):
        raise ValueError(
            f"`{name}` must be a list of labels. Received one string: {labels!r}. "
            "Split it into tokens first."
        )
    return [str(label) for label in labels]


def check_numbers(
    weights,
    name="weights",
    expected="an array of numbers, all rows of one length",
    advice="Maps of one size are joined by np.stack(maps).",
):
    """Returns the weights as an array of float64."""
    try:
        return np.asarray(weights, dtype="float64")
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be {expected}. Received: {type(weights).__name__}. {advice}"
        ) from None


def check_range(weights, name="weights"):
    """Returns the weights, clipped to 0 and 1 where rounding went beyond."""
    bad = ~((weights >= -TOLERANCE) & (weights <= 1 + TOLERANCE))
    if bad.any():
        place = tuple(np.argwhere(bad)[0].tolist())
        raise ValueError(
            f"`{name}` must be attention weights, from 0 to 1. Received: "
            f"{name}{list(place)} = {weights[place]}, and {int(bad.sum())} such values "
            "in all. Give the weights after the softmax."
        )
    return weights.clip(0.0, 1.0)


def check_sizes(weights, rows, columns, names, name="weights"):
    """Refuses maps (..., T, S) that have not T `rows` and S `columns`.

    `names` are what the error calls these two, and `name` the maps.
    """
    sizes = (len(rows), len(columns))
    if weights.shape[-2:] == sizes:
        return
    advice = "Leave out padding on both sides alike."
    if weights.shape[-2:] == sizes[::-1]:
        advice = "They fit transposed: np.swapaxes(weights, -1, -2)."
    raise ValueError(
        f"`{name}` must have a row for each of `{names[0]}` and a column for each of "
        f"`{names[1]}`. Received: weights of shape {weights.shape}, `{names[0]}` of "
        f"length {sizes[0]} and `{names[1]}` of length {sizes[1]}. {advice}"
    )
