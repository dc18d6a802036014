"""Finds out what a source is, and reads it."""

import os
import pathlib

from training.datasets.examples import LabelledTexts, Splits
from training.datasets.folders import load_folder, read_unlabelled_folder
from training.datasets.labels import label_table, relabel
from training.datasets.tables import read_table
from training.datasets.text_files import ending, read_unlabelled

IMDB_NAMES = ("negative", "positive")
# Where IMDB's train and test part came from; no path is called so.
TFDS = "tfds imdb_reviews: train", "tfds imdb_reviews: test"
KERAS = "keras.datasets.imdb: train", "keras.datasets.imdb: test"
OTHER_SOURCES = (
    'Or give another source: "tfds", "keras", a folder in aclImdb layout '
    "(train/neg/*.txt, train/pos/*.txt), or a .csv or .tsv file of your own"
)


def load(
    source,
    *,
    text_column="text",
    label_column="label",
    label_names=None,
    data_dir=None,
):
    """Reads labelled texts for classification.

    Args:
        source: one of
            "tfds": IMDB reviews, through `tfds.load("imdb_reviews")`.
            "keras": IMDB reviews as token ids, from `keras.datasets.imdb.load_data()`:
                1 starts a review, 2 stands for an unknown word, words begin at 4.
            a folder: `train/neg/*.txt`, `train/pos/*.txt`, and maybe `test/...`, as in
                aclImdb, with any class folders; or class folders alone.
            a file .csv (comma, RFC 4180 quoting) or .tsv (tab, no quoting at all),
                both maybe with .gz.
            A folder of the name "tfds" is written "./tfds".
        text_column, label_column: for a file, two names of its header row; or, if it
            has no header row, two positions counted from 1.
        label_names: list of strings, the classes of a trained model in its order, to
            evaluate it. A source's classes must be among them, or be their indices.
            None takes the classes as the source has them: sorted by name, by number
            if all are integers.
        data_dir: for "tfds", the folder that holds its data sets, or None for its own.

    Returns:
        `Splits(train, test)`; `test` is None where the source has no test part (a
        file, a folder without `test`). The order of the source is kept: shuffle.

    Raises:
        TypeError: `source` is neither a string nor a path.
        ValueError: an unknown source, an option that the source has no use for, or
            data that is not as described. The message names the file and the line.
        FileNotFoundError: there is no such file or folder.
        OSError: "tfds" or "keras" could not get their data.
        ModuleNotFoundError: a package that "tfds" needs is not installed.

    Example:

        splits = load("reviews.csv", text_column="review", label_column="sentiment")
        splits.train.label_names  # ("bad", "good")
    """
    if not isinstance(source, (str, os.PathLike)):
        raise TypeError(
            f"`source` must be a string or a path. Received: {source!r}. "
            'Give "tfds", "keras", or the path of a folder or of a .csv or .tsv file.'
        )
    path = pathlib.Path(source).expanduser()
    is_table = ending(path) in (".csv", ".tsv") and path.is_file()
    if not (source in ("tfds", "keras") or path.is_dir() or is_table):
        raise _unknown_source(path)
    if source != "tfds":
        _refuse_data_dir(source, data_dir)
    if not is_table:
        _refuse_columns(source, text_column, label_column)
    if source == "tfds":
        return _load_tfds(data_dir, label_names)
    if source == "keras":
        return _load_keras(label_names)
    if is_table:
        table = read_table(path, text_column, label_column)
        return Splits(label_table(table, label_names))
    return load_folder(path, label_names)


def unlabelled(source, data_dir=None):
    """Reads texts without labels.

    Args:
        source: a file .txt or .txt.gz with one text a line; a folder in aclImdb layout
            (train/unsup/*.txt) or of .txt files; or "tfds": the 50,000 unlabelled
            reviews of `tfds.load("imdb_reviews")`.
        data_dir: for "tfds", the folder that holds its data sets.

    Returns:
        list of N strings.

    Raises:
        FileNotFoundError: there is no such file or folder.
        ValueError: no text in it, or not UTF-8 text, by the file's name.
        OSError: "tfds" could not get its data.

    Example:

        texts = unlabelled("reviews.txt.gz")
    """
    if source == "tfds":
        (part,) = _from_tfds(data_dir, ["unsupervised"])
        return part[0]
    path = pathlib.Path(source).expanduser()
    if path.is_dir():
        return read_unlabelled_folder(path)
    return read_unlabelled(path)


