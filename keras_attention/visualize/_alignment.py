"""Two rows of words, joined by lines as strong as the attention between them."""

from numbers import Real

import numpy as np
from matplotlib.collections import LineCollection

from keras_attention.visualize._canvas import (
    Ruler,
    check_path,
    headed_figure,
    point_axes,
    save_figure,
    text_style,
)
from keras_attention.visualize._cells import shortened
from keras_attention.visualize._checks import (
    check_labels,
    check_numbers,
    check_range,
    check_sizes,
    check_titles,
)
from keras_attention.visualize._colors import shade, theme_for
from keras_attention.visualize._fonts import fonts_for
from keras_attention.visualize._rows import WORD, place_rows
from keras_attention.visualize._spans import NOTE

# All sizes are in points.
MARGIN, SMALL = 24, 9
MOST_TOKENS = 100  # of a row
LEAST_GAP, MOST_GAP = 90, 300  # the height of the lines
CLEAR = 5  # from a line to the words
STRONGEST = 6  # the width of a line
FAINTEST = 0.68  # a place on the ramp from which lines stand out from the paper
SAMPLE = 26  # the length of a line of the legend
LEGEND_ROOM = 46
LEGEND = "attention of a word below to a word above"


def alignment(
    source, target, weights, *, threshold=0.1, title=None, path=None, dark=False
):
    """Draws two rows of words, joined by lines as strong as the attention between them.

    The words that were read stand above, those that were written below, in the order in
    which their language is read. The wider and darker a line (in a dark figure: the
    lighter), the larger the weight. Weights under `threshold` have no line: the title
    says how many, and how much of the attention they hold. Words read exactly as given
    and no line crosses one; rows of many words are written upwards, and very long words
    are cut in the middle.

    Args:
        source: S tokens, at most 100.
        target: T tokens, at most 100.
        weights: array-like of shape `(T, S)`, values 0 to 1: a row for each target
            token, a column for each source token.
        threshold: the least weight that has a line, 0 to 1. Weights of 0 have none.
        title: string or None.
        path: file to write, ending in .png, .svg or .pdf; None writes none.
        dark: True for light text on a dark ground.

    Returns:
        A `matplotlib.figure.Figure` of its own, unknown to pyplot.

    Raises:
        ValueError: `weights` is not a map of numbers from 0 to 1, the tokens do not
            match its shape or are over 100, `threshold` is not from 0 to 1, or `path`
            has another suffix.
        TypeError: a token is neither a string nor a number, or `title` is no string.

    Example:

    >>> from keras_attention.visualize import alignment
    >>> weights = [[0.92, 0.08], [0.04, 0.96]]
    >>> figure = alignment(["el", "gato"], ["the", "cat"], weights)
    >>> [text.get_text() for text in figure.texts]
    ['2 weights under 0.1 have no line: 6% of the attention.']
    """
    path = check_path(path)
    check_titles(title=title)
    threshold = _checked_threshold(threshold)
    source, target = check_labels(source, "source"), check_labels(target, "target")
    weights = _checked(weights, source, target)
    fonts = fonts_for([title or "", *source, *target])
    ruler, theme = Ruler(fonts), theme_for(dark)
    source, cut_source = shortened(source, fonts)
    target, cut_target = shortened(target, fonts)
    rows = place_rows(source, target, _legend_width(ruler), ruler)
    said = _notes(weights, threshold, cut_source + cut_target)
    figure, axes, edges = _frame(rows, title, said, ruler, theme)
    _write_words(axes, source, target, rows, edges, fonts, theme)
    _draw_lines(axes, weights, threshold, rows, edges, theme)
    _draw_legend(axes, weights, threshold, edges[1] + rows.below + 30, ruler, theme)
    save_figure(figure, path)
    return figure


def _checked_threshold(threshold):
    if not isinstance(threshold, Real) or not 0 <= threshold <= 1:
        raise ValueError(
            f"`threshold` must be a number from 0 to 1. Received: {threshold!r}. It is "
            "the least weight that has a line."
        )
    return float(threshold)


def _checked(weights, source, target):
    weights = check_numbers(weights)
    if weights.ndim != 2 or not weights.size:
        raise ValueError(
            "`weights` must have shape (T, S) with T and S at least 1. Received shape: "
            f"{weights.shape}. Take one example of a batch, and one of its heads or "
            "their mean: weights[0].mean(axis=0)."
        )
    check_sizes(weights, target, source, ("target", "source"))
    if max(weights.shape) > MOST_TOKENS:
        raise ValueError(
            f"A row has room for {MOST_TOKENS} tokens. Received: `source` of length "
            f"{len(source)} and `target` of length {len(target)}. Draw a part of them, "
            "or a heat map: heatmap(weights, target, source)."
        )
    return check_range(weights)


