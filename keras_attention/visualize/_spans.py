"""Checks offsets and weights, and splits a text into tokens, cut parts and the rest."""

from itertools import pairwise
from operator import index
from typing import NamedTuple

import numpy as np

from keras_attention.visualize._checks import TOLERANCE, check_numbers, check_text

# Drawn in the place of characters that are only room.
SIGNS = {
    "\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}",
    "\t": "\N{RIGHTWARDS ARROW}",
}
NOT_READ = "not read by the model"
NOTE = "Attention weights show where the model looked, not why it decided."


class Span(NamedTuple):
    """A run of characters: `kind` is `"token"`, `"between"` or `"cut"`.

    `share` is the weight as a share of the largest weight, 0 to 1.
    """

    text: str
    kind: str
    weight: float = 0.0
    share: float = 0.0


class Passage(NamedTuple):
    """A whole text: its spans in order, and the token of the largest weight."""

    spans: list
    largest: float
    largest_text: str

    @property
    def has_cut(self):
        return any(span.kind == "cut" for span in self.spans)


def split_text(text, offsets, weights, cut=()):
    """Splits `text` into spans that, joined, give `text` again.

    Args:
        text: string.
        offsets: N pairs `(start, end)`, characters of `text`, sorted and apart. An
            empty pair (start = end: a token that stands for no characters, such as a
            start mark) draws nothing.
        weights: array-like of N weights, shape `(N,)` or `(N, 1)`.
        cut: pairs `(start, end)` that the model did not read.

    Returns:
        A `Passage`.

    Raises:
        ValueError: pairs outside the text, unsorted or overlapping; another number of
            weights; weights that are negative or not finite; a weight on a cut part.
        TypeError: `text` is not a string.
    """
    check_text(text)
    offsets = _pairs(offsets, "offsets", len(text))
    weights = _checked_weights(weights, len(offsets))
    cut = _merged(_pairs(cut, "cut", len(text)))
    tokens = [
        (start, end, weight)
        for (start, end), weight in zip(offsets, weights, strict=True)
        if start < end
    ]
    _check_order(tokens)
    tokens = _outside_cut(tokens, cut)
    _, _, largest = max(tokens, key=lambda token: token[2], default=(0, 0, 0.0))
    spans = _spans(text, tokens, cut, largest)
    strongest = max(spans, key=lambda span: span.weight, default=Span("", "between"))
    return Passage(spans, largest, strongest.text.strip() if largest else "")


def _spans(text, tokens, cut, largest):
    marked = [(start, end, "token", weight) for start, end, weight in tokens]
    marked += [(start, end, "cut", 0.0) for start, end in cut]
    spans, at = [], 0
    for start, end, kind, weight in sorted(marked):
        if at < start:
            spans.append(Span(text[at:start], "between"))
        share = weight / largest if largest else 0.0
        spans.append(Span(text[start:end], kind, weight, share))
        at = end
    if at < len(text):
        spans.append(Span(text[at:], "between"))
    return spans


def _pairs(pairs, name, length):
    try:
        pairs = [(index(start), index(end)) for start, end in pairs]
    except (TypeError, ValueError):
        raise ValueError(
            f"`{name}` must be pairs of integers (start, end), characters of the text. "
            f"Received: {pairs!r}."
        ) from None
    for at, (start, end) in enumerate(pairs):
        if not 0 <= start <= end <= length:
            raise ValueError(
                f"`{name}[{at}]` must lie inside the text, 0 <= start <= end <= "
                f"{length}. Received: ({start}, {end}). Offsets count characters, not "
                "bytes or tokens, of the very text that was tokenized."
            )
    return pairs


def _check_order(tokens):
    for (start, end, _), (next_start, next_end, _) in pairwise(tokens):
        if next_start < end:
            raise ValueError(
                "`offsets` must be sorted and must not overlap. Received: "
                f"({next_start}, {next_end}) after ({start}, {end}). Give each "
                "character to one token, in the order of the text."
            )


def _checked_weights(weights, count):
    weights = check_numbers(
        weights,
        expected="numbers, one for each of the offsets",
        advice="Give the weights of one text.",
    )
    if weights.shape not in ((count,), (count, 1)):
        raise ValueError(
            f"`weights` must hold one weight for each of the {count} offsets. Received "
            f"weights of shape {weights.shape}: give the weights of one text, without "
            "its padding."
        )
    weights = weights.reshape(count)
    bad = ~np.isfinite(weights) | (weights < -TOLERANCE)
    if bad.any():
        first = int(np.argmax(bad))
        raise ValueError(
            "`weights` must be finite and not negative. Received: "
            f"weights[{first}] = {weights[first]}. Give the weights after the softmax."
        )
    return np.maximum(weights, 0.0).tolist()


def _merged(pairs):
    merged = []
    for start, end in sorted(pair for pair in pairs if pair[0] < pair[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _outside_cut(tokens, cut):
    kept = []
    for start, end, weight in tokens:
        hit = next((pair for pair in cut if start < pair[1] and pair[0] < end), None)
        if hit is None:
            kept.append((start, end, weight))
        elif weight > 0:
            raise ValueError(
                "A `cut` part was not read by the model, so it can have no weight. "
                f"Received: weight {weight:.4g} at ({start}, {end}) inside cut {hit}. "
                "Remove one of the two."
            )
    return kept
