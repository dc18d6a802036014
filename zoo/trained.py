"""What every factory does with `weights`: a trained model's, a file's, or none."""

import os
import pathlib

from zoo import registry
from zoo.weight_files import check_file, load_file


def load_trained(model, trained):
    """Gives a model the weights of a registry row, their file checked.

    Args:
        model: A `keras.Model` of the row's architecture.
        trained: A `registry.TrainedWeights`.
    """
    path = registry.WEIGHTS_FOLDER / trained.file
    check_file(path, trained.sha256)
    load_file(model, path)


def weights_path(weights, known):
    """`weights` as the path of a file, or an error that names the trained ones.

    Args:
        weights: What the factory was given.
        known: Names of trained weights.
    """
    if isinstance(weights, str | os.PathLike) and pathlib.Path(weights).suffix:
        return weights
    raise ValueError(
        f"`weights` must be one of {sorted(known)}, None, or the path of a "
        f".weights.h5 or .keras file. Received: {weights!r}."
    )


def check_contradictions(weights, trained, wanted):
    """Trained weights fix the architecture; dropout is free, as it has no weights.

    Args:
        weights: Their name.
        trained: The architecture they belong to, by argument.
        wanted: What the factory was asked for, by argument.
    """
    for key, value in trained.items():
        if key != "dropout" and wanted[key] != value:
            raise ValueError(
                f"weights='{weights}' were trained with {key}={value}. Received: "
                f"{key}={wanted[key]}. Leave `{key}` out, or use weights=None and "
                "train."
            )
