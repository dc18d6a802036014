"""The blocks of a Transformer: an encoder's, also causal, and a decoder's."""

import functools

import keras
from keras import ops

from keras_attention.blocks import TransformerBlock, check_cache_pair


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerEncoderBlock(TransformerBlock):
    """One block of a Transformer encoder: self-attention, then a feed-forward network.

    "pre": `x = x + attention(norm(x))`, `y = x + feed_forward(norm(x))`;
    "post": `x = norm(x + attention(x))`, `y = norm(x + feed_forward(x))`; where
    `feed_forward(x) = activation(x W_1 + b_1) W_2 + b_2`, for each token on its own.

    With `use_causal_mask=True` it is the block of a decoder-only language model, with
    caches. A stack of "pre" blocks ends in a `keras.layers.LayerNormalization`.

    Padding: masked tokens have the weight 0 whatever they hold, and outputs of 0. The
    mask goes on.

    Args:
        num_heads: Number of heads H.
        intermediate_dim: Width of the feed-forward network's hidden layer.
        key_dim: Width of a head; by default the inputs' width / `num_heads`.
        num_key_value_heads: Number of heads of keys and values, a divisor of
            `num_heads`; as many by default. See `MultiHeadAttention`.
        rotary_embedding: A `RotaryEmbedding` for queries and keys, or None.
        feed_forward_activation: Activation of the hidden layer, a name or a function.
        normalization: Where the layer norms stand: "pre", before the sub-layers, which
            trains without a warm-up; or "post", after the sums.
        layer_norm_epsilon: Added to the variances of the layer norms.
        dropout: Fraction of the attention weights and of each sub-layer's output to
            drop in training. It never shows in the weights returned.
        return_attention_scores: Whether a call returns `(output, weights)` or, the
            default, the output alone.
        seed: Integer seed of the dropout; each sub-layer drops its own.
        **kwargs: The last five, and `name`, `dtype`, `trainable` of
            `keras.layers.Layer`.

    Call arguments:
        inputs: Tokens (B, T, D).
        mask: Padding mask (B, T). Keras fills it.
        inputs_mask: The same, as Keras names it in a call with several tensors.
        attention_mask: Mask (B, T, T) or (B, H, T, T) for single pairs, 1s to
            broadcast; with a cache of S slots (B, T, S).
        use_causal_mask: Whether token t may attend only to the tokens 0..t.
        cache: From `empty_cache`, with `position`. It is causal by itself, and
            remembers the padding of `mask`.
        position: Where the T new tokens are written into the cache, a scalar integer.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Returns:
        The output (B, T, D); or `(output, weights)` with weights (B, H, T, T). With
        `position` the cache comes last, and weights are (B, H, T, S).

    Raises:
        ValueError: for inputs of another rank, a mask of another shape or with values
            other than 0 and 1, heads that do not divide the width.

    Example:

    >>> block = TransformerEncoderBlock(num_heads=2, intermediate_dim=16)
    >>> tokens = np.ones((3, 5, 8))
    >>> tuple(block(tokens).shape)
    (3, 5, 8)
    >>> output, weights = block(tokens, return_attention_scores=True)
    >>> tuple(weights.shape)
    (3, 2, 5, 5)

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762,
    section 3.1. "pre": Xiong et al. (2020), arXiv:2002.04745.
    """

    def build(self, inputs_shape):
        self.build_sublayers(inputs_shape)

    def call(
        self,
        inputs,
        *,
        mask=None,
        inputs_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        position=None,
        return_attention_scores=None,
        training=None,
    ):
        check_cache_pair(cache, position)
        mask = inputs_mask if mask is None else mask
        attend = functools.partial(
            self.self_attention,
            query_mask=mask,
            value_mask=mask if cache is None else None,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            cache=cache,
            position=position,
            return_attention_scores=self.wants_scores(return_attention_scores),
            training=training,
        )
        x = self.enter(inputs, "mask", mask)
        x, *more = self.residual(attend, self.self_attention_norm, x, training)
        (x,) = self.residual(self.feed_forward, self.feed_forward_norm, x, training)
        output = self.leave(x, mask)
        return (output, *more) if more else output

    def empty_cache(self, batch_size, length):
        """An empty cache for `length` tokens, as `MultiHeadAttention.empty_cache`."""
        self.check_built("empty_cache")
        return self.self_attention.empty_cache(batch_size, length)

    # ---- what Keras asks

    def compute_output_shape(self, inputs_shape):
        shape = tuple(inputs_shape)
        weights = (shape[0], self.num_heads, shape[1], shape[1])
        return (shape, weights) if self.return_attention_scores else shape

    def compute_output_spec(
        self, inputs, cache=None, return_attention_scores=None, **kwargs
    ):
        keys = inputs.shape[1] if cache is None else cache[0].shape[2]
        return self.output_specs(inputs, [keys], cache, return_attention_scores)


