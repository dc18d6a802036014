"""Breaks a passage into lines of placed pieces, for any way of measuring text."""

import re
import unicodedata
from typing import NamedTuple

PAD = 2.2  # points, between a token's letters and the edge of its box
SPACE = 6.6  # between letters, where the text has a space
TOUCH = 0.8  # between the boxes of pieces that the text has side by side

_PIECES = re.compile(r"\r\n|[\r\n]|[^\S\r\n]+|\S+")


class Piece(NamedTuple):
    """A run of characters without a break inside, its place `x` and its `width`.

    `kind` and `share` are those of its `Span`. Of the pieces of one span, the first
    holds the weight, so that sums over pieces are sums over tokens.
    """

    text: str
    kind: str
    weight: float = 0.0
    share: float = 0.0
    width: float = 0.0
    x: float = 0.0

    @property
    def pad(self):
        """The room kept beside the letters: none where the box is hardly seen."""
        return PAD if self.share >= 0.1 else 0.0


def break_lines(spans, width, measure):
    """Lays the spans of a passage out in lines of at most `width`.

    Spaces separate pieces, line breaks of the text are kept (of several blank lines
    one is left), and a piece that is wider than a line is broken. A paragraph whose
    first letter is written from right to left is laid out from right to left.

    Args:
        spans: list of `Span`.
        width: the width of a line in points.
        measure: function from a string to its width in points.

    Returns:
        A list of lines, each a list of `Piece`. A blank line is an empty list.
    """
    lines = []
    for paragraph in _paragraphs(spans):
        if not paragraph and (not lines or not lines[-1]):
            continue
        letters = "".join(piece.text for chunk in paragraph for piece in chunk)
        filled = _fill(paragraph, width, measure)
        lines += [reading_order(line, letters, width) for line in filled]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _paragraphs(spans):
    """Returns paragraphs: lists of chunks, which are lists of pieces side by side."""
    paragraphs = [[[]]]
    for span in spans:
        weight = span.weight
        for text in _PIECES.findall(span.text):
            if text in ("\r\n", "\r", "\n"):
                paragraphs.append([[]])
            elif text.isspace():
                paragraphs[-1].append([])
            else:
                piece = Piece(text, span.kind, weight, span.share)
                paragraphs[-1][-1].append(piece)
                weight = 0.0
    return [[chunk for chunk in each if chunk] for each in paragraphs]


def _fill(chunks, width, measure):
    """Puts chunks into lines: whole where they fit into one, else piece by piece."""
    lines, line, at = [], [], 0.0
    for chunk in chunks:
        chunk = [part for piece in chunk for part in _broken(piece, width, measure)]
        whole = sum(piece.width for piece in chunk) + TOUCH * (len(chunk) - 1)
        for index, piece in enumerate(chunk):
            gap = SPACE - piece.pad - line[-1].pad if line and not index else TOUCH
            needed = whole if not index and whole <= width else piece.width
            if line and at + gap + needed > width:
                lines.append(line)
                line, at = [], 0.0
            at += gap if line else 0.0
            line.append(piece._replace(x=at))
            at += piece.width
    return [*lines, line]


def _broken(piece, width, measure):
    """Returns the measured piece, in parts where it is wider than a line."""
    parts, rest = [], piece
    while rest.text:
        count = min(len(rest.text), 400)  # more never fit: no need to measure them
        while (
            extent := measure(rest.text[:count]) + 2 * rest.pad
        ) > width and count > 1:
            count = max(1, min(count - 1, int(count * width / extent)))
        parts.append(rest._replace(text=rest.text[:count], width=extent))
        rest = rest._replace(text=rest.text[count:], weight=0.0)
    return parts


def reading_order(line, text, width):
    """Returns the line of a text with its pieces moved to where a reader expects them.

    A line of a text whose first letter is written from right to left begins at the
    right, and words of the other direction run their own way. These are the rules of
    the Unicode bidirectional algorithm (UAX 9) for whole pieces and one level of
    nesting; the letters within a piece are the font engine's work.

    Args:
        line: list of `Piece`, placed from left to right.
        text: the whole text.
        width: the width of the line in points.
    """
    direction = direction_of(text)
    if direction == "R":
        line = _mirrored(line, 0.0, width)
    texts = [piece.text for piece in line]
    for start, end in opposite_runs(texts, direction):
        run = line[start:end]
        left = min(piece.x for piece in run)
        right = max(piece.x + piece.width for piece in run)
        line[start:end] = _mirrored(run, left, right)
    return line


def opposite_runs(texts, direction):
    """Returns (start, end) of the runs of `texts` that run against a line's direction.

    What has no direction, such as a number, belongs to a run that goes on after it.

    >>> opposite_runs(["he", "said", "שלום", "2", "עולם", "."], "L")
    [(2, 5)]
    """
    against = "L" if direction == "R" else "R"
    runs, within = [], False
    for at, text in enumerate(texts):
        found = direction_of(text)
        if found == against:
            start = runs.pop()[0] if within else at
            runs.append((start, at + 1))
        within = found == against or (within and not found)
    return runs


def direction_of(text):
    """Returns "L" or "R", the direction of the first letter, or "" without letters."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("L", "R", "AL"):
            return "L" if kind == "L" else "R"
    return ""


def _mirrored(pieces, left, right):
    return [piece._replace(x=left + right - piece.x - piece.width) for piece in pieces]


def strongest_window(lines, limit):
    """Returns (first, end) of the `limit` consecutive lines with the most attention.

    The earliest where several are equal; all lines where there are no more.
    """
    sums = [sum(piece.weight for piece in line) for line in lines]
    starts = range(max(1, len(lines) - limit + 1))
    first = max(starts, key=lambda start: (sum(sums[start : start + limit]), -start))
    return first, min(first + limit, len(lines))
