"""Reads a folder of text files, one a text, sorted into a sub-folder for each class."""

import pathlib

from training.datasets.examples import Splits
from training.datasets.labels import relabel, sort_names
from training.datasets.text_files import read_text

FULL_NAMES = {"neg": "negative", "pos": "positive"}  # aclImdb's folders
LAYOUT = (
    "Expected: a folder for each class with its texts as .txt files "
    "(FOLDER/neg/*.txt, FOLDER/pos/*.txt), or such folders inside FOLDER/train and "
    "FOLDER/test"
)


def load_folder(path, label_names=None):
    """Reads the layout of aclImdb, or folders of classes alone.

    The class is the sub-folder's name ("neg" and "pos" become "negative" and
    "positive"); `unsup` and hidden folders are left out. Texts come class by class, by
    file name, without blanks at their ends, as `tfds` gives them: shuffle them.

    Args:
        path: `pathlib.Path` of a folder.
        label_names: list of strings, the classes of a trained model, or None.

    Returns:
        `Splits`; `test` is None where there is no folder `test`.

    Raises:
        ValueError: no such layout, or a file that is not UTF-8.
    """
    if not (path / "train").is_dir():
        if (path / "test").is_dir():
            raise ValueError(
                f"{path} has a folder 'test' but no folder 'train'. {LAYOUT}. To read "
                f"the test texts alone, give {path / 'test'}."
            )
        return Splits(_read_classes(path, label_names))
    train = _read_classes(path / "train", label_names)
    if not (path / "test").is_dir():
        return Splits(train)
    return Splits(train, _read_classes(path / "test", train.label_names))


def read_unlabelled_folder(path):
    """The texts of FOLDER/train/unsup (aclImdb), or of FOLDER itself, by file name.

    Args:
        path: `pathlib.Path` of a folder.

    Returns:
        list of N strings, without blanks at their ends.

    Raises:
        ValueError: no .txt file there, or one that is not UTF-8.
    """
    inner = path / "train" / "unsup"
    folder = inner if inner.is_dir() else path
    texts = [
        read_text(file).strip() for file in sorted(folder.iterdir()) if _is_text(file)
    ]
    if not texts:
        raise ValueError(
            f"{folder} holds no .txt files. Expected: texts without labels, a file "
            f"each, there or in {inner}. Is it the right folder?"
        )
    return texts


def _read_classes(path, label_names):
    folders = _class_folders(path)
    if not folders or (label_names is None and len(folders) < 2):
        found = ", ".join(repr(folder.name) for folder in folders.values())
        raise ValueError(
            f"{path} holds {len(folders)} class folders ({found or 'none'}). {LAYOUT}, "
            "for two classes or more."
        )
    texts, labels = [], []
    for label, (name, folder) in enumerate(folders.items()):
        files = sorted(file for file in folder.iterdir() if _is_text(file))
        if not files:
            raise ValueError(
                f"The class folder {folder} holds no .txt files. {LAYOUT}. Put the "
                f"texts of {name!r} into it, or take it away."
            )
        texts += [read_text(file).strip() for file in files]
        labels += [label] * len(files)
    if not any(texts):
        raise ValueError(
            f"All {len(texts)} texts in {path} are empty. {LAYOUT}. Is it the right "
            "folder?"
        )
    return relabel(texts, labels, tuple(folders), str(path), label_names)


def _class_folders(path):
    """{class name: folder}, in class order."""
    folders = {}
    for folder in sorted(pathlib.Path(path).iterdir()):
        if not folder.is_dir() or folder.name == "unsup" or folder.name[0] in "._":
            continue
        name = FULL_NAMES.get(folder.name, folder.name)
        if name in folders:
            raise ValueError(
                f"{path} has two folders for the class {name!r}: "
                f"{folders[name].name!r} and {folder.name!r}. {LAYOUT}. Move the "
                "texts into one of them."
            )
        folders[name] = folder
    return {name: folders[name] for name in sort_names(folders)}


def _is_text(file):
    return file.suffix == ".txt" and file.name[0] != "." and file.is_file()
