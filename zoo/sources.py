"""The texts a model reads: as ids, with a limit for what is written, in batches."""

import dataclasses
import math

import keras

from zoo.text import check_texts

LENGTH_RATIO = 2.0  # tokens written for one read, if nothing else is known
LENGTH_MORE = 16  # and so many more
COMPILES_EACH_SHAPE = keras.backend.backend() == "jax"
ROWS = (1, 8, 32, 128)  # sizes of batches there
LIMITS = (16, 32, 64, 128, 256, 512)  # rooms for targets: few, so that traces are few


@dataclasses.dataclass(frozen=True)
class Source:
    """One source text, ready to be read.

    Attributes:
        text: As given.
        ids, tokens: What is read of it.
        tokens_cut: How many tokens more it had.
        limit: Greatest number of tokens to write for it, the end included.
    """

    text: str
    ids: list[int]
    tokens: list[str]
    tokens_cut: int
    limit: int


def read_sources(texts, tokenizer, maxlen, length_ratio, least=0, most=None):
    """A `Source` for each text, in order.

    Args:
        texts: Any iterable of strings.
        tokenizer: A `zoo.tokens.SequenceTokenizer`.
        maxlen: Number of tokens a source is cut to; its beginning is kept.
        length_ratio: How many tokens may be written for one that is read.
        least: Least number of tokens to be written.
        most: The limit of all; None gives each one length_ratio x its tokens + 16, at
            most 512, or as many as the targets of a model with another maxlen had.
    """
    texts = check_texts(texts)
    greatest = max(LIMITS[-1], maxlen + 1)
    sources = []
    for text, encoding in zip(texts, tokenizer.encode_batch(texts), strict=True):
        ids = encoding.ids[:maxlen]
        usual = math.ceil(length_ratio * len(ids)) + LENGTH_MORE
        usual = max(least, min(usual, greatest))
        source = Source(
            text,
            ids,
            encoding.tokens[:maxlen],
            tokens_cut=len(encoding.ids) - len(ids),
            limit=usual if most is None else most,
        )
        sources.append(source)
    return sources


def needed_length_ratio(sources, targets):
    """The least `length_ratio` at which all targets may be written to their ends.

    Args:
        sources, targets: Lists of N lists of ids, without start and end.

    Returns:
        A float of at least 2.

    Example:

    >>> needed_length_ratio([[5, 6], [5]], [[7] * 25, []])
    5.0
    """
    pairs = zip(sources, targets, strict=True)
    needed = [
        (len(target) + 1 - LENGTH_MORE) / len(source)
        for source, target in pairs
        if source
    ]
    return max([LENGTH_RATIO, *needed])


def batches(sources, batch_size):
    """Places of sources of like length, the empty ones left out, a list a batch."""
    places = [i for i, source in enumerate(sources) if source.ids]
    places.sort(key=lambda i: len(sources[i].ids))
    for start in range(0, len(places), batch_size):
        yield places[start : start + batch_size]


def extra_rows(count):
    """How many rows a batch is filled up with, so that its sizes are few on JAX.

    On the other backends none: one compiled function serves all sizes.
    """
    if not COMPILES_EACH_SHAPE:
        return 0
    return next((rows for rows in ROWS if rows >= count), count) - count


def room_for(limit):
    """The least of a few lengths that holds so many tokens.

    Example:

    >>> room_for(17), room_for(600)
    (32, 600)
    """
    return next((room for room in LIMITS if room >= limit), int(limit))
