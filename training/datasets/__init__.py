"""Labelled texts for classification, and pairs for sequence models, from any source.

    splits = datasets.load("tfds")                      # IMDB, through tfds.load
    splits = datasets.load("reviews.csv")               # a table of your own
    train, validation = datasets.split_validation(splits.train, 0.1, seed=7)

    parts = datasets.load_task("reverse")               # pairs, made here
    parts = datasets.load_task("en-fr", data="fra.txt")
    parts = datasets.load_task("pairs.tsv")             # pairs of your own

Importing this package imports neither TensorFlow nor Keras: a source imports what
it needs when it is read.
"""

from training.datasets.examples import LabelledTexts, Splits
from training.datasets.pair_files import load_pairs
from training.datasets.pairs import (
    Pairs,
    PairSplits,
    leave_out_sources,
    reference_groups,
    split_by_text,
    split_pairs,
)
from training.datasets.sources import load, unlabelled
from training.datasets.split import leave_out, split_validation
from training.datasets.tasks import TASKS, load_task

__all__ = [
    "TASKS",
    "LabelledTexts",
    "PairSplits",
    "Pairs",
    "Splits",
    "leave_out",
    "leave_out_sources",
    "load",
    "load_pairs",
    "load_task",
    "reference_groups",
    "split_by_text",
    "split_pairs",
    "split_validation",
    "unlabelled",
]
