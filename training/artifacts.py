"""What a finished run leaves in its folder besides its history."""

import datetime
import os
import platform

import keras

from keras_attention import __version__, attention_submodel, holds_attention
from training import cards
from zoo.files import read_json, write_by, write_json, write_text
from zoo.pipelines import SentimentClassifier

EXAMPLES = 3


def write_artifacts(folder, config, clf, parts, metrics, history):
    """Writes model, weights, attention sub-model, plots, card and metrics.

    metrics.json is written last: it says that the run is finished.

    Args:
        folder: The run's folder.
        config: The run's config.
        clf: The trained `SentimentClassifier`.
        parts: `training.start.Parts`.
        metrics: What the run reached, a dictionary; versions and date are added.
        history: A list of dictionaries, one an epoch.
    """
    clf = SentimentClassifier(
        without_optimizer(clf.model), clf.tokenizer, clf.labels, clf.maxlen, clf.name
    )
    begun = read_json(folder / "config.json")
    clf.save(folder, training=begun["training"], data=begun["data"])
    write_by(folder / "model.weights.h5", clf.model.save_weights)
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    smoothed = config.label_smoothing > 0
    write_by(
        plots / "history.png",
        lambda path: plot_history(history, path, smoothed=smoothed),
    )
    if holds_attention(clf.model):
        write_by(folder / "attention.keras", attention_submodel(clf.model).save)
        _plot_examples(plots, clf, parts)
    metrics.update(conditions())
    write_text(folder / "card.md", cards.run_card(config, clf, metrics))
    write_json(folder / "metrics.json", metrics)


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


def _plot_examples(plots, clf, parts):
    """Where the attention lies in a few texts that were not trained on."""
    data = next(p for p in (parts.validation, parts.test, parts.train) if p is not None)
    if data.is_tokenized:
        texts = [clf.tokenizer.decode(ids) for ids in data.texts[:50]]
    else:
        texts = [text for text in data.texts if text.strip()][:500]
    middling = sorted(texts, key=lambda text: abs(len(text) - 600))[:EXAMPLES]
    for number, text in enumerate(middling, 1):
        explanation = clf.explain(text)
        path = plots / f"attention-{number}.png"
        write_by(path, lambda path, e=explanation: e.plot(path))
