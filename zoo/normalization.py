"""Brings typed text to one Unicode form and remembers where each character stood."""

import re
import unicodedata

APOSTROPHES = "[\u2018\u2019\u02bc\uff07]"
SURROGATE = re.compile("[\ud800-\udfff]")  # half a character: not encodable as UTF-8

# White space, and the blanks of no width that a person copies without seeing them.
_BLANK = "[\\s\u200b\u2060\ufeff]"
_BLANKS = re.compile(f"{_BLANK}+")
_UNEVEN = re.compile(f"^{_BLANK}|{_BLANK}$|{_BLANK}{{2}}")
_ONE_TO_ONE = dict.fromkeys(map(ord, APOSTROPHES[1:-1]), "'")
_ONE_TO_ONE |= {i: " " for i in range(0x10000) if _BLANKS.fullmatch(chr(i))}


def normalized(text, lowercase=False):
    """One form for texts that look the same, with the places of its characters.

    Accents are composed (Unicode NFC); curly apostrophes become straight; a run of
    white space (Unicode's, so U+00A0 and U+202F too) or of blanks without width becomes
    one blank, and none is left at the edges; half a surrogate pair becomes U+FFFD.

    Args:
        text: string, as typed.
        lowercase: whether each character is lower-cased, whatever stands beside it.

    Returns:
        (plain, places): `places[i]` is the (start, end) in `text` that `plain[i]` came
        from, or places is None where every character stands in its own place.

    Example:

    >>> normalized(" cafe\u0301\u202f!")
    ('caf\u00e9 !', [(1, 2), (2, 3), (3, 4), (4, 6), (6, 7), (7, 8)])
    """
    text = SURROGATE.sub("\ufffd", text)
    in_one_form = unicodedata.is_normalized("NFC", text) and not _UNEVEN.search(text)
    if in_one_form and (not lowercase or text.isascii()):
        even = text.translate(_ONE_TO_ONE)
        return (even.lower() if lowercase else even), None
    characters, places = [], []
    for piece, start, end in composed((c, i, i + 1) for i, c in enumerate(text)):
        in_place = piece == text[start:end]
        for offset, character in enumerate(piece.translate(_ONE_TO_ONE)):
            lowered = character.lower() if lowercase else character
            characters.append(lowered)
            place = (start + offset, start + offset + 1) if in_place else (start, end)
            places += [place] * len(lowered)
    return _even("".join(characters), places)


def composed(pieces):
    """Joins the pieces that Unicode composes: a letter and its accents, jamo.

    Args:
        pieces: iterable of (characters, start, end).

    Returns:
        list of such pieces, the characters of each in Unicode NFC.
    """
    joined = []
    for characters, start, end in pieces:
        new = unicodedata.normalize("NFC", characters)
        if joined:
            before, first, _ = joined[-1]
            both = unicodedata.normalize("NFC", before + new)
            accent = new and unicodedata.combining(new[0])
            if accent or both != before + new:
                joined[-1] = (both, first, end)
                continue
        joined.append((new, start, end))
    return joined


def _even(text, places):
    """The text with each run of white space as one blank, none at the edges."""
    plain, kept, end = [], [], 0
    for match in [*_BLANKS.finditer(text), None]:
        start = match.start() if match else len(text)
        if start > end:
            plain.append(text[end:start])
            kept += places[end:start]
        if match:
            if kept and match.end() < len(text):
                plain.append(" ")
                kept.append((places[start][0], places[match.end() - 1][1]))
            end = match.end()
    return "".join(plain), kept
