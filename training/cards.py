"""Model cards: what a model was trained on, how, how good it is, and its limits."""

import dataclasses
import shlex

LIMITS = """\
- Attention weights show where the model looked, not why it decided.
- A text is cut to {maxlen} ids; its end is kept.
- It knows the words of its {ids:,} ids, lower-cased; every other word is one unknown
  word to it.
- It has learned the opinions of the texts it was trained on, with their bias, and is
  not fit to judge people."""


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
    versions = ", ".join(f"{k} {v}" for k, v in metrics["versions"].items())
    rows_of_embedding = clf.model.get_layer("embedding").input_dim
    return f"""# {config.name}

A text classifier for {" / ".join(clf.labels)}, trained on `{config.data}`.

| part | accuracy | cross-entropy | texts |
|---|---|---|---|
{chr(10).join(rows) or "| none was held out | | | |"}

{_choice(config, metrics)} The test split, where there is one, was evaluated once.

- Training texts: {metrics["train_texts"]:,}; validation fraction: \
{config.validation_fraction}; seed: {config.seed}
- Parameters: {metrics["parameters"]:,}; training time: {metrics["seconds"]:.0f} s
- Made by: `{command_line(config)}`
- With: {versions}; {metrics["machine"]}; {metrics["date"]}

## Limits

{LIMITS.format(maxlen=clf.maxlen, ids=rows_of_embedding)}

## Licence

That of the training data applies to what the model has learned from it.
"""


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


def command_line(config):
    """The command that makes the run again: the options that are not defaults."""
    return shlex.join(["python", "-m", "training", config.name, *option_words(config)])


def option_words(config):
    """The options of a config that are not defaults, as words of a command line."""
    words = []
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if field.name in ("name", "resume") or value == field.default:
            continue
        words.append("--" + field.name.replace("_", "-"))
        words += [] if value is True else [str(value)]
    return words
