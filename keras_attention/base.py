"""ScoredAttention: what every scoring layer shares. project -> score -> mask -> mix."""

import keras
import numpy as np
from keras import ops

from keras_attention.arguments import (
    FULL,
    POOLING,
    STEP,
    call_form,
    key_padding,
    output_shapes,
    pair_mask,
    query_padding,
    refuse_plain_mask,
    static_shape,
)
from keras_attention.functional import weighted_sum
from keras_attention.masking import (
    as_boolean_mask,
    causal_mask,
    combine_masks,
    masked_softmax,
)

LARGEST = {"float16": 65504.0, "bfloat16": 3.38e38}  # of the 16-bit types


class ScoredAttention(keras.layers.Layer):
    """Base of the layers that score every key for a query (abstract).

    A subclass makes its weights in `build` and overrides `score`, and where it projects
    its inputs, `project_query` and `project_key`. Masks, the softmax, dropout, the
    three call forms and 16-bit types are handled here, once:

    - pooling: `layer(states)`, states (B, S, F), no query;
    - one decoder step: `layer(query, value)` with a query (B, D);
    - full: `layer(query, value, key=None)` with queries (B, T, D).

    Args:
        dropout: Fraction of the weights to drop in training, 0 <= dropout < 1. Only the
            copy that mixes the values is dropped, never the weights returned.
        return_attention_scores: Whether a call returns `(context, weights)` (the
            default) or the context alone, as `keras.Sequential` needs.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.
    """

    def __init__(
        self, *, dropout=0.0, return_attention_scores=True, seed=None, **kwargs
    ):
        super().__init__(**kwargs)
        if not 0 <= dropout < 1:
            raise ValueError(
                f"`dropout` must be at least 0 and less than 1. Received: {dropout}. "
                "Write 0.1 to drop a tenth of the weights in training."
            )
        self.dropout = dropout
        self.return_attention_scores = return_attention_scores
        self.seed = seed
        self.supports_masking = True
        if dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(seed)
        self._carry_mask = CarryMask(dtype=self.dtype_policy)

    def build(self, query_shape, value_shape=None, key_shape=None):
        """Checks the shapes; a subclass with weights makes them after this."""
        call_form(query_shape, value_shape, key_shape)
        self.built = True

    # ---- what a mechanism decides

    def project_query(self, query):
        """Queries (B, T, D) -> what `score` takes. None stays None (pooling)."""
        return query

    def project_key(self, key):
        """Keys (B, S, D) -> what `score` takes."""
        return key

    def score(self, query, key):
        """Projected query (B, T, .) or None, projected key (B, S, .) -> (B, T, S)."""
        raise NotImplementedError(
            f"{type(self).__name__} must override `score(query, key)`."
        )

    # ---- the call

    def __call__(self, *args, **kwargs):
        # Keras tells tensors from other arguments; a mask typed as a list is one too.
        for name, value in kwargs.items():
            if name.endswith("mask") and isinstance(value, list | tuple):
                kwargs[name] = np.asarray(value)
        return super().__call__(*args, **kwargs)

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
        return_attention_scores=None,
        training=None,
    ):
        form = call_form(static_shape(query), static_shape(value), static_shape(key))
        if form == POOLING:
            query, value = None, query
            key_masks = {"mask": mask, "query_mask": query_mask}
            query_mask = None
        else:
            key_masks = {}
            refuse_plain_mask(mask)
        key_masks |= {"value_mask": value_mask, "key_mask": key_mask}
        if form == STEP:
            query = ops.expand_dims(query, 1)  # (B, 1, D)
        if use_causal_mask and form != FULL:
            raise ValueError(
                "`use_causal_mask=True` needs queries of shape (batch, T, width). "
                f"Received: a call in the {form} form, which has no order of queries."
            )
        key = value if key is None else key
        may_attend = combine_masks(
            query_padding(query_mask, query),
            *(key_padding(name, m, key) for name, m in key_masks.items()),
            pair_mask(attention_mask, query, key),
            causal_mask(ops.shape(query)[1], ops.shape(key)[1])
            if use_causal_mask
            else None,
        )
        context, weights = self._attend(query, key, value, may_attend, training)
        if form == FULL:
            if query_mask is not None:
                context = self._carry_mask(context, mask=as_boolean_mask(query_mask))
        else:
            context = ops.squeeze(context, 1)  # (B, F)
            weights = ops.transpose(weights, (0, 2, 1))  # (B, S, 1)
        if self._wants_scores(return_attention_scores):
            return context, weights
        return context

    def _attend(self, query, key, value, may_attend, training):
        """The equation, with padding silenced: (B, T, F) and (B, T, S)."""
        if may_attend is not None:
            # What nobody may attend to is replaced by 0, so that a NaN in a padded slot
            # reaches neither the sums (0 x NaN is NaN) nor the gradients.
            live_keys = ops.any(may_attend, axis=1)[..., None]  # (B, S, 1)
            same = key is value
            value = ops.where(live_keys, value, 0)
            key = value if same else ops.where(live_keys, key, 0)
            if query is not None:
                live_queries = ops.any(may_attend, axis=2)[..., None]  # (B, T, 1)
                query = ops.where(live_queries, query, 0)
        query = None if query is None else self.project_query(self._lift(query))
        scores = self.score(query, self.project_key(self._lift(key)))  # (B, T, S)
        weights = masked_softmax(scores, may_attend)
        mixing = weights
        if self.dropout > 0 and training:
            mixing = keras.random.dropout(
                weights, self.dropout, seed=self.seed_generator
            )
        context = weighted_sum(mixing, ops.cast(value, self.score_dtype))
        return self._lower(context), weights

    @property
    def score_dtype(self):
        """The type scores and weights are computed in: never a 16-bit one."""
        return "float32" if self.compute_dtype in LARGEST else self.compute_dtype

    def _lift(self, inputs):
        """Inputs in `score_dtype`; 16-bit ones are kept where products stay finite."""
        if self.score_dtype == self.compute_dtype:
            return inputs
        return ops.clip(ops.cast(inputs, self.score_dtype), -1e30, 1e30)

    def _lower(self, context):
        """The context in the layer's type; dropout may scale it beyond a 16-bit one."""
        if self.compute_dtype in LARGEST:
            largest = LARGEST[self.compute_dtype]
            context = ops.clip(context, -largest, largest)
        return ops.cast(context, self.compute_dtype)

    def _wants_scores(self, return_attention_scores):
        if return_attention_scores is None:
            return self.return_attention_scores
        return return_attention_scores

    # ---- what Keras asks

    def compute_mask(self, query, previous_mask=None):
        # A pooled context has no mask, and from here the forms look alike: `call` hands
        # the query's mask on itself.
        return None

    def compute_output_shape(self, query_shape, value_shape=None, key_shape=None):
        context, weights = output_shapes(query_shape, value_shape)
        return (context, weights) if self.return_attention_scores else context

    def compute_output_spec(
        self, query, value=None, key=None, return_attention_scores=None, **kwargs
    ):
        call_form(static_shape(query), static_shape(value), static_shape(key))
        context, weights = output_shapes(static_shape(query), static_shape(value))
        context = keras.KerasTensor(context, dtype=self.compute_dtype)
        weights = keras.KerasTensor(weights, dtype=self.score_dtype)
        if self._wants_scores(return_attention_scores):
            return context, weights
        return context

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
