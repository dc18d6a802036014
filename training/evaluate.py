"""Measures a classifier on labelled texts."""

import numpy as np

from training import datasets
from training.start import tokenized


def evaluate(clf, data, batch_size=128):
    """Accuracy and cross-entropy of a pipeline on labelled texts.

    Args:
        clf: A `zoo.SentimentClassifier`.
        data: `training.datasets.LabelledTexts` with the classes of `clf`.
        batch_size: Number of texts computed at once.

    Returns:
        A dictionary: accuracy (fraction right), loss (mean cross-entropy, in nats),
        texts (how many), classes ({name: {precision, recall, texts}}).

    Raises:
        ValueError: if the classes are not those of the model.
    """
    if data.label_names != clf.labels:
        raise ValueError(
            f"The model tells {clf.labels} apart. Received: texts labelled "
            f"{data.label_names}. Load the texts with label_names=clf.labels."
        )
    data = tokenized(clf.tokenizer, data)
    probabilities = clf.predict_ids(data.texts, batch_size)
    guesses = probabilities.argmax(axis=1)
    of_truth = probabilities[np.arange(len(data)), data.labels].astype("float64")
    return {
        "accuracy": float((guesses == data.labels).mean()),
        "loss": float(-np.log(np.clip(of_truth, 1e-7, 1)).mean()),
        "texts": len(data),
        "classes": {
            name: _of_class(guesses == i, data.labels == i)
            for i, name in enumerate(data.label_names)
        },
    }


def _of_class(guessed, true):
    right = int((guessed & true).sum())
    return {
        "precision": right / max(1, int(guessed.sum())),
        "recall": right / max(1, int(true.sum())),
        "texts": int(true.sum()),
    }


def evaluate_source(clf, source, text_column="text", label_column="label", **options):
    """`evaluate` on the test part of a source, or on all of it where it has none."""
    splits = datasets.load(
        source,
        text_column=text_column,
        label_column=label_column,
        label_names=clf.labels,
        **options,
    )
    return evaluate(clf, splits.test or splits.train)
