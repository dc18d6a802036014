"""Batches of pairs of like length, filled up to a number of tokens."""

import numpy as np

from training.batches import by_length, one_pass
from zoo.padding import padded
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

    def cut(rows):
        """Cuts where one more would make a batch too large."""
        batches, begin = [], 0
        for end in range(1, len(rows) + 1):
            last = end == len(rows)
            if last or (end + 1 - begin) * lengths[rows[end]] > batch_tokens:
                batches.append(rows[begin:end])
                begin = end
        return batches

    chunk = max(1, int(CHUNK * batch_tokens / lengths.mean()))  # in pairs
    return by_length(lengths, chunk, cut, rng)


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
    return one_pass(generate, ((ids, ids), ids), len(batches))
