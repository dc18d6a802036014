"""LocationSensitiveAttention: an additive score that also sees where it looked last."""

import keras
from keras import ops

from keras_attention.arguments import alignment_of
from keras_attention.functional import project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.scored import ScoredAttention
from keras_attention.steps import over_steps


def location_features(alignment, filters):
    """What filters see around each key of an alignment: f = F * alignment.

    Chorowski et al. (2015), equation 8: `f[s, n] = sum over j of F[j, n]
    alignment[s + j - (k - 1) // 2]`, with zeros beyond both ends. An even number k of
    taps looks one key further ahead than back.

    Args:
        alignment: Weights (B, S) of the step before, or a sum of weights.
        filters: Filters F (k, n).

    Returns:
        Features (B, S, n).

    Example:

    >>> features = location_features(np.array([[0.0, 1.0, 0.0, 0.0]]), np.eye(3))
    >>> keras.ops.convert_to_numpy(features)[0].tolist()
    [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    taps, length = filters.shape[0], ops.shape(alignment)[1]
    alignment = ops.pad(alignment, ((0, 0), ((taps - 1) // 2, taps // 2)))
    place = ops.arange(length)[:, None] + ops.arange(taps)  # (S, k)
    # For one channel a product is many times faster than the backends' convolutions.
    windows = ops.take(alignment, place, axis=1)  # (B, S, k)
    return ops.einsum("bsk,kn->bsn", windows, filters)


@keras.saving.register_keras_serializable(package="keras_attention")
class LocationSensitiveAttention(Kernels, ScoredAttention):
    """Additive attention that sees the alignment before it, around each key.

    `weights[t] = softmax over s of w . tanh(W q[t] + V k[s] + U f[t, s] + b)`, where
    `f[t] = F * weights[t-1]` is a convolution of the weights of the step before along
    the keys, so that the layer can learn to move on, and to tell equal keys apart by
    where they are. Before the first step the weights are 0.

    `keras.layers.AdditiveAttention` forgets where it looked, and has none of W, V, U, F
    and b.

    Padding: masked keys have the weight 0, which the convolution sees as it sees the
    ends, so padding on either side changes nothing. Masked keys in between keep their
    places. A query with nothing to attend to gets weights 0 and context 0 and leaves
    the alignment as it was.

    Args:
        units: Width of the hidden layer tanh(...), at least 1.
        filters: Number of filters F.
        kernel_size: Number of keys that a filter sees, r in the paper. An even one sees
            one key more ahead than behind.
        accumulate: Whether to convolve the sum of the weights of all steps before, as
            Tacotron 2 does, in place of the last step's.
        kernel_initializer: Initializer of W, V, U, F and w.
        kernel_regularizer: Regularizer of W, V, U, F and w.
        **kwargs: `activation`, `dropout`, `return_attention_scores` and `seed` of
            `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`; a query is needed. `state` is the
    weights (B, S, 1) of the step before, or their sum so far; None at the start. A step
    whose query is padding has no weights: keep the old state.

    Returns:
        `(context, weights)`. Queries (B, T, D): (B, T, F) and (B, T, S). One decoder
        state (B, D): (B, F) and (B, S, 1).

    Raises:
        ValueError: for sizes under 1, or inputs of other ranks.

    Example:

    >>> layer, memory = LocationSensitiveAttention(units=4), np.ones((2, 5, 6))
    >>> state = layer.initial_state(memory)
    >>> for query in np.ones((3, 2, 8)):
    ...     context, weights = layer(query, memory, state=state)
    ...     state = layer.next_state(state, weights)
    >>> tuple(context.shape), tuple(weights.shape)
    ((2, 6), (2, 5, 1))

    Reference: Chorowski, Bahdanau, Serdyuk, Cho & Bengio (2015), "Attention-Based
    Models for Speech Recognition", arXiv:1506.07503, equations 8 and 9. The sum: Shen
    et al. (2018), "Natural TTS Synthesis by Conditioning WaveNet on Mel Spectrogram
    Predictions", arXiv:1712.05884, section 2.2.
    """

    has_state = True

    def __init__(
        self, units, *, filters=32, kernel_size=31, accumulate=False, **kwargs
    ):
        super().__init__(**kwargs)
        self.units = check_whole("units", units, "128 is usual.")
        self.filters = check_whole("filters", filters, "10 to 32 are usual.")
        self.kernel_size = check_whole("kernel_size", kernel_size, "31 is usual.")
        self.accumulate = accumulate

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        query, key = query_shape[-1], (key_shape or value_shape)[-1]
        self.query_kernel = self.add_kernel("query_kernel", (query, self.units))
        self.key_kernel = self.add_kernel("key_kernel", (key, self.units))
        shape = (self.kernel_size, self.filters)
        self.location_filters = self.add_kernel("location_filters", shape)
        shape = (self.filters, self.units)
        self.location_kernel = self.add_kernel("location_kernel", shape)
        self.score_vector = self.add_kernel("score_vector", (self.units,))
        self.bias = self.add_bias("bias", (self.units,))

    def project_query(self, query):
        return project(query, self.read(self.query_kernel), self.read(self.bias))

    def project_key(self, key):
        return project(key, self.read(self.key_kernel))

    def weigh(self, query, key, masks, state, training):
        may_attend = masks.pairs
        # U (F * alignment) = (F U) * alignment: one product less in each step.
        filters = project(
            self.read(self.location_filters), self.read(self.location_kernel)
        )
        filters = ops.cast(filters, self.score_dtype)  # (kernel_size, units)
        vector = self.read(self.score_vector)

        def step(alignment, inputs):
            location = location_features(alignment, filters)  # (B, S, units)
            hidden = ops.tanh(inputs[0][:, None] + key + location)
            # A `matmul` in TensorFlow's loop has no XLA gradient for unknown lengths.
            scores = ops.sum(hidden * vector, axis=-1)  # (B, S)
            if len(inputs) == 1:
                weights = self.normalize_scores(scores, None)
                return self._following(alignment, weights), weights
            weights = self.normalize_scores(scores, inputs[1])
            following = ops.where(
                ops.any(inputs[1], axis=-1, keepdims=True),
                self._following(alignment, weights),
                alignment,
            )
            return following, weights

        inputs = [ops.swapaxes(query, 0, 1)]  # (T, B, units)
        if may_attend is not None:
            shape = (ops.shape(query)[0], ops.shape(query)[1], ops.shape(key)[1])
            may_attend = ops.broadcast_to(may_attend, shape)
            inputs.append(ops.swapaxes(may_attend, 0, 1))  # (T, B, S)
        state = self.initial_state(key) if state is None else state
        alignment = alignment_of(state, *key.shape[:2])
        alignment = ops.cast(alignment, self.score_dtype)  # (B, S)
        return ops.swapaxes(over_steps(step, alignment, inputs), 0, 1)

    def initial_state(self, value, value_mask=None):
        """No alignment yet: zeros (B, S, 1) for values (B, S, F)."""
        return ops.zeros_like(value[..., :1], dtype=self.score_dtype)

    def next_state(self, state, weights):
        """The weights (B, S, 1), or with `accumulate` their sum with the state."""
        return weights if state is None else self._following(state, weights)

    def _following(self, alignment, weights):
        return alignment + weights if self.accumulate else weights

    def get_config(self):
        return {
            **super().get_config(),
            "units": self.units,
            "filters": self.filters,
            "kernel_size": self.kernel_size,
            "accumulate": self.accumulate,
        }
