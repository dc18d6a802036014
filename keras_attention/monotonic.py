"""MonotonicAttention: an alignment that only moves forward, and can be read online."""

import keras
from keras import ops

from keras_attention.arguments import alignment_of
from keras_attention.masking import as_boolean_mask
from keras_attention.scoring import BorrowsScore
from keras_attention.steps import affine_prefix, affine_recursion, over_steps

MODES = ("parallel", "recursive")


def monotonic_alignment(p_choose, previous, mode="parallel"):
    """One step of monotonic attention: where to stop, given where the last one stopped.

    Raffel et al. (2017), equations 13 and 14: `q[s] = (1 - p[s-1]) q[s-1] +
    previous[s]`, `weights[s] = p[s] q[s]`; or, in "hard" mode, section 2.2: the first s
    not before the previous one with p[s] > 1/2.

    Args:
        p_choose: Probabilities p (B, S) to stop at a key that is reached; 0 skips it.
        previous: Weights (B, S) of the step before; at first 1 for key 0, else 0.
        mode: "parallel" or "recursive", which give the same: the recursion as a prefix
            of affine maps in log2(S) rounds, or a key at a time. Neither divides, so
            that p may be 0 and 1. "hard" wants a `previous` of one 1, or of zeros.

    Returns:
        Weights (B, S) with a sum of at most 1: what stops at no key is lost. "hard":
        one 1, or zeros where no key is chosen, and from then on. It has no gradient.

    Example:

    >>> p, start = np.array([[0.5, 0.5, 1.0]]), np.array([[1.0, 0.0, 0.0]])
    >>> keras.ops.convert_to_numpy(monotonic_alignment(p, start)).tolist()
    [[0.5, 0.25, 0.25]]
    """
    p_choose = ops.convert_to_tensor(p_choose)
    previous = ops.convert_to_tensor(previous, dtype=p_choose.dtype)
    if mode == "hard":
        reached = ops.cumsum(previous, axis=1) > 0
        chosen = first_true(ops.logical_and(p_choose > 0.5, reached))
        return ops.cast(chosen, p_choose.dtype)
    _check_mode(mode, (*MODES, "hard"))
    # The factor of q[s-1] in q[s]: 1 - p[s-1], and 0 for s = 0.
    passing = ops.pad(1 - p_choose[:, :-1], ((0, 0), (1, 0)))
    arriving = affine_prefix if mode == "parallel" else affine_recursion
    return p_choose * arriving(passing, previous)


def monotonic_alignments(p_choose, previous, mode="parallel", moves=None):
    """All steps of monotonic attention, each from where the one before it stopped.

    Args:
        p_choose, previous, mode: Those of `monotonic_alignment`, p for T steps: (B, T,
            S).
        moves: Boolean (B, T), False for steps that are padding: their weights are 0 and
            the next step goes on from the one before them. None: all are real.

    Returns:
        Weights (B, T, S).

    Example:

    >>> p, start = np.ones((1, 3, 2)), np.array([[1.0, 0.0]])
    >>> keras.ops.convert_to_numpy(monotonic_alignments(p, start)).tolist()
    [[[1.0, 0.0], [1.0, 0.0], [1.0, 0.0]]]
    """

    def step(previous, inputs):
        weights = monotonic_alignment(inputs[0], previous, mode)
        if moves is None:
            return weights, weights
        move = inputs[1][:, None]
        return ops.where(move, weights, previous), ops.where(move, weights, 0)

    inputs = [ops.convert_to_tensor(p_choose)]
    if moves is not None:
        inputs.append(ops.convert_to_tensor(moves))
    inputs = [ops.swapaxes(x, 0, 1) for x in inputs]  # (T, B, ...)
    previous = ops.convert_to_tensor(previous, dtype=inputs[0].dtype)
    return ops.swapaxes(over_steps(step, previous, inputs), 0, 1)


