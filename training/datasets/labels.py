"""Turns labels as people type them into class indices, and refuses what looks wrong."""

import collections
import math
import re

import numpy as np

from training.datasets.examples import LabelledTexts, check_label_names
from training.datasets.text_files import shorten
from training.nearest import nearest

INTEGER = re.compile("-?[0-9]+")
RARE = 2  # a class with this many rows or fewer is taken for a slip of the pen


def label_table(table, label_names=None):
    """The examples of a `Table`.

    Without `label_names` the classes are the different labels, stripped, in
    alphabetical order (in numeric order if all are integers). With `label_names`, as
    for a trained model, each label is one of these names, or all are indices of them.

    Args:
        table: `Table` of N rows.
        label_names: list of strings, or None.

    Returns:
        `LabelledTexts` of N examples.

    Raises:
        ValueError: the labels do not name classes; the message says why, and where.
    """
    values = [value.strip() for value in table.values]
    _check_not_empty(table, values)
    if label_names is None:
        _check_are_classes(table, values)
        _check_spellings(table)
        _check_counts(table, values)
        label_names = sort_names(set(values))
        index = {name: number for number, name in enumerate(label_names)}
    else:
        index = _index_of_known(table, values, label_names)
    labels = [index[value] for value in values]
    return LabelledTexts(table.texts, labels, tuple(label_names), str(table.path))


def relabel(texts, labels, names, source, label_names=None):
    """Examples whose classes are already known, under the class order asked for.

    Args:
        texts, labels: N texts, and N indices into `names`.
        names: list of strings, the classes of the source.
        source: string, for messages.
        label_names: list of strings, the classes of a trained model; each of `names`
            must be one of them, or all of `names` indices of them. None: `names`.

    Returns:
        `LabelledTexts` of N examples.

    Raises:
        ValueError: a class of the source is not one of `label_names`.
    """
    if label_names is None:
        return LabelledTexts(texts, labels, tuple(names), source)
    check_label_names(label_names)
    index = _index(names, label_names)
    for name in names:
        if name not in index:
            raise ValueError(
                f"{source} has a class {name!r}. Expected: one of "
                f"{tuple(label_names)}{_guess(name, label_names)}. Rename it, or leave "
                "`label_names` out to take the classes as they are."
            )
    labels = np.array([index[name] for name in names])[np.asarray(labels)]
    return LabelledTexts(texts, labels, tuple(label_names), source)


def sort_names(names):
    """Class names in order: by number if all are integers, else alphabetical.

    >>> sort_names({"10", "9"}), sort_names({"10", "9", "none"})
    (['9', '10'], ['10', '9', 'none'])
    """
    if all(INTEGER.fullmatch(name) for name in names):
        return sorted(names, key=int)
    return sorted(names)


def _check_not_empty(table, values):
    for value, line in zip(values, table.lines, strict=True):
        if not value:
            raise ValueError(
                f"{table.path}, line {line}: the label ({table.label_column}) is "
                "empty. Expected: a class for each text. Fill it in, or take the row "
                "out."
            )
    if not any(text.strip() for text in table.texts):
        raise ValueError(
            f"{table.path}: all {len(values)} texts ({table.text_column}) are empty. "
            "Expected: the column of the texts. Give another `text_column`."
        )


def _check_are_classes(table, values):
    """Refuses scores, and columns that hold texts or identifiers."""
    numbers = [_number(value) for value in set(values)]
    if None not in numbers and any(number != int(number) for number in numbers):
        row = next(i for i, v in enumerate(values) if _number(v) != int(_number(v)))
        raise ValueError(
            f"{table.path}, line {table.lines[row]}: the label ({table.label_column}) "
            f"is {values[row]}, which looks like a score, not a class. Expected: a few "
            "names or whole numbers. Turn scores into classes (for example negative "
            "below 0.5, else positive), or give another `label_column`."
        )
    different = len(set(values))
    if different <= len(values) / 2:
        return
    if different > 20 or any(len(value.split()) > 5 for value in values):
        raise ValueError(
            f"{table.path}: {table.label_column} has {different} different labels in "
            f"{len(values)} rows, such as {shorten(values[0])} (line "
            f"{table.lines[0]}). Expected: a few classes, each many times. Is "
            f"{table.label_column} the column of the texts, and {table.text_column} "
            "that of the labels? Then swap `text_column` and `label_column`; if it "
            "holds scores or identifiers, give another `label_column`."
        )


def _check_spellings(table):
    """Refuses labels that differ only by case, blanks, or a number's notation."""
    seen = {}
    for value, line in zip(table.values, table.lines, strict=True):
        number = _number(value)
        key = " ".join(value.split()).casefold() if number is None else number
        other, other_line = seen.setdefault(key, (value, line))
        if other != value:
            raise ValueError(
                f"{table.path}: {other!r} (line {other_line}) and {value!r} (line "
                f"{line}) in {table.label_column} look like one class written in two "
                "ways. Expected: each class always written the same. Make them equal, "
                "or give different classes different names."
            )


def _check_counts(table, values):
    counts = collections.Counter(values)
    if len(counts) == 1:
        raise ValueError(
            f"{table.path}: all {len(values)} labels ({table.label_column}) are "
            f"{shorten(values[0])}. Expected: two classes or more. Add texts of "
            "another class, or give another `label_column`."
        )
    rare = [value for value, count in counts.items() if count <= RARE]
    if not rare:
        return
    lines = [line for v, line in zip(values, table.lines, strict=True) if v == rare[0]]
    where = (
        f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]} and {lines[1]}"
    )
    more = f", and {len(rare) - 1} more such labels" if len(rare) > 1 else ""
    is_header = table.label_column.startswith("column") and lines == [1]
    header = " If line 1 is a header row, give its names instead of positions."
    raise ValueError(
        f"{table.path}: the label {shorten(rare[0])} ({table.label_column}) stands "
        f"only {('once', 'twice')[len(lines) - 1]} ({where}){more}. Expected: "
        f"{RARE + 1} texts of each class or more"
        f"{_guess(rare[0], [name for name in counts if name not in rare])}. Correct "
        f"it, add texts of that class, or take the row out.{header * is_header}"
    )


def _index_of_known(table, values, label_names):
    check_label_names(label_names)
    index = _index(values, label_names)
    for value, line in zip(values, table.lines, strict=True):
        if value not in index:
            raise ValueError(
                f"{table.path}, line {line}: the label ({table.label_column}) is "
                f"{shorten(value)}. Expected: one of {tuple(label_names)}, or in all "
                f"rows their indices 0..{len(label_names) - 1}"
                f"{_guess(value, label_names)}. Rename the labels so."
            )
    return index


def _index(values, label_names):
    """{label: class index}, by name, or by number if no value is a name."""
    names = {name: number for number, name in enumerate(label_names)}
    if any(value in names for value in values):
        return names
    return {str(number): number for number in names.values()}


def _guess(value, names):
    close = nearest(value, names)
    return f" (did you mean {close!r}?)" if close else ""


def _number(value):
    """The number that a label is, exact for integers, or None."""
    if INTEGER.fullmatch(value):
        return int(value)
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
