"""MultiHeadAttention: several scaled dot-product attentions side by side, cached."""

import keras
from keras import ops

from keras_attention.arguments import (
    allowed,
    check_cache,
    refuse_plain_mask,
    static_shape,
)
from keras_attention.heads import (
    fused_attention,
    grouped_scores,
    grouped_sum,
    has_fused_kernel,
    write_cache,
    written_slots,
)
from keras_attention.masking import as_boolean_mask, combine_masks, silence_padding
from keras_attention.projections import HeadProjections


@keras.saving.register_keras_serializable(package="keras_attention")
class MultiHeadAttention(HeadProjections):
    """Multi-head attention: self, cross or causal, with caches for decoding.

    `head_i = softmax(Q_i K_i^T / sqrt(key_dim)) V_i`, where Q_i, K_i and V_i are
    learned projections of query, key and value; `output = [head_1; ...; head_h] W_o`.

    Unlike `keras.layers.MultiHeadAttention` it gives the same numbers with and without
    the weights asked for, gives zeros (not a mean over padding) where there is nothing
    to attend to, leaves the masks of its inputs alone, refuses a padding mask (B, S) as
    `attention_mask`, and decodes step by step. `copy_weights` copies from and to it and
    `torch.nn.MultiheadAttention`.

    Padding: masked keys have the weight 0 whatever they hold; padded queries have
    weights and outputs 0. The query's mask goes on.

    Args:
        num_heads: Number of heads H of the queries.
        key_dim: Width of a head's queries and keys.
        value_dim: Width of a head's values; by default `key_dim`.
        num_key_value_heads: Number of heads of keys and values, a divisor of
            `num_heads`; as many by default. With fewer, groups of query heads share one
            (grouped-query attention, Ainslie et al. 2023), and caches are smaller.
        output_dim: Width of the output; by default that of the query.
        use_bias: Whether the four projections have biases.
        rotary_embedding: A `RotaryEmbedding` that turns queries and keys by their
            positions, or None. Padding on the left changes nothing.
        kernel_initializer: Initializer of the four kernels.
        kernel_regularizer: Regularizer of the four kernels.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: Queries (B, T, D).
        value: Values (B, S, F). The queries by default: self-attention.
        key: Keys (B, S, K). The values by default.
        mask: With a query alone, its padding mask (B, T). Keras fills it.
        query_mask: Padding mask (B, T) of the queries. Keras fills it.
        value_mask: Padding mask (B, S) of the values. Keras fills it.
        key_mask: Padding mask (B, S) of the keys. Keras fills it.
        attention_mask: Mask (B, T, S) or (B, H, T, S) for single pairs, 1s to
            broadcast.
        use_causal_mask: Whether query t may attend only to the keys 0..t.
        cache: Keys and values that are projected already: from `empty_cache`, with
            `position`; or from `project_memory`, in the place of `value` and `key`. It
            knows which of its slots are padding; a `value_mask` (B, S) may hide more.
        position: Where the T new keys and values are written into the cache, a scalar
            integer. Query t attends to the cache up to position + t. One outside the
            cache is refused, where its value can be read; in a compiled function the
            backend takes the nearest slot.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Returns:
        `(output, weights)`: (B, T, output_dim) and (B, H, T, S); with `position`,
        `(output, weights, cache)`.

    In `keras.Sequential` write `return_attention_scores=False`.

    Raises:
        ValueError: for inputs of other ranks, a mask of another shape or with values
            other than 0 and 1, heads that do not divide.

    Example:

    >>> layer = MultiHeadAttention(num_heads=2, key_dim=4)
    >>> tokens = np.ones((3, 5, 8))
    >>> output, weights = layer(tokens, use_causal_mask=True)
    >>> tuple(output.shape), tuple(weights.shape)
    ((3, 5, 8), (3, 2, 5, 5))
    >>> cache = layer.empty_cache(batch_size=3, length=5)
    >>> step, weights, cache = layer(tokens[:, :1], cache=cache, position=0)
    >>> step, output = map(keras.ops.convert_to_numpy, (step, output))
    >>> bool(np.allclose(step, output[:, :1], atol=1e-6))
    True

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762,
    section 3.2.2. Grouped queries: Ainslie et al. (2023), arXiv:2305.13245.
    """

    def call(
        self,
        query,
        value=None,
        key=None,
        *,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        cache=None,
        position=None,
        return_attention_scores=None,
        training=None,
    ):
        shapes = static_shape(query), static_shape(value), static_shape(key)
        self.check_shapes(*shapes)
        others = value is not None or key is not None or use_causal_mask
        check_cache(query, others, cache, position, (self.groups, self.key_dim))
        key_masks = {"value_mask": value_mask, "key_mask": key_mask}
        if value is None:
            query_mask = combine_masks(query_mask, mask)
            if cache is None:
                key_masks["query_mask"] = query_mask
        else:
            refuse_plain_mask(mask)
        value = query if value is None else value
        key = value if key is None else key
        slots = key if cache is None else ops.swapaxes(cache[0], 1, 2)
        may_attend = allowed(
            query,
            slots,
            query_mask=query_mask,
            key_masks=key_masks,
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
            heads=self.num_heads,
        ).pairs
        itself = position is not None or value is query  # slots will do for positions
        if cache is None:
            query, key, value = silence_padding(query, key, value, may_attend)
            padding = None if itself else combine_masks(value_mask, key_mask)
            memory = self.memory_heads(key, value, 0, padding)
        else:
            cache, seen = self._read(cache, query, query_mask, position)
            may_attend = combine_masks(may_attend, seen)
            memory = cache[:2]
        asked = self.wants_scores(return_attention_scores)
        turned_by = None if itself else query_mask
        query_heads = self.query_heads(
            query, 0 if position is None else position, turned_by
        )
        context, weights = self._heads(
            query_heads, *memory, may_attend, asked, training
        )
        output = self.merge(context, may_attend, query_mask)
        results = (output, weights) if asked else (output,)
        if position is not None:
            results = (*results, cache)
        return results if len(results) > 1 else output

    # ---- the steps of the equation

    def _heads(self, query, key, value, may_attend, asked, training):
        """Heads of queries, keys and values -> contexts (B, H, T, v) and weights."""
        plain = self.activation == "softmax" and not (self.dropout > 0 and training)
        if plain and not asked and has_fused_kernel(query.shape[-1], value.shape[-1]):
            return fused_attention(query, key, value, may_attend), None
        weights = self.normalize_scores(grouped_scores(query, key), may_attend)
        return grouped_sum(self.drop(weights, training), value), weights

    # ---- decoding step by step

    def _read(self, cache, query, query_mask, position):
        """The cache, with new tokens if there is a position, and what they may see."""
        if position is None:
            return cache, cache[2][:, None, None]
        real = query_mask
        if real is None:
            real = ops.ones(ops.shape(query)[:2], "bool")
        query = ops.where(real[..., None], query, 0)  # whatever is in padded slots
        fresh = *self.memory_heads(query, query, position), real
        cache = write_cache(cache, fresh, position)
        steps, slots = ops.shape(query)[1], ops.shape(cache[0])[2]
        seen = written_slots(position, steps, slots)
        return cache, combine_masks(seen, cache[2][:, None, None])

    def empty_cache(self, batch_size, length):
        """A cache of no tokens yet, with room for `length`.

        Returns:
            Heads of keys (B, G, length, d) and of values (B, G, length, v), and a
            boolean (B, length), True where a slot holds a real token.
        """
        widths = self.key_dim, self.value_dim or self.key_dim
        heads = (
            ops.zeros((batch_size, self.groups, length, width), self.score_dtype)
            for width in widths
        )
        return *heads, ops.zeros((batch_size, length), "bool")

    def project_memory(self, value, key=None, value_mask=None):
        """Keys and values as a cache: projected once, read in every step.

        Args:
            value: Values (B, S, F), as in a call. The layer must be built.
            key: Keys (B, S, K); the values by default.
            value_mask: Padding mask (B, S). What is padding is not read.

        Returns:
            The `cache` of a call, as `empty_cache` makes it; it knows its padding.
        """
        self.check_built("project_memory")
        key = value if key is None else key
        if value_mask is None:
            real = ops.ones(ops.shape(value)[:2], "bool")
        else:
            real = as_boolean_mask(value_mask, "value_mask")
            _, key, value = silence_padding(None, key, value, real[:, None])
        return *self.memory_heads(key, value, 0, value_mask), real

    def attend(self, query, memory, state=None, training=None, drawn=None):
        """One decoder step over what `project_memory` returned.

        Args:
            query: Queries (B, D).
            memory: Keys (B, G, S, d), values (B, G, S, v) and which are real (B, S).
            state: None: each step depends on its own query alone.
            training: Whether to apply dropout.
            drawn: One step of what `draw` returned; without it, dropout draws anew.

        Returns:
            `(output, weights)`, (B, output_dim) and the mean over the heads (B, S, 1).
        """
        key, value, real = memory
        real = real[:, None, None]
        heads = self.query_heads(query[:, None], 0)
        weights = self.normalize_scores(grouped_scores(heads, key), real)
        dropped = self.drop(weights, training, **(drawn or {}))
        output = self.merge(grouped_sum(dropped, value), real, None)
        return output[:, 0], ops.transpose(ops.mean(weights, axis=1), (0, 2, 1))

    def weights_shape(self, keys):
        return self.num_heads, 1, keys

    # ---- what Keras asks

    def compute_output_spec(
        self, query, value=None, key=None, cache=None, position=None, **kwargs
    ):
        if cache is not None:
            heads = static_shape(cache[0])
            value = keras.KerasTensor((heads[0], heads[2], 1))
        results = super().compute_output_spec(query, value, key, **kwargs)
        if position is None:
            return results
        cache = tuple(keras.KerasTensor(c.shape, dtype=c.dtype) for c in cache)
        return (*(results if isinstance(results, tuple) else (results,)), cache)
