"""Looks things up in the table of the zoo, and checks the files it names."""

import difflib
import pathlib

from zoo.entries import ENTRIES, Entry, TrainedWeights
from zoo.text import Tokenizer
from zoo.tokens import SequenceTokenizer
from zoo.weight_files import check_file

__all__ = [
    "CARDS_FOLDER",
    "ENTRIES",
    "WEIGHTS_FOLDER",
    "Entry",
    "TrainedWeights",
    "find",
    "load_tokenizers",
    "names",
    "trained_by",
]

WEIGHTS_FOLDER = pathlib.Path(__file__).parent / "weights"
CARDS_FOLDER = pathlib.Path(__file__).parent / "cards"


def names():
    """What the models of the zoo are called; a folder of such a name is none."""
    return [entry.name for entry in ENTRIES]


def find(name):
    """The entry called `name`.

    Raises:
        ValueError: if there is none, with the closest name.
    """
    known = names()
    if name in known:
        return ENTRIES[known.index(name)]
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f"Did you mean '{close[0]}'? " if close else ""
    raise ValueError(
        f"There is no model called '{name}'. {hint}See zoo.list_models(): "
        f"{', '.join(known)}."
    )


def trained_by(factory):
    """All trained weights that a factory takes, by name."""
    return {
        name: weights
        for entry in ENTRIES
        if entry.factory == factory
        for name, weights in entry.weights.items()
    }


def load_tokenizers(trained):
    """The tokenizers of trained weights by role, their files checked.

    Args:
        trained: A `TrainedWeights`.
    """
    kinds, made = {"text": Tokenizer}, {}
    for role, (file, sha256) in trained.tokenizers.items():
        if file not in made:
            check_file(WEIGHTS_FOLDER / file, sha256)
            kind = kinds.get(role, SequenceTokenizer)
            made[file] = kind.load(WEIGHTS_FOLDER / file)
    return {role: made[file] for role, (file, _) in trained.tokenizers.items()}
