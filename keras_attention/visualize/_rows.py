"""Places two rows of words above each other, level or, where there are many, turned."""

from typing import NamedTuple

from keras_attention.visualize._layout import Piece, reading_order

# All sizes are in points.
WORD = 13
BAND = 1.5 * WORD  # the height of a row of level words
BETWEEN, MOST_BETWEEN = 15, 60  # from one word to the next
MAX_WIDTH = 900  # of rows of level words
TURNED, ROOMY_TURNED = 17, 30  # from the middle of one turned word to the next


class Rows(NamedTuple):
    """The middles of the words of both rows, from the left end, and the room they need.

    `above` and `below` are the heights of the two rows.
    """

    source: list
    target: list
    turned: bool
    width: float
    above: float
    below: float


def place_rows(source, target, least_width, ruler):
    """Returns the `Rows` of words, in the order in which their language is read.

    Rows that are too wide are written upwards. The shorter row is spread out, so that
    words of one place in both texts stand near each other.
    """
    widths = [[ruler.width(word, WORD) for word in row] for row in (source, target)]
    heights = [BAND, BAND]
    natural = max(sum(row) + BETWEEN * (len(row) - 1) for row in widths)
    turned = natural > MAX_WIDTH
    if turned:
        heights = [max(row) for row in widths]
        most = max(len(row) for row in widths)
        step = max(TURNED, min(ROOMY_TURNED, MAX_WIDTH / most))
        natural = most * step
        widths = [[step - BETWEEN] * len(row) for row in widths]
    width = max(natural, least_width)
    middles = [
        _middles(row, extents, width)
        for row, extents in zip((source, target), widths, strict=True)
    ]
    return Rows(*middles, turned, width, *heights)


def _middles(words, widths, width):
    """Returns the middle of each word of a row that is spread over `width`."""
    between = (width - sum(widths)) / max(1, len(words) - 1)
    between = min(between, MOST_BETWEEN)
    at = (width - sum(widths) - between * (len(words) - 1)) / 2
    pieces = []
    for word, extent in zip(words, widths, strict=True):
        pieces.append(Piece(word, "token", width=extent, x=at))
        at += extent + between
    pieces = reading_order(pieces, " ".join(words), width)
    return [piece.x + piece.width / 2 for piece in pieces]
