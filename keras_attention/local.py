"""LocalAttention: a window of keys around a centre, that moves on or is predicted."""

import keras
from keras import ops

from keras_attention.functional import project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.masking import combine_masks
from keras_attention.scoring import BorrowsScore

MODES = ("monotonic", "predictive")


def gaussian_window(distance, window):
    """exp(-(s - p)^2 / (2 sigma^2)) with sigma = window / 2.

    Luong, Pham & Manning (2015), equation 10.

    Args:
        distance: Distances s - p of keys from the centre, (B, T, S).
        window: Half the width of the window, D in the paper.

    Returns:
        Factors (B, T, S) in (0, 1].

    Example:

    >>> factors = gaussian_window(np.array([[[-1.0, 0.0, 1.0]]]), window=2)
    >>> print(keras.ops.convert_to_numpy(factors).round(2))
    [[[0.61 1.   0.61]]]
    """
    return ops.exp(ops.multiply(ops.square(distance), -2.0 / window**2))


@keras.saving.register_keras_serializable(package="keras_attention")
class LocalAttention(Kernels, BorrowsScore):
    """Attention to a window of keys around a centre, over any score.

    `weights = softmax(score(q, k) for |s - p| <= window)`, where the centre p is

    - "monotonic" (local-m): p = t, the position of the query;
    - "predictive" (local-p): p = S sigmoid(v . tanh(W q)), learned; the weights are
      multiplied by a Gaussian around p, exp(-(s - p)^2 / (2 (window / 2)^2)).

    No layer of Keras does this.

    Positions count from 0 and count real tokens: S is a row's own number of keys that
    are not padding, so padding on either side changes nothing; under a causal mask it
    counts the later ones too. A query of local-m
    whose window lies behind the last key has weights 0 and context 0. As in the paper,
    weights of local-p sum to less than 1 where the Gaussian takes some away.

    Args:
        window: Half the width of the window, at least 1: 2 window + 1 keys are seen.
        mode: "monotonic" or "predictive".
        score: A name of `LuongAttention`'s scores, or a layer whose score to take, such
            as `BahdanauAttention(32)`.
        units: Width of the hidden layer that predicts p; by default the query's. Of
            "predictive" alone.
        renormalize: Whether weights of "predictive" are divided by their sum.
        **kwargs: `kernel_initializer` and `kernel_regularizer` of W and v;
            `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`; a query is needed. In "monotonic" mode
    `state` is the position of the (first) query, an integer or integers (B,); 0 by
    default.

    Returns:
        `(context, weights)`. Queries (B, T, D): (B, T, F) and (B, T, S). One decoder
        state (B, D): (B, F) and (B, S, 1).

    Raises:
        ValueError: for a window under 1, an unknown mode or score, options of the other
            mode, or what the score's own layer refuses.

    Example:

    >>> x = np.random.default_rng(0).normal(size=(1, 4, 8))
    >>> context, weights = LocalAttention(window=1)(x, x)
    >>> (keras.ops.convert_to_numpy(weights)[0] > 0).astype(int).tolist()
    [[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1], [0, 0, 1, 1]]

    Reference: Luong, Pham & Manning (2015), "Effective Approaches to Attention-based
    Neural Machine Translation", arXiv:1508.04025, section 3.2, equations 9 and 10.
    """

    def __init__(
        self,
        window,
        mode="monotonic",
        *,
        score="dot",
        units=None,
        renormalize=False,
        **kwargs,
    ):
        super().__init__(score=score, **kwargs)
        if mode not in MODES:
            raise ValueError(
                f"`mode` must be 'monotonic' (local-m) or 'predictive' (local-p). "
                f"Received: {mode!r}. Choose one."
            )
        if mode == "monotonic" and (units is not None or renormalize):
            raise ValueError(
                "`units` and `renormalize` belong to mode='predictive'. Received: "
                f"units={units!r}, renormalize={renormalize!r} with mode='monotonic'. "
                "Leave them out."
            )
        if units is not None:
            units = check_whole("units", units, "None takes the query's width.")
        if mode == "monotonic":
            self.refuse_kernel_options("mode='monotonic'")
        self.window = check_whole("window", window, "2 to 10 are usual.")
        self.mode = mode
        self.units = units
        self.renormalize = renormalize
        self.borrow()

    @property
    def has_state(self):
        """Whether a step depends on its position: in "monotonic" mode."""
        return self.mode == "monotonic"

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        if self.mode == "predictive":
            units = self.units or query_shape[-1]
            shape = (query_shape[-1], units)
            self.position_kernel = self.add_kernel("position_kernel", shape)
            self.position_vector = self.add_kernel("position_vector", (units,))

    def project_query(self, query):
        return query, super().project_query(query)

    def weigh(self, query, key, masks, state, training):
        query, projected = query
        scores = self.score(projected, key)  # (B, T, S)
        steps, positions, lengths = self._positions(scores, masks)
        if self.mode == "predictive":
            centre = self._predict(query, lengths)
        else:
            first = ops.cast(0 if state is None else state, self.score_dtype)
            centre = steps + ops.reshape(first, (-1, 1, 1))
        distance = positions - centre  # (B, T, S)
        near = ops.less_equal(ops.abs(distance), self.window)
        weights = self.normalize_scores(scores, combine_masks(masks.pairs, near))
        if self.mode == "predictive":
            weights = weights * gaussian_window(distance, self.window)
        if self.renormalize:
            total = ops.sum(weights, axis=-1, keepdims=True)
            weights = weights / ops.where(total > 0, total, 1.0)
        return weights

    def _positions(self, scores, masks):
        """Positions of queries (B, T, 1) and keys (B, 1, S) among the real ones, S."""
        _, steps, length = ops.shape(scores)
        queries = ops.arange(steps, dtype=scores.dtype)[None, :, None]
        keys = ops.arange(length, dtype=scores.dtype)[None, None]
        if masks.queries is not None:
            queries = _count(masks.queries, 1, scores.dtype)
        if masks.keys is not None:
            keys = _count(masks.keys, 2, scores.dtype)
            length = keys[..., -1:] + 1.0
        return queries, keys, length

    def _predict(self, query, lengths):
        """Predicted centres (B, T, 1): p = S sigmoid(v . tanh(W q)), equation 9."""
        hidden = ops.tanh(project(query, self.read(self.position_kernel)))
        vector = self.read(self.position_vector)[:, None]
        share = ops.sigmoid(project(hidden, vector))
        return ops.cast(lengths, share.dtype) * share

    def initial_state(self, value, value_mask=None):
        """Positions 0 (B,) in "monotonic" mode, or None."""
        return ops.zeros(ops.shape(value)[:1], "int32") if self.has_state else None

    def next_state(self, state, weights):
        """The next positions (B,) in "monotonic" mode, or None."""
        return state + 1 if self.has_state else None

    def get_config(self):
        return {
            **super().get_config(),
            "window": self.window,
            "mode": self.mode,
            "units": self.units,
            "renormalize": self.renormalize,
        }


def _count(mask, axis, dtype):
    """How many real ones come before each."""
    return ops.cumsum(ops.cast(mask, dtype), axis=axis) - 1.0
