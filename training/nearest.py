"""The name that a misspelled one was probably meant to be."""

import difflib


def nearest(value, names):
    """The closest of the names, whatever the case, or None if none is close.

    >>> nearest("Loung", ["bahdanau", "luong"])
    'luong'
    """
    lowered = {name.lower(): name for name in names}
    close = difflib.get_close_matches(str(value).lower(), lowered, n=1)
    return lowered[close[0]] if close else None
