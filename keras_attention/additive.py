"""BahdanauAttention: additive attention with its learned projections."""

import keras
from keras import ops

from keras_attention.functional import additive_scores, project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.scored import ScoredAttention


@keras.saving.register_keras_serializable(package="keras_attention")
class BahdanauAttention(Kernels, ScoredAttention):
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
        normalize: Whether to normalise v as g v / |v|, with a learned gain g that
            begins at 1 / sqrt(units), and to add a bias inside the tanh: what
            `tfa.seq2seq.BahdanauAttention(normalize=True)` did.
        use_bias: Whether to add a bias inside the tanh. The paper has none.
        kernel_initializer: Initializer of W, U and v.
        kernel_regularizer: Regularizer of W, U and v.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`. States alone are pooled, with no query.

    Masks are True, or 1, where attention is allowed. A mask given by hand takes the
    place of the one that Keras would fill in.

    Returns:
        `(context, weights)`. Full form: (B, T, F) and (B, T, S). A decoder state or
        pooled states: (B, F) and (B, S, 1). Weights of 16-bit layers are float32.

    In `keras.Sequential` write `return_attention_scores=False`.

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
        Long-Term Memory Problems", equation 1. Normalised: Salimans & Kingma (2016),
        "Weight Normalization", equation 2.
    """

    pools_states = True

    def __init__(self, units, *, normalize=False, use_bias=False, **kwargs):
        super().__init__(**kwargs)
        self.units = check_whole("units", units, "32 to 128 are usual.")
        self.normalize = normalize
        self.use_bias = use_bias
        self.query_kernel = None
        self.bias = None

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        key_shape = key_shape or value_shape or query_shape
        if value_shape is not None:
            shape = (query_shape[-1], self.units)
            self.query_kernel = self.add_kernel("query_kernel", shape)
        self.key_kernel = self.add_kernel("key_kernel", (key_shape[-1], self.units))
        self.score_vector = self.add_kernel("score_vector", (self.units,))
        if self.use_bias or self.normalize:
            self.bias = self.add_bias("bias", (self.units,))
        if self.normalize:
            unit = keras.initializers.Constant(self.units**-0.5)
            self.gain = self.add_bias("gain", (), unit)

    def project_query(self, query):
        if self.query_kernel is None:
            raise ValueError(
                f"Layer '{self.name}' was built by layer(states), without a query, and "
                "has no weights for one. Received: a call with a query. Make a second "
                "layer for it, or build this one by layer(query, value) first."
            )
        return project(query, self.read(self.query_kernel))

    def project_key(self, key):
        bias = None if self.bias is None else self.read(self.bias)
        return project(key, self.read(self.key_kernel), bias)  # (B, S, units)

    def score(self, query, key):
        vector = self.read(self.score_vector)
        if self.normalize:
            vector = self.read(self.gain) * vector / ops.norm(vector)
        return additive_scores(query, key, vector)

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "normalize": self.normalize,
            "use_bias": self.use_bias,
        }
