"""Many heat maps in one figure: one for each head, a row of them for each layer."""

import itertools
import math
from typing import NamedTuple

from matplotlib.patches import Rectangle

from keras_attention.visualize._canvas import headed_figure, point_axes, text_style
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
)

# All sizes are in points.
NAME, NAME_ROOM = 8, 14  # the names under the maps
BETWEEN = 11
LARGEST_CELL, SMALL_CELL = 14, 3
GOOD_SIDE = 900  # what cells over the small size make use of
MOST_ACROSS = 40  # maps


class _Plan(NamedTuple):
    """How the maps stand: so many `down` and `across`, and the size of their cells."""

    down: int
    across: int
    cell_width: float
    cell_height: float


def draw_grid(maps, rows, columns, title, cut, largest, ruler, theme):
    """Returns the figure of maps (H, T, S) or (L, H, T, S).

    Args:
        maps: array of 3 axes, wrapped over several rows, or of 4: a row a layer.
        rows: T labels.
        columns: S labels.
        title: string or None.
        cut: number of labels that were cut.
        largest: the weight of the strongest shade.
        ruler: a `Ruler`.
        theme: a `Theme`.
    """
    names = _names(maps.shape)
    size = maps.shape[-2:]
    widest = max(ruler.width(name, NAME) for name in names)
    if maps.ndim == 4 and maps.shape[1] > 1:
        plan = _plan(*maps.shape[:2], size, widest)
    else:
        plan = _wrapped(len(names), size, widest)
    left = row_side(rows, plan.cell_height, ruler)
    top = column_side(columns, plan.cell_width, ruler)
    said = notes((left, top), cut, plan.cell_width, plan.cell_height)
    corners, width, height = _places(plan, len(names), size, widest)
    figure, axes, x, y = _frame(width, height, left, top, title, said, ruler, theme)
    corners = [(x + right, y + down) for right, down in corners]
    maps = maps.reshape(-1, *size)
    for weights, name, corner in zip(maps, names, corners, strict=True):
        image = _draw_map(axes, weights, name, corner, plan, largest, ruler, theme)
    _draw_labels(axes, left, top, corners, plan, ruler, theme)
    draw_bar(figure, image, x + width + MARGIN, y, height, ruler.fonts, theme)
    return figure


def _names(shape):
    """Returns a name for each map; axes of 1 are not counted."""
    parts = [
        [f"{kind} {place}" for place in range(count)]
        for kind, count in zip(("head", "layer"), shape[-3::-1], strict=False)
        if count > 1
    ]
    return [" ".join(part) for part in itertools.product(*reversed(parts))]


def _plan(down, across, size, widest):
    height, width = _cell(down, size[0], widest), _cell(across, size[1], widest)
    # The names keep their room, whether or not the cells use it.
    return _Plan(down, across, max(width, min(height, widest / size[1])), height)


def _cell(maps, cells, widest):
    """Returns the size of a cell where `maps` of so many `cells` stand in a line."""
    good, most = ((side / maps - BETWEEN) / cells for side in (GOOD_SIDE, MAX_SIDE))
    least = max(SMALL_CELL, widest / cells)
    return min(LARGEST_CELL, max(good, min(least, most)))


def _wrapped(count, size, widest):
    """Chooses the rows for `count` maps: large cells, then no more than a good width.

    Of equals the one with the fewest rows.
    """

    def merit(plan):
        pitch = max(plan.cell_width * size[1], widest) + BETWEEN
        cell = round(min(plan.cell_width, plan.cell_height), 6)
        return cell, plan.across * pitch <= GOOD_SIDE, -plan.down

    most = min(count, MOST_ACROSS)
    downs = range(math.ceil(count / most), most + 1)
    plans = (_plan(down, math.ceil(count / down), size, widest) for down in downs)
    return max(plans, key=merit)


def _places(plan, count, size, widest):
    """Returns the corners of the maps and the whole size, with room for the names."""
    width, height = size[1] * plan.cell_width, size[0] * plan.cell_height
    side = max(0.0, widest - width) / 2  # what a name needs beside its map
    wide = width + 2 * side + BETWEEN
    high = height + NAME_ROOM + BETWEEN
    corners = [
        (side + across * wide, down * high)
        for down in range(plan.down)
        for across in range(plan.across)
    ]
    whole = (plan.across * wide - BETWEEN, (plan.down - 1) * high + height)
    return corners[:count], *whole


def _frame(width, height, rows, columns, title, said, ruler, theme):
    """Makes the figure with its heading; returns it, its axes, the first corner."""
    left = MARGIN + rows.room + GAP
    above = columns.room + GAP
    whole = max(240, left + width + BAR_ROOM)
    room = above + max(height + NAME_ROOM, BAR[1]) + MARGIN
    figure, top = headed_figure(whole, room, title, said, ruler, MARGIN, theme)
    return figure, point_axes(figure), left, top + above


def _draw_map(axes, weights, name, corner, plan, largest, ruler, theme):
    """Draws one map with its frame and its name; returns its image."""
    width = weights.shape[1] * plan.cell_width
    height = weights.shape[0] * plan.cell_height
    sizes = (plan.cell_width, plan.cell_height)
    image = draw_cells(axes, weights, *sizes, (*corner, *sizes), largest, theme)
    image.set_clip_path(Rectangle(corner, width, height, transform=axes.transData))
    style = {"fill": False, "edgecolor": theme.rule, "linewidth": 0.6}
    axes.add_patch(Rectangle(corner, width, height, **style))
    style = text_style(ruler.fonts, NAME, theme.ink)
    x, y = corner[0] + width / 2, corner[1] + height + NAME_ROOM / 2
    axes.text(x, y, name, ha="center", va="center", gid="map", **style)
    return image


def _draw_labels(axes, rows, columns, corners, plan, ruler, theme):
    """Writes the labels beside the first map of each row, above each of the top row."""
    style = text_style(ruler.fonts, LABEL, theme.ink)
    for x, y in corners[:: plan.across]:
        place = {"ha": "right", "va": "center_baseline", "gid": "row"}
        for at in rows.shown:
            middle = y + (at + 0.5) * plan.cell_height
            axes.text(x - 4, middle, rows.labels[at], **place, **style)
    for x, y in corners[: plan.across]:
        place = {"ha": "center", "va": "bottom", "gid": "column"}
        for at in columns.shown:
            middle = x + (at + 0.5) * plan.cell_width
            text = axes.text(middle, y - 4, columns.labels[at], **place, **style)
            text.set_rotation(columns.rotation)
