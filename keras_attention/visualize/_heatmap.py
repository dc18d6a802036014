"""A heat map of attention weights with a label on every row and column."""

import math
from typing import NamedTuple

import numpy as np
from matplotlib.colors import LinearSegmentedColormap

from keras_attention.visualize._canvas import (
    Ruler,
    check_path,
    heading,
    heading_height,
    new_figure,
    save_figure,
    text_style,
    write_heading,
)
from keras_attention.visualize._colors import readable_ink, shade, theme_for
from keras_attention.visualize._fonts import fonts_for
from keras_attention.visualize._maps import checked_labels, checked_map

# All sizes are in points.
MARGIN, GAP = 16, 7
LABEL, VALUE = 9, 7.5
CELL, ROOMY_CELL = 22, 32
MAX_SIDE = 1700
MAX_LABEL = 32  # characters
MAX_VALUES = 144  # cells that still have their value written in them
BAR = (9, 110, 230)  # the colour bar: width, least and greatest height


class _Grid(NamedTuple):
    """Where the cells and labels go: `step` 3 means every third label is shown."""

    cell_width: float
    cell_height: float
    column_step: int
    row_step: int
    rotation: int
    row_label_width: float
    column_label_height: float


def heatmap(weights, rows, columns, *, title=None, path=None, dark=False):
    """Draws attention weights as a grid of shaded cells.

    The shade goes from 0 to the largest weight, whose value stands at the colour bar.
    Labels sit exactly on their cells and read exactly as given: `$`, `_` and `\\` have
    no special meaning. A character that no font on the system has is drawn as its
    code, with one warning. The figure grows with the grid up to a limit; from there
    on labels are thinned, and long labels are cut in the middle. The title says so.

    Args:
        weights: array-like of shape `(T, S)`, values 0 to 1: a row for each query,
            a column for each key.
        rows: T labels, such as the words that were written.
        columns: S labels, such as the words that were read.
        title: string or None.
        path: file to write, ending in .png, .svg or .pdf; None writes none.
        dark: True for light text on a dark ground.

    Returns:
        A `matplotlib.figure.Figure` of its own, unknown to pyplot.

    Raises:
        ValueError: `weights` is not a grid of numbers from 0 to 1, the labels do not
            match its shape, or `path` has another suffix.

    Example:

    >>> from keras_attention.visualize import heatmap
    >>> figure = heatmap([[0.9, 0.1], [0.2, 0.8]], ["le", "chat"], ["the", "cat"])
    >>> [label.get_text() for label in figure.axes[0].get_xticklabels()]
    ['the', 'cat']
    """
    path = check_path(path)
    rows, columns = checked_labels(rows, "rows"), checked_labels(columns, "columns")
    weights = checked_map(weights, rows, columns)
    fonts = fonts_for([title or "", *rows, *columns])
    ruler = Ruler(fonts)
    rows, cut_rows = _shortened(rows, fonts)
    columns, cut_columns = _shortened(columns, fonts)
    grid = _measure(rows, columns, ruler)
    notes = _notes(grid, cut_rows + cut_columns)
    figure, axes = _frame(weights.shape, grid, title, notes, ruler, theme_for(dark))
    _draw_cells(figure, axes, weights, grid, fonts, theme_for(dark))
    _draw_labels(axes, rows, columns, grid, fonts, theme_for(dark))
    save_figure(figure, path)
    return figure


def _shortened(labels, fonts):
    """Cuts long labels in the middle; returns them with the number of those cut."""
    short, count = [], 0
    for label in labels:
        drawn = fonts.drawn(label)
        # Codes of characters without a font are long: they get twice the room.
        half = MAX_LABEL // 2 if drawn == label else MAX_LABEL
        if len(drawn) > 2 * half:
            drawn = f"{drawn[: half - 1]}\N{HORIZONTAL ELLIPSIS}{drawn[-half:]}"
            count += 1
        short.append(drawn)
    return short, count


def _measure(rows, columns, ruler):
    cell = ROOMY_CELL if len(rows) * len(columns) <= MAX_VALUES else CELL
    cell_width = min(cell, MAX_SIDE / len(columns))
    cell_height = min(cell, MAX_SIDE / len(rows))
    row_step = math.ceil(1.3 * LABEL / cell_height)
    column_step = math.ceil(1.3 * LABEL / cell_width)
    widths = [ruler.width(label, LABEL) for label in columns]
    upright = column_step == 1 and max(widths) <= cell_width - 4
    return _Grid(
        cell_width,
        cell_height,
        column_step,
        row_step,
        rotation=0 if upright else 90,
        row_label_width=max(ruler.width(label, LABEL) for label in rows),
        column_label_height=1.3 * LABEL if upright else max(widths),
    )


