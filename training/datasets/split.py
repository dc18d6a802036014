"""Takes a validation part out of training data, and test texts out of it."""

import collections
import numbers

import numpy as np


def split_validation(data, fraction, seed):
    """Splits `data` into a training and a validation part, class by class.

    Each class gives `fraction` of its examples, rounded, and at least one, to the
    validation part. Examples with exactly the same text stay together on one side, so
    that no validation text was trained on (a text that stands under two labels goes
    with its first). The same `data`, `fraction` and `seed` give the same split; both
    parts keep the order of `data`.

    Args:
        data: `LabelledTexts` of N examples.
        fraction: float in (0, 1), the share of the validation part.
        seed: integer.

    Returns:
        `(train, validation)`, two `LabelledTexts` of N examples together.

    Raises:
        ValueError: `fraction` is not inside (0, 1), or a class has fewer than two
            different texts, so that it cannot be on both sides.
        TypeError: `seed` is not an integer.

    Example:

    >>> from training.datasets.examples import LabelledTexts
    >>> data = LabelledTexts(list("abcdef"), [0, 1, 0, 1, 0, 1], ("neg", "pos"), "-")
    >>> train, validation = split_validation(data, 1 / 3, seed=7)
    >>> len(train), len(validation), sorted(validation.labels.tolist())
    (4, 2, [0, 1])
    """
    check_split(fraction, seed)
    generator = np.random.default_rng(seed)
    in_validation = np.zeros(len(data), dtype=bool)
    groups_of_class = _groups_of_same_text(data)
    for label, name in enumerate(data.label_names):
        groups = groups_of_class[label]
        if len(groups) < 2:
            raise ValueError(
                f"Class {name!r} has too few examples to be in both the training and "
                "the validation part. Received: "
                f"{_examples(int((data.labels == label).sum()))} with {len(groups)} "
                f"different text{'' if len(groups) == 1 else 's'}. Add examples of "
                f"{name!r}, or leave the class out."
            )
        order = generator.permutation(len(groups))
        for index in _validation_groups([groups[i] for i in order], fraction):
            in_validation[groups[order[index]]] = True
    return data.select(~in_validation), data.select(in_validation)


def leave_out(data, other):
    """Leaves out of `data` every example whose text also stands in `other`.

    Some data sets hold the same text in train and test (IMDB: 123 texts). Leave the
    test texts out of training, so that the test measures texts that are new.

    Args:
        data: `LabelledTexts`.
        other: `LabelledTexts`.

    Returns:
        `LabelledTexts`: the rest of `data`, in its order.

    Example:

    >>> from training.datasets.examples import LabelledTexts
    >>> train = LabelledTexts(["a", "b", "c"], [0, 1, 1], ("neg", "pos"), "-")
    >>> leave_out(train, train.select([1])).texts
    ['a', 'c']
    """
    known = {_key(text) for text in other.texts}
    return data.select(
        [i for i, text in enumerate(data.texts) if _key(text) not in known]
    )


def check_split(fraction, seed):
    """Refuses a share that is not inside (0, 1), and a seed that is no integer.

    Raises:
        ValueError: `fraction` is not a number between 0 and 1.
        TypeError: `seed` is not an integer of 0 or more.
    """
    is_number = isinstance(fraction, numbers.Real) and not isinstance(fraction, bool)
    if not (is_number and 0 < fraction < 1):
        raise ValueError(
            "`fraction` must be a number between 0 and 1, both excluded. Received: "
            f"{fraction!r}. Write 0.1 to validate on a tenth of the data."
        )
    if not isinstance(seed, numbers.Integral) or isinstance(seed, bool) or seed < 0:
        raise TypeError(
            "`seed` must be an integer, 0 or more, so that the split can be made "
            f"again. Received: {seed!r}. Write, for example, seed=7."
        )


def _groups_of_same_text(data):
    """{class index: [positions of one text, ...]}, each text under its first label."""
    positions = collections.defaultdict(list)
    for index, text in enumerate(data.texts):
        positions[_key(text)].append(index)
    groups_of_class = collections.defaultdict(list)
    for group in positions.values():
        groups_of_class[int(data.labels[group[0]])].append(group)
    return groups_of_class


def _validation_groups(groups, fraction):
    """Indices of the `groups`, taken in order, that fill the validation share.

    A group that would overfill the share is passed over. Where each of them would, the
    smallest goes; one group at least always stays.
    """
    share = max(1, round(fraction * sum(map(len, groups))))
    taken, size = [], 0
    for index, group in enumerate(groups):
        if size + len(group) <= share and len(taken) < len(groups) - 1:
            taken.append(index)
            size += len(group)
    return taken or [min(range(len(groups)), key=lambda index: len(groups[index]))]


def _key(text):
    return text if isinstance(text, str) else tuple(text)


def _examples(count):
    return f"{count} example{'' if count == 1 else 's'}"
