"""Reads the text column and the label column of a .csv or .tsv file."""

import csv
import dataclasses
import io
import pathlib
import re

from training.datasets.text_files import ending, read_text, shorten, split_lines
from training.nearest import nearest


@dataclasses.dataclass(frozen=True)
class Columns:
    """What messages call the two columns.

    Args:
        first, second: strings, the names of the arguments that choose them.
        both: string, what a table has.
        of_first, of_second: strings, what the columns hold.
    """

    first: str = "text_column"
    second: str = "label_column"
    both: str = "a text and a label column"
    of_first: str = "texts"
    of_second: str = "labels"

    @property
    def positions(self):
        """How to ask for the first two columns."""
        return f"{self.first}=1, {self.second}=2"


LABELLED = Columns()


@dataclasses.dataclass(frozen=True)
class Table:
    """The two columns that count, as typed, with the line that each row begins on.

    Args:
        path: the file.
        text_column, label_column: strings, how messages call the two columns.
        texts, values: lists of N strings, the cells of the two columns.
        lines: list of N integers, counted from 1.
    """

    path: pathlib.Path
    text_column: str
    label_column: str
    texts: list[str]
    values: list[str]
    lines: list[int]


def read_table(path, text_column, label_column, columns=LABELLED):
    """Reads a `.csv` (RFC 4180 quoting), else tabs without quoting, maybe `.gz`.

    Args:
        path: `pathlib.Path`.
        text_column, label_column: two names of the header row; or two positions,
            counted from 1, for a file without a header row.
        columns: `Columns`, their names in messages.

    Returns:
        `Table`.

    Raises:
        ValueError: the file is not a table with these two columns. The message names
            file, line and column.
    """
    separator, rows = _rows(path, columns)
    names = (str(text_column), str(label_column))
    first = rows[0][1]
    by_position = _are_positions(path, names, first, columns)
    find = _position if by_position else _header_index
    text_index = find(path, columns.first, names[0], first, separator, columns)
    label_index = find(path, columns.second, names[1], first, separator, columns)
    body = rows if by_position else rows[1:]
    _check_rows(path, body, first, separator, columns)
    return Table(
        path=path,
        text_column=f"column {names[0]}" if by_position else repr(names[0]),
        label_column=f"column {names[1]}" if by_position else repr(names[1]),
        texts=[fields[text_index] for _, fields in body],
        values=[fields[label_index] for _, fields in body],
        lines=[line for line, _ in body],
    )


def is_position(name):
    """Whether a column is asked for by its place, counted from 1.

    >>> is_position("12"), is_position("012"), is_position("label")
    (True, False, False)
    """
    return re.fullmatch("[1-9][0-9]*", name) is not None


def first_row(path, columns=LABELLED):
    """The cells of the first row, stripped: a header row, if the file has one."""
    return [cell.strip() for cell in _rows(path, columns)[1][0][1]]


def _rows(path, columns):
    separator = "," if ending(path) == ".csv" else "\t"
    rows = _csv_rows(path) if separator == "," else _tsv_rows(path)
    if not rows:
        raise ValueError(
            f"{path} is empty. Expected: a table with {columns.both}. Is it the right "
            "file?"
        )
    return separator, rows


def _tsv_rows(path):
    lines = split_lines(read_text(path))
    return [(number, line.split("\t")) for number, line in enumerate(lines, 1) if line]


def _csv_rows(path):
    """[(line the row begins on, fields)], blank lines left out."""
    text = read_text(path)
    rows, begin = [], 1
    limit = csv.field_size_limit(min(len(text) + 1, 2**31 - 1))
    try:
        reader = csv.reader(io.StringIO(text, newline=""), strict=True)
        for fields in reader:
            if fields:
                rows.append((begin, fields))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise ValueError(
            f"{path}, line {begin}: the row that begins here has a quote that is not "
            f"closed where it should be ({error}, line {reader.line_num}). Expected: "
            'a field that opens with " ends with " before the next comma, and each " '
            'inside it is written "". If quotes are plain characters in this file, '
            "save it with tabs as .tsv, which is read without quoting."
        ) from None
    finally:
        csv.field_size_limit(limit)  # it is global to the process
    return rows


