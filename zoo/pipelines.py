"""Pipelines: text in, labels, scores and attention out; load and save."""

import dataclasses
import functools
import pathlib

import keras
import numpy as np

from keras_attention import attention_submodel
from keras_attention.submodel import holds_attention
from zoo import registry, sentiment
from zoo.explanation import Explanation
from zoo.files import read_json, write_by, write_json
from zoo.text import Tokenizer, check_texts
from zoo.weights import check_file

LENGTH_STEP = 16  # batches are padded to a multiple of this, so shapes are few


@dataclasses.dataclass(frozen=True)
class Prediction:
    """What a classifier says of one text.

    Attributes:
        label: The most probable class's name.
        score: Its probability.
        probabilities: Probability by class name; they sum to 1.
        words_cut: How many words at the text's beginning were over the limit of the
            model and were not read.
    """

    label: str
    score: float
    probabilities: dict[str, float]
    words_cut: int = 0


class SentimentClassifier:
    """A text classifier: a model, its tokenizer, the names of its classes.

    Make one with `zoo.load`.

    Args:
        model: A `keras.Model` from ids (B, S) to probabilities (B, 1) or (B, classes).
        tokenizer: The `zoo.text.Tokenizer` whose ids the model takes.
        labels: Class names, by class index.
        maxlen: Number of ids a text is cut to. Its end is kept, where reviews give
            their verdict.
        name: What it was made from.
    """

    def __init__(self, model, tokenizer, labels, maxlen, name=None):
        self.model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.maxlen = maxlen
        self.name = name or model.name

    def __repr__(self):
        return (
            f"SentimentClassifier('{self.name}', labels={self.labels}, "
            f"maxlen={self.maxlen}, {self.model.count_params():,} parameters)"
        )

    def predict(self, texts, batch_size=128):
        """Classifies texts.

        Args:
            texts: Any iterable of strings.
            batch_size: Number of texts computed at once.

        Returns:
            A list of `Prediction`, one a text, in order. An empty text gets an answer
            too: that of the model to no words at all.

        Raises:
            TypeError: if `texts` is one string, or an item is not a string.
        """
        encodings = self.tokenizer.encode_batch(texts)
        probabilities = self.predict_ids([e.ids for e in encodings], batch_size)
        return [
            self._prediction(row, self._words_cut(encoding))
            for row, encoding in zip(probabilities, encodings, strict=True)
        ]

    def predict_ids(self, ids, batch_size=128):
        """Class probabilities of texts that are token ids already.

        Args:
            ids: A list of lists of ids, such as an array of `keras.datasets.imdb`.
            batch_size: Number of texts computed at once.

        Returns:
            Array (texts, classes), in order.
        """
        probabilities = np.zeros((len(ids), len(self.labels)), "float32")
        for rows in self._batches(ids, batch_size):
            output = self.model.predict_on_batch(self._padded([ids[i] for i in rows]))
            probabilities[rows] = self._by_class(output[: len(rows)])
        return probabilities

    def explain(self, text):
        """Classifies one text and says what the attention looked at.

        Args:
            text: A string.

        Returns:
            An `Explanation`: label, score, and a weight for each word read.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if the model has no attention layer.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"`text` must be a string. Received: {type(text).__name__}. For "
                "several texts call explain for each."
            )
        (encoding,) = self.tokenizer.encode_batch(check_texts([text]))
        output, maps = self._attention_model.predict_on_batch(
            self._padded([encoding.ids])
        )
        prediction = self._prediction(self._by_class(output)[0], 0)
        cut = self._words_cut(encoding)
        # Where the words begin in the ids that were read: the start id is cut first.
        start = 0 if len(encoding.ids) > self.maxlen else 1
        weights = next(iter(maps.values()))[0, start:, 0]
        read = encoding.offsets[cut:]
        return Explanation(
            text=text,
            label=prediction.label,
            score=prediction.score,
            probabilities=prediction.probabilities,
            tokens=encoding.tokens[cut:],
            offsets=read,
            weights=[float(w) for w in weights[: len(read)]],
            words_cut=cut,
            model=self.name,
        )

    @functools.cached_property
    def _attention_model(self):
        if not holds_attention(self.model):
            raise ValueError(
                f"The model '{self.name}' has no attention layer, so there is nothing "
                "to explain by. Load one that has, such as 'imdb_bilstm_attention'."
            )
        return attention_submodel(self.model)

    def save(self, folder):
        """Writes model, tokenizer and labels to a folder that `zoo.load` reads."""
        folder = pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        write_by(folder / "model.keras", self.model.save)
        write_by(folder / "tokenizer.json", self.tokenizer.save)
        write_json(folder / "config.json", self.config())

    def config(self):
        """What a folder's config.json says of the pipeline: plain types."""
        return {
            "pipeline": "sentiment",
            "name": self.name,
            "labels": list(self.labels),
            "maxlen": self.maxlen,
        }

    # ---- between texts and arrays

    def _words_cut(self, encoding):
        return max(len(encoding.tokens) - self.maxlen, 0)

    def _batches(self, ids, batch_size):
        """Places of texts of like length, so that little padding is computed."""
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for start in range(0, len(order), batch_size):
            yield order[start : start + batch_size]

    def _padded(self, ids):
        """Lists of ids, cut to their ends -> one array (B, S), padded by 0."""
        ids = [list(row)[-self.maxlen :] for row in ids]
        longest = max(1, *(len(row) for row in ids))
        length = -(-longest // LENGTH_STEP) * LENGTH_STEP
        array = np.zeros((len(ids), length), "int32")
        for row, values in zip(array, ids, strict=True):
            row[: len(values)] = values
        return array

    def _by_class(self, output):
        """The model's output as probabilities (B, classes)."""
        if output.shape[-1] == 1:
            return np.concatenate([1 - output, output], axis=-1)
        return output

    def _prediction(self, probabilities, words_cut):
        best = int(np.argmax(probabilities))
        return Prediction(
            label=self.labels[best],
            score=float(probabilities[best]),
            probabilities={
                label: float(p)
                for label, p in zip(self.labels, probabilities, strict=True)
            },
            words_cut=words_cut,
        )


def load(name, *, weights=None):
    """A pipeline: a trained model with its own tokenizer.

    Args:
        name: A name of `zoo.list_models()`, or a folder that a training run or
            `save` wrote.
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
    if folder.is_dir():
        return _load_folder(folder)
    if folder.exists() or len(folder.parts) > 1:
        raise ValueError(
            f"`name` must be a model of zoo.list_models() or a folder. Received: "
            f"'{name}', which is {'a file' if folder.exists() else 'not there'}."
        )
    entry = registry.find(name)
    weights = weights or next(iter(entry.weights))
    model = sentiment.FACTORIES[entry.name](weights=weights)
    trained = entry.weights[weights]
    path = registry.WEIGHTS_FOLDER / trained.tokenizer
    check_file(path, trained.tokenizer_sha256)
    return SentimentClassifier(
        model, Tokenizer.load(path), trained.labels, trained.maxlen, entry.name
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
    if missing:
        raise ValueError(
            f"'{folder / 'config.json'}' is not that of a saved model: it lacks "
            f"{', '.join(sorted(missing))}. Has the training run finished?"
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
