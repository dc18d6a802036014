"""What a finished sequence-to-sequence run leaves in its folder besides its history."""

from keras_attention import attention_submodel
from training import seq2seq_cards
from training.artifacts import conditions, plot_history, without_optimizer
from training.datasets import reference_groups
from training.seq2seq_scores import chosen_by
from zoo.files import read_json, write_by, write_json, write_text
from zoo.translator import Translator

EXAMPLES = 3


def write_artifacts(folder, config, translator, parts, metrics, history):
    """Writes model, weights, attention sub-model, plots, card and metrics.

    metrics.json is written last: it says that the run is finished.

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
    )
    begun = read_json(folder / "config.json")
    translator.save(folder, training=begun["training"], data=begun["data"])
    write_by(folder / "model.weights.h5", translator.model.save_weights)
    write_by(folder / "attention.keras", attention_submodel(translator.model).save)
    plots = folder / "plots"
    plots.mkdir(exist_ok=True)
    metric = chosen_by(config.of_task.metric)
    write_by(
        plots / "history.png",
        lambda path: plot_history(
            history, path, ("loss", metric), bool(config.setting("label_smoothing"))
        ),
    )
    sources, _ = reference_groups(parts.validation)
    longest = sorted(sources[:200], key=len)[-EXAMPLES:]
    for number, translation in enumerate(translator.translate(longest), 1):
        plot_sample(plots / f"alignment-{number}.png", translation)
    metrics.update(conditions())
    write_text(folder / "card.md", seq2seq_cards.run_card(config, translator, metrics))
    write_json(folder / "metrics.json", metrics)


def plot_sample(path, translation):
    """Writes the alignment of one translation as a picture, if there is one."""
    if translation.alignment.size:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_by(path, translation.plot)
