"""How hypotheses are ranked: log-probability by length, less uncovered source."""

import dataclasses

from keras import ops

from keras_attention.masking import as_boolean_mask
from zoo.checks import check_number

LENGTH_RULES = ("gnmt", "average")
BEHIND = 2.0**64  # Further down than any score; a power of 2 rounds nothing.
COVERAGE_FLOOR = 1e-6  # What no step looked at counts as this: log(0) has no rank.


def length_divisor(lengths, alpha, rule="gnmt"):
    """What log-probabilities are divided by: lp(n).

    Args:
        lengths: Numbers of emitted tokens n, the end token among them, any shape.
        alpha: How much length is made up for; 0: not at all.
        rule: "gnmt": ((5 + n) / 6)^alpha, Wu et al. (2016), eq. 14. "average":
            n^alpha, with alpha 1 the mean log-probability of a token.

    Returns:
        float32 of the shape of `lengths`.

    Raises:
        ValueError: if `rule` is another.

    Example:

    >>> divisor = length_divisor(np.array([1, 7]), alpha=1.0)
    >>> keras.ops.convert_to_numpy(divisor).tolist()
    [1.0, 2.0]
    """
    if rule not in LENGTH_RULES:
        raise ValueError(
            f"`length_rule` must be one of {LENGTH_RULES}. Received: {rule!r}. For no "
            "penalty use length_penalty=0."
        )
    lengths = ops.cast(lengths, "float32")
    base = (5.0 + lengths) / 6.0 if rule == "gnmt" else lengths
    return ops.power(base, alpha)


def ranks(scores, finished):
    """What hypotheses are put in order by: those that were cut behind all that ended.

    A model that repeats itself is sure of each word, so that sentences without an end
    would often have the best scores.

    Args:
        scores: Any shape, at most about 0.
        finished: Boolean of that shape.

    Example:

    >>> order = ranks(np.array([-0.1, -9.0]), np.array([False, True]))
    >>> bool(order[0] < order[1])
    True
    """
    return ops.where(finished, scores, (scores - 1.0) * BEHIND)


def coverage_logs(coverage, source_mask):
    """sum_s log(min(coverage_s, 1)) over the real source tokens.

    Wu et al. (2016), eq. 14, without beta.

    Args:
        coverage: Attention summed over the steps of a hypothesis (R, S).
        source_mask: Boolean (R, S), True at real tokens.

    Returns:
        (R,), at most 0. A token with less attention than 1e-6 counts as 1e-6.

    Example:

    >>> coverage, mask = np.array([[2.0, 1.0, 0.0]]), np.array([[True, True, False]])
    >>> keras.ops.convert_to_numpy(coverage_logs(coverage, mask)).tolist()
    [0.0]
    """
    logs = ops.log(ops.clip(coverage, COVERAGE_FLOOR, 1.0))
    return ops.sum(ops.where(source_mask, logs, 0.0), axis=-1)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """score = log P / lp(length) + coverage_penalty * cp: Wu et al. (2016), eq. 14.

    Attributes:
        length_penalty: alpha of lp, at least 0.
        length_rule: "gnmt" or "average": see `length_divisor`.
        coverage_penalty: beta, at least 0.
    """

    length_penalty: float
    length_rule: str
    coverage_penalty: float = 0.0

    def __post_init__(self):
        check_number("length_penalty", self.length_penalty, 0)
        check_number("coverage_penalty", self.coverage_penalty, 0)
        length_divisor(1, 0, self.length_rule)

    @property
    def covers(self):
        """Whether coverage counts."""
        return self.coverage_penalty > 0

    def checked_mask(self, source_mask):
        """The mask as a boolean tensor; refuses to count coverage without one."""
        if self.covers and source_mask is None:
            raise ValueError(
                "`coverage_penalty` needs to know which source tokens are real. "
                "Received: source_mask=None. Give source_mask (B, S), such as "
                "source_ids != 0."
            )
        if source_mask is None:
            return None
        return as_boolean_mask(source_mask, "source_mask")

    def check_attention(self, attention, source_mask):
        """Refuses to count coverage without attention, or by a mask of other tokens."""
        if not self.covers:
            return
        if attention is None:
            raise ValueError(
                "`coverage_penalty` is of the attention to the source. Received: None "
                "as the attention of `next_token`. Use coverage_penalty=0."
            )
        shapes = tuple(attention.shape), tuple(source_mask.shape)
        unlike = len(shapes[1]) != 2 or any(
            one != other and None not in (one, other)
            for one, other in zip(*shapes, strict=True)
        )
        if unlike:
            raise ValueError(
                "`source_mask` must be (sentences, source tokens), as the attention of "
                f"`next_token`. Received: shape {shapes[1]} with attention of "
                f"{shapes[0]}. Give source_ids != 0."
            )

    def scores(self, log_probabilities, lengths, logs=None):
        """Scores of hypotheses, or an upper bound of them if `logs` is left out.

        Args:
            log_probabilities: Summed over the tokens; `logs`: of `coverage_logs`.
            lengths: Numbers of tokens, at least 1.
        """
        divisor = length_divisor(lengths, self.length_penalty, self.length_rule)
        scores = log_probabilities / divisor
        if logs is None or not self.covers:
            return scores
        return scores + self.coverage_penalty * logs
