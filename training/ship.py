"""Puts the model of a finished run into the zoo: small weights, and their registry row.

    python -m training.ship runs/compare/imdb_bilstm_attention-0

Writes zoo/weights/NAME.weights.h5 as float16, and the tokenizers of a model of two
texts, and prints what zoo/registry.py must say of them. The card is written by hand
from the runs' metrics.json.
"""

import pathlib
import sys

import zoo
from zoo import registry
from zoo.files import read_json, write_by
from zoo.weight_files import save_half, sha256


def ship(run, name=None, folder=registry.WEIGHTS_FOLDER):
    """Copies a run's weights into the package.

    Args:
        run: The folder of a finished run.
        name: What the model is to be called; by default as the run calls it.
        folder: Where to write to.

    Returns:
        What the registry must say: a dictionary.
    """
    pipeline = zoo.load(run)
    metrics = read_json(pathlib.Path(run) / "metrics.json")
    folder, name = pathlib.Path(folder), name or pipeline.name
    path = folder / f"{name}.weights.h5"
    save_half(pipeline.model, path)
    row = {
        "file": path.name,
        "sha256": sha256(path),
        "parameters": pipeline.model.count_params(),
        "maxlen": pipeline.maxlen,
    }
    if isinstance(pipeline, zoo.Translator):
        row["tokenizers"] = _ship_tokenizers(pipeline, name, folder)
    else:
        row["labels"] = pipeline.labels
    return {**row, "measured": metrics["test"] or metrics["validation"]}


def _ship_tokenizers(translator, name, folder):
    """Writes the tokenizers of both sides, one file if they are one."""
    sides = {
        "source": translator.source_tokenizer,
        "target": translator.target_tokenizer,
    }
    rows, texts = {}, {}
    for role, tokenizer in sides.items():
        path = folder / f"{name}.{role}.tokenizer.json"
        write_by(path, tokenizer.save)
        text = path.read_text(encoding="utf-8")
        if text in texts:
            path.unlink()
        path = texts.setdefault(text, path)
        rows[role] = (path.name, sha256(path))
    return rows


if __name__ == "__main__":
    for key, value in ship(*sys.argv[1:]).items():
        print(f"{key} = {value!r}")
