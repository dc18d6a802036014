"""A text for the terminal: each token on a ground shaded by its attention weight."""

import re

from rich.style import Style
from rich.text import Text

from keras_attention.visualize._colors import readable_ink, shade, theme_for
from keras_attention.visualize._spans import split_text

# Below this share the terminal's own colours stay: its ground is not known, and a box
# almost in the theme's paper colour would stand out on another ground.
FAINTEST = 0.04
# A terminal would obey them; a line end and a tab are only drawn.
CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def highlight_terminal(text, offsets, weights, *, cut=(), dark=True):
    """Returns a text with its tokens shaded by weight, to print with rich.

    Args:
        text: string.
        offsets: N pairs `(start, end)`, the characters of each token, sorted and apart.
        weights: array-like of N weights, shape `(N,)` or `(N, 1)`, without padding.
        cut: pairs `(start, end)` of characters that the model did not read; drawn dim.
        dark: True for a terminal with a dark ground, False for a light one.

    Returns:
        A `rich.text.Text`.

    Raises:
        ValueError: pairs outside the text, unsorted or overlapping; another number of
            weights; weights that are negative or not finite; a weight on a cut part.
        TypeError: `text` is not a string.

    Example:

    >>> from keras_attention.visualize import highlight_terminal
    >>> line = highlight_terminal("A superb film.", [(0, 1), (2, 8)], [0.02, 0.9])
    >>> line.plain, [line.plain[span.start : span.end] for span in line.spans]
    ('A superb film.', ['superb'])
    """
    theme = theme_for(dark)
    line = Text()
    for span in split_text(text, offsets, weights, cut).spans:
        style = None
        if span.kind == "cut":
            style = Style(dim=True, italic=True)
        elif span.share >= FAINTEST:
            color = shade(span.share, theme)
            style = Style(color=readable_ink(color), bgcolor=color)
        line.append(CONTROLS.sub("\ufffd", span.text), style)
    return line
