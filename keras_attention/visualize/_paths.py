"""Where a drawing may be written, and a file that is whole or absent."""

import os
from pathlib import Path
from secrets import token_hex


def checked_path(path, suffixes):
    """Returns `path` as a `Path` (or None), if a file of its suffix can be written.

    >>> checked_path("map.html", (".html",)).name
    'map.html'
    """
    if path is None:
        return None
    path = Path(path).expanduser()
    if path.suffix.lower() not in suffixes:
        *others, last = suffixes
        listed = f"{', '.join(others)} or {last}" if others else last
        raise ValueError(
            f"`path` must end in {listed}. Received: {str(path)!r}. The suffix says "
            "which kind of file is written."
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"`path` must lie in a folder that exists. Received: {str(path)!r}. Make "
            f"the folder {str(path.parent)!r} first."
        )
    return path


def write_whole(path, content):
    """Writes bytes under a temporary name of its own beside `path`, then renames it."""
    temporary = path.with_name(f"tmp.{token_hex(8)}")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
