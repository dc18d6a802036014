"""ScoredAttention: the layers that score every key for a query, in three call forms."""

from keras import ops

from keras_attention.arguments import (
    FULL,
    POOLING,
    STEP,
    Allowed,
    allowed,
    call_form,
    output_shapes,
    refuse_plain_mask,
    refuse_state,
    static_shape,
)
from keras_attention.base import AttentionLayer
from keras_attention.masking import as_boolean_mask, silence_padding


class ScoredAttention(AttentionLayer):
    """Base of the layers that score every key for a query (abstract).

    A subclass makes its weights in `build` and overrides `score`, and where it projects
    its inputs, `project_query` and `project_key`. Masks, the softmax, dropout, 16-bit
    types and the three call forms are handled here, once:

    - pooling: `layer(states)`, states (B, S, F), no query;
    - one decoder step: `layer(query, value)` with a query (B, D);
    - full: `layer(query, value, key=None)` with queries (B, T, D).

    Mechanisms whose next alignment depends on what came before it (a position, the
    previous weights) have a state: `state = layer.initial_state(value)` before the
    first step, `layer(query, value, state=state)` in each, and
    `state = layer.next_state(state, weights)` after it. In the full form the layer does
    this by itself. The others have the state None.

    Args:
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        query: Queries (B, T, D); or one decoder state (B, D); or, with no value given,
            the states (B, S, F) to pool.
        value: Values (B, S, F) to mix.
        key: Keys (B, S, K) to score. The values by default.
        mask: With states alone, their padding mask (B, S). Keras fills it.
        query_mask: Padding mask (B, T) of the queries. Keras fills it.
        value_mask: Padding mask (B, S) of the values. Keras fills it.
        key_mask: Padding mask (B, S) of the keys. Keras fills it.
        attention_mask: Mask (B, T, S) for single pairs, 1s to broadcast.
        use_causal_mask: Whether query t may attend only to the keys 0..t.
        state: What the step before left, for mechanisms that have a state.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Returns:
        `(context, weights)`. Full form: (B, T, F) and (B, T, S). A decoder state or
        pooled states: (B, F) and (B, S, 1). Weights of 16-bit layers are float32.
    """

    pools_states = False  # whether `layer(states)` means something without a query
    has_state = False  # whether a step depends on the steps before it

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Checks the shapes; a subclass with weights makes them after this."""
        self.check_shapes(query_shape, value_shape, key_shape)
        self.built = True

    # ---- what a mechanism decides

    def project_query(self, query):
        """Queries (B, T, D) -> what `score` takes. None stays None (pooling)."""
        return query

    def project_key(self, key):
        """Keys (B, S, K) -> what `score` takes."""
        return key

    def score(self, query, key):
        """Projected query (B, T, .) or None, projected key (B, S, .) -> (B, T, S)."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `score(query, key)`."
        )

    def weigh(self, query, key, masks, state, training):
        """Projected query and key -> weights (B, T, S); `masks` is an `Allowed`."""
        return self.normalize_scores(self.score(query, key), masks.pairs)

    def initial_state(self, value, value_mask=None):
        """The state before the first step over values (B, S, F): here None."""
        return

    def next_state(self, state, weights):
        """The state after a step that had the weights (B, S, 1): here None."""
        return

    # ---- the call

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
        state=None,
        return_attention_scores=None,
        training=None,
    ):
        shapes = static_shape(query), static_shape(value), static_shape(key)
        form = self.check_shapes(*shapes)
        if form == POOLING:
            query, value = None, query
            key_masks = {"mask": mask, "query_mask": query_mask}
            query_mask = None
        else:
            refuse_plain_mask(mask)
            key_masks = {}
        if form == STEP:
            query = ops.expand_dims(query, 1)  # (B, 1, D)
        if use_causal_mask and form != FULL:
            raise ValueError(
                "`use_causal_mask=True` needs queries of shape (batch, T, width). "
                f"Received: a call in the {form} form, which has no order of queries."
            )
        key = value if key is None else key
        masks = allowed(
            query,
            key,
            query_mask=query_mask,
            key_masks={**key_masks, "value_mask": value_mask, "key_mask": key_mask},
            attention_mask=attention_mask,
            use_causal_mask=use_causal_mask,
        )
        context, weights = self._attend(query, key, value, masks, state, training)
        if form == FULL:
            if query_mask is not None:
                context = self._carry_mask(context, mask=as_boolean_mask(query_mask))
        else:
            context = ops.squeeze(context, 1)  # (B, F)
            weights = ops.transpose(weights, (0, 2, 1))  # (B, S, 1)
        if self.wants_scores(return_attention_scores):
            return context, weights
        return context

    def _attend(self, query, key, value, masks, state, training):
        """The equation, with padding silenced: (B, T, F) and (B, T, S)."""
        query, key, value = silence_padding(query, key, value, masks.pairs)
        key = self.project_key(self.lift(key))
        return self._look(query, key, value, masks, state, training)

    def _look(self, query, key, value, masks, state, training, kept=None, **drawn):
        """`_attend` with keys that are projected already."""
        if state is not None and not self.has_state:
            refuse_state(self)
        query = None if query is None else self.project_query(self.lift(query))
        weights = self.weigh(query, key, masks, state, training, **drawn)
        return self.lower(self.mix(weights, value, training, kept)), weights

    # ---- step by step over one memory

    def project_memory(self, value, key=None, value_mask=None):
        """Keys and values for `attend`: projected once, read in every step.

        Args:
            value: Values (B, S, F), as in a call. The layer must be built.
            key: Keys (B, S, K); the values by default.
            value_mask: Padding mask (B, S). What is padding is not read.

        Returns:
            A dict of tensors whose first axis is B: "key" as `score` takes it, "value"
            (B, S, F) and, with a mask, "mask" (B, S).
        """
        self.check_built("project_memory")
        value = ops.convert_to_tensor(value)
        key = value if key is None else ops.convert_to_tensor(key)
        pairs, memory = None, {}
        if value_mask is not None:
            memory["mask"] = as_boolean_mask(value_mask, "value_mask")
            pairs = memory["mask"][:, None]
        _, key, value = silence_padding(None, key, value, pairs)
        memory["key"] = self.project_key(self.lift(key))
        memory["value"] = ops.cast(value, self.score_dtype)
        return memory

    def attend(self, query, memory, state=None, training=None, drawn=None):
        """One decoder step over a memory whose keys are projected.

        Args:
            query: Queries (B, D).
            memory: What `project_memory` returned.
            state: As in a call.
            training: Whether to apply dropout.
            drawn: One step of what `draw` returned; without it, dropout draws anew.

        Returns:
            `(context, weights)`, (B, F) and (B, S, 1), as the layer's step form.
        """
        mask = memory.get("mask")
        pairs = None if mask is None else mask[:, None]
        context, weights = self._look(
            query[:, None],
            memory["key"],
            memory["value"],
            Allowed(pairs, None, pairs),
            state,
            training,
            **(drawn or {}),
        )
        return context[:, 0], ops.transpose(weights, (0, 2, 1))

    # ---- what Keras asks

    def check_shapes(self, query_shape, value_shape, key_shape):
        """The form of a call of these shapes; others are refused."""
        form = call_form(query_shape, value_shape, key_shape)
        if form == POOLING and not self.pools_states:
            raise ValueError(
                f"{type(self).__name__} compares queries with keys and needs both. "
                "Received: states alone. Write layer(query, value); layer(x, x) for "
                "self-attention. BahdanauAttention pools states without a query."
            )
        return form

    def output_shapes(self, query_shape, value_shape):
        return output_shapes(query_shape, value_shape)
