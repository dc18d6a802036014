"""Weight files: written small, checked by hash before they are read, never pickled."""

import hashlib
import io
import pathlib
import tempfile
import zipfile

import h5py
import numpy as np

from zoo.files import write_by

HALF = np.float16


def sha256(path):
    """The SHA-256 of a file, in hexadecimal."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_file(path, expected):
    """Refuses a file of the package that is missing or not the one it should be.

    Raises:
        FileNotFoundError, ValueError: by the file's name, with how to go on.
    """
    path = pathlib.Path(path)
    if not path.is_file():
        raise FileNotFoundError(
            f"The file '{path}' is missing from the installed package. Install "
            "keras-attention-zoo again."
        )
    found = sha256(path)
    if found != expected:
        raise ValueError(
            f"The file '{path}' is damaged or not ours: its SHA-256 is {found[:12]}, "
            f"expected {expected[:12]}. Install keras-attention-zoo again; to load "
            "weights of your own, give their path as `weights`."
        )


def save_half(model, path):
    """Saves a model's weights as compressed float16 `.weights.h5`: half the size.

    Keras reads the file back by `model.load_weights(path)`, into float32.
    """
    with tempfile.TemporaryDirectory() as folder:
        full = pathlib.Path(folder) / "full.weights.h5"
        model.save_weights(full)
        write_by(path, lambda place: _write_half(full, place))


def _write_half(full, path):
    with h5py.File(full) as source, h5py.File(path, "w") as target:
        source.visititems(lambda name, item: _copy_half(name, item, target))
        _copy_attributes(source, target)


def _copy_half(name, item, target):
    if name.split("/")[0] == "optimizer":
        return
    if isinstance(item, h5py.Group):
        copy = target.require_group(name)
    else:
        values = item[()]
        if isinstance(values, np.ndarray) and values.dtype.kind == "f":
            values = values.astype(HALF)
        packed = {"compression": "gzip", "shuffle": True} if item.ndim else {}
        copy = target.create_dataset(name, data=values, **packed)
    _copy_attributes(item, copy)


def _copy_attributes(source, target):
    for key, value in source.attrs.items():
        target.attrs[key] = value


def load_file(model, path):
    """Loads `.weights.h5` or the weights of a `.keras` file into a model.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is not a weight file, or holds other shapes.
    """
    path = pathlib.Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no weight file '{path}'. Give a file ending in .weights.h5 or "
            ".keras, a name of zoo.list_models(), or None for random weights."
        )
    try:
        _check_count(model, path)
        model.load_weights(path)
    except Exception as error:
        raise ValueError(
            f"The weights in '{path}' do not fit the model '{model.name}'. Give the "
            "factory the arguments that the file was trained with. Reason: "
            f"{str(error).splitlines()[0]}"
        ) from error


def _check_count(model, path):
    """Refuses a file with more or fewer weights: Keras leaves out what is too much."""
    if path.suffix == ".keras":
        with zipfile.ZipFile(path) as archive:
            found = _count(io.BytesIO(archive.read("model.weights.h5")))
    else:
        found = _count(path)
    if found != len(model.weights):
        raise ValueError(f"it holds {found} weights, the model {len(model.weights)}")


def _count(file):
    names = []
    with h5py.File(file) as weights:
        weights.visititems(
            lambda name, item: (
                names.append(name)
                if isinstance(item, h5py.Dataset) and not name.startswith("optimizer/")
                else None
            )
        )
    return len(names)
