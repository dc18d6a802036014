"""Scheduled sampling: a decoder learns to go on from what it would have written."""

import keras
import tensorflow as tf

from training.optimization import check_tensorflow
from zoo.tokens import PAD_ID, UNKNOWN_ID


class ScheduledSampling(keras.Model):
    """A model whose training step feeds some of its own guesses to its decoder.

    Each step runs twice: first with the right tokens, to see what the model would
    write; then, for the loss, with a share of the decoder's inputs replaced by those
    guesses. The first input, the start, stays. `share` may change between epochs.

    It has the layers and the weights of the model it is made of, and trains on
    TensorFlow.

    Args:
        model: A `keras.Model` from [source ids, target ids] to logits.

    Raises:
        ValueError: if Keras runs on another backend.

    Reference: Bengio et al. (2015), "Scheduled Sampling for Sequence Prediction with
    Recurrent Neural Networks", arXiv:1506.03099, where the guesses of a step follow
    guesses; in two passes: Duckworth et al. (2019), "Parallel Scheduled Sampling",
    arXiv:1906.04331.
    """

    def __init__(self, model, seed=0):
        check_tensorflow("scheduled_sampling")
        super().__init__(name=model.name)
        self.inner = model
        self.built = True  # its weights are those of a model that has them
        self.share = tf.Variable(0.0, trainable=False)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs, training=None):
        return self.inner(inputs, training=training)

    def train_step(self, data):
        (sources, targets), labels = data
        guesses = self.guesses(sources, targets)
        mixed = self.mix(targets, guesses)
        return super().train_step(((sources, mixed), labels))

    def guesses(self, sources, targets):
        """What the model would have written in the place of each decoder input."""
        logits = self.inner([sources, targets], training=False)
        words = logits[..., UNKNOWN_ID:]  # neither padding nor the start is a guess
        written = tf.argmax(words, axis=-1, output_type=targets.dtype) + UNKNOWN_ID
        return tf.concat([targets[:, :1], written[:, :-1]], axis=1)

    def mix(self, targets, guesses):
        """Decoder inputs (B, T) with a share of them replaced; padding stays."""
        drawn = keras.random.uniform(tf.shape(targets), seed=self.seed_generator)
        replaced = (drawn < self.share) & (targets != PAD_ID)
        return tf.where(replaced, guesses, targets)
