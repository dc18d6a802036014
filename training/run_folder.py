"""A run's folder: files that are whole or absent, and checkpoints to go on from."""

import csv
import io
import os
import pathlib
import shutil

from zoo.files import TEMPORARY, read_json, write_json, write_text

CHECKPOINTS = "checkpoints"
TEACHER = "teacher.json"  # written before a run begins, and kept if it does not


def write_csv(path, rows):
    """Writes dictionaries with the same keys as a table."""
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, fieldnames=list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    write_text(path, buffer.getvalue())


class Checkpoints:
    """The state after each finished epoch; the last whole one is kept.

    A checkpoint is a folder that is written under a temporary name and renamed when it
    is whole, so a run that is killed at any moment leaves the one before.

    Args:
        folder: The run's folder.
    """

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / CHECKPOINTS

    def latest(self):
        """The folder of the last whole checkpoint, or None."""
        whole = sorted(self.folder.glob("epoch-*"))
        return whole[-1] if whole else None

    def save(self, epoch, state, write):
        """Keeps the state of an epoch and removes the one before.

        Args:
            epoch: Number of finished epochs.
            state: Plain types, for JSON.
            write: A function that writes the other files into the folder it is given.
        """
        before = self.latest()
        temporary = self.folder / f"tmp.epoch-{epoch:04d}"
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        write(temporary)
        write_json(temporary / "state.json", state)
        os.replace(temporary, self.folder / f"epoch-{epoch:04d}")
        if before is not None:
            shutil.rmtree(before)

    def remove(self):
        """Removes all checkpoints, when the run is finished."""
        shutil.rmtree(self.folder, ignore_errors=True)


def open_run(out, config, resume):
    """Looks at the run's folder: a new one, or one to resume. Writes nothing.

    Args:
        out: The folder.
        config: The run's options, plain types.
        resume: Whether to go on in a folder that exists.

    Returns:
        (folder, checkpoint folder or None, finished metrics or None)

    Raises:
        ValueError: if the folder holds something and `resume` is False, or the options
            differ from those the run was begun with.
    """
    folder = pathlib.Path(out).expanduser()
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"`out` must be a folder. Received: the file '{folder}'.")
    begun = folder / "config.json"
    if not begun.exists():
        if any(path.name != TEACHER for path in _but_temporary(folder)):
            raise ValueError(
                f"The folder '{folder}' is not empty and holds no run. Give another "
                "`out`, or empty it."
            )
        return folder, None, None
    if not resume:
        raise ValueError(
            f"The folder '{folder}' holds a run already. Add --resume to go on with "
            f"it, or give another `out`; weights='{folder}' trains a finished one on."
        )
    _check_same_options(folder, read_json(begun).get("training"), config)
    metrics = folder / "metrics.json"
    finished = read_json(metrics) if metrics.exists() else None
    return folder, Checkpoints(folder).latest(), finished


def _but_temporary(folder):
    """What lies in a folder, but for files that a kill left under temporary names."""
    return [path for path in folder.glob("*") if not path.name.startswith(TEMPORARY)]


def begin(folder, config, data, source):
    """Makes the folder of a run whose data could be read, with its options in it.

    Args:
        folder: The run's folder.
        config: The run's options, plain types.
        data: A fingerprint of the data.
        source: What to call the data.

    Raises:
        ValueError: if the run was begun with other data.
    """
    begun = folder / "config.json"
    for left in folder.glob(f"{TEMPORARY}*"):
        left.unlink()
    if not begun.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(begun, {"training": config, "data": data})
    elif read_json(begun).get("data") != data:
        raise ValueError(
            f"The run in '{folder}' was begun with other data than "
            f"'{source}' holds now. Start another run, or bring the old data back."
        )


def _check_same_options(folder, before, now):
    if before is None:
        raise ValueError(
            f"The folder '{folder}' holds a saved model, not a training run. Give "
            "another `out`."
        )
    changed = [key for key in now if before.get(key) != now[key]]
    if changed:
        differences = ", ".join(
            f"{key} (was {before.get(key)!r}, is {now[key]!r})" for key in changed
        )
        raise ValueError(
            f"The run in '{folder}' was begun with other options: {differences}. "
            "Resume it with the same ones, or start another run, of a finished one's "
            f"weights: weights='{folder}'."
        )
