"""What a sequence-to-sequence run starts from: pairs, tokenizers and a model."""

import pathlib

import zoo
from training import datasets
from training.dropout import with_dropout
from zoo import seq2seq
from zoo.seq2seq_sizes import DEFAULTS, checked_sizes
from zoo.tokens import SequenceTokenizer
from zoo.translator import Translator

VOCABULARY_SIZE = 6_000
MAXLEN = 256
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


def check_architecture(config):
    """Refuses sizes that are none, before any data is read.

    Raises:
        ValueError: as the factories do.
    """
    any_texts = dict.fromkeys(("source_vocabulary_size", "target_vocabulary_size"), 5)
    defaults = DEFAULTS[f"seq2seq_{config.model}"]
    checked_sizes({**defaults, **config.architecture, **any_texts})


def starting_translator(config, pairs):
    """The pipeline to train: a new model and tokenizers of the training pairs.

    Args:
        config: The run's config. From its `weights`, those of a run or of a model of
            the zoo, it goes on.
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
    return Translator(model, source, target, config.maxlen or MAXLEN, run_name(config))


def run_name(config):
    """What the run's model is called: "en_fr_transformer"."""
    task = pathlib.Path(config.task).name.split(".")[0].replace("-", "_")
    return f"{task}_{config.model}"


def make_tokenizers(config, pairs):
    """The tokenizers of source and target; one object where they are joint."""
    task = config.of_task
    if task.joint:
        both = _tokenizer(config, task.source_tokens, pairs.sources + pairs.targets)
        return both, both
    return (
        _tokenizer(config, task.source_tokens, pairs.sources, task.any_case),
        _tokenizer(config, task.target_tokens, pairs.targets),
    )


def _tokenizer(config, kind, texts, any_case=False):
    size = config.vocabulary_size or (VOCABULARY_SIZE if kind == "bpe" else None)
    return SequenceTokenizer.train(texts, kind, size, config.lowercase or any_case)


def _trained_start(config):
    start = zoo.load(config.weights)
    if not isinstance(start, Translator):
        raise ValueError(
            "`weights` must be of a model of two texts. Received: "
            f"'{config.weights}', which is {start.name}, a classifier."
        )
    factory = f"seq2seq_{config.model}"
    if start.model.name != factory:
        raise ValueError(
            f"`weights` must be of the model {config.model}. Received: "
            f"'{config.weights}', a model called {start.model.name}. Say the --model "
            "that it is, or give others."
        )
    model = start.model
    if config.dropout is not None:
        model = with_dropout(model, config.dropout)
    return Translator(
        model,
        start.source_tokenizer,
        start.target_tokenizer,
        config.maxlen or start.maxlen,
        run_name(config),
        start.length_ratio,
    )
