"""Model cards: the page that every run writes, with the command that makes it again."""

import dataclasses
import shlex

PAGE = """\
# {title}

{about}

{table}

{choice}

{facts}

## Limits

{limits}

## Licence

That of the training data applies to what the model has learned from it.
"""


def page(title, about, table, choice, facts, limits):
    """A card, as Markdown.

    Args:
        title: The heading.
        about: What the model is, in a sentence.
        table: What it reaches: the lines of a Markdown table.
        choice: Which epoch it is of, and how it was tested.
        facts: What else there is to say: lines, each an item of a list.
        limits: A Markdown list.

    Returns:
        A string.
    """
    return PAGE.format(
        title=title,
        about=about,
        table="\n".join(table),
        choice=choice,
        facts="\n".join(f"- {fact}" for fact in facts),
        limits=limits,
    )


def circumstances(metrics, name, config):
    """How the run was made, as facts of a card.

    Args:
        metrics: As in metrics.json.
        name: What stands behind `python -m training`.
        config: The run's config.
    """
    versions = ", ".join(f"{k} {v}" for k, v in metrics["versions"].items())
    command = shlex.join(["python", "-m", "training", name, *option_words(config)])
    return [
        f"Parameters: {metrics['parameters']:,}; training time: "
        f"{metrics['seconds']:.0f} s",
        f"Made by: `{command}`",
        f"With: {versions}; {metrics['machine']}; {metrics['date']}",
    ]


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
