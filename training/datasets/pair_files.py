"""Reads pairs from a table of one's own, and sentence pairs of Tatoeba."""

import hashlib
import os
import pathlib
import sys

import numpy as np

from training.datasets.pairs import Pairs, PairSplits
from training.datasets.tables import (
    Columns,
    field_count,
    first_row,
    is_position,
    listing,
    read_table,
)
from training.datasets.text_files import ending, shorten

COLUMNS = Columns(
    first="source_column",
    second="target_column",
    both="a source and a target column",
    of_first="sources",
    of_second="targets",
)


def load_pairs(source, source_column=None, target_column=None):
    """Reads pairs from a file with a column of sources and one of targets.

    Nothing is dropped: a pair that stands twice is read twice, and one with an empty
    side is refused.

    Args:
        source: a file .csv (comma, RFC 4180 quoting), .tsv or .txt (tab, no quoting at
            all), each maybe with .gz.
        source_column, target_column: two names of its header row; or, if it has no
            header row, two positions counted from 1. None for both: the columns
            "source" and "target", if line 1 has these names in any case; else the file
            has two columns and no header row.

    Returns:
        `Pairs` of N pairs, in the order of the file.

    Raises:
        TypeError: `source` is neither a string nor a path.
        ValueError: the file is not a table with these two columns, or an empty text in
            it. The message names file, line and column.
        FileNotFoundError: there is no such file.

    Example:

        load_pairs("pairs.tsv")
        load_pairs("pairs.csv", source_column="english", target_column="german")
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            f"`source` must be a string or a path. Received: {source!r}. Give the path "
            "of a .tsv or .csv file."
        )
    path = pathlib.Path(source).expanduser()
    if ending(path) not in (".tsv", ".csv", ".txt"):
        raise ValueError(
            "Pairs are read from a file that ends in .tsv, .csv or .txt (with tabs), "
            f"each maybe with .gz. Received: {str(path)!r}. Save the pairs in one of "
            "these forms."
        )
    if source_column is None and target_column is None:
        source_column, target_column = _default_columns(path)
    return read_pairs(path, source_column, target_column)


def print_line_1(source, source_column=None, target_column=None):
    """Shows line 1, on standard error, if it was read as a pair: is it a header row?

    Args:
        source, source_column, target_column: as `load_pairs` took them.
    """
    path = pathlib.Path(source).expanduser()
    if source_column is None:
        source_column, target_column = _default_columns(path)
    columns = str(source_column), str(target_column)
    if not all(map(is_position, columns)):
        return
    cells = first_row(path, COLUMNS)
    first, second = (shorten(cells[int(column) - 1]) for column in columns)
    print(
        f"{path}, line 1 is a pair: {first} -> {second}. If it is a header row, give "
        "`source_column` and `target_column` these names.",
        file=sys.stderr,
    )


def read_pairs(path, source_column=1, target_column=2):
    """`load_pairs` of a `pathlib.Path` of any ending: tabs, unless it is `.csv`."""
    if source_column is None or target_column is None:
        raise ValueError(
            "`source_column` and `target_column` go together. Received: "
            f"{source_column!r} and {target_column!r}. Give both, or neither."
        )
    table = read_table(path, source_column, target_column, COLUMNS)
    _check_not_empty(table)
    return Pairs(table.texts, table.values, str(path))


def load_tatoeba(source):
    """Reads English-French sentence pairs of the Tatoeba project.

    A file is split by its English sentences, so that all translations of a sentence
    are in one part, and a newer file keeps what stood in the test part there:
    `int(sha1(english), 16) % 100` is 0 for test, 1 for validation, 2 for sentences that
    are kept back from all parts, and more for training.

    Args:
        source: a folder with en-fr.train.tsv, en-fr.val.tsv and en-fr.test.tsv (each
            maybe with .gz); or the file fra.txt of manythings.org/anki, whose lines
            are english<TAB>french<TAB>attribution.

    Returns:
        `PairSplits`.

    Raises:
        FileNotFoundError: there is no such file or folder, or a part is missing.
        ValueError: a file is not a table of pairs, by its name and the line.
    """
    path = pathlib.Path(source).expanduser()
    if not path.is_dir():
        return split_by_hash(read_pairs(path))
    names = {"train": "train", "validation": "val", "test": "test"}
    files = {part: find(path, f"en-fr.{n}.tsv") for part, n in names.items()}
    parts = {part: read_pairs(file) for part, file in files.items()}
    return PairSplits(**parts)


def split_by_hash(pairs):
    """Splits `Pairs` by the SHA-1 of their sources, as `load_tatoeba` describes.

    Example:

    >>> pairs = Pairs(["Stop!", "Come on.", "Go."], ["a", "b", "c"], "-")
    >>> split_by_hash(pairs).test.sources
    ['Stop!']
    """
    rest = np.array([int(_sha1(text), 16) % 100 for text in pairs.sources])
    return PairSplits(
        pairs.select(rest > 2), pairs.select(rest == 1), pairs.select(rest == 0)
    )


def find(folder, name):
    """The file `name` in `folder`, packed or not.

    Raises:
        FileNotFoundError: neither is there.
    """
    for file in (folder / name, folder / f"{name}.gz"):
        if file.is_file():
            return file
    raise FileNotFoundError(
        f"{folder} has no file {name} or {name}.gz. Expected: all parts of the data in "
        "one folder. Check the path."
    )


def _sha1(text):
    return hashlib.sha1(text.encode("utf-8"), usedforsecurity=False).hexdigest()


def _default_columns(path):
    first = first_row(path, COLUMNS)
    names = {name.lower(): name for name in first}
    if {"source", "target"} <= set(names):
        return names["source"], names["target"]
    if len(first) != 2:
        raise ValueError(
            f"{path}, line 1 has {field_count(len(first))}: {listing(first)}. "
            'Expected: two, or columns named "source" and "target". Give '
            "`source_column` and `target_column`, two names of the header row or two "
            f"positions, for example {COLUMNS.positions}."
        )
    return 1, 2


def _check_not_empty(table):
    from zoo.normalization import normalized  # not above: `zoo` imports Keras

    sides = (table.text_column, table.texts), (table.label_column, table.values)
    for column, cells in sides:
        lines = [
            line
            for line, cell in zip(table.lines, cells, strict=True)
            if not normalized(cell)[0]
        ]
        if lines:
            count = len(lines) - 1
            more = f" (and {count} line{'s' * (count > 1)} more)" if count else ""
            raise ValueError(
                f"{table.path}, line {lines[0]}{more}: {column} is empty. Expected: a "
                "text on both sides. Fill it in, or delete the line."
            )
