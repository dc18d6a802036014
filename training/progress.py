"""A progress bar for each epoch, with the time left and what was measured so far."""

import keras
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

REFRESH = 5  # steps between two looks at the measures, which cost a copy each


class EpochBar(keras.callbacks.Callback):
    """Shows one epoch of `fit` as one line.

    Args:
        title: What the line begins with, such as "epoch 2/4".
        steps: Number of steps.
    """

    def __init__(self, title, steps):
        super().__init__()
        self.title, self.steps, self.bar = title, steps, None

    def on_train_begin(self, logs=None):
        self.bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[measures]}"),
            console=Console(stderr=True),  # standard output is for results
        )
        self.bar.start()
        self.task = self.bar.add_task(self.title, total=self.steps, measures="")

    def on_train_batch_end(self, batch, logs=None):
        measures = {}
        if batch % REFRESH == 0 or batch + 1 == self.steps:
            measures = {"measures": format_measures(logs or {})}
        self.bar.update(self.task, completed=batch + 1, **measures)

    def close(self):
        """Gives the terminal back; Keras calls nothing when `fit` is interrupted."""
        if self.bar is not None:
            self.bar.stop()


def format_measures(measures):
    """Names and numbers on one line: "loss 0.2145  accuracy 0.9100"."""
    return "  ".join(f"{name} {float(value):.4f}" for name, value in measures.items())
