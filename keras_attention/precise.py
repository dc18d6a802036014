"""PreciseLayer: layers that add up in float32, whatever they are given."""

import numbers

import keras
import numpy as np
from keras import ops

LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38}  # of the 16-bit types


class PreciseLayer(keras.layers.Layer):
    """Base of all that attends (abstract): number types, dropout, whether it tells.

    Args:
        dropout: Fraction to drop in training, 0 <= dropout < 1.
        return_attention_scores: Whether a call returns its weights; the same argument
            in a call overrides it.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.
    """

    def __init__(
        self, *, dropout=0.0, return_attention_scores=True, seed=None, **kwargs
    ):
        # Layers cast what they need themselves: a cache or a state keeps its float32.
        super().__init__(autocast=False, **kwargs)
        if not (isinstance(dropout, numbers.Real) and 0 <= dropout < 1):
            raise ValueError(
                "`dropout` must be at least 0 and less than 1. Received: "
                f"{dropout!r}. Write 0.1 to drop a tenth in training."
            )
        self.dropout = dropout
        self.return_attention_scores = return_attention_scores
        self.seed = seed
        self.supports_masking = True
        self._carry_mask = CarryMask(dtype=self.dtype_policy)

    def __call__(self, *args, **kwargs):
        # Keras tells tensors from other arguments; a mask typed as a list is one too.
        for name, value in kwargs.items():
            if name.endswith("mask") and isinstance(value, list | tuple):
                kwargs[name] = np.asarray(value)
        return super().__call__(*args, **kwargs)

    @property
    def score_dtype(self):
        """The type sums and weights are computed in: never a 16-bit one."""
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

    def drawn_to_keep(self, shape):
        """Booleans of a shape, False where dropout in training is to drop."""
        uniform = keras.random.uniform(shape, dtype="float32", seed=self.seed_generator)
        return uniform >= self.dropout

    def keep(self, inputs, kept):
        """Inputs scaled where `kept` is True, else 0: dropout that is drawn already."""
        return ops.where(kept, inputs / (1 - self.dropout), 0)

    def wants_scores(self, return_attention_scores):
        """Whether this call returns its weights, by its own argument or the layer's."""
        if return_attention_scores is None:
            return self.return_attention_scores
        return return_attention_scores

    def compute_mask(self, *args, **kwargs):
        # Which results have a mask depends on the call: it hands the mask on itself.
        return None

    def check_built(self, method):
        """Refuses a method that needs the weights of a layer without any."""
        if not self.built:
            raise ValueError(
                f"Layer '{self.name}' is not built, so it has no weights yet. "
                f"Received: a call of `{method}`. Call the layer on a batch first, or "
                "`build` it."
            )

    def get_config(self):
        return {
            **super().get_config(),
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
