"""Batches of pairs of like length, filled up to a number of tokens."""

import numpy as np

from zoo.tokens import END_ID, START_ID

CHUNK = 100  # batches that are sorted together: long enough for little padding


def plan(lengths, batch_tokens, rng):
    """Which pairs go into which batch, in random order, those of like length together.

    Args:
        lengths: The greater number of ids of each pair's two sides, (N,).
        batch_tokens: Rows times longest row of a batch, at most; a pair that is longer
            stands alone.
        rng: A NumPy generator.

    Returns:
        A list of integer arrays; every pair stands in exactly one.
    """
    lengths = np.maximum(np.asarray(lengths), 1)
    order = rng.permutation(len(lengths))
    size = max(1, int(CHUNK * batch_tokens / lengths.mean()))  # pairs in a chunk
    batches = []
    for start in range(0, len(order), size):
        chunk = order[start : start + size]
        chunk = chunk[np.argsort(lengths[chunk], kind="stable")]
        batches += _filled(chunk, lengths[chunk], batch_tokens)
    return [batches[i] for i in rng.permutation(len(batches))]


def _filled(rows, lengths, batch_tokens):
    """Rows, shortest first, cut where one more would make a batch too large."""
    batches, begin = [], 0
    for end in range(1, len(rows) + 1):
        if end == len(rows) or (end + 1 - begin) * lengths[end] > batch_tokens:
            batches.append(rows[begin:end])
            begin = end
    return batches


def teacher_forced(targets):
    """Lists of ids -> decoder inputs and labels, both (B, T): one step apart.

    Args:
        targets: A list of B lists of ids, without start and end.

    Returns:
        `(inputs, labels)`: START and the ids; the ids and END; 0 behind both.

    Example:

    >>> inputs, labels = teacher_forced([[7, 8], [9]])
    >>> inputs.tolist(), labels.tolist()
    ([[1, 7, 8], [1, 9, 0]], [[7, 8, 3], [9, 3, 0]])
    """
    inputs = padded([[START_ID, *row] for row in targets])
    labels = padded([[*row, END_ID] for row in targets])
    return inputs, labels


def padded(rows):
    """Lists of ids -> one array (B, L), 0 behind the shorter ones."""
    array = np.zeros((len(rows), max(1, *map(len, rows))), "int32")
    for place, row in zip(array, rows, strict=True):
        place[: len(row)] = row
    return array


def dataset(sources, targets, batch_tokens, rng):
    """A tf.data.Dataset of ([source ids, decoder inputs], labels), one pass.

    Args:
        sources, targets: Lists of N lists of ids, without start and end.
        batch_tokens: As in `plan`.
        rng: A NumPy generator.
    """
    import tensorflow as tf

    pairs = zip(sources, targets, strict=True)
    lengths = [max(len(source), len(target) + 1) for source, target in pairs]
    batches = plan(lengths, batch_tokens, rng)

    def generate():
        for rows in batches:
            inputs, labels = teacher_forced([targets[i] for i in rows])
            yield (padded([sources[i] for i in rows]), inputs), labels

    ids = tf.TensorSpec((None, None), tf.int32)
    data = tf.data.Dataset.from_generator(generate, output_signature=((ids, ids), ids))
    return data.apply(tf.data.experimental.assert_cardinality(len(batches))).prefetch(4)
