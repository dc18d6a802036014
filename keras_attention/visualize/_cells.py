"""What one map and a grid of maps share: cells, their labels and the colour bar."""

import math
from typing import NamedTuple

import numpy as np

from keras_attention.visualize._canvas import POINTS, colormap, text_style

# All sizes are in points.
MARGIN, GAP = 16, 7
LABEL = 9
LEAST_STEP = 1.3 * LABEL  # from one label to the next
LEAST_CELL = 0.5  # about a pixel
MAX_SIDE = 1700
MAX_LABEL = 32  # characters
BAR = (9, 110, 230)  # the colour bar: width, least and greatest height
BAR_ROOM = 2 * MARGIN + BAR[0] + 56  # with its numbers and the margins


class Side(NamedTuple):
    """The labels along one side of a map, in a band `room` points wide.

    `step` 3 means that every third label is shown, 0 that none is.
    """

    name: str
    labels: list
    step: int
    room: float
    rotation: int = 0

    @property
    def shown(self):
        """The places of the labels that are shown."""
        return range(0, len(self.labels), self.step) if self.step else range(0)


def row_side(labels, cell, ruler):
    """Measures the labels of rows that are `cell` points high."""
    step = _step(labels, cell)
    room = max(ruler.width(label, LABEL) for label in labels) if step else 0.0
    return Side("row", labels, step, room)


def column_side(labels, cell, ruler):
    """Measures the labels of columns, upright where the widest fits into a cell."""
    step = _step(labels, cell)
    widest = max(ruler.width(label, LABEL) for label in labels)
    if step == 1 and widest <= cell - 4:
        return Side("column", labels, step, LEAST_STEP)
    return Side("column", labels, step, widest if step else 0.0, rotation=90)


def _step(labels, cell):
    """Returns how many labels share the room of one, or 0 where under 3 would show."""
    step = math.ceil(LEAST_STEP / cell)
    return step if step == 1 or len(labels) >= 3 * step else 0


def shortened(labels, fonts):
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


def notes(sides, cut, cell_width, cell_height):
    """Returns the sentences on labels and cells that are not drawn as they came."""
    said = []
    for side in sides:
        if not side.step:
            said.append(f"The {side.name} labels are left out: there is no room.")
        elif side.step > 1:
            said.append(f"1 {side.name} label of {side.step} is shown.")
    if cut:
        said.append(f"Long labels are cut in the middle: {cut}.")
    high, wide = _block(cell_height), _block(cell_width)
    if high * wide > 1:
        said.append(f"A cell is the largest of {high} x {wide} weights.")
    return " ".join(said)


def draw_cells(axes, weights, cell_width, cell_height, place, largest, theme):
    """Shades the cells of one map; those under a pixel are joined to blocks.

    Args:
        axes: the axes to draw on.
        weights: array (T, S).
        cell_width: points.
        cell_height: points.
        place: (left, top, width, height) of a cell, in the coordinates of `axes`.
        largest: the weight that has the strongest shade.
        theme: a `Theme`.

    Returns:
        The image.
    """
    high, wide = _block(cell_height), _block(cell_width)
    weights = _blocks(_blocks(weights, high).T, wide).T
    left, top, width, height = place
    right = left + weights.shape[1] * wide * width
    bottom = top + weights.shape[0] * high * height
    return axes.imshow(
        weights,
        cmap=colormap(theme),
        vmin=0.0,
        vmax=largest,
        aspect="auto",
        interpolation="none",
        origin="upper",
        extent=(left, right, bottom, top),
    )


def _block(cell):
    return math.ceil(LEAST_CELL / cell)


def _blocks(rows, count):
    """Returns the largest values of each `count` rows."""
    return np.maximum.reduceat(rows, np.arange(0, len(rows), count), axis=0)


def draw_bar(figure, image, left, top, height, fonts, theme):
    """Draws the colour bar of `image` beside cells that are `height` points high."""
    wide, tall = POINTS * figure.get_size_inches()
    height = min(max(height, BAR[1]), BAR[2])
    place = [left / wide, 1 - (top + height) / tall, BAR[0] / wide, height / tall]
    bar = figure.colorbar(image, cax=figure.add_axes(place))
    largest = image.norm.vmax
    ticks = [0.0, largest / 2, largest]
    style = text_style(fonts, LABEL, theme.ink)
    labels = [f"{tick:.3g}" for tick in ticks]
    bar.set_ticks(ticks, labels=labels, va="center_baseline", **style)
    bar.set_label("attention weight", labelpad=6, **style)
    bar.ax.tick_params(color=theme.rule, length=3, width=0.6)
    bar.outline.set(edgecolor=theme.rule, linewidth=0.6)
