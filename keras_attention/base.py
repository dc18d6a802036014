"""ScoredAttention: what every scoring layer shares. project -> score -> mask -> mix."""

import keras
from keras import ops

from keras_attention.functional import weighted_sum
from keras_attention.masking import (
    as_boolean_mask,
    causal_mask,
    combine_masks,
    masked_softmax,
)

POOLING, STEP, FULL = "pooling", "step", "full"


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
                f"`dropout` must be at least 0 and less than 1. Received: {dropout}."
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
        _call_form(query_shape, value_shape, key_shape)
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
        form = _call_form(_shape(query), _shape(value), _shape(key))
        if form == POOLING:
            query, value = None, query
            key_masks = [mask, query_mask, value_mask, key_mask]
            query_mask = None
        else:
            key_masks = [value_mask, key_mask]
            _refuse_plain_mask(mask)
        if form == STEP:
            query = ops.expand_dims(query, 1)  # (B, 1, D)
        if use_causal_mask and form != FULL:
            raise ValueError(
                "`use_causal_mask=True` needs queries of shape (batch, T, width). "
                f"Received: a call in the {form} form, which has no order of queries."
            )
        key = value if key is None else key
        may_attend = combine_masks(
            _query_padding(query_mask, query),
            *(_key_padding(m, key) for m in key_masks),
            _checked_attention_mask(attention_mask, query, key),
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
        if may_attend is not None and len(weights.shape) == 3:
            weights = ops.broadcast_to(weights, ops.shape(scores))
        mixing = weights
        if self.dropout > 0 and training:
            mixing = keras.random.dropout(
                weights, self.dropout, seed=self.seed_generator
            )
        context = weighted_sum(mixing, ops.cast(value, self.score_dtype))
        return ops.cast(context, self.compute_dtype), weights

    @property
    def score_dtype(self):
        """The type scores and weights are computed in: never a 16-bit one."""
        sixteen_bits = self.compute_dtype in ("float16", "bfloat16")
        return "float32" if sixteen_bits else self.compute_dtype

    def _lift(self, inputs):
        """Inputs in `score_dtype`; 16-bit ones are kept where products stay finite."""
        if self.score_dtype == self.compute_dtype:
            return inputs
        return ops.clip(ops.cast(inputs, self.score_dtype), -1e30, 1e30)

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
        context, weights = _output_shapes(query_shape, value_shape)
        return (context, weights) if self.return_attention_scores else context

    def compute_output_spec(
        self, query, value=None, key=None, return_attention_scores=None, **kwargs
    ):
        _call_form(_shape(query), _shape(value), _shape(key))
        context, weights = _output_shapes(_shape(query), _shape(value))
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
    """Hands its input on with the mask it is given, as Keras's masks are carried."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs, mask=None):
        return inputs


def _shape(tensor):
    """The static shape; of a list of tensors, a list of shapes; of None, None."""
    if isinstance(tensor, list | tuple):
        return [_shape(t) for t in tensor]
    return None if tensor is None else tuple(tensor.shape)


def _call_form(query_shape, value_shape, key_shape):
    """Which of the three forms a call has, or an error that names them."""
    if query_shape and isinstance(query_shape[0], list | tuple):
        raise ValueError(
            "The inputs are separate arguments here: layer(query, value, key). "
            f"Received: a list of {len(query_shape)} tensors as the first argument, "
            "the form of keras.layers.Attention. Write layer(*inputs)."
        )
    named = {"query": query_shape, "value": value_shape, "key": key_shape}
    query, value, key = (None if s is None else len(s) for s in named.values())
    if (query, value, key) == (3, None, None):
        return POOLING
    if query in (2, 3) and value == 3 and key in (None, 3):
        return STEP if query == 2 else FULL
    shapes = ", ".join(f"{name} {_shape_text(s)}" for name, s in named.items())
    raise ValueError(
        "An attention layer takes states (batch, S, width) to pool; or a query (batch, "
        "width) or (batch, T, width) and a value (batch, S, width), with a key (batch, "
        f"S, width) if it differs. Received: {shapes}."
    )


def _output_shapes(query_shape, value_shape):
    """Shapes of (context, weights) for the shapes of a call."""
    query_shape = tuple(query_shape)
    if value_shape is None:
        batch, length, width = query_shape
        return (batch, width), (batch, length, 1)
    batch, length, width = value_shape
    if len(query_shape) == 2:
        return (query_shape[0], width), (query_shape[0], length, 1)
    return (*query_shape[:2], width), (*query_shape[:2], length)


def _query_padding(mask, query):
    """A padding mask of the queries, (B, T) or (B,) for one step -> (B, T, 1)."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "query_mask")
    if len(mask.shape) == 1 and query.shape[1] == 1:
        mask = mask[:, None]
    _check_mask_shape("query_mask", mask, (query.shape[0], query.shape[1]))
    return mask[:, :, None]


def _key_padding(mask, key):
    """A padding mask of the keys, (B, S) -> (B, 1, S)."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "value_mask")
    _check_mask_shape("value_mask", mask, (key.shape[0], key.shape[1]))
    return mask[:, None, :]


def _checked_attention_mask(mask, query, key):
    """An attention mask (B, T, S), 1s broadcast; other shapes are refused."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "attention_mask")
    length = 1 if query is None else query.shape[1]
    _check_mask_shape(
        "attention_mask", mask, (key.shape[0], length, key.shape[1]), broadcast=True
    )
    return mask


def _check_mask_shape(name, mask, expected, broadcast=False):
    """Refuses a mask by its rank or a known dimension; never guesses from sizes."""
    allowed = (1, None) if broadcast else (None,)
    fits = len(mask.shape) == len(expected) and all(
        got == want or want is None or got in allowed
        for got, want in zip(mask.shape, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have the shape {_shape_text(expected)}"
            f"{', 1s to broadcast' if broadcast else ''}. Received: "
            f"{_shape_text(mask.shape)}. A padding mask (batch, S) goes into "
            "`value_mask`; a mask for each query (batch, T, S) into `attention_mask`."
        )


def _shape_text(shape):
    if shape is None:
        return "None"
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def _refuse_plain_mask(mask):
    if mask is not None:
        raise ValueError(
            "`mask` is the padding mask of the states that are pooled, layer(states, "
            "mask=...). Received: `mask` in a call with a value. Name whose mask it "
            "is: `query_mask`, `value_mask` or `attention_mask`."
        )
