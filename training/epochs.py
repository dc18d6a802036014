"""EpochRun: epochs of training with validation, checkpoints, and the best one kept.

`carry_out` is what every training program does with one.
"""

import math
import sys
import time

import keras
import numpy as np

from training import run_folder
from training.optimization import bfloat16_products, fit_epoch, reseed
from zoo.files import read_json


def carry_out(config, start, source):
    """Trains a run to its end, or goes on where it was stopped.

    Args:
        config: The run's `training.options.RunOptions`.
        start: A function from the run's folder to an `EpochRun` before its first epoch.
        source: What to call the data.

    Returns:
        The metrics, as in metrics.json: a dictionary.

    Raises:
        ValueError: for a folder that cannot be used.
    """
    folder, checkpoint, finished = run_folder.open_run(
        config.out, config.options, config.resume
    )
    if finished is not None:
        run_folder.Checkpoints(folder).remove()  # it may have been killed before that
        return finished
    keras.utils.set_random_seed(config.seed)
    run = start(folder)
    run_folder.begin(folder, config.options, run.fingerprint, source)
    if checkpoint is not None:
        run.go_on_from(checkpoint)
    run.finish_epochs()
    metrics = run.metrics()
    run.write(metrics)
    run.checkpoints.remove()
    return metrics


class EpochRun:
    """A training run, an epoch at a time (abstract).

    What is measured, and kept, after each epoch is the moving average of the weights,
    if the optimizer keeps one. A subclass compiles the model and gives `epochs`,
    `fingerprint`, `data`, `validate`, `rank`, `metrics` and `write`.

    Args:
        folder: The run's folder.
        model: The `keras.Model` to train.
        seed: Integer, of dropout and whatever else the model draws.
        progress: Whether to show a bar for each epoch, on standard error.
        patience: Number of epochs without a better one to stop after, or None.
    """

    epochs = None
    bfloat16 = False  # whether steps multiply matrices in bfloat16

    def __init__(self, folder, model, seed, progress=True, patience=None):
        self.folder, self.model, self.seed = folder, model, seed
        self.progress, self.patience = progress, patience
        self.checkpoints = run_folder.Checkpoints(folder)
        self.history = []
        self.best_weights = None

    # ---- what a run decides

    @property
    def fingerprint(self):
        """A hash of what is learned from, which a resumed run must find again."""
        raise NotImplementedError(f"{type(self).__name__} must override `fingerprint`.")

    def begin_epoch(self, epoch):
        """What to set before the epoch (from 0); nothing here."""

    def data(self, epoch):
        """A tf.data.Dataset of one epoch (from 0), by its number and the seed alone."""
        raise NotImplementedError(f"{type(self).__name__} must override `data`.")

    def validate(self, title):
        """Measures the model: numbers by name, {} without a validation part."""
        raise NotImplementedError(f"{type(self).__name__} must override `validate`.")

    def rank(self, row):
        """Numbers of a row of the history by which the least is the best."""
        raise NotImplementedError(f"{type(self).__name__} must override `rank`.")

    def metrics(self):
        """What the run reached, once it is finished: a dictionary of plain types."""
        raise NotImplementedError(f"{type(self).__name__} must override `metrics`.")

    def write(self, metrics):
        """Writes what the finished run leaves, and metrics.json as the last file."""
        raise NotImplementedError(f"{type(self).__name__} must override `write`.")

    # ---- the epochs

    def say(self, line):
        """Progress goes to standard error: standard output is for results."""
        if self.progress:
            print(line, file=sys.stderr)

    def go_on_from(self, checkpoint):
        """Takes up the state after the last finished epoch.

        Raises:
            ValueError: if a file of the checkpoint is damaged.
        """
        self.model.optimizer.build(self.model.trainable_variables)
        try:
            self.read_state(checkpoint)
        except Exception as error:  # h5py, NumPy and zipfile have one each
            raise ValueError(
                f"The checkpoint '{checkpoint}' cannot be read: it is damaged, or of "
                f"another model. Start another run, or remove '{self.folder}' to begin "
                f"this one anew. Reading it says: {error}"
            ) from error

    def read_state(self, folder):
        """Reads what `write_state` and the history left in a checkpoint's folder."""
        self.model.load_weights(folder / "last.weights.h5")
        self.history = read_json(folder / "state.json")["history"]
        with open(folder / "best.npz", "rb") as file:  # NumPy leaves a damaged one open
            best = np.load(file, allow_pickle=False)
            self.best_weights = [best[name] for name in best.files]

    def finish_epochs(self):
        """Trains the epochs that are left, and takes the best one's weights."""
        if self.history:  # a run may have been killed before it wrote the last row
            run_folder.write_csv(self.folder / "history.csv", self.history)
        for epoch in range(len(self.history), self.epochs):
            if self.is_out_of_patience:
                break
            self.train_epoch(epoch)
        self.model.set_weights(self.best_weights)

    def train_epoch(self, epoch):
        """One pass over the training data; writes its row and its checkpoint."""
        model, began = self.model, time.perf_counter()
        reseed(model, self.seed, epoch)
        self.begin_epoch(epoch)
        title = f"epoch {epoch + 1}/{self.epochs}"
        with bfloat16_products(self.bfloat16):
            logs, last_weights = fit_epoch(
                model, self.data(epoch), title, self.progress
            )
        if not math.isfinite(logs["loss"]):
            raise ValueError(
                f"The loss is {logs['loss']} in epoch {epoch + 1}: the steps were too "
                "large. What earlier epochs reached is kept. Start another run with a "
                "smaller learning rate."
            )
        row = {"epoch": epoch + 1, **logs, **self.validate(title)}
        row["seconds"] = time.perf_counter() - began
        self.history.append(row)
        if self.best_epoch == epoch + 1:
            self.best_weights = model.get_weights()
        model.set_weights(last_weights)
        self.checkpoints.save(epoch + 1, {"history": self.history}, self.write_state)
        run_folder.write_csv(self.folder / "history.csv", self.history)

    def write_state(self, folder):
        """Writes all that an epoch leaves behind into a checkpoint's folder."""
        self.model.save_weights(folder / "last.weights.h5")
        names = [f"{i:04d}" for i in range(len(self.best_weights))]
        np.savez(
            folder / "best.npz", **dict(zip(names, self.best_weights, strict=True))
        )

    @property
    def best_epoch(self):
        """The number of the best epoch; without validation, of the last."""
        if not any(name.startswith("val_") for name in self.history[-1]):
            return len(self.history)
        ranks = [
            [math.inf if math.isnan(number) else number for number in self.rank(row)]
            for row in self.history
        ]
        return ranks.index(min(ranks)) + 1

    @property
    def is_out_of_patience(self):
        """Whether the last epochs brought nothing better, as many as `patience`."""
        if not (self.patience and self.history):
            return False
        return len(self.history) - self.best_epoch >= self.patience
