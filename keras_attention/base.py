"""AttentionLayer: what every attention layer shares, whatever it computes."""

import keras
import numpy as np
from keras import ops

from keras_attention.arguments import static_shape
from keras_attention.functional import weighted_sum
from keras_attention.masking import get_activation

LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38}  # of the 16-bit types


class AttentionLayer(keras.layers.Layer):
    """Base of all attention layers (abstract): their options and their number types.

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

    def __init__(
        self,
        *,
        activation="softmax",
        dropout=0.0,
        return_attention_scores=True,
        seed=None,
        **kwargs,
    ):
        # Layers cast what they need themselves: a cache or a state keeps its float32.
        super().__init__(autocast=False, **kwargs)
        if not 0 <= dropout < 1:
            raise ValueError(
                f"`dropout` must be at least 0 and less than 1. Received: {dropout}. "
                "Write 0.1 to drop a tenth of the weights in training."
            )
        self.activation = activation
        self.dropout = dropout
        self.return_attention_scores = return_attention_scores
        self.seed = seed
        self.supports_masking = True
        self._activation = get_activation(activation)
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self._carry_mask = CarryMask(dtype=self.dtype_policy)

    def __call__(self, *args, **kwargs):
        # Keras tells tensors from other arguments; a mask typed as a list is one too.
        for name, value in kwargs.items():
            if name.endswith("mask") and isinstance(value, list | tuple):
                kwargs[name] = np.asarray(value)
        return super().__call__(*args, **kwargs)

    # ---- steps of the equation

    def normalize_scores(self, scores, may_attend):
        """Scores -> weights over what may be attended; exactly 0 elsewhere."""
        return self._activation(scores, may_attend)

    def drop(self, weights, training):
        """The copy of the weights that mixes the values, with dropout in training."""
        if self.dropout > 0 and training:
            return keras.random.dropout(weights, self.dropout, seed=self.seed_generator)
        return weights

    def mix(self, weights, value, training):
        """Weights (..., T, S) and values (..., S, F) -> contexts (..., T, F)."""
        return weighted_sum(
            self.drop(weights, training), ops.cast(value, self.score_dtype)
        )

    # ---- number types

    @property
    def score_dtype(self):
        """The type scores and weights are computed in: never a 16-bit one."""
        return "float32" if self.compute_dtype in LARGEST else self.compute_dtype

    def lift(self, inputs):
        """Inputs in `score_dtype`; 16-bit ones within what dot products can hold."""
        inputs = ops.cast(inputs, self.score_dtype)
        if self.score_dtype == self.compute_dtype:
            return inputs
        return ops.clip(inputs, -1e15, 1e15)

    def lower(self, context):
        """The context in the layer's type; dropout may scale it beyond a 16-bit one."""
        if self.compute_dtype in LARGEST:
            largest = LARGEST[self.compute_dtype]
            context = ops.clip(context, -largest, largest)
        return ops.cast(context, self.compute_dtype)

    # ---- what Keras asks

    def wants_scores(self, return_attention_scores):
        """Whether this call returns its weights, by its own argument or the layer's."""
        if return_attention_scores is None:
            return self.return_attention_scores
        return return_attention_scores

    def compute_mask(self, query, previous_mask=None):
        # A pooled context has no mask, and from here the forms look alike: `call` hands
        # the query's mask on itself.
        return None

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
            "dropout": self.dropout,
            "return_attention_scores": self.return_attention_scores,
            "seed": self.seed,
        }


class CarryMask(keras.layers.Layer):
    """A copy of its input with the mask it is given, or with the input's own."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True
        self.built = True

    def call(self, inputs, mask=None):
        return ops.copy(inputs)  # a new tensor: the old one may have a mask already
