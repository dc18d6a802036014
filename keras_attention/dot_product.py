"""Dot-product attention: without weights, and self-attention in its simplest form."""

import keras

from keras_attention.arguments import allowed, refuse_widths, self_form
from keras_attention.base import AttentionLayer
from keras_attention.functional import dot_scores, project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.masking import combine_masks, silence_padding
from keras_attention.scored import ScoredAttention


@keras.saving.register_keras_serializable(package="keras_attention")
class ScaledDotProductAttention(ScoredAttention):
    """Scaled dot-product attention, without weights of its own.

    `weights = softmax(q . k / sqrt(d))`, `context = sum(weights * value)`.

    `keras.layers.Attention` is the same without the scale (its `use_scale` learns one);
    it spreads the weights of a query with nothing to attend to over the padding.

    Args:
        scale: Whether scores are divided by sqrt(d). `False` shows why they should be:
            their spread grows with sqrt(d), the softmax saturates, and its gradients
            vanish.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`; a query is needed. `layer(x, x)` is
    self-attention.

    Returns:
        `(context, weights)`. Queries (B, T, d): (B, T, F) and (B, T, S). One decoder
        state (B, d): (B, F) and (B, S, 1).

    Raises:
        ValueError: if query and key differ in width, or for inputs of other ranks.

    Example:

    >>> query, memory = np.ones((2, 3, 8)), np.ones((2, 5, 8))
    >>> context, weights = ScaledDotProductAttention()(query, memory)
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 8), (2, 3, 5))

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762,
    equation 1.
    """

    def __init__(self, *, scale=True, **kwargs):
        super().__init__(**kwargs)
        self.scale = check_scale(scale)

    def check_shapes(self, query_shape, value_shape, key_shape):
        form = super().check_shapes(query_shape, value_shape, key_shape)
        refuse_widths("A dot product", query_shape[-1], (key_shape or value_shape)[-1])
        return form

    def score(self, query, key):
        return dot_scores(query, key, scale=self.scale)

    def get_config(self):
        return {**super().get_config(), "scale": self.scale}


@keras.saving.register_keras_serializable(package="keras_attention")
class SelfAttention(Kernels, AttentionLayer):
    """Self-attention with a single head and no biases: the form to learn it by.

    `Q = x W_q`, `K = x W_k`, `V = x W_v`, `weights = softmax(Q K^T / sqrt(d_k))`,
    `output = weights V W_o`: every token asks (Q), offers (K) and gives (V).

    The same in five calls: see `functional.scaled_dot_product_attention`. For several
    heads there is `MultiHeadAttention`, which with one head and no biases is this.

    Padding: masked tokens have the weight 0 whatever they hold, and outputs of 0. The
    mask goes on.

    Args:
        d_model: Width of the output.
        d_k: Width of queries, keys and values; by default `d_model`.
        scale: Whether scores are divided by sqrt(d_k). `False` shows why they should
            be.
        kernel_initializer: Initializer of W_q, W_k, W_v and W_o.
        kernel_regularizer: Regularizer of W_q, W_k, W_v and W_o.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: Tokens (B, T, D).
        mask: Padding mask (B, T). Keras fills it.
        query_mask: The same by another name. Keras fills it beside other tensors.
        attention_mask: Mask (B, T, T) for single pairs, 1s to broadcast.
        use_causal_mask: Whether token t may attend only to the tokens 0..t.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Returns:
        `(output, weights)`: (B, T, d_model) and (B, T, T).

    In `keras.Sequential` write `return_attention_scores=False`.

    Raises:
        ValueError: for inputs of another rank, or more than one; for a mask of another
            shape or with values other than 0 and 1.

    Example:

    >>> output, weights = SelfAttention(d_model=8, d_k=4)(np.ones((2, 5, 8)))
    >>> tuple(output.shape), tuple(weights.shape)
    ((2, 5, 8), (2, 5, 5))

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762,
    equation 1 and section 3.2.2 with h = 1.
    """

    def __init__(self, d_model, d_k=None, *, scale=True, **kwargs):
        super().__init__(**kwargs)
        self.d_model = check_whole("d_model", d_model, "It is the output's width.")
        if d_k is not None:
            d_k = check_whole("d_k", d_k, "None takes `d_model`.")
        self.d_k = d_k
        self.scale = check_scale(scale)

    def build(self, query_shape):
        self.check_shapes(query_shape)
        width, inner = query_shape[-1], self.d_k or self.d_model
        self.query_kernel = self.add_kernel("query_kernel", (width, inner))
        self.key_kernel = self.add_kernel("key_kernel", (width, inner))
        self.value_kernel = self.add_kernel("value_kernel", (width, inner))
        self.output_kernel = self.add_kernel("output_kernel", (inner, self.d_model))
        self.built = True

    def call(
        self,
        query,
        *,
        mask=None,
        query_mask=None,
        attention_mask=None,
        use_causal_mask=False,
        return_attention_scores=None,
        training=None,
    ):
        padding = combine_masks(mask, query_mask)
        masks = allowed(
            query,
            query,
            query_mask=padding,
            key_masks={"mask": mask, "query_mask": query_mask},
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
        )
        x, _, memory = silence_padding(query, query, query, masks.pairs)
        memory = self.lift(memory)
        query = project(self.lift(x), self.read(self.query_kernel))  # (B, T, d_k)
        key = project(memory, self.read(self.key_kernel))
        value = project(memory, self.read(self.value_kernel))
        scores = dot_scores(query, key, scale=self.scale)  # (B, T, T)
        weights = self.normalize_scores(scores, masks.pairs)
        context = self.mix(weights, value, training)
        output = self.lower(project(context, self.read(self.output_kernel)))
        if padding is not None:
            output = self._carry_mask(output, mask=padding)
        if self.wants_scores(return_attention_scores):
            return output, weights
        return output

    def check_shapes(self, query_shape, value_shape=None, key_shape=None):
        self_form(query_shape)

    def output_shapes(self, query_shape, value_shape=None):
        batch, length, _ = query_shape
        return (batch, length, self.d_model), (batch, length, length)

    def get_config(self):
        return {
            **super().get_config(),
            "d_model": self.d_model,
            "d_k": self.d_k,
            "scale": self.scale,
        }


def check_scale(scale):
    """`scale` if it is a bool; a number is refused."""
    if not isinstance(scale, bool):
        raise ValueError(
            "`scale` is True (scores are divided by sqrt(d)) or False (they are not). "
            f"Received: {scale!r}. Other factors: functional.dot_scores takes a number."
        )
    return scale
