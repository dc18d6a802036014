"""Pairs as ids: what a run learns from and is chosen by, and a hash of it."""

import hashlib

import numpy as np


def encoded(translator, pairs):
    """Ids of both sides of pairs.

    A source is cut, as in use. A pair whose target is over the limit is left out: cut,
    it would teach to stop in the middle.

    Args:
        translator: A `zoo.Translator`.
        pairs: `training.datasets.Pairs`.

    Returns:
        `((sources, targets), left_out)`: two lists of lists, and how many pairs are not
        in them.
    """
    most = translator.maxlen
    sources, targets = (
        [encoding.ids for encoding in tokenizer.encode_batch(texts)]
        for tokenizer, texts in (
            (translator.source_tokenizer, pairs.sources),
            (translator.target_tokenizer, pairs.targets),
        )
    )
    kept = [i for i, ids in enumerate(targets) if len(ids) <= most]
    ids = [sources[i][:most] for i in kept], [targets[i] for i in kept]
    return ids, len(targets) - len(kept)


def fingerprint(train_ids, validation_ids):
    """A hash of the ids of two parts, each (sources, targets): a string."""
    digest = hashlib.sha256()
    for side in (*train_ids, *validation_ids):
        for ids in side:
            digest.update(np.asarray([*ids, -1], "int32").tobytes())
    return digest.hexdigest()


def spread(sources, references, count):
    """At most `count` sources with their references, from all over the lists.

    A file may be sorted, by length for example, so the first ones would not do.
    """
    last, count = len(sources) - 1, min(count, len(sources))
    places = np.linspace(0, last, count).round().astype(int)
    return [sources[i] for i in places], [references[i] for i in places]
