"""Trains the zoo's sentiment models, or a user's own, from labelled texts."""

import dataclasses
import hashlib

import keras
import numpy as np
from keras import ops

from training import batches
from training.epochs import EpochRun, carry_out
from training.evaluate import evaluate
from training.optimization import adam
from training.sentiment_artifacts import write_classifier
from training.start import (
    read_data,
    starting_classifier,
    tokenized,
    trained_start,
)
from training.teacher import teach

USUAL_STEPS = 1_000


def train(config, progress=True):
    """Trains a classifier and writes the run's folder.

    What is measured, and kept, after each epoch is a moving average of the weights;
    the epoch with the best validation accuracy is the result. The test split, where
    the source has one, is evaluated once, at the end, and never chosen by.

    Args:
        config: A `training.config.SentimentConfig`.
        progress: Whether to show a bar for each epoch, on standard error.

    Returns:
        The metrics, as in metrics.json: a dictionary.

    Raises:
        ValueError: for data or a folder that cannot be used, by name.
    """

    def start(folder):
        trained = trained_start(config)
        parts = read_data(config, trained)
        clf = starting_classifier(config, parts.train, trained)
        return Training(config, folder, clf, parts, progress)

    return carry_out(config, start, config.data)


@dataclasses.dataclass(frozen=True)
class Examples:
    """Token ids, a list of N lists, and what to predict of each: an array (N, ...)."""

    ids: list[list[int]]
    targets: np.ndarray


class Training(EpochRun):
    """One training run, an epoch at a time.

    Args:
        config: A `training.config.SentimentConfig`.
        folder: The run's folder.
        clf: The pipeline whose model is trained.
        parts: `training.start.Parts`.
        progress: Whether to show a bar for each epoch.
    """

    def __init__(self, config, folder, clf, parts, progress=True):
        super().__init__(folder, clf.model, config.seed, progress)
        self.config, self.clf, self.parts = config, clf, parts
        self.validation = tokenized(clf.tokenizer, parts.validation)
        self.test = tokenized(clf.tokenizer, parts.test)
        labelled = tokenized(clf.tokenizer, parts.train)
        self.labelled = Examples(
            labelled.texts, targets(labelled.labels, len(clf.labels))
        )
        self.taught, self.teacher_accuracy = None, None
        if parts.unlabelled:
            more = [e.ids for e in clf.tokenizer.encode_batch(parts.unlabelled)]
            self.learn_from_a_teacher(labelled, more)
        self.epochs = config.epochs or usual_epochs(self.steps(self.labelled))
        self.compile()

    def learn_from_a_teacher(self, labelled, more):
        """Takes the unlabelled texts in, with the probabilities a teacher gives."""
        self.say(f"a teacher labels {len(more):,} texts ...")
        held_out = [] if self.validation is None else [self.validation]
        given, *checks = teach(
            labelled.texts,
            labelled.labels,
            len(self.clf.labels),
            [more, *(part.texts for part in held_out)],
        )
        for part, probabilities in zip(held_out, checks, strict=True):
            right = probabilities.argmax(axis=1) == part.labels
            self.teacher_accuracy = float(right.mean())
        given = given[:, 1:] if len(self.clf.labels) == 2 else given
        self.taught = Examples(
            self.labelled.ids + more,
            np.concatenate([self.labelled.targets, given]).astype("float32"),
        )

    @property
    def fingerprint(self):
        """A hash of what is learned from: ids, classes, and so the vocabulary."""
        digest = hashlib.sha256()
        for examples in (self.labelled, self.taught):
            for ids in [] if examples is None else examples.ids:
                digest.update(np.asarray([*ids, -1], "int32").tobytes())
        digest.update(self.labelled.targets.tobytes())
        return digest.hexdigest()

    def examples(self, epoch):
        """What an epoch learns from: with a teacher, the first ones from all texts."""
        taught = self.taught is not None and epoch < (self.config.taught_epochs or 1)
        return self.taught if taught else self.labelled

    def steps(self, examples):
        """Number of steps of an epoch."""
        return batches.steps_of(len(examples.ids), self.config.batch_size)

    def compile(self):
        """Adam, warmed up and then along a cosine to 0, on the cross-entropy."""
        config, losses = self.config, keras.losses
        steps = [self.steps(self.examples(epoch)) for epoch in range(self.epochs)]
        two = len(self.clf.labels) == 2
        loss = losses.BinaryCrossentropy if two else losses.CategoricalCrossentropy
        # XLA is several times slower than TensorFlow's own kernels for LSTMs on a CPU.
        self.clf.model.compile(
            adam(
                config.learning_rate,
                steps=sum(steps),
                average_over=config.average * steps[-1],
            ),
            loss(label_smoothing=config.label_smoothing),
            metrics=[keras.metrics.MeanMetricWrapper(right, name="accuracy")],
            jit_compile=False,
        )

    def data(self, epoch):
        """The texts of one epoch, in batches."""
        config, examples = self.config, self.examples(epoch)
        return batches.dataset(
            examples.ids,
            examples.targets,
            config.batch_size,
            config.maxlen,
            rng=np.random.default_rng([config.seed, epoch]),
            word_dropout=config.word_dropout,
        )

    def validate(self, title):
        """What is measured on the validation part, {} without one."""
        if self.validation is None:
            return {}
        measured = evaluate(self.clf, self.validation)
        row = {f"val_{name}": measured[name] for name in ("loss", "accuracy")}
        self.say(
            f"{title} validation: loss {row['val_loss']:.4f}  accuracy "
            f"{row['val_accuracy']:.4f}"
        )
        return row

    def rank(self, row):
        """Best validation accuracy, then least loss."""
        return -row["val_accuracy"], row["val_loss"]

    def metrics(self):
        """What the run reached, once it is finished."""
        taught = 0 if self.taught is None else len(self.taught.ids)
        return {
            "model": self.config.name,
            "seed": self.config.seed,
            "epochs": self.epochs,
            "best_epoch": self.best_epoch,
            "validation": self.measure(self.validation),
            "test": self.measure(self.test),
            "seconds": sum(row["seconds"] for row in self.history),
            "parameters": self.clf.model.count_params(),
            "train_texts": len(self.labelled.ids),
            "unlabelled_texts": max(0, taught - len(self.labelled.ids)),
            "teacher_accuracy": self.teacher_accuracy,
        }

    def write(self, metrics):
        """Model, tokenizer, attention sub-model, plots, card, metrics."""
        write_classifier(
            self.folder, self.config, self.clf, self.parts, metrics, self.history
        )

    def measure(self, part):
        """`evaluate`, or None for a part that the source does not have."""
        return None if part is None else evaluate(self.clf, part)


def usual_epochs(steps):
    """How many epochs of so many steps to train: few of many texts, many of few."""
    return min(max(USUAL_STEPS // steps, 4), 40)


def right(y_true, y_pred):
    """Whether target and prediction name the same class; targets may be soft."""
    if y_true.shape[-1] == 1:
        return ops.equal(y_true > 0.5, y_pred > 0.5)
    return ops.equal(ops.argmax(y_true, axis=-1), ops.argmax(y_pred, axis=-1))


def targets(labels, num_classes):
    """Class indices (N,) -> (N, 1) for two classes, one-hot (N, classes) for more."""
    if num_classes == 2:
        return labels.astype("float32")[:, None]
    return keras.utils.to_categorical(labels, num_classes).astype("float32")
