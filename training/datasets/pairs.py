"""Pairs of a text and the text to make of it, in parts that share no source."""

import dataclasses
import hashlib
from bisect import bisect_left, bisect_right

import numpy as np

from training.datasets.examples import positions_of
from training.datasets.split import check_split


@dataclasses.dataclass(frozen=True, eq=False)
class Pairs:
    """Texts, each with the text that a model is to make of it.

    Args:
        sources: list of N strings.
        targets: list of N strings. A source with several right targets stands several
            times.
        source: string, where the pairs come from, for cards and messages.

    Raises:
        ValueError: the lengths differ.
        TypeError: a source or a target is not a string.

    Example:

    >>> pairs = Pairs(["Go.", "Hi.", "Hi."], ["Va !", "Salut !", "Salut."], "-")
    >>> len(pairs)
    3
    >>> pairs.select([2, 0]).targets
    ['Salut.', 'Va !']
    """

    sources: list[str]
    targets: list[str]
    source: str

    def __post_init__(self):
        for name in ("sources", "targets"):
            texts = list(getattr(self, name))
            object.__setattr__(self, name, texts)
            for index, text in enumerate(texts):
                if not isinstance(text, str):
                    raise TypeError(
                        f"`{name}` must be strings. Received: {type(text).__name__} "
                        f"at index {index}. Give texts, not their token ids."
                    )
        if len(self.sources) != len(self.targets):
            raise ValueError(
                "`sources` and `targets` need one length. Received: "
                f"{len(self.sources)} sources and {len(self.targets)} targets. Give "
                "each source its target."
            )

    def __len__(self):
        return len(self.sources)

    def select(self, indices):
        """The pairs at `indices`, in that order.

        Args:
            indices: integers of shape `(M,)`, or booleans of shape `(N,)`.

        Returns:
            A new `Pairs` of M pairs (of the True ones, for booleans).

        Raises:
            IndexError: an index, or the length of the booleans, does not fit.
            TypeError: `indices` are neither integers nor booleans.
        """
        positions = positions_of(indices, len(self))
        return dataclasses.replace(
            self,
            sources=[self.sources[position] for position in positions],
            targets=[self.targets[position] for position in positions],
        )


@dataclasses.dataclass(frozen=True, eq=False)
class PairSplits:
    """The three parts of a data set. No source of one stands in another.

    Args:
        train, validation, test: `Pairs`, none empty.

    Raises:
        ValueError: a part is empty, or a source stands in two parts.
    """

    train: Pairs
    validation: Pairs
    test: Pairs

    def __post_init__(self):
        seen = {}
        for name in ("train", "validation", "test"):
            part = getattr(self, name)
            if not len(part):
                raise ValueError(
                    f"The {name} part of {part.source} is empty. Expected: pairs in "
                    "each part. Give more pairs."
                )
            for text in set(part.sources):
                other = seen.setdefault(text, name)
                if other != name:
                    raise ValueError(
                        f"`{other}` and `{name}` share the source {text!r}. Expected: "
                        "each source in one part. Use `leave_out_sources`."
                    )


def reference_groups(pairs):
    """Each source once, with all its targets: to score against any of them.

    Args:
        pairs: `Pairs` of N pairs with M different sources.

    Returns:
        (sources, references): list of M strings, in the order in which they first
        stand; list of M lists of strings, the different targets of each in order.

    Example:

    >>> pairs = Pairs(["Hi.", "Go.", "Hi."], ["Salut !", "Va !", "Salut."], "-")
    >>> reference_groups(pairs)
    (['Hi.', 'Go.'], [['Salut !', 'Salut.'], ['Va !']])
    """
    groups = {}
    for source, target in zip(pairs.sources, pairs.targets, strict=True):
        groups.setdefault(source, {})[target] = None
    return list(groups), [list(targets) for targets in groups.values()]


