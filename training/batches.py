"""Batches of like length, in an order that depends on the seed and the epoch alone."""

import numpy as np

from zoo.padding import cut_and_pad
from zoo.text import UNKNOWN_ID

CHUNK = 50  # batches that are sorted together: long enough for little padding


def by_length(lengths, chunk, cut, rng):
    """Which rows go into which batch, in random order, those of like length together.

    Args:
        lengths: Array (N,).
        chunk: Number of rows that are sorted together.
        cut: Function from the rows of a chunk, the shortest first, to its batches.
        rng: A NumPy generator.

    Returns:
        A list of integer arrays; every row stands in exactly one.
    """
    order, batches = rng.permutation(len(lengths)), []
    for start in range(0, len(order), chunk):
        rows = order[start : start + chunk]
        batches += cut(rows[np.argsort(lengths[rows], kind="stable")])
    return [batches[i] for i in rng.permutation(len(batches))]


def one_pass(generate, signature, count):
    """A tf.data.Dataset of the `count` batches that `generate()` yields."""
    import tensorflow as tf

    data = tf.data.Dataset.from_generator(generate, output_signature=signature)
    return data.apply(tf.data.experimental.assert_cardinality(count)).prefetch(4)


def plan(lengths, batch_size, rng):
    """Which texts go into which batch, in random order, texts of like length together.

    Args:
        lengths: Number of ids of each text (N,).
        batch_size: Texts in a batch; the last of a pass may be smaller.
        rng: A NumPy generator.

    Returns:
        A list of integer arrays; every text stands in exactly one.
    """

    def cut(rows):
        return [rows[i : i + batch_size] for i in range(0, len(rows), batch_size)]

    return by_length(np.asarray(lengths), batch_size * CHUNK, cut, rng)


def steps_of(count, batch_size):
    """Number of batches that so many texts make."""
    return -(-count // batch_size)


def dataset(ids, targets, batch_size, maxlen, rng, word_dropout=0.0):
    """A tf.data.Dataset of (ids (B, S), targets), one pass.

    Args:
        ids: A list of N lists of ids.
        targets: Array (N, ...).
        batch_size, maxlen: Of the batches; rows keep their ends.
        rng: A NumPy generator.
        word_dropout: Fraction of the words that are replaced by the unknown word.
    """
    import tensorflow as tf

    batches = plan([min(len(row), maxlen) for row in ids], batch_size, rng)
    noise_seed = rng.integers(2**63)

    def generate():
        noise = np.random.default_rng(noise_seed)
        for rows in batches:
            batch = cut_and_pad([ids[i] for i in rows], maxlen)
            hidden = noise.random(batch.shape) < word_dropout
            batch[hidden & (batch > UNKNOWN_ID)] = UNKNOWN_ID
            yield batch, targets[rows]

    signature = (
        tf.TensorSpec((None, None), tf.int32),
        tf.TensorSpec((None, *targets.shape[1:]), tf.float32),
    )
    return one_pass(generate, signature, len(batches))
