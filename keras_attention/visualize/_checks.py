"""Checks what a person gives to draw: labels, titles, weights."""

from numbers import Number

import numpy as np

# Rounding in float16 models may leave a weight this far below 0 (or above 1).
TOLERANCE = 1e-3


def check_text(text, name="text"):
    """Refuses what is not a string."""
    if not isinstance(text, str):
        raise TypeError(
            f"`{name}` must be a string. Received: {type(text).__name__}. Of a number "
            "make one by str, of bytes by .decode()."
        )


def check_titles(**titles):
    """Refuses titles, notes and the like that are neither strings nor None."""
    for name, title in titles.items():
        if title is not None:
            check_text(title, name)


def check_labels(labels, name):
    """Returns the labels, which are strings or numbers, as a list of strings."""
    if isinstance(labels, str):
        raise ValueError(
            f"`{name}` must be a list of labels. Received one string: {labels!r}. "
            "Split it into tokens first."
        )
    try:
        listed = None if isinstance(labels, bytes | set) else list(labels)
    except TypeError:
        listed = None
    if listed is None:
        raise TypeError(
            f"`{name}` must be a list of labels, in their order. Received: "
            f"{type(labels).__name__}. Give one string for each."
        )
    for label in listed:
        if not isinstance(label, str | Number):
            raise TypeError(
                f"`{name}` must hold strings or numbers. Received: "
                f"{type(label).__name__}. Decode bytes, label.decode(), and of a "
                "tensor take the values, labels.tolist()."
            )
    return [str(label) for label in listed]


def check_numbers(
    weights,
    name="weights",
    expected="an array of numbers, all rows of one length",
    advice="Maps of one size are joined by np.stack(maps).",
):
    """Returns the weights as an array of float64."""
    try:
        array = np.asarray(_without_gradients(weights))
        if array.dtype.kind in "cSU":  # complex numbers and text
            raise TypeError
        return array.astype("float64")
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be {expected}. Received: {type(weights).__name__}. {advice}"
        ) from None


def _without_gradients(weights):
    """Returns tensors of PyTorch, also in lists, in the only form that NumPy takes."""
    if isinstance(weights, list | tuple):
        return [_without_gradients(each) for each in weights]
    if hasattr(weights, "detach"):
        return weights.detach().cpu().double().numpy()
    return weights


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
