"""What every finished run leaves in its folder besides its history."""

import datetime
import os
import platform

import keras

from keras_attention import __version__, attention_submodel, holds_attention
from zoo.files import read_json, write_by, write_json, write_text


def write_artifacts(folder, pipeline, metrics, plots, card):
    """Writes model, weights, attention sub-model, plots, card and metrics.

    metrics.json is written last: it says that the run is finished.

    Args:
        folder: The run's folder.
        pipeline: The trained pipeline, with a model `without_optimizer`.
        metrics: What the run reached, a dictionary; versions and date are added.
        plots: Functions that write a picture to a path, by the picture's file name.
        card: Function from the metrics to the text of the card.
    """
    begun = read_json(folder / "config.json")
    pipeline.save(folder, training=begun["training"], data=begun["data"])
    write_by(folder / "model.weights.h5", pipeline.model.save_weights)
    if holds_attention(pipeline.model):
        write_by(folder / "attention.keras", attention_submodel(pipeline.model).save)
    for name, plot in plots.items():
        write_plot(folder / "plots" / name, plot)
    metrics.update(conditions())
    write_text(folder / "card.md", card(metrics))
    write_json(folder / "metrics.json", metrics)


def write_plot(path, plot):
    """Lets `plot(path)` write a picture, into a folder that is made for it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_by(path, plot)


def without_optimizer(model):
    """The same model, not compiled, so that files hold its weights alone."""
    plain = keras.Model.from_config(model.get_config())
    plain.set_weights(model.get_weights())
    return plain


def conditions():
    """Versions, machine and date that a result was made under."""
    import tensorflow as tf

    return {
        "versions": {
            "keras-attention-zoo": __version__,
            "keras": keras.__version__,
            "tensorflow": tf.__version__,
            "python": platform.python_version(),
        },
        "backend": keras.backend.backend(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "date": datetime.date.today().isoformat(),
    }


def plot_history(history, path, measures=("loss", "accuracy"), smoothed=False):
    """Two measures by epoch, as a picture.

    Args:
        history: A list of dictionaries, one an epoch.
        path: Where to write it.
        measures: Their names.
        smoothed: Whether the training loss is of smoothed labels, so that it cannot
            come down to that of validation.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    epochs = [row["epoch"] for row in history]
    figure = Figure(figsize=(8, 3.2), layout="constrained")
    for axis, what in zip(figure.subplots(1, 2), measures, strict=True):
        for key, label in ((what, "training"), (f"val_{what}", "validation")):
            if key in history[0]:
                values = [row[key] for row in history]
                if smoothed and key == "loss":
                    label = "training, with smoothed labels"
                axis.plot(epochs, values, marker="o", label=label)
        axis.set(xlabel="epoch", title=what)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False)
    figure.savefig(path, dpi=150)
