"""Pretrains word vectors and LSTM as a language model, on texts without labels.

The forward LSTM of the zoo's encoder learns to predict the next word and the backward
one the word before (Dai & Le 2015, "Semi-supervised Sequence Learning", section 2.1, in
both directions); a classifier then starts from that encoder instead of from nothing.
"""

import dataclasses
import math
import time

import keras
import numpy as np
from keras import ops

from training import datasets, run_folder
from training.artifacts import conditions
from training.optimization import adam, fit_epoch, reseed
from training.start import encode, load_source, make_tokenizer
from zoo import sentiment
from zoo.files import read_json, write_by, write_json
from zoo.text import UNKNOWN_ID

FREQUENT = 5e-4  # words more frequent than this are predicted less often
EMBEDDING_DROPOUT = 0.1


def pretrain(config, progress=True):
    """Trains the language model and writes the encoder to the run's folder.

    The folder then holds encoder.keras (ids to states), tokenizer.json, history.csv,
    config.json and metrics.json.

    Args:
        config: A `training.config.PretrainingConfig`.
        progress: Whether to show a bar for each epoch.

    Returns:
        The metrics: a dictionary.
    """
    options = dataclasses.asdict(config)
    del options["resume"], options["out"]
    folder, checkpoint, finished = run_folder.open_run(
        config.out, options, config.resume
    )
    if finished is not None:
        return finished
    keras.utils.set_random_seed(config.seed)
    tokenizer, texts = read_texts(config)
    size = min(config.vocabulary_size, tokenizer.vocabulary_size)
    texts = [np.where(np.array(ids) < size, ids, UNKNOWN_ID) for ids in texts]
    counts = np.bincount(np.concatenate(texts), minlength=size)
    encoder, model = language_model(config, size, counts)
    steps = config.epochs * len(rows_of_epoch(texts, config, 0)) // config.batch_size
    model.compile(adam(config.learning_rate, steps, beta_2=0.99), jit_compile=False)
    history = _run_epochs(config, folder, checkpoint, model, texts, progress)
    tokenizer.save(folder / "tokenizer.json")
    write_by(folder / "encoder.keras", encoder.save)
    metrics = {"loss": history[-1]["loss"], "texts": len(texts), **conditions()}
    write_json(folder / "metrics.json", metrics)
    run_folder.Checkpoints(folder).remove()
    return metrics


def _run_epochs(config, folder, checkpoint, model, texts, progress):
    checkpoints, history = run_folder.Checkpoints(folder), []
    if checkpoint is not None:
        model.optimizer.build(model.trainable_variables)
        model.load_weights(checkpoint / "last.weights.h5")
        history = read_json(checkpoint / "state.json")["history"]
    for epoch in range(len(history), config.epochs):
        began = time.perf_counter()
        reseed(model, config.seed, epoch)
        rows = rows_of_epoch(texts, config, epoch)
        title = f"epoch {epoch + 1}/{config.epochs}"
        logs, _ = fit_epoch(model, batches_of_rows(rows, config), title, progress)
        seconds = time.perf_counter() - began
        history.append({"epoch": epoch + 1, "loss": logs["loss"], "seconds": seconds})
        checkpoints.save(
            epoch + 1,
            {"history": history},
            lambda place: model.save_weights(place / "last.weights.h5"),
        )
        run_folder.write_csv(folder / "history.csv", history)
    return history


def read_texts(config):
    """The tokenizer and the ids of all texts, labelled and not, the left out ones out.

    Returns:
        (tokenizer, list of lists of ids)
    """
    splits = load_source(config, config.data)
    data, held_out = splits.train, splits.test
    if config.leave_out:
        held_out = load_source(config, config.leave_out).train
    more = []
    if config.unlabelled:
        more = datasets.unlabelled(config.unlabelled, config.data_dir)
    if held_out is not None:
        known = set(map(_key, held_out.texts))
        data = datasets.leave_out(data, held_out)
        more = [text for text in more if text not in known]
    pool = dataclasses.replace(
        data,
        texts=[*data.texts, *more],
        labels=np.zeros(len(data) + len(more), "int64"),
    )
    tokenizer = make_tokenizer(config.vocabulary, config.vocabulary_size, pool)
    return tokenizer, encode(tokenizer, pool)


def _key(text):
    return text if isinstance(text, str) else tuple(text)


def rows_of_epoch(texts, config, epoch):
    """All texts in a new order, as one stream cut into rows (N, length)."""
    rng = np.random.default_rng([config.seed, epoch])
    stream = np.concatenate([texts[i] for i in rng.permutation(len(texts))])
    stream = stream[rng.integers(config.length) :]
    count = len(stream) // config.length
    if count < config.batch_size:
        raise ValueError(
            f"The texts are too short to pretrain on: they fill {count} rows of "
            f"{config.length} words, fewer than a batch of {config.batch_size}. Add "
            "texts, or make `batch_size` or `length` less."
        )
    rows = stream[: count * config.length].reshape(count, config.length)
    return rows[rng.permutation(count)].astype("int32")


def batches_of_rows(rows, config):
    """A tf.data.Dataset of rows (B, length), the last incomplete batch left out."""
    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices(rows)
    return data.batch(config.batch_size, drop_remainder=True).prefetch(4)


