"""Files that are whole or absent: written under a temporary name, then renamed."""

import json
import os
import pathlib
import secrets

TEMPORARY = "tmp."  # what the names of files begin with that are not whole yet


def write_by(path, save):
    """Lets `save(temporary path)` write a file of the same ending, then renames it."""
    path = pathlib.Path(path).expanduser()
    if not path.parent.is_dir():
        raise FileNotFoundError(
            f"'{path}' cannot be written: there is no folder '{path.parent}'. Make it "
            "first."
        )
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}.{path.name}")
    try:
        save(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Writes UTF-8; half a surrogate pair, which it cannot hold, becomes "?"."""
    write_by(
        path, lambda place: place.write_text(text, encoding="utf-8", errors="replace")
    )


def write_json(path, value):
    """Writes plain types as readable JSON."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path):
    """Reads plain types; a file that is not JSON is refused by name."""
    try:
        return json.loads(pathlib.Path(path).read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"'{path}' is damaged or not JSON: {error}.") from None
