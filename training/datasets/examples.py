"""What every source gives: texts with their classes, in a train and a test part."""

import dataclasses

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class LabelledTexts:
    """Texts, each with the index of its class.

    Args:
        texts: list of N strings, or list of N lists of token ids (the `keras` source
            alone gives ids: those of the IMDB tokenizer).
        labels: integers of shape `(N,)`: the index of each text's class in
            `label_names`. Kept as an int64 array.
        label_names: tuple of distinct strings, the classes' names in index order.
        source: string, where the texts come from, for cards and messages.

    Raises:
        ValueError: the lengths differ, or a label is not the index of a name.
        TypeError: the labels are not integers, or the texts are neither strings nor
            lists of ids.

    Example:

    >>> data = LabelledTexts(["bad", "good", "fine"], [0, 1, 1], ("neg", "pos"), "-")
    >>> len(data)
    3
    >>> data.select([2, 0]).texts
    ['fine', 'bad']
    """

    texts: list
    labels: np.ndarray  # (N,)
    label_names: tuple[str, ...]
    source: str

    def __post_init__(self):
        object.__setattr__(self, "texts", list(self.texts))
        object.__setattr__(self, "labels", _label_array(self.labels))
        object.__setattr__(self, "label_names", tuple(self.label_names))
        if self.labels.shape != (len(self.texts),):
            raise ValueError(
                "`labels` needs one label for each text. Received: "
                f"{len(self.texts)} texts and labels of shape {self.labels.shape}. "
                "Give lists of one length."
            )
        check_label_names(self.label_names)
        _check_label_range(self.labels, self.label_names)
        _check_text_types(self.texts)

    def __len__(self):
        return len(self.texts)

    @property
    def is_tokenized(self):
        """True where `texts` holds lists of token ids instead of strings."""
        return bool(self.texts) and not isinstance(self.texts[0], str)

    def select(self, indices):
        """The examples at `indices`, in that order, under the same class names.

        Args:
            indices: integers of shape `(M,)`, or booleans of shape `(N,)`.

        Returns:
            A new `LabelledTexts` of M examples (of the True ones, for booleans).

        Raises:
            IndexError: an index, or the length of the booleans, does not fit.
            TypeError: `indices` are neither integers nor booleans.
        """
        positions = positions_of(indices, len(self))
        return dataclasses.replace(
            self,
            texts=[self.texts[position] for position in positions],
            labels=self.labels[positions],
        )


@dataclasses.dataclass(frozen=True, eq=False)
class Splits:
    """What a source holds: `train`, and `test` where the source has a test part.

    Args:
        train: `LabelledTexts`.
        test: `LabelledTexts` with the same `label_names`, or None.

    Raises:
        ValueError: the two parts have different class names.
    """

    train: LabelledTexts
    test: LabelledTexts | None = None

    def __post_init__(self):
        if self.test is None or self.test.label_names == self.train.label_names:
            return
        raise ValueError(
            "`train` and `test` must have the same classes in the same order. Received:"
            f" {self.train.label_names} and {self.test.label_names}. Load `test` with "
            "`label_names` of the train part."
        )


def positions_of(indices, count):
    """`indices` of `count` examples as an array of integers.

    Args:
        indices: integers of shape `(M,)`, or booleans of shape `(count,)`.

    Raises:
        IndexError: an index, or the length of the booleans, does not fit.
        TypeError: `indices` are neither integers nor booleans.
    """
    indices = np.asarray(indices)
    if indices.size == 0:
        indices = indices.astype(np.int64)
    if indices.ndim != 1 or indices.dtype.kind not in "iub":
        raise TypeError(
            "`indices` must be a list of integers, or one boolean per example. "
            f"Received: shape {indices.shape}, type {indices.dtype}."
        )
    return np.arange(count)[indices]


def check_label_names(label_names):
    """Refuses class names that are not two or more distinct strings.

    Raises:
        TypeError: they are not a list or tuple of strings.
        ValueError: fewer than two names, or a name that stands twice.
    """
    if not isinstance(label_names, (list, tuple)) or not all(
        isinstance(name, str) for name in label_names
    ):
        raise TypeError(
            "`label_names` must be a list of strings. Received: "
            f'{label_names!r}. Write, for example, ("negative", "positive").'
        )
    if len(label_names) < 2 or len(set(label_names)) < len(label_names):
        raise ValueError(
            "`label_names` needs two or more names, each once. Received: "
            f"{tuple(label_names)}. Give every class a name of its own."
        )


def _label_array(labels):
    labels = np.asarray(labels)
    if labels.size and labels.dtype.kind not in "iu":
        raise TypeError(
            "`labels` must be integers, the indices of classes. Received: type "
            f"{labels.dtype}. Give each class its index in `label_names`."
        )
    return labels.astype(np.int64)


def _check_label_range(labels, label_names):
    outside = np.flatnonzero((labels < 0) | (labels >= len(label_names)))
    if outside.size:
        raise ValueError(
            f"`labels` must lie in 0..{len(label_names) - 1}, one for each of "
            f"{label_names}. Received: {labels[outside[0]]} at index {outside[0]}. "
            "Leave unlabelled texts out, or give the missing class a name."
        )


def _check_text_types(texts):
    if not texts:
        return
    expected = str if isinstance(texts[0], str) else list
    for index, text in enumerate(texts):
        if not isinstance(text, expected):
            raise TypeError(
                "`texts` must be all strings, or all lists of token ids. Received: "
                f"{type(text).__name__} at index {index}. Decode bytes "
                '(`text.decode("utf-8")`), and turn arrays into lists.'
            )
