"""zoo.load: a pipeline by the name of a trained model, or from a folder."""

import dataclasses
import os
import pathlib
from collections.abc import Callable

import keras

from zoo import registry, sentiment, seq2seq
from zoo.cudnn import model_without_cudnn
from zoo.files import read_json
from zoo.pipelines import SentimentClassifier
from zoo.sources import LENGTH_RATIO
from zoo.text import Tokenizer
from zoo.tokens import SequenceTokenizer
from zoo.translator import Translator


def load(name, *, weights=None):
    """A pipeline: a trained model with its own tokenizer.

    Args:
        name: A name of `zoo.list_models()`, or a folder that a training run or
            `save` wrote. A folder of the name of a model is written "./name"; a
            `pathlib.Path` is always a folder.
        weights: Which of the model's trained weights; the first by default.

    Returns:
        A `SentimentClassifier`, or a `Translator` for models of two texts.

    Raises:
        ValueError: if there is neither such a model nor such a folder.
        FileNotFoundError: if the folder lacks one of its files.

    Example:

    >>> clf = load("imdb_bilstm_attention")
    >>> clf.predict(["A superb film.", "A dull, lifeless mess."])[0].label
    'positive'
    """
    if not isinstance(name, str | os.PathLike):
        raise TypeError(
            "`name` must be a name of zoo.list_models(), or a folder. Received: "
            f"{name!r}."
        )
    folder = pathlib.Path(name).expanduser()
    known = name in registry.names()
    if folder.is_dir() and not known:
        if weights is not None:
            raise ValueError(
                "`weights` choose among those of a model of zoo.list_models(). "
                f"Received: {weights!r} for the folder '{folder}', which has its own."
            )
        return _load_folder(folder)
    is_path = not isinstance(name, str) or len(folder.parts) > 1
    if not known and (folder.exists() or is_path):
        raise ValueError(
            f"`name` must be a model of zoo.list_models() or a folder. Received: "
            f"'{name}', which is {'a file' if folder.exists() else 'not there'}."
        )
    entry = registry.find(name)
    weights = weights or next(iter(entry.weights))
    if weights not in entry.weights:
        raise ValueError(
            f"`weights` of '{name}' must be one of {sorted(entry.weights)}. Received: "
            f"{weights!r}. For a file of your own make the model by zoo.{entry.factory}"
            "(weights=file)."
        )
    return _load_shipped(entry, weights)


def _load_shipped(entry, weights):
    """The pipeline of a set of trained weights that the package holds."""
    trained = entry.weights[weights]
    tokenizers = registry.load_tokenizers(trained)
    if entry.factory in sentiment.FACTORIES:
        return SentimentClassifier(
            sentiment.FACTORIES[entry.factory](weights=weights),
            tokenizers["text"],
            trained.labels,
            trained.maxlen,
            entry.name,
        )
    return Translator(
        seq2seq.FACTORIES[entry.factory](weights=weights),
        tokenizers["source"],
        tokenizers["target"],
        trained.maxlen,
        entry.name,
        trained.length_ratio,
    )


def _load_folder(folder):
    config = _saved_config(folder)
    kind = str(config["pipeline"])
    missing = [name for name in KINDS[kind].tokenizers if not (folder / name).is_file()]
    if missing:
        raise _not_saved(folder, missing[0])
    try:
        model = keras.saving.load_model(
            folder / "model.keras", compile=False, safe_mode=True
        )
    except Exception as error:
        raise ValueError(
            f"'{folder / 'model.keras'}' cannot be loaded: it is damaged, or holds "
            f"layers this package does not know. Keras says: {error}"
        ) from error
    return KINDS[kind].load(folder, model_without_cudnn(model), config)


def _saved_config(folder):
    """The config of a saved pipeline, with all that its kind needs."""
    for file in ("config.json", "model.keras"):
        if not (folder / file).is_file():
            raise _not_saved(folder, file)
    config = read_json(folder / "config.json")
    if not isinstance(config, dict):
        raise ValueError(
            f"'{folder / 'config.json'}' is not that of a saved model. Received: a "
            f"{type(config).__name__} in place of names and values."
        )
    kind = KINDS.get(str(config.get("pipeline")))
    needed = {"maxlen", "name", *(kind.keys if kind else ())}
    missing = needed - set(config)
    if missing or kind is None:
        raise ValueError(
            f"'{folder / 'config.json'}' is not that of a saved model: it lacks "
            f"{', '.join(sorted(missing)) or 'a known pipeline'}. Has the training run "
            "finished?"
        )
    return config


def _not_saved(folder, file):
    return FileNotFoundError(
        f"The folder '{folder}' is not a saved model: it has no {file}. Give a "
        "folder that a finished training run or the pipeline's save(folder) wrote."
    )


def _load_classifier(folder, model, config):
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    return SentimentClassifier(
        model, tokenizer, config["labels"], config["maxlen"], config["name"]
    )


def _load_translator(folder, model, config):
    source, target = (
        SequenceTokenizer.load(folder / name)
        for name in KINDS["translation"].tokenizers
    )
    return Translator(
        model,
        source,
        target,
        config["maxlen"],
        config["name"],
        config.get("length_ratio", LENGTH_RATIO),
    )


@dataclasses.dataclass(frozen=True)
class _Kind:
    """One kind of saved pipeline: its files, what its config holds, how it loads."""

    tokenizers: tuple[str, ...]
    keys: tuple[str, ...]
    load: Callable


KINDS = {
    "sentiment": _Kind(("tokenizer.json",), ("labels",), _load_classifier),
    "translation": _Kind(
        ("source.tokenizer.json", "target.tokenizer.json"), (), _load_translator
    ),
}
