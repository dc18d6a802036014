"""AttentionLayer: what every attention layer shares, whatever it computes."""

import keras
from keras import ops

from keras_attention.arguments import static_shape
from keras_attention.functional import weighted_sum
from keras_attention.masking import get_activation
from keras_attention.precise import PreciseLayer


class AttentionLayer(PreciseLayer):
    """Base of all attention layers (abstract): scores -> weights -> contexts.

    Args:
        activation: What turns scores into weights: "softmax", or "sparsemax" (Martins &
            Astudillo 2016), which gives weights of exactly 0 to keys of low scores.
        dropout: Fraction of the weights to drop in training, 0 <= dropout < 1. Only the
            copy that mixes the values is dropped, never the weights returned.
        return_attention_scores: Whether a call returns `(context, weights)` (the
            default) or the context alone, as `keras.Sequential` needs. The same
            argument in a call overrides it.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.
    """

    def __init__(self, *, activation="softmax", **kwargs):
        super().__init__(**kwargs)
        self.activation = activation
        self._activation = get_activation(activation)
        if self.dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed)

    # ---- steps of the equation

    def normalize_scores(self, scores, may_attend):
        """Scores -> weights over what may be attended; exactly 0 elsewhere."""
        return ops.cast(self._activation(scores, may_attend), self.score_dtype)

    def drop(self, weights, training, kept=None):
        """The copy of the weights that mixes the values, with dropout in training."""
        if self.dropout > 0 and training:
            if kept is not None:
                return self.keep(weights, kept)
            return keras.random.dropout(weights, self.dropout, seed=self.seed_generator)
        return weights

    def mix(self, weights, value, training, kept=None):
        """Weights (..., T, S) and values (..., S, F) -> contexts (..., T, F)."""
        return weighted_sum(
            self.drop(weights, training, kept), ops.cast(value, self.score_dtype)
        )

    # ---- what a decoder asks, which attends step by step to one memory

    def draw(self, batch, steps, keys):
        """All that is random in the steps of a training call: {name: (T, B, ...)}.

        A loop over steps cannot draw: on JAX its seeds would stay inside it.
        """
        if self.dropout == 0:
            return {}
        return {"kept": self.drawn_to_keep((steps, batch, *self.weights_shape(keys)))}

    def weights_shape(self, keys):
        """The shape of one row's weights in a step over S keys."""
        return 1, keys

    # ---- what Keras asks

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        context, weights = self.output_shapes(query_shape, value_shape)
        return (context, weights) if self.return_attention_scores else context

    def compute_output_spec(
        self, query, value=None, key=None, return_attention_scores=None, **kwargs
    ):
        shapes = static_shape(query), static_shape(value), static_shape(key)
        self.check_shapes(*shapes)
        context, weights = self.output_shapes(*shapes[:2])
        context = keras.KerasTensor(context, dtype=self.compute_dtype)
        weights = keras.KerasTensor(weights, dtype=self.score_dtype)
        if self.wants_scores(return_attention_scores):
            return context, weights
        return context

    def check_shapes(self, query_shape, value_shape, key_shape):
        """Refuses shapes that are no call of this layer."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `check_shapes`."
        )

    def output_shapes(self, query_shape, value_shape):
        """The shapes of `(context, weights)` for the shapes of a call."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `output_shapes`."
        )

    def get_config(self):
        return {
            **super().get_config(),
            "activation": self.activation,
        }