def _notes(grid, cut):
    notes = []
    for name, step in (("row", grid.row_step), ("column", grid.column_step)):
        if step > 1:
            notes.append(f"1 {name} label of {step} is shown.")
    if cut:
        notes.append(f"Long labels are cut in the middle: {cut}.")
    return " ".join(notes)


def _frame(shape, grid, title, notes, ruler, theme):
    """Makes the figure, writes the heading, and places the axes of the cells."""
    plot_width = shape[1] * grid.cell_width
    plot_height = shape[0] * grid.cell_height
    left = MARGIN + grid.row_label_width + GAP
    width = max(240, left + plot_width + 2 * MARGIN + BAR[0] + 56)
    lines = heading(title, notes, ruler, width - 2 * MARGIN, theme)
    top = MARGIN + heading_height(lines)
    plot_top = top + grid.column_label_height + GAP
    height = plot_top + max(plot_height, BAR[1]) + MARGIN
    figure = new_figure(width, height, theme)
    write_heading(figure, lines, MARGIN, ruler.fonts)
    box = (left, height - plot_top - plot_height, plot_width, plot_height)
    axes = figure.add_axes(
        [box[0] / width, box[1] / height, box[2] / width, box[3] / height]
    )
    return figure, axes


def _draw_cells(figure, axes, weights, grid, fonts, theme):
    largest = float(weights.max()) or 1.0
    colors = LinearSegmentedColormap.from_list("attention", theme.ramp)
    image = axes.imshow(
        weights,
        cmap=colors,
        vmin=0.0,
        vmax=largest,
        aspect="auto",
        interpolation="nearest",
    )
    if weights.size <= MAX_VALUES:
        for (row, column), weight in np.ndenumerate(weights):
            ink = readable_ink(shade(weight / largest, theme))
            style = text_style(fonts, VALUE, ink)
            value = f"{weight:.2f}" if weight >= 0.005 else "0"
            axes.text(column, row, value, ha="center", va="center_baseline", **style)
    if min(grid.cell_width, grid.cell_height) >= 12:
        axes.hlines(
            np.arange(1, weights.shape[0]) - 0.5,
            -0.5,
            weights.shape[1] - 0.5,
            colors=theme.rule,
            linewidths=0.5,
        )
        axes.vlines(
            np.arange(1, weights.shape[1]) - 0.5,
            -0.5,
            weights.shape[0] - 0.5,
            colors=theme.rule,
            linewidths=0.5,
        )
    _draw_bar(figure, axes, image, largest, fonts, theme)


def _draw_bar(figure, axes, image, largest, fonts, theme):
    width, height = 72 * figure.get_size_inches()
    box = axes.get_position()
    tall = min(max(box.height * height, BAR[1]), BAR[2]) / height
    place = [box.x1 + MARGIN / width, box.y1 - tall, BAR[0] / width, tall]
    bar = figure.colorbar(image, cax=figure.add_axes(place))
    ticks = [0.0, largest / 2, largest]
    style = text_style(fonts, LABEL, theme.ink)
    bar.set_ticks(ticks, labels=[f"{tick:.3g}" for tick in ticks], **style)
    bar.set_label("attention weight", labelpad=6, **style)
    bar.ax.tick_params(color=theme.rule, length=3, width=0.6)
    bar.outline.set(edgecolor=theme.rule, linewidth=0.6)


def _draw_labels(axes, rows, columns, grid, fonts, theme):
    style = text_style(fonts, LABEL, theme.ink)
    axes.xaxis.tick_top()
    at = np.arange(0, len(columns), grid.column_step)
    axes.set_xticks(at, labels=columns[:: grid.column_step], **style)
    at = np.arange(0, len(rows), grid.row_step)
    axes.set_yticks(at, labels=rows[:: grid.row_step], **style)
    axes.tick_params(axis="x", rotation=grid.rotation)
    axes.minorticks_off()
    axes.grid(False)
    axes.tick_params(direction="out", length=2.5, width=0.6, pad=3, color=theme.rule)
    axes.set_xlim(-0.5, len(columns) - 0.5)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for spine in axes.spines.values():
        spine.set(edgecolor=theme.rule, linewidth=0.6)
