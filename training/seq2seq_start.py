"""What a sequence-to-sequence run starts from: pairs, tokenizers and a model."""

import pathlib

import zoo
from training import datasets
from zoo import seq2seq
from zoo.files import read_json
from zoo.tokens import SequenceTokenizer
from zoo.translator import Translator

VOCABULARY_SIZE = 6_000
DATA_SEED = 0  # so that the test part is one, whatever seed a run has


def read_pairs(config):
    """The pairs of the run's task, in three parts: the same ones for every seed.

    Args:
        config: A `training.seq2seq_config.Seq2SeqConfig`.

    Returns:
        `training.datasets.PairSplits`.
    """
    columns = {
        "source_column": config.source_column,
        "target_column": config.target_column,
    }
    return datasets.load_task(config.task, config.data, DATA_SEED, **columns)


def starting_translator(config, pairs):
    """The pipeline to train: a new model and tokenizers of the training pairs.

    Args:
        config: The run's config. Its `weights`, the folder of a run, are gone on from.
        pairs: The training `Pairs`.
    """
    if config.weights:
        return _trained_start(config)
    source, target = make_tokenizers(config, pairs)
    model = seq2seq.FACTORIES[f"seq2seq_{config.model}"](
        weights=None,
        source_vocabulary_size=source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
        share_embeddings=config.of_task.joint,
        **config.architecture,
    )
    return Translator(model, source, target, name=run_name(config))


def run_name(config):
    """What the run's model is called: "en_fr_transformer"."""
    task = pathlib.Path(config.task).name.split(".")[0].replace("-", "_")
    return f"{task}_{config.model}"


def make_tokenizers(config, pairs):
    """The tokenizers of source and target; one object where they are joint."""
    size = config.vocabulary_size or VOCABULARY_SIZE
    kinds = config.of_task.source_tokens, config.of_task.target_tokens
    source, target = ((kind, size if kind == "bpe" else None) for kind in kinds)
    if config.of_task.joint:
        both = SequenceTokenizer.train([*pairs.sources, *pairs.targets], *source)
        return both, both
    return (
        SequenceTokenizer.train(pairs.sources, *source),
        SequenceTokenizer.train(pairs.targets, *target),
    )


def _trained_start(config):
    if not pathlib.Path(config.weights).is_dir():
        raise ValueError(
            f"`weights` must be the folder of a run. Received: {config.weights!r}."
        )
    start = zoo.load(config.weights)
    if not isinstance(start, Translator):
        raise ValueError(
            "`weights` must be a run of a model of two texts. Received: "
            f"'{config.weights}', a run of {start.name}."
        )
    begun = read_json(pathlib.Path(config.weights) / "config.json").get("training", {})
    if begun.get("model") != config.model:
        raise ValueError(
            f"`weights` must be a run of the model {config.model}. Received: "
            f"'{config.weights}', a run of {begun.get('model')}. Say --model "
            f"{begun.get('model')}, or give another folder."
        )
    return start