def language_model(config, vocabulary_size, counts):
    """The zoo's encoder, and a model whose loss is that of the language model.

    Args:
        config: The sizes.
        vocabulary_size: Number of ids.
        counts: How often each id stands in the texts (vocabulary_size,).

    Returns:
        `(encoder, model)`: ids to states, and ids to the loss; they share weights.
    """
    ids, states = sentiment.bilstm_encoder(
        {
            "vocabulary_size": vocabulary_size,
            "embedding_dim": config.embedding_dim,
            "lstm_units": config.lstm_units,
            "dropout": EMBEDDING_DROPOUT,
        }
    )
    encoder = keras.Model(ids, states, name="encoder")
    loss = SampledSoftmax(
        encoder.get_layer("embedding"),
        counts,
        config.negatives,
        neighbours=config.batch_size * (config.length - 1),
        seed=config.seed,
    )
    return encoder, keras.Model(ids, loss(states, ids))


class SampledSoftmax(keras.layers.Layer):
    """The loss of predicting both neighbours of each place, by sampled softmax.

    Each state is projected to a word vector and scored against the true neighbour and
    `negatives` sampled words (Jean et al. 2015, "On Using Very Large Target Vocabulary
    for Neural Machine Translation", equation 6). Words are sampled log-uniformly by
    rank, which ids sorted by frequency make close to their frequency. The vectors of
    the words predicted are those of the embedding (Press & Wolf 2017). Very frequent
    words are predicted less often (Mikolov et al. 2013, "Distributed Representations",
    equation 5).

    Args:
        embedding: The `keras.layers.Embedding` of the encoder.
        counts: How often each id stands in the texts (V,).
        negatives: Number of words sampled.
        neighbours: Number of words a batch has for each direction to predict.
        seed: Integer.
    """

    def __init__(self, embedding, counts, negatives, neighbours, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True  # rows of the stream have no padding
        self.embedding = embedding
        self.negatives = negatives
        self.vocabulary_size = embedding.input_dim
        self.seed_generator = keras.random.SeedGenerator(seed)
        frequency = counts / counts.sum()
        keep = np.minimum(1.0, np.sqrt(FREQUENT / np.maximum(frequency, 1e-9)))
        keep[: UNKNOWN_ID + 1] = 0.0  # padding, starts and unknown words
        self.places = max(1, int(neighbours * (frequency * keep).sum()))
        self.log_keep = np.log(np.maximum(keep, 1e-30)).astype("float32")

    def build(self, states_shape, ids_shape):
        width = self.embedding.output_dim
        self.forward_projection = keras.layers.Dense(width, name="forward")
        self.backward_projection = keras.layers.Dense(width, name="backward")
        for projection in (self.forward_projection, self.backward_projection):
            projection.build((None, states_shape[-1] // 2))
        self.bias = self.add_weight(
            shape=(self.vocabulary_size,), initializer="zeros", name="bias"
        )

    def call(self, states, ids):
        forward, backward = ops.split(states, 2, axis=-1)  # (B, T, U) each
        loss = self._direction(self.forward_projection, forward[:, :-1], ids[:, 1:])
        loss += self._direction(self.backward_projection, backward[:, 1:], ids[:, :-1])
        self.add_loss(loss)
        return ops.reshape(loss, (1, 1))

    def compute_output_shape(self, states_shape, ids_shape):
        return (1, 1)

    def _direction(self, project, states, targets):
        """Mean loss of the places drawn for this step: a scalar."""
        states = ops.reshape(states, (-1, states.shape[-1]))  # (B x T, U)
        targets = ops.reshape(targets, (-1,))
        places = self._draw_places(targets)
        hidden = project(ops.take(states, places, axis=0))  # (P, D)
        targets = ops.take(targets, places)  # (P,)
        words = self._draw_words()  # (N,)
        true = ops.sum(hidden * self._vectors(targets), -1) + self._score(targets)
        false = ops.matmul(hidden, ops.transpose(self._vectors(words)))
        false = false + self._score(words)[None, :]  # (P, N)
        same = ops.equal(targets[:, None], words[None, :])
        false = ops.where(same, -1e9, false)
        return ops.mean(ops.softplus(ops.logsumexp(false, axis=-1) - true))

    def _draw_places(self, targets):
        """A fixed number of places, more likely of rare words, without repetition."""
        shape = ops.shape(targets)
        uniform = keras.random.uniform(shape, 1e-9, 1.0, seed=self.seed_generator)
        gumbel = -ops.log(-ops.log(uniform))
        keep = ops.take(ops.convert_to_tensor(self.log_keep), targets)
        return ops.top_k(keep + gumbel, self.places, sorted=False)[1]

    def _draw_words(self):
        """`negatives` ids, log-uniform by rank, with replacement."""
        uniform = keras.random.uniform((self.negatives,), seed=self.seed_generator)
        ids = ops.exp(uniform * math.log(self.vocabulary_size + 1)) - 1
        ids = ops.cast(ops.floor(ids), "int32")
        return ops.minimum(ids, self.vocabulary_size - 1)

    def _vectors(self, ids):
        return ops.take(self.embedding.embeddings, ids, axis=0)

    def _score(self, ids):
        """Bias, less the log of how often the word is expected among the sampled."""
        rank = ops.cast(ids, "float32")
        probability = ops.log((rank + 2) / (rank + 1)) / math.log(
            self.vocabulary_size + 1
        )
        return ops.take(self.bias, ids) - ops.log(probability * self.negatives)
