"""ResidualBlock: sub-layers with a residual, a layer norm and dropout around each."""

import keras
import numpy as np
from keras import ops

from keras_attention.arguments import allowed
from keras_attention.masking import as_boolean_mask, silence_padding
from keras_attention.precise import PreciseLayer


class ResidualBlock(PreciseLayer):
    """Base of blocks of residual sub-layers (abstract): `x + f(x)` with a layer norm.

    All sums, the layer norms included, are float32 under 16-bit policies, whatever
    comes in; only the inputs and the output of a block have 16 bits.

    Args:
        normalization: Where the layer norms stand, "pre" or "post".
        layer_norm_epsilon: Added to the variances of the layer norms.
        return_attention_scores: Whether a call returns its attention weights as well.
        **kwargs: `dropout` and `seed` of `PreciseLayer`; `name`, `dtype`, `trainable`
            of `keras.layers.Layer`.
    """

    def __init__(
        self,
        *,
        normalization="pre",
        layer_norm_epsilon=1e-6,
        return_attention_scores=False,
        **kwargs,
    ):
        super().__init__(return_attention_scores=return_attention_scores, **kwargs)
        if normalization not in ("pre", "post"):
            raise ValueError(
                f"`normalization` must be 'pre' or 'post'. Received: {normalization!r}."
                " 'pre' normalizes the input of each sub-layer and trains without a "
                "warm-up; 'post' normalizes each sum, as in Vaswani et al. (2017)."
            )
        self.normalization = normalization
        self.layer_norm_epsilon = layer_norm_epsilon
        if self.dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed_of(0))

    def seed_of(self, number):
        """The seed of one of several sub-layers; None without a `seed`."""
        if self.seed is None:
            return None
        mixed = np.random.SeedSequence([self.seed % 2**32, number])
        return int(mixed.generate_state(1)[0] >> 1)

    # ---- the steps of a block

    def enter(self, inputs, name, mask):
        """Inputs in the type of the sums, with 0 for padding; `name` is the mask's."""
        live = allowed(
            inputs,
            inputs,
            query_mask=None,
            key_masks={name: mask},
            attention_mask=None,
            use_causal_mask=False,
        )
        _, inputs, _ = silence_padding(None, inputs, inputs, live.pairs)
        return self.lift(inputs)

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
        x = self.lower(x)
        if mask is None:
            return x
        mask = as_boolean_mask(mask)
        return self._carry_mask(ops.where(mask[..., None], x, 0), mask=mask)

    # ---- what Keras asks

    def get_config(self):
        return {
            **super().get_config(),
            "normalization": self.normalization,
            "layer_norm_epsilon": self.layer_norm_epsilon,
        }
