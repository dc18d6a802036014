"""Trains the zoo's sentiment models, or a user's own, from labelled texts."""

import dataclasses
import time

import keras
import numpy as np

from training import batches, run_folder
from training.artifacts import write_artifacts
from training.evaluate import evaluate
from training.optimization import adam, fit_epoch, reseed
from training.start import encode, read_data, starting_classifier
from training.teacher import teach
from zoo.files import read_json


def train(config, progress=True):
    """Trains a classifier and writes the run's folder.

    What is measured, and kept, after each epoch is a moving average of the weights;
    the epoch with the best validation accuracy is the result. The test split, where
    the source has one, is evaluated once, at the end, and never chosen by.

    Args:
        config: A `training.config.SentimentConfig`.
        progress: Whether to show a bar for each epoch.

    Returns:
        The metrics, as in metrics.json: a dictionary.

    Raises:
        ValueError: for data or a folder that cannot be used, by name.
    """
    options = dataclasses.asdict(config)
    del options["resume"], options["out"]
    folder, checkpoint, finished = run_folder.open_run(
        config.out, options, config.resume
    )
    if finished is not None:
        return finished
    keras.utils.set_random_seed(config.seed)
    parts = read_data(config)
    clf = starting_classifier(config, parts.train)
    run = Training(config, folder, clf, parts, progress)
    if checkpoint is not None:
        run.go_on_from(checkpoint)
    run.finish_epochs()
    metrics = run.metrics()
    write_artifacts(folder, config, clf, parts, metrics, run.history)
    run.checkpoints.remove()
    return metrics


class Training:
    """One training run, an epoch at a time.

    Args:
        config: A `training.config.SentimentConfig`.
        folder: The run's folder.
        clf: The pipeline whose model is trained.
        parts: `training.start.Parts`.
        progress: Whether to show a bar for each epoch.
    """

    def __init__(self, config, folder, clf, parts, progress=True):
        self.config, self.folder, self.clf, self.parts = config, folder, clf, parts
        self.progress = progress
        self.checkpoints = run_folder.Checkpoints(folder)
        self.history = []
        self.best_weights = None
        self.ids = encode(clf.tokenizer, parts.train)
        self.targets = targets(parts.train.labels, len(clf.labels))
        self.teacher_accuracy = None
        if parts.unlabelled:
            self.learn_from_a_teacher()
        self.compile()

    def learn_from_a_teacher(self):
        """Adds the unlabelled texts, with the probabilities a teacher gives them."""
        tokenizer, parts = self.clf.tokenizer, self.parts
        more = [e.ids for e in tokenizer.encode_batch(parts.unlabelled)]
        held_out = [] if parts.validation is None else [parts.validation]
        taught, *checks = teach(
            self.ids,
            parts.train.labels,
            len(self.clf.labels),
            [more, *(encode(tokenizer, part) for part in held_out)],
        )
        for part, probabilities in zip(held_out, checks, strict=True):
            right = probabilities.argmax(axis=1) == part.labels
            self.teacher_accuracy = float(right.mean())
        self.ids = self.ids + more
        taught = taught[:, 1:] if len(self.clf.labels) == 2 else taught
        self.targets = np.concatenate([self.targets, taught]).astype("float32")

    def compile(self):
        """Adam, warmed up and then along a cosine to 0, on the cross-entropy."""
        config = self.config
        lengths = [min(len(row), config.maxlen) for row in self.ids]
        steps = len(batches.plan(lengths, config.batch_size, np.random.default_rng(0)))
        losses = keras.losses
        kind = (
            losses.BinaryCrossentropy
            if len(self.clf.labels) == 2
            else losses.CategoricalCrossentropy
        )
        # XLA is several times slower than TensorFlow's own kernels for LSTMs on a CPU.
        self.clf.model.compile(
            adam(
                config.learning_rate,
                steps=config.epochs * steps,
                average_over=config.average * steps,
            ),
            kind(label_smoothing=config.label_smoothing),
            metrics=["accuracy"],
            jit_compile=False,
        )

    def go_on_from(self, checkpoint):
        """Takes up the state after the last finished epoch."""
        self.clf.model.optimizer.build(self.clf.model.trainable_variables)
        self.clf.model.load_weights(checkpoint / "last.weights.h5")
        state = read_json(checkpoint / "state.json")
        self.history = state["history"]
        with np.load(checkpoint / "best.npz", allow_pickle=False) as best:
            self.best_weights = [best[name] for name in best.files]

    def finish_epochs(self):
        """Trains the epochs that are left, and takes the best one's weights."""
        for epoch in range(len(self.history), self.config.epochs):
            self.train_epoch(epoch)
        self.clf.model.set_weights(self.best_weights)

    def train_epoch(self, epoch):
        """One pass over the training texts; writes its row and its checkpoint."""
        config, model, began = self.config, self.clf.model, time.perf_counter()
        reseed(model, config.seed, epoch)
        data = batches.dataset(
            self.ids,
            self.targets,
            config.batch_size,
            config.maxlen,
            rng=np.random.default_rng([config.seed, epoch]),
            word_dropout=config.word_dropout,
        )
        title = f"epoch {epoch + 1}/{config.epochs}"
        logs, last_weights = fit_epoch(model, data, title, self.progress)
        row = {"epoch": epoch + 1, **logs}
        row["seconds"] = time.perf_counter() - began
        if self.parts.validation is not None:
            measured = evaluate(self.clf, self.parts.validation)
            row["val_loss"] = measured["loss"]
            row["val_accuracy"] = measured["accuracy"]
            if self.progress:
                print(
                    f"{title} validation: loss {measured['loss']:.4f}  "
                    f"accuracy {measured['accuracy']:.4f}"
                )
        self.history.append(row)
        if self.best_epoch == epoch + 1:
            self.best_weights = model.get_weights()
        model.set_weights(last_weights)
        self.checkpoints.save(epoch + 1, {"history": self.history}, self.write_state)
        run_folder.write_csv(self.folder / "history.csv", self.history)

    def write_state(self, folder):
        """Writes all that an epoch leaves behind into a checkpoint's folder."""
        self.clf.model.save_weights(folder / "last.weights.h5")
        names = [f"{i:04d}" for i in range(len(self.best_weights))]
        np.savez(
            folder / "best.npz", **dict(zip(names, self.best_weights, strict=True))
        )

    @property
    def best_epoch(self):
        """Best validation accuracy, then least loss; without validation, the last."""
        if self.parts.validation is None:
            return len(self.history)
        rank = [(-row["val_accuracy"], row["val_loss"]) for row in self.history]
        return rank.index(min(rank)) + 1

    def metrics(self):
        """What the run reached, once it is finished."""
        parts = self.parts
        return {
            "model": self.config.name,
            "seed": self.config.seed,
            "best_epoch": self.best_epoch,
            "validation": self.measure(parts.validation),
            "test": self.measure(parts.test),
            "seconds": sum(row["seconds"] for row in self.history),
            "parameters": self.clf.model.count_params(),
            "train_texts": len(parts.train),
            "unlabelled_texts": len(parts.unlabelled),
            "teacher_accuracy": self.teacher_accuracy,
        }

    def measure(self, part):
        """`evaluate`, or None for a part that the source does not have."""
        return None if part is None else evaluate(self.clf, part)


def targets(labels, num_classes):
    """Class indices (N,) -> (N, 1) for two classes, one-hot (N, classes) for more."""
    if num_classes == 2:
        return labels.astype("float32")[:, None]
    return keras.utils.to_categorical(labels, num_classes).astype("float32")
