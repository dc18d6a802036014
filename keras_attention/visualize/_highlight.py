"""A text as a picture: each token on a ground shaded by its attention weight."""

from functools import cache

import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Rectangle

from keras_attention.visualize._canvas import (
    Ruler,
    check_path,
    colormap,
    headed_figure,
    point_axes,
    save_figure,
    text_style,
)
from keras_attention.visualize._checks import check_titles
from keras_attention.visualize._colors import readable_ink, shade, theme_for
from keras_attention.visualize._fonts import fonts_for
from keras_attention.visualize._layout import PAD, break_lines, strongest_window
from keras_attention.visualize._spans import NOT_READ, NOTE, split_text

# All sizes are in points.
WIDTH, MARGIN = 640, 34
TEXT, LINE, BLANK, SMALL = 13, 26, 14, 9
ABOVE, BELOW = 14, 6  # from the base line to the edges of a box
MAX_LINES = 36  # about 400 words of English
BAR = (140, 8)
LEGEND_HEIGHT = 58


class _Page:
    """A figure with a cursor `y` that goes down from the top; all in points."""

    def __init__(self, figure, y, fonts, theme):
        self.figure, self.y, self.fonts, self.theme = figure, y, fonts, theme
        self.axes = point_axes(figure)

    def write(self, x, text, size, color, **options):
        style = text_style(self.fonts, size, color)
        self.axes.text(x, self.y, text, va="baseline", **style, **options)

    def box(self, x, width, color, zorder):
        """Draws a rounded box behind the line of text at the cursor."""
        shape = FancyBboxPatch(
            (x, self.y - ABOVE),
            width,
            ABOVE + BELOW,
            boxstyle="round,pad=0,rounding_size=3.5",
            facecolor=color,
            linewidth=0,
            gid="token",
            zorder=zorder,
        )
        self.axes.add_patch(shape)

    def dots(self, x, width):
        """Draws the dotted line under a part that the model did not read."""
        y = self.y + 4.5
        style = {"color": self.theme.faint, "linewidth": 1, "linestyle": (0, (1, 2))}
        self.axes.add_line(Line2D([x, x + width], [y, y], **style))


def highlight(
    text,
    offsets,
    weights,
    *,
    title=None,
    path=None,
    dark=False,
    cut=(),
    legend="attention weight",
):
    """Draws a text with each token on a ground shaded by its weight.

    A shade stands for the weight as a share of the largest one, whose value the legend
    tells. What lies between the tokens is written unshaded, line breaks are kept, and
    parts that the model did not read are grey with a dotted line. Of a text that is
    too long for one figure, the lines with the most attention are drawn, and the title
    says what was left out.

    Args:
        text: string.
        offsets: N pairs `(start, end)`, the characters of each token, sorted and apart.
        weights: array-like of N weights, shape `(N,)` or `(N, 1)`, without padding.
        title: string or None.
        path: file to write, ending in .png, .svg or .pdf; None writes none.
        dark: True for light text on a dark ground.
        cut: pairs `(start, end)` of characters that the model did not read.
        legend: what the weights are; None draws no legend.

    Returns:
        A `matplotlib.figure.Figure` of its own, unknown to pyplot.

    Raises:
        ValueError: pairs outside the text, unsorted or overlapping; another number of
            weights; weights that are negative or not finite; a weight on a cut part;
            a `path` with another suffix.
        TypeError: `text`, `title` or `legend` is not a string.

    Example:

    >>> from keras_attention.visualize import highlight
    >>> figure = highlight("A superb film.", [(0, 1), (2, 8)], [0.1, 0.9])
    >>> [piece.get_text() for piece in figure.axes[0].texts[:3]]
    ['A', 'superb', 'film.']
    """
    path = check_path(path)
    check_titles(title=title, legend=legend)
    passage = split_text(text, offsets, weights, cut)
    fonts = fonts_for([text, title or "", legend or "", NOTE, NOT_READ])
    ruler = Ruler(fonts)
    measure = cache(lambda part: ruler.width(fonts.drawn(part), TEXT))
    lines = break_lines(passage.spans, WIDTH - 2 * MARGIN, measure)
    shown, notes = _window(lines)
    page = _page(shown, title, notes, legend, ruler, theme_for(dark))
    for line in shown:
        _draw_line(page, line)
    if legend is not None:
        _draw_legend(page, passage, legend, ruler)
    save_figure(page.figure, path)
    return page.figure


def _window(lines):
    """Returns the lines to draw, and a sentence on those that are left out."""
    first, end = strongest_window(lines, MAX_LINES)
    if end - first == len(lines):
        return lines, ""
    total = sum(piece.weight for line in lines for piece in line)
    held = sum(piece.weight for line in lines[first:end] for piece in line)
    share = f" It holds {held / total:.0%} of the attention." if total else ""
    return lines[first:end], (
        f"This is a part of the text: {first} lines before it and {len(lines) - end} "
        f"lines after it are left out.{share}"
    )


def _page(lines, title, notes, legend, ruler, theme):
    """Makes a figure with room for everything, and writes the heading."""
    height = MARGIN + sum(LINE if line else BLANK for line in lines)
    height += 0 if legend is None else LEGEND_HEIGHT
    figure, top = headed_figure(WIDTH, height, title, notes, ruler, MARGIN, theme)
    return _Page(figure, top - 8, ruler.fonts, theme)


def _draw_line(page, line):
    page.y += LINE if line else BLANK
    theme = page.theme
    for piece in line:
        x, ink = MARGIN + piece.x, theme.ink
        if piece.kind == "token":
            color = shade(piece.share, theme)
            page.box(
                x + piece.pad - PAD,
                piece.width + 2 * (PAD - piece.pad),
                color,
                zorder=1 + piece.share,  # where boxes touch, the stronger is whole
            )
            ink = readable_ink(color) if piece.share else theme.ink
        elif piece.kind == "cut":
            page.dots(x, piece.width)
            ink = theme.faint
        text = page.fonts.drawn(piece.text)
        page.write(x + piece.pad, text, TEXT, ink, gid=piece.kind)


def _draw_legend(page, passage, legend, ruler):
    theme, x = page.theme, MARGIN
    page.y += 40
    left, right, top = x + 12, x + 12 + BAR[0], page.y - BAR[1]
    page.axes.imshow(
        np.linspace(0.0, 1.0, 256)[None, :],
        cmap=colormap(theme),
        aspect="auto",
        interpolation="none",
        origin="upper",
        extent=(left, right, page.y, top),
    )
    frame = Rectangle(
        (left, top), *BAR, fill=False, edgecolor=theme.rule, linewidth=0.6
    )
    page.axes.add_patch(frame)
    page.write(x, "0", SMALL, theme.ink)
    x = right + 6
    value = f"{passage.largest:.3g}" if passage.largest else "all weights are 0"
    page.write(x, value, SMALL, theme.ink)
    x += ruler.width(value, SMALL) + 8
    unread = ruler.width(NOT_READ, SMALL) if passage.has_cut else 0
    legend = ruler.shorten(
        page.fonts.drawn(legend), SMALL, WIDTH - MARGIN - x - 24 - unread
    )
    page.write(x, legend, SMALL, theme.faint)
    if passage.has_cut:
        x += ruler.width(legend, SMALL) + 24
        page.write(x, NOT_READ, SMALL, theme.faint)
        page.dots(x, unread)
    page.y += 18
    page.write(MARGIN, NOTE, SMALL, theme.faint)
