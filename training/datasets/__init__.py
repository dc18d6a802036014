"""Labelled texts for classification from any source, ready for the training program.

    splits = datasets.load("tfds")                      # IMDB, through tfds.load
    splits = datasets.load("reviews.csv")               # a table of your own
    train, validation = datasets.split_validation(splits.train, 0.1, seed=7)

Importing this package imports neither TensorFlow nor Keras: a source imports what
it needs when it is read.
"""

from training.datasets.examples import LabelledTexts, Splits
from training.datasets.sources import load, unlabelled
from training.datasets.split import leave_out, split_validation

__all__ = [
    "LabelledTexts",
    "Splits",
    "leave_out",
    "load",
    "split_validation",
    "unlabelled",
]
