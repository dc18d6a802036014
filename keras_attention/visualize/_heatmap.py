"""A heat map of attention weights with a label on every row and column."""

from numbers import Real

import numpy as np

from keras_attention.visualize._canvas import (
    Ruler,
    check_path,
    headed_figure,
    save_figure,
    text_style,
)
from keras_attention.visualize._cells import (
    BAR,
    BAR_ROOM,
    GAP,
    LABEL,
    MARGIN,
    MAX_SIDE,
    column_side,
    draw_bar,
    draw_cells,
    notes,
    row_side,
    shortened,
)
from keras_attention.visualize._checks import (
    check_labels,
    check_numbers,
    check_range,
    check_sizes,
    check_titles,
)
from keras_attention.visualize._colors import readable_ink, shade, theme_for
from keras_attention.visualize._fonts import fonts_for
from keras_attention.visualize._grid import MOST_ACROSS, draw_grid

# All sizes are in points.
VALUE = 7.5
CELL, ROOMY_CELL = 22, 32
MAX_VALUES = 144  # cells that still have their value written in them


def heatmap(weights, rows, columns, *, title=None, path=None, dark=False, largest=None):
    """Draws attention weights as grids of shaded cells: one map, or many side by side.

    The shade goes from 0 to the largest weight, whose value stands at the colour bar;
    all maps of a figure share it. Labels sit exactly on their cells and read exactly as
    given: `$`, `_` and `\\` have no special meaning. A character that no font on the
    system has is drawn as its code, with one warning. The figure grows with the maps
    up to a limit; from there on labels are thinned, and long labels are cut in the
    middle. The title says so.

    Args:
        weights: array-like of values 0 to 1: a row for each query, a column for each
            key. Of shape `(T, S)` it is one map; `(H, T, S)` is a map for each head,
            `(L, H, T, S)` a row of maps for each layer. Heads and layers are counted
            from 0, and an axis of 1 is not counted. Axes have no names: of a batch
            take one example, `weights[0]`.
        rows: T labels, such as the words that were written.
        columns: S labels, such as the words that were read.
        title: string or None.
        path: file to write, ending in .png, .svg or .pdf; None writes none.
        dark: True for light text on a dark ground.
        largest: the weight of the strongest shade, for figures that are to be compared;
            None takes the largest of this one.

    Returns:
        A `matplotlib.figure.Figure` of its own, unknown to pyplot.

    Raises:
        ValueError: `weights` is not a map, or maps, of numbers from 0 to 1; the labels
            do not match its shape; there are over 40 x 40 maps; `largest` is less than
            a weight, or over 1; or `path` has another suffix.
        TypeError: a label is neither a string nor a number, or `title` is no string.

    Example:

    >>> from keras_attention.visualize import heatmap
    >>> figure = heatmap([[0.9, 0.1], [0.2, 0.8]], ["le", "chat"], ["the", "cat"])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['the', 'cat']
    >>> heads = np.full((3, 2, 2), 0.5)
    >>> figure = heatmap(heads, ["le", "chat"], ["the", "cat"])
    >>> [text.get_text() for text in figure.axes[0].texts if text.get_gid() == "map"]
    ['head 0', 'head 1', 'head 2']
    """
    path = check_path(path)
    check_titles(title=title)
    rows, columns = check_labels(rows, "rows"), check_labels(columns, "columns")
    maps = _checked(weights, rows, columns)
    fonts = fonts_for([title or "", *rows, *columns])
    ruler = Ruler(fonts)
    rows, cut_rows = shortened(rows, fonts)
    columns, cut_columns = shortened(columns, fonts)
    draw = _draw_map if maps.ndim == 2 else draw_grid
    cut = cut_rows + cut_columns
    largest = _checked_largest(largest, maps)
    figure = draw(maps, rows, columns, title, cut, largest, ruler, theme_for(dark))
    save_figure(figure, path)
    return figure


def _checked(weights, rows, columns):
    """Returns the maps without axes of 1 in front: 2 axes, 3 or 4."""
    weights = check_numbers(weights)
    if weights.ndim not in (2, 3, 4) or not weights.size:
        raise ValueError(
            "`weights` must have shape (T, S), or (H, T, S) with heads, or "
            "(L, H, T, S) with layers of heads, none of them 0. Received shape: "
            f"{weights.shape}. Of a batch take one example: weights[0], or "
            "weights[:, 0] where the layers come first."
        )
    check_sizes(weights, rows, columns, ("rows", "columns"))
    while weights.ndim > 2 and len(weights) == 1:
        weights = weights[0]
    counts = [count for count in weights.shape[:-2] if count > 1]
    if max(counts, default=1) > MOST_ACROSS ** (3 - len(counts)):
        raise ValueError(
            f"A figure has room for {MOST_ACROSS} layers of {MOST_ACROSS} heads, or "
            f"for {MOST_ACROSS**2} heads of one layer. Received: weights of shape "
            f"{weights.shape}. Draw a part, such as weights[:{MOST_ACROSS}]."
        )
    return check_range(weights)


