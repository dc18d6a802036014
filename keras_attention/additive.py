"""BahdanauAttention: additive attention with its learned projections."""

import numbers

import keras
from keras import ops

from keras_attention.base import ScoredAttention
from keras_attention.functional import additive_scores


@keras.saving.register_keras_serializable(package="keras_attention")
class BahdanauAttention(ScoredAttention):
    """Additive attention: a small network scores each key against the query.

    `weights = softmax(v . tanh(W q + U k))`, `context = sum(weights * value)`.

    Unlike `keras.layers.AdditiveAttention`, whose only weight is v, this layer learns
    the projections W and U, so query and value may differ in width, and it returns its
    weights with the context.

    Padding: masked keys have the weight 0 whatever they hold; a query with nothing to
    attend to gets weights 0 and context 0. Masks of `mask_zero=True` embeddings arrive
    by themselves.

    Args:
        units: Width of the hidden layer tanh(W q + U k), at least 1.
        use_bias: Whether to add a bias inside the tanh. The paper has none.
        dropout: Fraction of the weights to drop in training; the weights returned are
            never dropped.
        return_attention_scores: `False` makes a call return the context alone, for
            `keras.Sequential`; the same argument in a call overrides it.
        kernel_initializer: Initializer of W, U and v.
        kernel_regularizer: Regularizer of W, U and v.
        seed: Integer seed of the dropout.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

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
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout.

    Masks are True, or 1, where attention is allowed. A mask given by hand takes the
    place of the one that Keras would fill in.

    Returns:
        `(context, weights)`. Full form: (B, T, F) and (B, T, S). A decoder state or
        pooled states: (B, F) and (B, S, 1). Weights of 16-bit layers are float32.

    Raises:
        ValueError: for inputs of other ranks, a mask of another shape or with values
            other than 0 and 1, or a query for a layer that was built without one.

    Example:

    >>> states = np.random.default_rng(0).normal(size=(2, 5, 8))
    >>> context, weights = BahdanauAttention(units=4)(states)
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 8), (2, 5, 1))

    Reference:
        Bahdanau, Cho & Bengio (2015), "Neural Machine Translation by Jointly Learning
        to Align and Translate", equations 5-6 and section A.1.2. Without a query:
        Raffel & Ellis (2016), "Feed-Forward Networks with Attention Can Solve Some
        Long-Term Memory Problems", equation 1.
    """

    def __init__(
        self,
        units,
        *,
        use_bias=False,
        dropout=0.0,
        return_attention_scores=True,
        kernel_initializer="glorot_uniform",
        kernel_regularizer=None,
        seed=None,
        **kwargs,
    ):
        super().__init__(
            dropout=dropout,
            return_attention_scores=return_attention_scores,
            seed=seed,
            **kwargs,
        )
        whole = isinstance(units, numbers.Integral) and not isinstance(units, bool)
        if not whole or units < 1:
            raise ValueError(
                "`units`, the width of the hidden layer, must be an integer of at "
                f"least 1. Received: {units!r}. 32 to 128 are usual."
            )
        self.units = int(units)
        self.use_bias = use_bias
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)
        self.query_kernel = None
        self.bias = None

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        key_shape = key_shape or value_shape or query_shape
        if value_shape is not None:
            self.query_kernel = self._kernel("query_kernel", query_shape[-1])
        self.key_kernel = self._kernel("key_kernel", key_shape[-1])
        self.score_vector = self._kernel("score_vector")
        if self.use_bias:
            self.bias = self.add_weight(
                shape=(self.units,), initializer="zeros", name="bias", autocast=False
            )

    def _kernel(self, name, width=()):
        """A weight (width, units), or (units,); not rounded to 16 bits when used."""
        if width is None:
            raise ValueError(
                "The last dimension of the inputs must be known to build "
                f"{type(self).__name__}. Received: None. Give `keras.Input` a width."
            )
        return self.add_weight(
            shape=(self.units,) if width == () else (width, self.units),
            initializer=_fresh(self.kernel_initializer, name),
            regularizer=self.kernel_regularizer,
            name=name,
            autocast=False,
        )

    def project_query(self, query):
        if self.query_kernel is None:
            raise ValueError(
                f"Layer '{self.name}' was built by layer(states), without a query, and "
                "has no weights for one. Received: a call with a query. Make a second "
                "layer for it, or build this one by layer(query, value) first."
            )
        return ops.matmul(query, ops.cast(self.query_kernel, self.score_dtype))

    def project_key(self, key):
        key = ops.matmul(key, ops.cast(self.key_kernel, self.score_dtype))
        if self.bias is not None:
            key = key + ops.cast(self.bias, self.score_dtype)
        return key  # (B, S, units)

    def score(self, query, key):
        vector = ops.cast(self.score_vector, self.score_dtype)
        return additive_scores(query, key, vector)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "use_bias": self.use_bias,
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }


def _fresh(initializer, name):
    """A copy for one weight: an initializer called twice gives the same numbers."""
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if isinstance(config.get("seed"), int):
        config["seed"] += ("query_kernel", "key_kernel", "score_vector").index(name)
    return type(initializer).from_config(config)