def _unknown_source(path):
    if path.exists():
        kind, state = ValueError, "exists, but is none of these"
    else:
        kind, state = FileNotFoundError, "does not exist"
        if not path.is_absolute():
            state += f" in {pathlib.Path.cwd()}"
    return kind(
        '`source` must be "tfds", "keras", a folder with class folders '
        "(train/neg/*.txt, train/pos/*.txt), or a file that ends in .csv, .tsv, "
        f".csv.gz or .tsv.gz. Received: {str(path)!r}, which {state}. Correct the "
        "path, or save the texts in one of these forms."
    )


def _refuse_columns(source, text_column, label_column):
    if (text_column, label_column) != ("text", "label"):
        raise ValueError(
            "`text_column` and `label_column` are for .csv and .tsv files. Received: "
            f"{text_column!r} and {label_column!r} with the source {str(source)!r}. "
            "Leave them out."
        )


def _refuse_data_dir(source, data_dir):
    if data_dir is not None:
        raise ValueError(
            f'`data_dir` is for the source "tfds". Received: {str(data_dir)!r} with '
            f"the source {str(source)!r}. Leave it out."
        )


def _load_tfds(data_dir, label_names):
    names = ["train", "test"]
    return Splits(
        *[
            _imdb(*part, source, label_names)
            for source, part in zip(TFDS, _from_tfds(data_dir, names), strict=True)
        ]
    )


def _from_tfds(data_dir, names):
    """[(texts, labels), ...] of the splits called `names`."""
    try:
        import tensorflow_datasets as tfds

        parts = _call_tfds(tfds, data_dir, names)
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"TensorFlow Datasets needs the package {error.name!r}, which is not "
            f"installed. Install it: pip install {error.name}. {OTHER_SOURCES}.",
            name=error.name,
        ) from error
    return [_decode(tfds.as_numpy(part)) for part in parts]


def _call_tfds(tfds, data_dir, names):
    try:
        return tfds.load(
            "imdb_reviews",
            split=names,
            as_supervised=True,
            data_dir=None if data_dir is None else str(data_dir),
        )
    except (OSError, tfds.download.DownloadError) as error:
        raise OSError(
            "TensorFlow Datasets could not get imdb_reviews "
            f"({type(error).__name__}: {error}). Try again with a network; or give "
            "`data_dir`, a folder that holds imdb_reviews/plain_text/1.0.0 as another "
            f"machine prepared it (its ~/tensorflow_datasets). {OTHER_SOURCES}."
        ) from error


def _decode(pairs):
    texts, labels = [], []
    for text, label in pairs:
        texts.append(text.decode("utf-8"))
        labels.append(int(label))
    return texts, labels


def _load_keras(label_names):
    import keras

    try:
        parts = keras.datasets.imdb.load_data()
    except Exception as error:  # Keras raises a bare Exception when a download fails
        if type(error) is not Exception and not isinstance(error, OSError):
            raise
        raise OSError(
            f"keras.datasets could not get IMDB ({error}). Try again with a network; "
            "or put imdb.npz as another machine got it (~/.keras/datasets/imdb.npz) "
            f"into that folder here. {OTHER_SOURCES}."
        ) from error
    return Splits(
        *[
            _imdb([list(ids) for ids in texts], labels, source, label_names)
            for source, (texts, labels) in zip(KERAS, parts, strict=True)
        ]
    )


def _imdb(texts, labels, source, label_names):
    data = LabelledTexts(texts, labels, IMDB_NAMES, source)
    return relabel(data.texts, data.labels, data.label_names, source, label_names)
