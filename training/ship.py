"""Puts the model of a finished run into the zoo: small weights, and their registry row.

    python -m training.ship runs/compare/imdb_bilstm_attention-0

Writes zoo/weights/NAME.weights.h5 as float16 and prints what zoo/registry.py must say
of it. The card is written by hand from the runs' metrics.json.
"""

import pathlib
import sys

import zoo
from zoo import registry
from zoo.files import read_json
from zoo.weight_files import save_half, sha256


def ship(run, folder=registry.WEIGHTS_FOLDER):
    """Copies a run's weights into the package.

    Args:
        run: The folder of a finished run.
        folder: Where to write to.

    Returns:
        What the registry must say: a dictionary.
    """
    clf, metrics = zoo.load(run), read_json(pathlib.Path(run) / "metrics.json")
    path = pathlib.Path(folder) / f"{clf.name}.weights.h5"
    save_half(clf.model, path)
    return {
        "file": path.name,
        "sha256": sha256(path),
        "parameters": clf.model.count_params(),
        "labels": clf.labels,
        "maxlen": clf.maxlen,
        "accuracy": (metrics["test"] or metrics["validation"])["accuracy"],
    }


if __name__ == "__main__":
    for key, value in ship(sys.argv[1]).items():
        print(f"{key} = {value!r}")
