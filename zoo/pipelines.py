"""SentimentClassifier: text in, labels, scores and attention out."""

import dataclasses
import functools

import keras
import numpy as np
from keras import ops

from keras_attention import attention_submodel, holds_attention
from zoo.checks import check_integer
from zoo.compiled import compiled
from zoo.explanation import Explanation
from zoo.padding import cut_and_pad
from zoo.saving import save_pipeline

PIPELINE = "sentiment"
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

    Raises:
        ValueError: if the labels do not fit the model's output.
    """

    def __init__(self, model, tokenizer, labels, maxlen, name=None):
        self._model = model
        self.tokenizer = tokenizer
        self.labels = tuple(labels)
        self.maxlen = check_integer("maxlen", maxlen, 1)
        self.name = name or model.name
        width = model.output_shape[-1]
        if width != (1 if len(self.labels) == 2 else len(self.labels)):
            raise ValueError(
                f"`labels` must name the classes of the model, whose output is {width} "
                f"wide. Received: {self.labels}. An output of width 1 tells two "
                "classes apart."
            )

    @property
    def model(self):
        """The `keras.Model`. For another one make another pipeline."""
        return self._model

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
            ids: A list of lists of ids, such as an array of `keras.datasets.imdb`, as
                it comes or padded.
            batch_size: Number of texts computed at once.

        Returns:
            Array (texts, classes), in order.

        Raises:
            TypeError: if an item is no list or array of integers.
        """
        check_integer("batch_size", batch_size, 1)
        _check_rows(ids)
        ids = [[i for i in row if i] if 0 in row else row for row in ids]
        probabilities = np.empty((len(ids), len(self.labels)), "float32")
        for rows in self._batches(ids, batch_size):
            output = self._run(self._padded([ids[i] for i in rows]))
            probabilities[rows] = self._by_class(ops.convert_to_numpy(output))
        return probabilities

    def explain(self, text):
        """Classifies one text and says what the attention looked at.

        Args:
            text: A string.

        Returns:
            An `Explanation`: label, score, and a weight for each word read.

        Raises:
            TypeError: if `text` is not a string.
            ValueError: if the model does not pool by one attention layer.
        """
        if not isinstance(text, str):
            raise TypeError(
                f"`text` must be a string. Received: {type(text).__name__}. For "
                "several texts call explain for each."
            )
        (encoding,) = self.tokenizer.encode_batch([text])
        output, maps = keras.tree.map_structure(
            ops.convert_to_numpy, self._run_with_attention(self._padded([encoding.ids]))
        )
        (weights,) = maps.values()
        prediction = self._prediction(self._by_class(output)[0], 0)
        cut = self._words_cut(encoding)
        # Where the words begin in the ids that were read: the start id is cut first.
        start = 0 if len(encoding.ids) > self.maxlen else 1
        read = encoding.offsets[cut:]
        weights = weights[0, start : start + len(read), 0]
        return Explanation(
            text=text,
            label=prediction.label,
            score=prediction.score,
            probabilities=prediction.probabilities,
            tokens=encoding.tokens[cut:],
            offsets=read,
            weights=[float(weight) for weight in weights],
            words_cut=cut,
            model_name=self.name,
        )

    @functools.cached_property
    def _run(self):
        return _compiled(self.model)

    @functools.cached_property
    def _run_with_attention(self):
        if not holds_attention(self.model):
            raise ValueError(
                f"The model '{self.name}' has no attention layer, so there is nothing "
                "to explain by. Load one that has, such as 'imdb_bilstm_attention'."
            )
        both = attention_submodel(self.model)
        maps = {name: tuple(w.shape) for name, w in both.output[1].items()}
        if len(maps) != 1 or next(iter(maps.values()))[2:] != (1,):
            raise ValueError(
                "To explain, a model must pool its words by one attention layer, whose "
                f"weights are (batch, words, 1). Received: {maps}. Read the maps of "
                "other models by keras_attention.attention_submodel(clf.model)."
            )
        return _compiled(both)

    def save(self, folder, **more):
        """Writes model, tokenizer and labels to a folder that `zoo.load` reads.

        Args:
            folder: Made if it is not there; files of the same names are replaced.
            **more: Plain types to keep in its config.json as well.
        """
        config = {
            "pipeline": PIPELINE,
            "name": self.name,
            "labels": list(self.labels),
            "maxlen": self.maxlen,
        }
        tokenizers = {"tokenizer.json": self.tokenizer}
        save_pipeline(folder, self.model, tokenizers, {**config, **more})

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
        return cut_and_pad(ids, self.maxlen, multiple_of=LENGTH_STEP)

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


def _check_rows(ids):
    """Refuses what is not a list of texts as ids, by the place of the first."""
    for place, row in enumerate(ids):
        if isinstance(row, str) or not hasattr(row, "__len__"):
            raise TypeError(
                "`ids` must be a list of texts, each a list of ids. Received: "
                f"{row!r} at place {place}. Write [ids] for one text; a string goes to "
                "predict."
            )


def _compiled(model):
    """The model in use, as a function of ids (B, S): traced once for all sizes."""
    return compiled(lambda ids: model(ids, training=False), model.variables, ranks=(2,))
