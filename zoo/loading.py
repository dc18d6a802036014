"""zoo.load: a pipeline by the name of a trained model, or from a folder."""

import pathlib

import keras

from zoo import registry, sentiment
from zoo.files import read_json
from zoo.pipelines import PIPELINE, SentimentClassifier
from zoo.text import Tokenizer


def load(name, *, weights=None):
    """A pipeline: a trained model with its own tokenizer.

    Args:
        name: A name of `zoo.list_models()`, or a folder that a training run or
            `save` wrote. A folder of the name of a model is written "./name".
        weights: Which of the model's trained weights; the first by default.

    Returns:
        A `SentimentClassifier`.

    Raises:
        ValueError: if there is neither such a model nor such a folder.
        FileNotFoundError: if the folder lacks one of its files.

    Example:

    >>> clf = load("imdb_bilstm_attention")
    >>> clf.predict(["A superb film.", "A dull, lifeless mess."])[0].label
    'positive'
    """
    folder = pathlib.Path(name)
    known = {entry.name for entry in registry.ENTRIES}
    if folder.is_dir() and name not in known:
        if weights is not None:
            raise ValueError(
                "`weights` choose among those of a model of zoo.list_models(). "
                f"Received: {weights!r} for the folder '{folder}', which has its own."
            )
        return _load_folder(folder)
    if name not in known and (folder.exists() or len(folder.parts) > 1):
        raise ValueError(
            f"`name` must be a model of zoo.list_models() or a folder. Received: "
            f"'{name}', which is {'a file' if folder.exists() else 'not there'}."
        )
    entry = registry.find(name)
    weights = weights or next(iter(entry.weights))
    if weights not in entry.weights:
        raise ValueError(
            f"`weights` of '{name}' must be one of {sorted(entry.weights)}. Received: "
            f"{weights!r}. For a file of your own make the model by zoo.{name}"
            "(weights=file)."
        )
    trained = entry.weights[weights]
    return SentimentClassifier(
        sentiment.FACTORIES[entry.name](weights=weights),
        registry.load_tokenizer(trained),
        trained.labels,
        trained.maxlen,
        entry.name,
    )


def _load_folder(folder):
    for file in ("config.json", "model.keras", "tokenizer.json"):
        if not (folder / file).is_file():
            raise FileNotFoundError(
                f"The folder '{folder}' is not a saved model: it has no {file}. Give a "
                "folder that a finished training run or clf.save(folder) wrote."
            )
    config = read_json(folder / "config.json")
    missing = {"labels", "maxlen", "name"} - set(config)
    if missing or config.get("pipeline") != PIPELINE:
        raise ValueError(
            f"'{folder / 'config.json'}' is not that of a saved model: it lacks "
            f"{', '.join(sorted(missing)) or PIPELINE}. Has the training run finished?"
        )
    try:
        model = keras.saving.load_model(
            folder / "model.keras", compile=False, safe_mode=True
        )
    except Exception as error:
        raise ValueError(
            f"'{folder / 'model.keras'}' cannot be loaded: it is damaged, or holds "
            f"layers this package does not know. Keras says: {error}"
        ) from error
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    return SentimentClassifier(
        model, tokenizer, config["labels"], config["maxlen"], config["name"]
    )
