"""The texts a model reads: as ids, with a limit for what is written, in batches."""

import dataclasses

from zoo.text import check_texts

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


def read_sources(texts, tokenizer, maxlen, least=0, most=None):
    """A `Source` for each text, in order.

    Args:
        texts: Any iterable of strings.
        tokenizer: A `zoo.tokens.SequenceTokenizer`.
        maxlen: Number of tokens a source is cut to; its beginning is kept.
        least: Least number of tokens to be written.
        most: The limit of all; None gives each one 2 x its tokens + 16, at most 512.
    """
    texts = check_texts(texts)
    sources = []
    for text, encoding in zip(texts, tokenizer.encode_batch(texts), strict=True):
        ids = encoding.ids[:maxlen]
        usual = max(least, min(2 * len(ids) + 16, LIMITS[-1]))
        source = Source(
            text,
            ids,
            encoding.tokens[:maxlen],
            tokens_cut=len(encoding.ids) - len(ids),
            limit=usual if most is None else most,
        )
        sources.append(source)
    return sources


def batches(sources, batch_size):
    """Places of sources of like length, the empty ones left out, a list a batch."""
    places = [i for i, source in enumerate(sources) if source.ids]
    places.sort(key=lambda i: len(sources[i].ids))
    for start in range(0, len(places), batch_size):
        yield places[start : start + batch_size]


def room_for(limit):
    """The least of a few lengths that holds so many tokens.

    Example:

    >>> room_for(17), room_for(600)
    (32, 600)
    """
    return next((room for room in LIMITS if room >= limit), int(limit))