def _are_positions(path, names, first, columns):
    """Whether the two columns are positions; refused where both readings fit."""
    both = f"`{columns.first}` and `{columns.second}`"
    if names[0] == names[1]:
        raise ValueError(
            f"{both} must be two columns. Received: {names[0]!r} for both. Name the "
            f"column of the {columns.of_first} and that of the {columns.of_second}."
        )
    numeric = [is_position(name) for name in names]
    cells = [cell.strip() for cell in first]
    if all(numeric) and all(name in cells for name in names):
        raise ValueError(
            f"{path}: {both} could be read two ways. Received: {names[0]!r} and "
            f"{names[1]!r}, which are positions, and line 1 also holds both as "
            "fields. Give the file a header row of words."
        )
    for name, is_numeric in zip(names, numeric, strict=True):
        if is_numeric and not all(numeric) and name not in cells:
            other = names[0] if name == names[1] else names[1]
            raise ValueError(
                f"{both} must be two header names or two positions. Received: "
                f"{names[0]!r} and {names[1]!r}. {path} has no column named {name!r}: "
                f"give the position of {other!r} for a file without a header row, or "
                "the name of both."
            )
    return all(numeric)


def _position(path, argument, name, first, separator, columns):
    if int(name) > len(first):
        raise ValueError(
            f"{path}, line 1: there is no column {name} for `{argument}`. The line "
            f"has {field_count(len(first))}: {listing(first)}."
            f"{_separator_hint(first, separator)} Positions count from 1."
        )
    return int(name) - 1


def _header_index(path, argument, name, header, separator, columns):
    cells = [cell.strip() for cell in header]
    if cells.count(name) == 1:
        return cells.index(name)
    if name in cells:
        raise ValueError(
            f"{path}, line 1: {cells.count(name)} columns are named {name!r}. "
            f"`{argument}` needs one. Rename the others in the header row."
        )
    close = nearest(name, cells)
    guess = f" Did you mean {close!r}?" if close else ""
    raise ValueError(
        f"{path}, line 1: there is no column {name!r} for `{argument}`. The columns "
        f"are: {listing(cells)}.{guess}{_separator_hint(header, separator)} Give "
        f"`{argument}` one of them; for a file without a header row, give positions: "
        f"{columns.positions}."
    )


def _separator_hint(first, separator):
    if len(first) != 1:
        return ""
    for other, name in ((";", "semicolons"), ("\t", "tabs"), (",", "commas")):
        if other != separator and other in first[0]:
            wanted = "tabs" if separator == "\t" else "commas"
            return (
                f" The file seems to be separated by {name}: save it with {wanted}, or "
                "under the ending that fits (.csv commas, .tsv tabs)."
            )
    return ""


def _check_rows(path, body, first, separator, columns):
    if not body:
        raise ValueError(
            f"{path} has a header row only. Expected: rows below it. If that row is no "
            f"header, give positions: {columns.positions}."
        )
    for line, fields in body:
        if len(fields) == len(first):
            continue
        if separator == "\t":
            advice = "Replace tabs inside the text by blanks."
        else:
            advice = (
                'Put quotes around a text that holds commas ("one, two"), with no '
                "blank outside them."
            )
        if len(fields) < len(first):
            advice = f"Fill in the missing fields. {advice}"
        raise ValueError(
            f"{path}, line {line}: {field_count(len(fields))}. Expected: {len(first)}, "
            f"as in line 1. {advice}"
        )


def field_count(count):
    """A number of fields in words.

    >>> field_count(1), field_count(2)
    ('1 field', '2 fields')
    """
    return f"{count} field{'' if count == 1 else 's'}"


def listing(cells):
    """The cells of a row for a message, cut where there are many or long ones."""
    shown = ", ".join(shorten(cell) for cell in cells[:20])
    return shown + (f" and {len(cells) - 20} more" if len(cells) > 20 else "")
