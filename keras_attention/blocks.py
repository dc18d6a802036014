"""What the encoder and the decoder block of a Transformer share: their sub-layers."""

import keras

from keras_attention.kernels import check_whole
from keras_attention.multi_head import MultiHeadAttention
from keras_attention.residual import ResidualBlock


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
            **self._options("hidden"),
        )
        self.hidden.build(shape)
        self.output_dense = keras.layers.Dense(
            shape[-1], **self._options("output_dense")
        )
        self.output_dense.build((None, None, self.intermediate_dim))
        self.feed_forward_norm = self._norm("feed_forward_norm", shape)
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
            **self._options(name),
        )

    def _norm(self, name, shape):
        norm = keras.layers.LayerNormalization(
            epsilon=self.layer_norm_epsilon, **self._options(name)
        )
        norm.build(shape)
        return norm

    def _options(self, name):
        """What every sub-layer takes from the block."""
        return {"name": name, "dtype": self.score_dtype, "trainable": self.trainable}

    def feed_forward(self, x):
        """Vaswani et al. (2017), equation 2: (B, T, D) -> (B, T, D)."""
        return self.output_dense(self.hidden(x))

    def name_maps(self, maps):
        """The weights of all attentions as a call returns them."""
        if len(maps) == 1:
            return maps[0]
        return dict(zip(self.attention_names, maps, strict=True))

    # ---- what Keras asks

    def output_specs(self, tokens, keys, cache, return_attention_scores):
        """What a call returns, as symbols; `keys` are how many each attention sees."""
        self.check_width(tokens.shape)
        batch, length, _ = tokens.shape
        results = [keras.KerasTensor(tokens.shape, dtype=self.compute_dtype)]
        if self.wants_scores(return_attention_scores):
            shapes = [(batch, self.num_heads, length, size) for size in keys]
            maps = [keras.KerasTensor(s, dtype=self.score_dtype) for s in shapes]
            results.append(self.name_maps(maps))
        if cache is not None:
            results.append(
                keras.tree.map_structure(
                    lambda x: keras.KerasTensor(x.shape, dtype=x.dtype), cache
                )
            )
        return tuple(results) if len(results) > 1 else results[0]

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


def check_cache_pair(cache, position):
    """Refuses one of the two without the other."""
    if (cache is None) != (position is None):
        given, missing = ("cache", "position")[:: 1 if position is None else -1]
        raise ValueError(
            f"`cache` and `position` go together. Received: `{given}` without "
            f"`{missing}`. `empty_cache` makes a cache; `position` says where the new "
            "tokens are written."
        )
