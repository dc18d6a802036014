"""What the blocks of a Transformer share: residual sub-layers, options, types."""

import keras
import numpy as np
from keras import ops

from keras_attention.arguments import allowed_pairs
from keras_attention.base import LARGEST, CarryMask
from keras_attention.kernels import check_whole
from keras_attention.masking import as_boolean_mask, silence_padding
from keras_attention.multi_head import MultiHeadAttention


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

    def residual(self, sublayer, norm, x, training, **options):
        """Xiong et al. (2020), table 1: one sub-layer with its layer norm.

        Args:
            sublayer: Takes x and the options; returns its output, or a tuple of the
                output and more.
            norm: The layer norm.
            x: Tokens (B, T, D).
            training: Whether to apply dropout.
            **options: For `sublayer`.

        Returns:
            A tuple: the sum (B, T, D), then whatever else `sublayer` returned.
        """
        before = self.normalization == "pre"
        results = sublayer(norm(x) if before else x, **options)
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


class TransformerBlock(ResidualBlock):
    """Base of the encoder and the decoder block (abstract): what they are made of.

    Args:
        num_heads: Number of heads H.
        intermediate_dim: Width of the feed-forward network's hidden layer.
        key_dim: Width of a head; by default the inputs' width / `num_heads`.
        num_key_value_heads: Number of heads of keys and values; by default `num_heads`.
        rotary_embedding: A `RotaryEmbedding` for the self-attention, or None.
        feed_forward_activation: Activation of the hidden layer.
        **kwargs: Those of `ResidualBlock`.
    """

    attention_names = ("self_attention",)  # what `attention_submodel` calls the maps

    def __init__(
        self,
        num_heads,
        intermediate_dim,
        *,
        key_dim=None,
        num_key_value_heads=None,
        rotary_embedding=None,
        feed_forward_activation="relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_whole("num_heads", num_heads, "4 to 16 are usual.")
        self.intermediate_dim = check_whole(
            "intermediate_dim", intermediate_dim, "4 times the width is usual."
        )
        for name, size in (
            ("key_dim", key_dim),
            ("num_key_value_heads", num_key_value_heads),
        ):
            if size is not None:
                check_whole(name, size, "None takes the default.")
        self.key_dim = key_dim
        self.num_key_value_heads = num_key_value_heads
        self.rotary_embedding = rotary_embedding
        self.feed_forward_activation = keras.activations.get(feed_forward_activation)

    def build_sublayers(self, shape, cross_shape=None):
        """Makes and builds all sub-layers for tokens (B, T, D) and a source, if any."""
        self.check_width(shape)
        shape = (None, None, shape[-1])
        self.self_attention = self._attention("self_attention", shape[-1])
        self.self_attention.build(shape)
        self.self_attention_norm = self._norm("self_attention_norm", shape)
        if cross_shape is not None:
            self.cross_attention = self._attention("cross_attention", shape[-1])
            self.cross_attention.build(shape, (None, None, cross_shape[-1]))
            self.cross_attention_norm = self._norm("cross_attention_norm", shape)
        self.hidden = keras.layers.Dense(
            self.intermediate_dim,
            activation=self.feed_forward_activation,
            dtype=self.score_dtype,
            name="hidden",
        )
        self.hidden.build(shape)
        self.output_dense = keras.layers.Dense(
            shape[-1], dtype=self.score_dtype, name="output_dense"
        )
        self.output_dense.build((None, None, self.intermediate_dim))
        self.feed_forward_norm = self._norm("feed_forward_norm", shape)
        if not self.trainable:
            self.trainable = False  # for the new sub-layers too
        self.built = True

    def _attention(self, name, width):
        own = name == "self_attention"
        return MultiHeadAttention(
            self.num_heads,
            self.key_dim or width // self.num_heads,
            num_key_value_heads=self.num_key_value_heads,
            rotary_embedding=self.rotary_embedding if own else None,
            dropout=self.dropout,
            return_attention_scores=False,
            seed=self.seed_of(1 if own else 2),
            dtype=self.score_dtype,
            name=name,
        )

    def _norm(self, name, shape):
        norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, dtype=self.score_dtype, name=name
        )
        norm.build(shape)
        return norm

    def feed_forward(self, x):
        """Vaswani et al. (2017), equation 2: (B, T, D) -> (B, T, D)."""
        return self.output_dense(self.hidden(x))

    def check_width(self, shape):
        """Refuses what is not tokens of a known width that the heads can share."""
        if len(shape) != 3 or shape[-1] is None:
            raise ValueError(
                f"{type(self).__name__} takes tokens (batch, length, width) of a known "
                f"width. Received: {tuple(shape)}. Token ids go through "
                "keras.layers.Embedding first."
            )
        if self.key_dim is None and shape[-1] % self.num_heads:
            raise ValueError(
                "`num_heads` must divide the inputs' width when no `key_dim` is given. "
                f"Received: num_heads={self.num_heads}, width {shape[-1]}. Give "
                f"`key_dim`, such as {max(1, shape[-1] // self.num_heads)}."
            )

    def get_config(self):
        rotary = keras.saving.serialize_keras_object(self.rotary_embedding)
        activation = keras.activations.serialize(self.feed_forward_activation)
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "intermediate_dim": self.intermediate_dim,
            "key_dim": self.key_dim,
            "num_key_value_heads": self.num_key_value_heads,
            "rotary_embedding": rotary,
            "feed_forward_activation": activation,
        }

    @classmethod
    def from_config(cls, config):
        rotary = keras.saving.deserialize_keras_object(config["rotary_embedding"])
        return cls(**{**config, "rotary_embedding": rotary})