def _checked_largest(largest, maps):
    own = float(maps.max())
    if largest is None:
        return own or 1.0
    if not isinstance(largest, Real) or not own <= largest <= 1:
        raise ValueError(
            f"`largest` must be a number from the largest weight, {own:.3g}, to 1. "
            f"Received: {largest!r}. Weights over it would have no shade."
        )
    return float(largest)


def _draw_map(weights, rows, columns, title, cut, largest, ruler, theme):
    """Returns the figure of one map."""
    height, width = weights.shape
    cell = ROOMY_CELL if weights.size <= MAX_VALUES else CELL
    cell_width, cell_height = min(cell, MAX_SIDE / width), min(cell, MAX_SIDE / height)
    left = row_side(rows, cell_height, ruler)
    top = column_side(columns, cell_width, ruler)
    said = notes((left, top), cut, cell_width, cell_height)
    size = (width * cell_width, height * cell_height)
    figure, axes, corner = _frame(size, left, top, title, said, ruler, theme)
    place = (-0.5, -0.5, 1, 1)
    image = draw_cells(axes, weights, cell_width, cell_height, place, largest, theme)
    if weights.size <= MAX_VALUES:
        _write_values(axes, weights, largest, ruler.fonts, theme)
    if min(cell_width, cell_height) >= 12:
        _draw_rules(axes, weights.shape, theme)
    draw_bar(figure, image, *corner, size[1], ruler.fonts, theme)
    _draw_labels(axes, left, top, ruler.fonts, theme)
    return figure


def _frame(size, rows, columns, title, said, ruler, theme):
    """Makes the figure with its heading and axes; returns the colour bar's corner too.

    `size` is the width and height of all cells.
    """
    left = MARGIN + rows.room + GAP
    above = columns.room + GAP
    width = max(240, left + size[0] + BAR_ROOM)
    room = above + max(size[1], BAR[1]) + MARGIN
    figure, top = headed_figure(width, room, title, said, ruler, MARGIN, theme)
    top, height = top + above, top + room
    bottom = height - top - size[1]
    axes = figure.add_axes(
        [left / width, bottom / height, size[0] / width, size[1] / height]
    )
    return figure, axes, (left + size[0] + MARGIN, top)


def _write_values(axes, weights, largest, fonts, theme):
    for (row, column), weight in np.ndenumerate(weights):
        ink = readable_ink(shade(weight / largest, theme))
        style = text_style(fonts, VALUE, ink)
        value = f"{weight:.2f}" if weight >= 0.005 else "0"
        axes.text(column, row, value, ha="center", va="center_baseline", **style)


def _draw_rules(axes, shape, theme):
    style = {"colors": theme.rule, "linewidths": 0.5}
    axes.hlines(np.arange(1, shape[0]) - 0.5, -0.5, shape[1] - 0.5, **style)
    axes.vlines(np.arange(1, shape[1]) - 0.5, -0.5, shape[0] - 0.5, **style)


def _draw_labels(axes, rows, columns, fonts, theme):
    style = text_style(fonts, LABEL, theme.ink)
    for axis, side, ha, va in (
        (axes.xaxis, columns, "center", "bottom"),
        (axes.yaxis, rows, "right", "center_baseline"),
    ):
        labels = [side.labels[at] for at in side.shown]
        axis.set_ticks(side.shown, labels=labels, ha=ha, va=va, **style)
    # Each side in words: a setting may have moved or hidden what is left to it.
    sides = {"top": True, "bottom": False, "left": True, "right": False}
    axes.tick_params(**sides, **{f"label{name}": on for name, on in sides.items()})
    axes.tick_params(axis="x", rotation=columns.rotation)
    axes.minorticks_off()
    axes.grid(False)
    axes.tick_params(direction="out", length=2.5, width=0.6, pad=3, color=theme.rule)
    axes.set_xlim(-0.5, len(columns.labels) - 0.5)
    axes.set_ylim(len(rows.labels) - 0.5, -0.5)
    for spine in axes.spines.values():
        spine.set(edgecolor=theme.rule, linewidth=0.6, visible=True)
