"""Checks labels and maps of attention weights: a row a query, a column a key."""

from typing import NamedTuple

from keras_attention.visualize._checks import check_numbers, check_range, check_sizes

_SHAPES = "(T, S), (heads, T, S) or (layers, heads, T, S)"


class Layer(NamedTuple):
    """A layer's name and its maps, by the expression that an error names them by."""

    name: str
    maps: dict


def checked_map(weights, rows, columns, name="weights"):
    """Returns `weights` as float64 from 0 to 1, if it is one map of these labels.

    Args:
        weights: array-like of shape `(T, S)`.
        rows: T labels.
        columns: S labels.
        name: what the error calls the map: an expression, such as `"weights[0]"`.

    Raises:
        ValueError: another number of axes, sizes that are not those of the labels, or
            values that are not from 0 to 1.
    """
    weights = check_numbers(weights, name)
    if weights.ndim != 2 or not weights.size:
        raise ValueError(
            f"`{name}` must have shape (T, S) with T and S at least 1. Received shape: "
            f"{weights.shape}. Take one example and one head, such as weights[0]."
        )
    check_sizes(weights, rows, columns, ("rows", "columns"), name)
    return check_range(weights, name)


def checked_layers(weights, rows, columns):
    """Returns a list of `Layer`, all maps as float64 from 0 to 1.

    Args:
        weights: array-like of shape `(T, S)`, `(heads, T, S)` or
            `(layers, heads, T, S)`, or a dict from layer names to arrays of shape
            `(T, S)` or `(heads, T, S)`.
        rows: T labels.
        columns: S labels.

    Raises:
        ValueError: another number of axes, no map, or a map that `checked_map` refuses.
    """
    layers = _layers(weights)
    if not layers or not all(layer.maps for layer in layers):
        counts = {layer.name: len(layer.maps) for layer in layers}
        raise ValueError(
            "`weights` must hold at least one layer, and each layer at least one map. "
            f"Received maps by layer: {counts}. Give the maps of one example."
        )
    return [
        layer._replace(
            maps={
                place: checked_map(weights, rows, columns, place)
                for place, weights in layer.maps.items()
            }
        )
        for layer in layers
    ]


def _layers(weights):
    """Returns a list of `Layer`, of an array or of a dict from names to arrays."""
    if isinstance(weights, dict):
        return [_named_layer(str(name), maps) for name, maps in weights.items()]
    array = _array(weights, "weights")
    if array.ndim == 4:
        return [
            Layer(f"layer {at}", _heads(maps, f"weights[{at}]"))
            for at, maps in enumerate(array)
        ]
    if array.ndim in (2, 3):
        return [Layer("", _heads(array, "weights"))]
    raise ValueError(
        f"`weights` must have shape {_SHAPES}. Received shape: {array.shape}. Take one "
        "example of a batch, such as weights[:, 0]."
    )


def _named_layer(name, maps):
    place = f"weights[{name!r}]"
    array = _array(maps, place)
    if array.ndim not in (2, 3):
        raise ValueError(
            f"`{place}` must have shape (T, S) or (heads, T, S). Received shape: "
            f"{array.shape}. Take one example of the batch: "
            "{name: maps[0] for name, maps in weights.items()}."
        )
    return Layer(name, _heads(array, place))


def _array(weights, place):
    return check_numbers(
        weights,
        place,
        f"numbers of shape {_SHAPES}, or a dict of such by layer name",
        "Layers whose maps differ in shape go into a dict.",
    )


def _heads(array, place):
    if array.ndim == 2:
        return {place: array}
    return {f"{place}[{head}]": weights for head, weights in enumerate(array)}
