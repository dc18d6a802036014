"""LuongAttention: the scores of Luong et al., from a dot product to a network."""

import keras

from keras_attention.arguments import refuse_widths
from keras_attention.functional import additive_scores, dot_scores, project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.scored import ScoredAttention

SCORES = ("dot", "scaled_dot", "general", "concat")


@keras.saving.register_keras_serializable(package="keras_attention")
class LuongAttention(Kernels, ScoredAttention):
    """Attention with the scores of Luong et al.: dot products, or a small network.

    `weights = softmax(score(q, k))`, `context = sum(weights * value)`. The score is

    - "dot": q . k
    - "scaled_dot": q . k / sqrt(d), which keeps the softmax from saturating
    - "general": q . W k, with a learned W, so that the widths may differ
    - "concat": v . tanh(W [q; k]), a small network over both: the additive score, W
      kept as `query_kernel` and `key_kernel`

    `keras.layers.Attention` has the first, and calls `tanh(q + k)`, without W,
    "concat".

    Padding: masked keys have the weight 0 whatever they hold; a query with nothing to
    attend to gets weights 0 and context 0.

    Args:
        score: "dot", "scaled_dot", "general" or "concat".
        units: Width of the hidden layer of "concat"; by default that of the query. The
            other scores have none.
        kernel_initializer: Initializer of W and v.
        kernel_regularizer: Regularizer of W and v.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`; a query is needed.

    Returns:
        `(context, weights)`. Queries (B, T, D): (B, T, F) and (B, T, S). One decoder
        state (B, D): (B, F) and (B, S, 1).

    Raises:
        ValueError: for an unknown score, `units` without "concat", inputs of other
            ranks, or query and key of different widths with a dot product.

    Example:

    >>> states, memory = np.ones((2, 3, 8)), np.ones((2, 5, 6))
    >>> context, weights = LuongAttention("general")(states, memory)
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 3, 6), (2, 3, 5))

    Reference: Luong, Pham & Manning (2015), "Effective Approaches to Attention-based
    Neural Machine Translation", arXiv:1508.04025, section 3.1, equation 7 and
    the scores under it. The scale: Vaswani et al. (2017), arXiv:1706.03762, equation 1.
    """

    def __init__(self, score="dot", *, units=None, **kwargs):
        super().__init__(**kwargs)
        if score not in SCORES:
            raise ValueError(
                f"`score` must be one of {', '.join(map(repr, SCORES))}. Received: "
                f"{score!r}. BahdanauAttention has the additive score; "
                'LuongAttention(units) of tfa.seq2seq is score="general".'
            )
        if units is not None:
            if score != "concat":
                raise ValueError(
                    '`units` is the width of the hidden layer of score="concat". '
                    f"Received: units={units!r} with score={score!r}. Leave it out. "
                    'LuongAttention(units) of tfa.seq2seq is score="general".'
                )
            units = check_whole("units", units, "None takes the query's width.")
        if score in ("dot", "scaled_dot"):
            self.refuse_kernel_options(f"score={score!r}")
        self.score_name = score
        self.units = units

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        query, key = query_shape[-1], (key_shape or value_shape)[-1]
        if self.score_name == "general":
            self.kernel = self.add_kernel("kernel", (query, key))
        elif self.score_name == "concat":
            units = self.units or query
            self.query_kernel = self.add_kernel("query_kernel", (query, units))
            self.key_kernel = self.add_kernel("key_kernel", (key, units))
            self.score_vector = self.add_kernel("score_vector", (units,))

    def check_shapes(self, query_shape, value_shape, key_shape):
        form = super().check_shapes(query_shape, value_shape, key_shape)
        if self.score_name in ("dot", "scaled_dot"):
            key_shape = key_shape or value_shape
            what = f'score="{self.score_name}"'
            refuse_widths(what, query_shape[-1], key_shape[-1])
        return form

    def project_query(self, query):
        if self.score_name == "general":
            return project(query, self.read(self.kernel))
        if self.score_name == "concat":
            return project(query, self.read(self.query_kernel))
        return query

    def project_key(self, key):
        if self.score_name == "concat":
            return project(key, self.read(self.key_kernel))
        return key

    def score(self, query, key):
        if self.score_name == "concat":
            return additive_scores(query, key, self.read(self.score_vector))
        return dot_scores(query, key, scale=self.score_name == "scaled_dot")

    def get_config(self):
        return {**super().get_config(), "score": self.score_name, "units": self.units}