@keras.saving.register_keras_serializable(package="keras_attention")
class TransformerDecoderBlock(TransformerBlock):
    """One block of a Transformer decoder: causal self-attention, attention to a source,
    a feed-forward network.

    The equations are those of `TransformerEncoderBlock`, with
    `x = x + cross_attention(norm(x), source)` in the middle. A token sees the tokens up
    to itself, and all of the source that is not padding.

    Padding: masked tokens of target and source have the weight 0 whatever they hold;
    those of the target have outputs of 0. The target's mask goes on.

    Args:
        num_heads: Number of heads H of both attentions.
        intermediate_dim: Width of the feed-forward network's hidden layer.
        key_dim: Width of a head; by default the target's width / `num_heads`.
        num_key_value_heads: Number of heads of keys and values, a divisor of
            `num_heads`; as many by default. See `MultiHeadAttention`.
        rotary_embedding: A `RotaryEmbedding` for the self-attention, or None.
        feed_forward_activation: Activation of the hidden layer, a name or a function.
        **kwargs: `normalization`, `layer_norm_epsilon`, `dropout`,
            `return_attention_scores` and `seed` as in `TransformerEncoderBlock`;
            `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        target: Tokens (B, T, D).
        source: What the tokens attend to, (B, S, F): an encoder's output.
        target_mask: Padding mask (B, T) of the target. Keras fills it.
        source_mask: Padding mask (B, S) of the source. Keras fills it; a cache has it
            from `empty_cache`.
        attention_mask: Mask (B, T, T) or (B, H, T, T) for single pairs of the
            self-attention, 1s to broadcast; with a cache of L slots (B, T, L).
        cache: From `empty_cache`, in the place of `source`, with `position`. It
            remembers the padding of `target_mask`.
        position: Where the T new tokens are written into the cache, a scalar integer.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Returns:
        The output (B, T, D); or `(output, weights)`, where weights is
        `{"self_attention": (B, H, T, T), "cross_attention": (B, H, T, S)}`. With
        `position` the cache comes last, and the first weights are (B, H, T, L).

    Raises:
        ValueError: without a source, for inputs of another rank, a mask of another
            shape or with values other than 0 and 1, heads that do not divide the width.

    Example:

    >>> block = TransformerDecoderBlock(num_heads=2, intermediate_dim=16)
    >>> target, source = np.ones((3, 5, 8)), np.ones((3, 7, 8))
    >>> output = block(target, source)
    >>> cache = block.empty_cache(batch_size=3, length=5, source=source)
    >>> step, cache = block(target[:, :1], cache=cache, position=0)
    >>> bool(np.allclose(step, output[:, :1], atol=1e-5))
    True

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762,
    section 3.1. "pre": Xiong et al. (2020), arXiv:2002.04745.
    """

    attention_names = ("self_attention", "cross_attention")

    def build(self, target_shape, source_shape=None):
        self.check_source(source_shape)
        self.build_sublayers(target_shape, source_shape)

    def call(
        self,
        target,
        source=None,
        *,
        target_mask=None,
        source_mask=None,
        attention_mask=None,
        cache=None,
        position=None,
        return_attention_scores=None,
        training=None,
    ):
        own, memory = self._keys(source, target_mask, source_mask, cache, position)
        common = {
            "query_mask": target_mask,
            "return_attention_scores": self.wants_scores(return_attention_scores),
            "training": training,
        }
        attend = functools.partial(
            self.self_attention, attention_mask=attention_mask, **own, **common
        )
        look = functools.partial(self.cross_attention, **memory, **common)
        x = self.enter(target, "target_mask", target_mask)
        x, *of_target = self.residual(attend, self.self_attention_norm, x, training)
        x, *of_source = self.residual(look, self.cross_attention_norm, x, training)
        (x,) = self.residual(self.feed_forward, self.feed_forward_norm, x, training)
        results = [self.leave(x, target_mask)]
        if of_source:
            results.append(self.name_maps([of_target[0], of_source[0]]))
        if cache is not None:
            results.append({"self": of_target[-1], "cross": cache["cross"]})
        return tuple(results) if len(results) > 1 else results[0]

    def _keys(self, source, target_mask, source_mask, cache, position):
        """What each of the two attentions takes beside its queries."""
        check_cache_pair(cache, position)
        if cache is None:
            self.check_source(source)
            source = self.enter(source, "source_mask", source_mask)
            own = {"use_causal_mask": True, "value_mask": target_mask}
            return own, {"value": source, "value_mask": source_mask}
        if source is not None:
            raise ValueError(
                "`cache` holds the source already. Received: `cache` and `source`. "
                "Leave `source` out."
            )
        own = {"cache": cache["self"], "position": position}
        return own, {"cache": cache["cross"], "value_mask": source_mask}

    def empty_cache(self, batch_size, length, source, source_mask=None):
        """A cache for `length` tokens, none of them written; the source is projected.

        Args:
            batch_size: Number of rows B.
            length: Number of slots.
            source: What the tokens attend to, (B, S, F). The layer must be built.
            source_mask: Padding mask (B, S). What is padding is not read.

        Returns:
            `{"self": cache, "cross": cache}`, those of the two attentions.
        """
        self.check_built("empty_cache")
        source = self.enter(ops.convert_to_tensor(source), "source_mask", source_mask)
        return {
            "self": self.self_attention.empty_cache(batch_size, length),
            "cross": self.cross_attention.project_memory(
                source, value_mask=source_mask
            ),
        }

    # ---- what Keras asks

    def check_source(self, source):
        """Refuses a call without a source; takes it, or its shape."""
        if source is None:
            raise ValueError(
                f"{type(self).__name__} attends to a `source`. Received: None. For a "
                "decoder without one take TransformerEncoderBlock and call it with "
                "use_causal_mask=True."
            )

    def compute_output_shape(self, target_shape, source_shape=None):
        specs = [
            None if shape is None else keras.KerasTensor(shape)
            for shape in (target_shape, source_shape)
        ]
        specs = self.compute_output_spec(*specs)
        return keras.tree.map_structure(lambda spec: tuple(spec.shape), specs)

    def compute_output_spec(
        self, target, source=None, cache=None, return_attention_scores=None, **kwargs
    ):
        if cache is None:
            self.check_source(source)
            keys = [target.shape[1], source.shape[1]]
        else:
            keys = [heads[0].shape[2] for heads in (cache["self"], cache["cross"])]
        return self.output_specs(target, keys, cache, return_attention_scores)
