"""Seconds per epoch: our training program against the tutorial's script.

    python -m benchmarks.sentiment_training --data tfds

Both train the same sizes (10,000 words, vectors of 128, BiLSTM 64, additive attention
32) on the same reviews, cut to 200 ids, in batches of 128, one epoch each in turns. The
script pads every review to 200 ids and has no mask, as the tutorial does; ours masks
padding and cuts every batch to its longest review. Neither uses XLA: Keras's "auto"
leaves it off for LSTMs on TensorFlow.
"""

import time

import keras
import numpy as np
from keras import layers, ops

from benchmarks import reviews
from training import batches
from training.optimization import adam, fit_epoch
from training.sentiment import targets
from training.start import imdb_tokenizer
from zoo import imdb_bilstm_attention

WORDS, LENGTH, BATCH = 10_000, 200, 128


class TutorialAttention(layers.Layer):
    """Additive attention as textbooks write it: three Dense layers, no mask."""

    def __init__(self, units):
        super().__init__()
        self.hidden = layers.Dense(units, activation="tanh")
        self.score = layers.Dense(1)

    def call(self, states):
        weights = ops.softmax(self.score(self.hidden(states)), axis=1)
        return ops.sum(weights * states, axis=1), weights


def tutorial_model():
    """The tutorial's network, compiled as it does."""
    inputs = keras.Input((LENGTH,))
    x = layers.Embedding(WORDS, 128)(inputs)
    x = layers.Bidirectional(layers.LSTM(64, return_sequences=True))(x)
    context, _ = TutorialAttention(32)(x)
    model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(context))
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model


def our_model(steps):
    """The zoo's network in the tutorial's sizes, compiled as the program does."""
    model = imdb_bilstm_attention(
        weights=None,
        vocabulary_size=WORDS,
        embedding_dim=128,
        lstm_units=64,
        attention_units=32,
    )
    model.compile(
        adam(1e-3, steps, average_over=0.2 * steps),
        keras.losses.BinaryCrossentropy(label_smoothing=0.05),
        metrics=["accuracy"],
        jit_compile=False,
    )
    return model


def main():
    options = reviews.parse(__doc__.splitlines()[0], texts=25_000)
    texts, labels = reviews.read(options)
    ids = [encoding.ids for encoding in imdb_tokenizer().encode_batch(texts)]
    known = [[i if i < WORDS else 2 for i in row] for row in ids]
    padded = keras.utils.pad_sequences(known, LENGTH)
    y = targets(labels, 2)
    theirs, ours = tutorial_model(), our_model(-(-len(ids) // BATCH))

    def train_theirs(_):
        theirs.fit(padded, y, batch_size=BATCH, epochs=1, verbose=0)

    def train_ours(epoch):
        data = batches.dataset(
            ids, y, BATCH, LENGTH, np.random.default_rng(epoch), word_dropout=0.05
        )
        fit_epoch(ours, data, "", progress=False)

    seconds = {train_theirs: [], train_ours: []}
    for epoch in range(options.rounds + 1):
        for train in seconds:
            began = time.perf_counter()
            train(epoch)
            if epoch:  # the first compiles
                seconds[train].append(time.perf_counter() - began)
    tutorial, program = (min(times) for times in seconds.values())
    print(f"{len(ids):,} reviews, best of {options.rounds} epochs")
    print(f"tutorial's script: {tutorial:.1f} s an epoch")
    print(f"training program:  {program:.1f} s an epoch")
    print(f"ratio: {program / tutorial:.2f}")


if __name__ == "__main__":
    main()
