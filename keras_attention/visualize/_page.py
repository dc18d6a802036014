"""One HTML page in which a person explores maps of attention by hand."""

from base64 import b64encode

import numpy as np

from keras_attention.visualize._checks import check_labels, check_titles
from keras_attention.visualize._document import as_json, document
from keras_attention.visualize._html import LEVELS, printable
from keras_attention.visualize._layout import direction_of, opposite_runs
from keras_attention.visualize._maps import checked_layers
from keras_attention.visualize._packing import LIMIT, pack, spread, thumbnail
from keras_attention.visualize._paths import checked_path, write_whole
from keras_attention.visualize._spans import NOTE, SIGNS

_EMPTY, _SPACE = "\N{EMPTY SET}", "\N{OPEN BOX}"
_TAG = 60  # characters around a map


def page(
    weights,
    rows=None,
    columns=None,
    path=None,
    *,
    title=None,
    subtitle=None,
    note=NOTE,
):
    """Makes one HTML file in which a person explores attention, word by word.

    The reader chooses a layer and a head, from a list or from small pictures of all
    maps, and points at a word, or moves to it with the keyboard: the page shades the
    words it looks at or the words that look at it, says it in a sentence and lists it
    in a table. The page needs nothing else: no network, no library. It is light or dark
    as the reader's system is, or as they choose, and prints.

    Weights are rounded to 0.0001, or to more where the file would reach 15 MB; the page
    says to how much.

    Args:
        weights: array-like of shape `(T, S)`, `(heads, T, S)` or
            `(layers, heads, T, S)`, values 0 to 1; or a dict from layer names to arrays
            of shape `(T, S)` or `(heads, T, S)`, such as one example of what
            `keras_attention.attention_submodel(model).predict(x)` gives. Or a result
            with a method `attention_maps`, such as a `zoo.Translation`: it brings its
            own tokens, and the file is the second argument, `page(result, "a.html")`.
        rows: T tokens, of the queries: those that look.
        columns: S tokens, of the keys: those that are looked at. None where the queries
            look at themselves: they are shown as one text.
        path: file to write, ending in .html; None writes none.
        title: string or None.
        subtitle: string under the title or None.
        note: the footnote; None leaves it out.

    Returns:
        The page, a string; write it to a file in UTF-8.

    Raises:
        ValueError: weights that are not from 0 to 1, have another number of axes (a
            batch was left in) or do not match the tokens; more weights than a page of
            15 MB can hold; a `path` with another suffix.
        TypeError: a token is neither a string nor a number; `title`, `subtitle` or
            `note` is not a string.
        FileNotFoundError: there is no folder for `path`.

    Example:

    >>> from keras_attention.visualize import page
    >>> html = page([[0.9, 0.1], [0.2, 0.8]], ["le", "chat"], ["the", "cat"])
    >>> html.splitlines()[0]
    '<!DOCTYPE html>'
    """
    if hasattr(weights, "attention_maps"):
        given = {"title": title, "subtitle": subtitle}
        given = {name: text for name, text in given.items() if text is not None}
        path = _path_of_result(rows, columns, path)
        return page(**{**weights.attention_maps(), **given}, path=path, note=note)
    path = checked_path(path, (".html",))
    check_titles(title=title, subtitle=subtitle, note=note)
    rows, columns = _tokens(rows, columns)
    keys = rows if columns is None else columns
    layers = checked_layers(weights, rows, keys)
    data = _data(layers, rows, columns)
    data["step"], texts = _packed(layers, len(as_json(data)))
    html = document(data, texts, title, subtitle, note)
    if path is not None:
        write_whole(path, html.encode("utf-8"))
    return html


def _path_of_result(rows, columns, path):
    """Returns the path: of a result it may be the second argument."""
    if columns is not None or (rows is not None and path is not None):
        raise ValueError(
            "A result brings its own tokens. Received: `rows` or `columns` beside it. "
            'Give the file alone: page(result, "attention.html").'
        )
    return rows if path is None else path


def _tokens(rows, columns):
    if rows is None:
        raise ValueError(
            "`rows` must be a list of labels, the tokens of the queries. Received: "
            "None. Only a result that has `attention_maps` brings its own."
        )
    rows = check_labels(rows, "rows")
    return rows, None if columns is None else check_labels(columns, "columns")


def _packed(layers, rest):
    """Packs the maps of a page whose other data are `rest` characters."""
    maps = [weights for layer in layers for weights in layer.maps.values()]
    packed = pack(maps, LIMIT - rest - _TAG * len(maps))
    if packed is None:
        raise ValueError(
            "`weights` must fit into a page of 15 MB without most of them rounded to "
            f"0. Received: {len(maps)} maps of shape {maps[0].shape}. Give fewer "
            "layers, heads or tokens."
        )
    return packed


def _data(layers, rows, columns):
    """Returns what the page's script reads, but for maps and step, as plain types."""
    maps = [weights for layer in layers for weights in layer.maps.values()]
    small = np.stack([thumbnail(weights) for weights in maps])
    return {
        "rows": _side(rows),
        "columns": None if columns is None else _side(columns),
        "layers": [
            {
                "name": printable(layer.name),
                "spreads": [round(spread(each), 1) for each in layer.maps.values()],
            }
            for layer in layers
        ],
        "levels": LEVELS,
        "thumbnails": {
            "rows": small.shape[1],
            "columns": small.shape[2],
            "cells": b64encode(small.tobytes()).decode("ascii"),
        },
    }


def _side(tokens):
    """Returns the tokens as shown, and the order in which a line shows them."""
    direction = direction_of("".join(tokens))
    return {
        "tokens": [_visible(token) for token in tokens],
        "direction": "rtl" if direction == "R" else "ltr",
        "runs": opposite_runs(tokens, direction),
    }


def _visible(token):
    """Returns the token with a sign for what has no shape of its own."""
    for character, sign in SIGNS.items():
        token = token.replace(character, sign)
    return printable(token) if token.strip() else _SPACE * len(token) or _EMPTY
