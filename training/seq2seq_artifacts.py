"""What a finished sequence-to-sequence run leaves: its pictures and its card."""

from training import seq2seq_cards
from training.artifacts import (
    plot_history,
    without_optimizer,
    write_artifacts,
    write_plot,
)
from training.datasets import reference_groups
from training.seq2seq_scores import chosen_by
from zoo.translator import Translator

EXAMPLES = 3


def write_translator(folder, config, translator, parts, metrics, history):
    """Writes all that the run leaves: see `training.artifacts.write_artifacts`.

    Args:
        folder: The run's folder.
        config: The run's config.
        translator: The trained `zoo.Translator`.
        parts: `training.datasets.PairSplits`.
        metrics: What the run reached, a dictionary; versions and date are added.
        history: A list of dictionaries, one an epoch.
    """
    translator = Translator(
        without_optimizer(translator.model),
        translator.source_tokenizer,
        translator.target_tokenizer,
        translator.maxlen,
        translator.name,
        translator.length_ratio,
    )
    measures = "loss", chosen_by(config.of_task.metric)
    smoothed = bool(config.setting("label_smoothing"))
    plots = {
        "history.png": lambda path: plot_history(history, path, measures, smoothed)
    }
    sources, _ = reference_groups(parts.validation)
    longest = sorted(sources[:200], key=len)[-EXAMPLES:]
    for number, translation in enumerate(translator.translate(longest), 1):
        if translation.alignment.size:
            plots[f"alignment-{number}.png"] = translation.plot
    write_artifacts(
        folder,
        translator,
        metrics,
        plots,
        lambda metrics: seq2seq_cards.run_card(config, translator, metrics),
    )


def plot_sample(path, translation):
    """Writes the alignment of one translation as a picture, if there is one."""
    if translation.alignment.size:
        write_plot(path, translation.plot)
