"""What a finished run of a classifier leaves: its pictures and its card."""

from keras_attention import holds_attention
from training import cards
from training.artifacts import plot_history, without_optimizer, write_artifacts
from zoo.pipelines import SentimentClassifier

EXAMPLES = 3
LIMITS = """\
- Attention weights show where the model looked, not why it decided.
- A text is cut to {maxlen} ids; its end is kept.
- It knows the words of its {ids:,} ids, lower-cased; every other word is one unknown
  word to it.
- It has learned the opinions of the texts it was trained on, with their bias, and is
  not fit to judge people."""


def write_classifier(folder, config, clf, parts, metrics, history):
    """Writes all that the run leaves: see `training.artifacts.write_artifacts`.

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
    smoothed = config.label_smoothing > 0
    plots = {"history.png": lambda path: plot_history(history, path, smoothed=smoothed)}
    if holds_attention(clf.model):
        for number, text in enumerate(_examples(clf, parts), 1):
            plots[f"attention-{number}.png"] = clf.explain(text).plot
    write_artifacts(
        folder, clf, metrics, plots, lambda metrics: run_card(config, clf, metrics)
    )


def _examples(clf, parts):
    """A few texts that were not trained on, of middling length."""
    data = next(p for p in (parts.validation, parts.test, parts.train) if p is not None)
    if data.is_tokenized:
        texts = [clf.tokenizer.decode(ids) for ids in data.texts[:50]]
    else:
        texts = [text for text in data.texts if text.strip()][:500]
    return sorted(texts, key=lambda text: abs(len(text) - 600))[:EXAMPLES]


def run_card(config, clf, metrics):
    """The card of one training run, as Markdown.

    Args:
        config: The run's config.
        clf: The trained pipeline.
        metrics: As in metrics.json.

    Returns:
        A string.
    """
    rows = [
        _metric_row(part, metrics[part])
        for part in ("validation", "test")
        if metrics[part]
    ]
    facts = (
        f"Training texts: {metrics['train_texts']:,}; validation fraction: "
        f"{config.validation_fraction}; seed: {config.seed}",
        *cards.circumstances(metrics, config.name, config),
    )
    ids = clf.model.get_layer("embedding").input_dim
    return cards.page(
        config.name,
        f"A text classifier for {' / '.join(clf.labels)}, trained on `{config.data}`.",
        [
            "| part | accuracy | cross-entropy | texts |",
            "|---|---|---|---|",
            *(rows or ["| none was held out | | | |"]),
        ],
        f"{_choice(config, metrics)} The test split, where there is one, was evaluated "
        "once.",
        facts,
        LIMITS.format(maxlen=clf.maxlen, ids=ids),
    )


def _choice(config, metrics):
    if not config.validation_fraction:
        return f"These are the weights after the last of {metrics['epochs']} epochs."
    return (
        f"The best of {metrics['epochs']} epochs by validation accuracy is number "
        f"{metrics['best_epoch']}."
    )


def _metric_row(part, measured):
    return (
        f"| {part} | {measured['accuracy']:.2%} | {measured['loss']:.4f} "
        f"| {measured['texts']:,} |"
    )