def split_pairs(pairs, fraction, seed):
    """Splits by source: all targets of one source go to the same side.

    The same `pairs`, `fraction` and `seed` give the same split, whatever the order of
    the pairs; both parts keep that order.

    Args:
        pairs: `Pairs` of N pairs.
        fraction: float in (0, 1), the share of the different sources that goes to the
            second part: rounded, one at least, and one at least stays.
        seed: integer.

    Returns:
        (rest, part), two `Pairs` of N pairs together.

    Raises:
        ValueError: `fraction` is not inside (0, 1), or all sources are one text.
        TypeError: `seed` is not an integer.

    Example:

    >>> pairs = Pairs(["a", "b", "a", "c"], ["1", "2", "3", "4"], "-")
    >>> rest, part = split_pairs(pairs, 0.3, seed=7)
    >>> len(set(part.sources)), set(part.sources) & set(rest.sources)
    (1, set())
    """
    check_split(fraction, seed)
    different = sorted(set(pairs.sources))
    if len(different) < 2:
        raise ValueError(
            f"{pairs.source} has too few different sources to be split. Received: "
            f"{len(different)}. Expected: two or more. Give more pairs."
        )
    count = min(max(1, round(fraction * len(different))), len(different) - 1)
    chosen = np.random.default_rng(seed).permutation(len(different))[:count]
    taken = {different[index] for index in chosen}
    inside = np.array([text in taken for text in pairs.sources])
    return pairs.select(~inside), pairs.select(inside)


def split_by_text(pairs, validation=0.1, test=0.1):
    """Splits into three parts by a hash of each source, so that a file may grow.

    A source that stood in a part stands there in every later, longer file too: what a
    model was trained on never comes into the test part. That begins once no part is
    empty by the hashes alone: before, a few sources go where one is missing. Sources
    that are one text to the tokenizers (accents composed, blanks made even, maybe
    lower-cased) go together.

    Args:
        pairs: `Pairs` of N pairs.
        validation, test: floats in (0, 1), the shares of the different sources,
            together under 1. Of few sources the parts are of these sizes by chance
            alone, but each has one at least.

    Returns:
        `PairSplits`, each part in the order of `pairs`.

    Raises:
        ValueError: the shares are none, or there are fewer than three sources.

    Example:

    >>> pairs = Pairs([f"{i} cats" for i in range(99)], ["chats"] * 99, "-")
    >>> parts = split_by_text(pairs, validation=0.2, test=0.2)
    >>> len(parts.train) + len(parts.validation) + len(parts.test)
    99
    """
    shares = isinstance(validation, float) and isinstance(test, float)
    if not (shares and validation > 0 and test > 0 and validation + test < 1):
        raise ValueError(
            "`validation_fraction` and `test_fraction` must be more than 0 and leave "
            f"training data. Received: {validation} and {test}. Write 0.1 for both."
        )
    places = {text: _place(text) for text in set(pairs.sources)}
    order = sorted(set(places.values()))
    if len(order) < 3:
        raise ValueError(
            f"{pairs.source} has too few different sources for three parts. Received: "
            f"{len(order)}. Expected: three or more. Give more pairs."
        )
    first = min(max(bisect_left(order, test), 1), len(order) - 2)
    second = bisect_left(order, test + validation)
    second = min(max(second, first + 1), len(order) - 1)
    ends = order[first], order[second]
    parts = [[], [], []]
    for index, text in enumerate(pairs.sources):
        parts[bisect_right(ends, places[text])].append(index)
    test_part, validation_part, train = (pairs.select(part) for part in parts)
    return PairSplits(train, validation_part, test_part)


def _place(text):
    """A number in [0, 1) that only the text decides."""
    from zoo.normalization import normalized  # not above: `zoo` imports Keras

    plain = normalized(text, lowercase=True)[0].encode("utf-8")
    return int(hashlib.sha1(plain, usedforsecurity=False).hexdigest()[:13], 16) / 16**13


def leave_out_sources(pairs, other):
    """Leaves out of `pairs` every pair whose source also stands in `other`.

    Args:
        pairs, other: `Pairs`.

    Returns:
        `Pairs`: the rest of `pairs`, in its order.

    Example:

    >>> train = Pairs(["a", "b", "c"], ["1", "2", "3"], "-")
    >>> leave_out_sources(train, train.select([1])).sources
    ['a', 'c']
    """
    known = set(other.sources)
    return pairs.select([i for i, t in enumerate(pairs.sources) if t not in known])
