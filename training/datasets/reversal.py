"""Makes random strings of letters, with the same strings from behind as targets."""

import collections
import itertools
import string

import numpy as np

from training.datasets.pairs import Pairs, PairSplits

LETTERS = np.array(list(string.ascii_lowercase))
MAX_LENGTH = 20
HELD_OUT = 0.1  # at most this share of all strings of a length goes to one of the tests


def make_reversals(seed=0, *, train=50_000, validation=1_000, test=2_000):
    """Random strings of the letters a to z and their reversals.

    The lengths 1 to 20 are equally frequent as far as there are strings: of one letter
    there are but 26. No string stands twice, in one part or in two. Validation and test
    have at most a tenth each of all strings of a length (2 of one letter, 67 of two);
    longer strings make up for them.

    Args:
        seed: integer.
        train, validation, test: integers, the number of strings in each part.

    Returns:
        `PairSplits`.

    Raises:
        ValueError: a part of no strings.

    Example:

    >>> splits = make_reversals(7, train=100, validation=20, test=20)
    >>> source, target = splits.test.sources[0], splits.test.targets[0]
    >>> source[::-1] == target, source in splits.train.sources
    (True, False)
    """
    wanted = {"test": test, "validation": validation, "train": train}
    for name, count in wanted.items():
        if count < 1:
            raise ValueError(f"`{name}` must be 1 or more. Received: {count}.")
    generator = np.random.default_rng(seed)
    taken, parts = set(), {}
    for name, count in wanted.items():
        room = _room(taken, 1 if name == "train" else HELD_OUT)
        strings = []
        for length, number in _shares(count, room).items():
            new = _draw(generator, length, number, taken)
            taken.update(new)
            strings += new
        order = generator.permutation(len(strings))
        sources = [strings[index] for index in order]
        targets = [text[::-1] for text in sources]
        parts[name] = Pairs(sources, targets, f"reverse {name}")
    return PairSplits(**parts)


def _room(taken, share):
    """{length: how many strings a part may have}: a share of all, and none taken."""
    used = collections.Counter(map(len, taken))
    lengths = range(1, MAX_LENGTH + 1)
    return {n: min(int(share * 26**n), 26**n - used[n]) for n in lengths}


def _shares(count, room):
    """{length: how many of `count`}: equal, but no more than there is room for."""
    shares, left = {}, count
    for place, length in enumerate(room):
        shares[length] = min(room[length], -(-left // (len(room) - place)))
        left -= shares[length]
    return shares


def _draw(generator, length, number, taken):
    """`number` different strings of `length` letters that are not in `taken`."""
    if length <= 3:  # few enough to list, and a part may want nearly all of them
        every = (
            "".join(letters) for letters in itertools.product(LETTERS, repeat=length)
        )
        free = [text for text in every if text not in taken]
        return [free[index] for index in generator.permutation(len(free))[:number]]
    drawn = {}
    while len(drawn) < number:
        rows = generator.integers(26, size=(number - len(drawn), length))
        drawn |= dict.fromkeys("".join(row) for row in LETTERS[rows])
        drawn = {text: None for text in drawn if text not in taken}
    return list(drawn)