def _has_line(weights, threshold):
    return (weights >= threshold) & (weights > 0)


def _notes(weights, threshold, cut):
    """Returns the sentences on what has no line and on words that are cut."""
    said = []
    left_out = weights[(weights < threshold) & (weights > 0)]
    if left_out.size:
        share = left_out.sum() / weights.sum()
        share = f"{share:.0%}" if share >= 0.005 else "under 1%"
        under = f"under {threshold:.3g}"
        many = f"{left_out.size:,} weights {under} have"
        start = many if left_out.size > 1 else f"1 weight {under} has"
        said.append(f"{start} no line: {share} of the attention.")
    if cut:
        said.append(f"Long words are cut in the middle: {cut}.")
    return " ".join(said)


def _frame(rows, title, said, ruler, theme):
    """Makes the figure with its heading; returns it, its axes, the lines' two ends."""
    width = rows.width + 2 * MARGIN
    gap = min(max(0.25 * rows.width, LEAST_GAP), MOST_GAP)
    room = rows.above + gap + rows.below + LEGEND_ROOM + MARGIN
    figure, top = headed_figure(width, room, title, said, ruler, MARGIN, theme)
    top += rows.above
    return figure, point_axes(figure), (top, top + gap)


def _write_words(axes, source, target, rows, edges, fonts, theme):
    """Writes the words: the source ends where the lines begin, the target goes on."""
    style = text_style(fonts, WORD, theme.ink)
    above, below = ("baseline", -0.3 * WORD), ("baseline", WORD)
    if rows.turned:
        above, below = ("bottom", 0), ("top", 0)
        style["rotation"] = 90
    for name, words, middles, edge, (va, shift) in (
        ("source", source, rows.source, edges[0], above),
        ("target", target, rows.target, edges[1], below),
    ):
        place = {"ha": "center", "va": va, "gid": name}
        for word, middle in zip(words, middles, strict=True):
            axes.text(MARGIN + middle, edge + shift, word, **place, **style)


def _draw_lines(axes, weights, threshold, rows, edges, theme):
    """Draws a line for each weight, the strongest last, so that none lies over it."""
    places = np.argwhere(_has_line(weights, threshold)).tolist()
    places.sort(key=lambda place: weights[tuple(place)])
    top, bottom = edges[0] + CLEAR, edges[1] - CLEAR
    ends = [
        [(MARGIN + rows.source[column], top), (MARGIN + rows.target[row], bottom)]
        for row, column in places
    ]
    shares = [weights[row, column] / weights.max() for row, column in places]
    axes.add_collection(_lines(ends, shares, "alignment", theme), autolim=False)


def _lines(ends, shares, name, theme):
    """Returns lines as strong as weights that are shares of the largest."""
    return LineCollection(
        ends,
        linewidths=[STRONGEST * share for share in shares],
        colors=[shade(FAINTEST + (1 - FAINTEST) * share, theme) for share in shares],
        capstyle="butt",
        gid=name,
    )


def _legend_width(ruler):
    sample = SAMPLE + ruler.width(" 0.0001 ", SMALL)
    return 3 * sample + ruler.width(LEGEND, SMALL)


def _draw_legend(axes, weights, threshold, y, ruler, theme):
    """Draws lines of three strengths with their weights, and the footnote."""
    largest, x = weights.max(), MARGIN
    style = {"va": "baseline", **text_style(ruler.fonts, SMALL, theme.faint)}
    values = sorted({threshold, (threshold + largest) / 2, largest} - {0.0})
    if not _has_line(largest, threshold):
        values = []
        axes.text(x, y, f"The largest weight is {largest:.3g}.", **style)
    for value in values:
        ends = [[(x, y - 3), (x + SAMPLE, y - 3)]]
        sample = _lines(ends, [value / largest], "legend", theme)
        axes.add_collection(sample, autolim=False)
        axes.text(x + SAMPLE + 5, y, f"{value:.3g}", **style)
        x += SAMPLE + 5 + ruler.width(f"{value:.3g}", SMALL) + 12
    if values:
        axes.text(x, y, LEGEND, **style)
    axes.text(MARGIN, y + 18, NOTE, **style)
