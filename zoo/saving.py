"""The folder of a pipeline: written so that what is half written does not load."""

import json
import pathlib

from zoo.files import read_json, write_by, write_json


def save_pipeline(folder, model, tokenizers, config):
    """Writes the files of a pipeline, its config.json as the last.

    Over an older pipeline: its config.json stops to be one first, so that a write that
    is broken off leaves no new model with old tokenizers.

    Args:
        folder: Made if it is not there; files of the same names are replaced.
        model: The `keras.Model`.
        tokenizers: Tokenizers by file name.
        config: Plain types, with the "pipeline" that `zoo.load` is to make.
    """
    json.dumps(config)  # what it cannot hold is refused before anything is touched
    folder = pathlib.Path(folder).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    try:
        before = read_json(path) if path.is_file() else {}
    except ValueError:  # a damaged one is replaced
        before = {}
    if isinstance(before, dict) and "pipeline" in before:
        del before["pipeline"]
        write_json(path, before)
    write_by(folder / "model.keras", model.save)
    for name, tokenizer in tokenizers.items():
        write_by(folder / name, tokenizer.save)
    write_json(path, config)
