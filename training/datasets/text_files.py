"""Reads text files whole, as UTF-8, with errors that name the file and the line."""

import gzip
import pathlib
import zlib


def read_unlabelled(path):
    """Reads texts without labels, one a line.

    Args:
        path: a `.txt` or `.txt.gz` file, UTF-8. Blank lines are left out.

    Returns:
        list of N strings, without their line ends.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: another ending, no text in it, not UTF-8, or NUL bytes.
    """
    path = pathlib.Path(path).expanduser()
    if ending(path) != ".txt":
        raise ValueError(
            "Texts without labels are read from a .txt or .txt.gz file, one text a "
            f"line. Received: {path}. Save the texts as such a file."
        )
    texts = [line for line in split_lines(read_text(path)) if line.strip()]
    if not texts:
        raise ValueError(
            f"{path} holds no text. Expected: one text a line. Is it the right file?"
        )
    return texts


def ending(path):
    """The ending that says what a file is, in lower case, `.gz` left aside.

    >>> ending(pathlib.Path("reviews.CSV.gz"))
    '.csv'
    """
    return pathlib.Path(path.name.lower().removesuffix(".gz")).suffix


def read_text(path):
    """The whole text of a UTF-8 file (a byte order mark is dropped; `.gz` unpacked).

    Line ends stay as they are.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a damaged .gz file, a byte that is not UTF-8, or a NUL byte.
    """
    raw = _read_bytes(path)
    if raw[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise ValueError(
            f"{path} is UTF-16 (it opens with that byte order mark). Expected: UTF-8. "
            "Save it as UTF-8."
        )
    if b"\0" in raw:
        raise ValueError(
            f"{path}, line {_line_of(raw, raw.index(0))}: there is a NUL byte. "
            "Expected: UTF-8 text. If it is UTF-16, save it as UTF-8; if it is not a "
            "text file, give another."
        )
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        # the error counts from behind a byte order mark, if there is one
        start = error.start + len(raw) - len(error.object)
        raise ValueError(
            f"{path}, line {_line_of(raw, start)}: byte 0x{raw[start]:02x} is not "
            "UTF-8. Expected: UTF-8 text. Open the file with the encoding that it has "
            "(often Windows-1252) and save it as UTF-8."
        ) from None


def split_lines(text):
    """Lines that end in LF or CRLF, and in nothing else.

    `str.splitlines` would also cut at U+0085 and U+2028, which stand inside texts.

    >>> split_lines("one\\r\\ntwo\\x85still two\\n")
    ['one', 'two\\x85still two']
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def shorten(text, width=40):
    """`repr(text)`, cut to about `width` characters, for messages."""
    return repr(text if len(text) <= width else text[:width] + "...")


def _read_bytes(path):
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no file {path}. Expected: a file to read. Check the path (from "
            f"the folder {pathlib.Path.cwd()})."
        )
    raw = path.read_bytes()
    if path.suffix.lower() != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} cannot be unpacked ({error}). Expected: a whole gzip file. Copy "
            "or download it again, or drop .gz from its name if it is not packed."
        ) from error


def _line_of(raw, position):
    return raw.count(b"\n", 0, position) + 1
