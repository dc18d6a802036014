"""ResidualBlock: sub-layers with a residual, a layer norm and dropout around each."""

import keras
import numpy as np
from keras import ops

from keras_attention.arguments import allowed_pairs
from keras_attention.base import LARGEST, CarryMask
from keras_attention.masking import as_boolean_mask, silence_padding


class ResidualBlock(keras.layers.Layer):
    """Base of blocks of residual sub-layers (abstract): `x + f(x)` with a layer norm.

    All sums, the layer norms included, are float32 under 16-bit policies, whatever
    comes in; only the inputs and the output of a block have 16 bits.

    Args:
        normalization: Where the layer norms stand, "pre" or "post".
        layer_norm_epsilon: Added to the variances of the layer norms.
        dropout: Fraction to drop in training, 0 <= dropout < 1.
        return_attention_scores: Whether a call returns its attention weights as well.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.
    """

    def __init__(
        self,
        *,
        normalization="pre",
        layer_norm_epsilon=1e-6,
        dropout=0.0,
        return_attention_scores=False,
        seed=None,
        **kwargs,
    ):
        super().__init__(autocast=False, **kwargs)  # caches keep their type
        if normalization not in ("pre", "post"):
            raise ValueError(
                f"`normalization` must be 'pre' or 'post'. Received: {normalization!r}."
                " 'pre' normalizes the input of each sub-layer and trains without a "
                "warm-up; 'post' normalizes each sum, as in Vaswani et al. (2017)."
            )
        if not 0 <= dropout < 1:
            raise ValueError(
                f"`dropout` must be at least 0 and less than 1. Received: {dropout}. "
                "Write 0.1 to drop a tenth in training."
            )
        self.normalization = normalization
        self.layer_norm_epsilon = layer_norm_epsilon
        self.dropout = dropout
        self.return_attention_scores = return_attention_scores
        self.seed = seed
        self.supports_masking = True
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed_of(0))
        self._carry_mask = CarryMask(dtype=self.dtype_policy)

    def __call__(self, *args, **kwargs):
        # Keras tells tensors from other arguments; a mask typed as a list is one too.
        for name, value in kwargs.items():
            if name.endswith("mask") and isinstance(value, list | tuple):
                kwargs[name] = np.asarray(value)
        return super().__call__(*args, **kwargs)

    def seed_of(self, number):
        """The seed of one of several sub-layers; None without a `seed`."""
        if self.seed is None:
            return None
        mixed = np.random.SeedSequence([self.seed % 2**32, number])
        return int(mixed.generate_state(1)[0] >> 1)

    # ---- the steps of a block

    def enter(self, inputs, name, mask):
        """Inputs in the type of the sums, with 0 for padding; `name` is the mask's."""
        live = allowed_pairs(
            inputs,
            inputs,
            query_mask=None,
            key_masks={name: mask},
            attention_mask=None,
            use_causal_mask=False,
        )
        _, inputs, _ = silence_padding(None, inputs, inputs, live)
        inputs = ops.cast(inputs, self.score_dtype)
        if self.compute_dtype in LARGEST:
            inputs = ops.clip(inputs, -1e15, 1e15)  # squares and their sums are finite
        return inputs

    def residual(self, sublayer, norm, x, training):
        """Xiong et al. (2020), table 1: one sub-layer with its layer norm.

        Args:
            sublayer: Function of x that returns its output, or a tuple of the output
                and more.
            norm: The layer norm.
            x: Tokens (B, T, D).
            training: Whether to apply dropout.

        Returns:
            A tuple: the sum (B, T, D), then whatever else `sublayer` returned.
        """
        before = self.normalization == "pre"
        results = sublayer(norm(x) if before else x)
        output, *more = results if isinstance(results, tuple) else (results,)
        if self.dropout > 0 and training:
            output = keras.random.dropout(
                output, self.dropout, seed=self.seed_generator
            )
        x = x + output
        return x if before else norm(x), *more

    def leave(self, x, mask):
        """The output in the layer's type: 0 at padding, with the mask."""
        if self.compute_dtype in LARGEST:
            largest = LARGEST[self.compute_dtype]
            x = ops.clip(x, -largest, largest)
        x = ops.cast(x, self.compute_dtype)
        if mask is None:
            return x
        mask = as_boolean_mask(mask)
        return self._carry_mask(ops.where(mask[..., None], x, 0), mask=mask)

    # ---- what Keras asks

    @property
    def score_dtype(self):
        """The type sums and weights are computed in: never a 16-bit one."""
        return "float32" if self.compute_dtype in LARGEST else self.compute_dtype

    def wants_scores(self, return_attention_scores):
        """Whether this call returns its weights, by its own argument or the layer's."""
        if return_attention_scores is None:
            return self.return_attention_scores
        return return_attention_scores

    def compute_mask(self, *args, **kwargs):
        return None  # `leave` hands the mask on; weights and caches have none

    def get_config(self):
        return {
            **super().get_config(),
            "normalization": self.normalization,
            "layer_norm_epsilon": self.layer_norm_epsilon,
            "dropout": self.dropout,
            "return_attention_scores": self.return_attention_scores,
            "seed": self.seed,
        }