@keras.saving.register_keras_serializable(package="keras_attention")
class MonotonicAttention(BorrowsScore):
    """Attention that only moves forward over the keys, on any score.

    Each query reads on from the key attended to last and stops at a key with the chance
    `p[t, s] = sigmoid(score(q[t], k[s]) + r)`, r a learned bias. In training, weights
    are the chance to stop at a key, `weights[t, s] = p[t, s] ((1 - p[t, s-1])
    weights[t, s-1] / p[t, s-1] + weights[t-1, s])`, from the first key on. At inference
    they are hard: 1 at the first key with p > 1/2, which needs no key behind it.

    `keras.layers.Attention` may look anywhere at each query. Here weights sum to at
    most 1: a query may read past the last key. A hard one that does gets zeros, and so
    do those after it.

    Padding: masked keys are skipped as if they were not there, also in between; a query
    with nothing to attend to gets zeros and leaves the alignment where it was.

    Args:
        score: A name of `LuongAttention`'s scores, or a layer whose score to take, such
            as `BahdanauAttention(32, normalize=True)`, the paper's.
        sigmoid_noise: Standard deviation of Gaussian noise added to the scores in
            training, which drives p to 0 or 1. The paper has 1.
        score_bias_init: What r begins with. A negative number reads further at first.
        mode: How soft weights are computed: "parallel", or "recursive", the same a key
            at a time, and slower.
        hard: None for hard weights unless training; True or False for hard or soft ones
            in both. No gradient of hard weights reaches the score.
        **kwargs: `dropout`, `return_attention_scores` and `seed` (of dropout and noise)
            of `AttentionLayer`; `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments: those of `ScoredAttention`; a query is needed. `state` is the
    weights (B, S, 1) of the step before; after a step that is padding keep the old one.

    Returns:
        `(context, weights)`. Queries (B, T, D): (B, T, F) and (B, T, S). One decoder
        state (B, D): (B, F) and (B, S, 1).

    Raises:
        ValueError: for an unknown mode or `hard`, a negative noise, an `activation`, or
            what the score's own layer refuses.

    Example:

    >>> x = np.random.default_rng(0).normal(size=(1, 4, 8))
    >>> context, weights = MonotonicAttention()(x, x)
    >>> stops = keras.ops.convert_to_numpy(weights)[0].argmax(-1)
    >>> bool((np.diff(stops) >= 0).all())
    True

    Reference: Raffel, Luong, Liu, Weiss & Eck (2017), "Online and Linear-Time Attention
    by Enforcing Monotonic Alignments", arXiv:1704.00784, section 2.2 and equation 10.
    """

    has_state = True

    def __init__(
        self,
        score="dot",
        *,
        sigmoid_noise=0.0,
        score_bias_init=0.0,
        mode="parallel",
        hard=None,
        **kwargs,
    ):
        super().__init__(score, **kwargs)
        _check_mode(mode, MODES)
        _check_options(sigmoid_noise, hard, self.activation)
        self.sigmoid_noise = sigmoid_noise
        self.score_bias_init = score_bias_init
        self.mode = mode
        self.hard = hard
        if sigmoid_noise > 0:
            self.noise_generator = keras.random.SeedGenerator(self.seed)
        self.borrow()

    def build(self, query_shape, value_shape=None, key_shape=None):
        super().build(query_shape, value_shape, key_shape)
        start = keras.initializers.Constant(self.score_bias_init)
        self.score_bias = self.add_weight(
            shape=(), initializer=start, name="score_bias", autocast=False
        )

    def draw(self, batch, steps, keys):
        drawn = super().draw(batch, steps, keys)
        if self.sigmoid_noise > 0:
            drawn["noise"] = self._noise((steps, batch, 1, keys))
        return drawn

    def _noise(self, shape):
        return keras.random.normal(
            shape,
            stddev=self.sigmoid_noise,
            dtype=self.score_dtype,
            seed=self.noise_generator,
        )

    def weigh(self, query, key, masks, state, training, noise=None):
        may_attend = masks.pairs
        scores = self.score(query, key)  # (B, T, S)
        scores = scores + ops.cast(self.score_bias, self.score_dtype)
        if self.sigmoid_noise > 0 and training:
            scores = scores + (
                self._noise(ops.shape(scores)) if noise is None else noise
            )
        p_choose, moves = ops.sigmoid(scores), None
        if may_attend is not None:
            may_attend = ops.broadcast_to(may_attend, ops.shape(scores))
            p_choose = ops.where(may_attend, p_choose, 0)
            moves = ops.any(may_attend, axis=-1)  # (B, T)
        if state is None:
            # Masked keys pass everything on: key 0 will do for the first real one.
            state = self.initial_state(ops.swapaxes(scores, 1, 2))
        hard = not training if self.hard is None else self.hard
        mode = "hard" if hard else self.mode
        previous = alignment_of(state, scores.shape[0], scores.shape[2])
        return monotonic_alignments(p_choose, previous, mode, moves)

    def initial_state(self, value, value_mask=None):
        """All weight on the first real key: (B, S, 1) for values (B, S, F)."""
        if value_mask is None:
            value_mask = ops.ones(ops.shape(value)[:2], "bool")
        first = first_true(as_boolean_mask(value_mask, "value_mask"))
        return ops.cast(first, self.score_dtype)[..., None]

    def next_state(self, state, weights):
        """The weights (B, S, 1) themselves."""
        return weights

    def get_config(self):
        return {
            **super().get_config(),
            "sigmoid_noise": self.sigmoid_noise,
            "score_bias_init": self.score_bias_init,
            "mode": self.mode,
            "hard": self.hard,
        }


def first_true(mask):
    """A mask (B, S) with True at the first True of each row alone."""
    count = ops.cumsum(ops.cast(mask, "int32"), axis=1)
    return ops.logical_and(mask, count == 1)


def _check_mode(mode, modes):
    if mode not in modes:
        raise ValueError(
            f"`mode` must be one of {', '.join(map(repr, modes))}. Received: {mode!r}. "
            "'parallel' is the fast one."
        )


def _check_options(sigmoid_noise, hard, activation):
    if not sigmoid_noise >= 0:
        raise ValueError(
            "`sigmoid_noise` must be a standard deviation of at least 0. Received: "
            f"{sigmoid_noise!r}. The paper has 1.0; 0.0 is none."
        )
    if hard not in (None, True, False):
        raise ValueError(
            "`hard` must be None (hard unless training), True or False. Received: "
            f"{hard!r}. Leave it out."
        )
    if activation != "softmax":
        raise ValueError(
            "Monotonic attention has a sigmoid in place of an `activation` over all "
            f"keys. Received: activation={activation!r}. Leave it out."
        )
