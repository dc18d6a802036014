"""Beam search: the best sentences by score, with the attention that led to them."""

from zoo.checks import check_integer
from zoo.decoding.arguments import check_num_return
from zoo.decoding.beam_steps import BeamSteps
from zoo.decoding.chains import greedy_search
from zoo.decoding.rows import num_rows, sentence_limits
from zoo.decoding.rules import Rules
from zoo.decoding.scoring import Scoring


def beam_search(
    next_token,
    state,
    *,
    memory=None,
    num_beams=5,
    num_return=1,
    max_length,
    max_lengths=None,
    min_length=0,
    length_penalty=0.6,
    length_rule="gnmt",
    coverage_penalty=0.0,
    source_mask=None,
    start_id=1,
    end_id=3,
    forbidden_ids=(),
    return_attention=True,
):
    """The best hypotheses that `num_beams` beams find for each sentence.

    In each step every beam is continued by every token. Of the `num_beams` best
    continuations of a sentence those that end, by the end token or at the limit of
    length, are kept in a pool of the `num_return` best by score; the `num_beams` best
    that do not end are the next beams, so that their number never falls. A sentence is
    done when no beam can come to a score above the worst of its full pool: a beam's
    log-probability only falls and the coverage penalty is never above 0, so its score
    is at most log P / lp(limit). The best hypothesis thus does not depend on
    `num_return`. With one beam it is `greedy_search`.

    Scores are by the model's own log-probabilities: ids that may not be emitted are
    passed over and their probability is not shared out among the others. Replaying a
    hypothesis through the model gives its log-probability again.

    Args:
        next_token: `(state, token (R,)[, memory]) -> (logits (R, V), state, attention
            (R, S) or None)`; token is int32, the one emitted before.
        state: Tree of tensors whose first axis is the row: B rows to begin with,
            B x num_beams later, put into a new order each step. Scalars are shared.
        memory: Tree of tensors whose first axis is the sentence, which no step changes.
            It is repeated for the beams once. None: `next_token` takes two arguments.
        num_beams: Number of hypotheses continued for each sentence.
        num_return: Number of hypotheses returned, at most num_beams.
        max_length: The greatest length of a hypothesis.
        max_lengths: (B,) integers of at least 1, a lower limit for each sentence. One
            that fits the source lets a sentence be done sooner.
        min_length: The least length of a hypothesis that ends.
        length_penalty: alpha: see `length_divisor`.
        length_rule: "gnmt" or "average".
        coverage_penalty: beta of Wu et al. (2016), eq. 14. The bound above is far from
            what is reached with it, so more steps are taken.
        source_mask: Boolean (B, S), True at real source tokens, for coverage_penalty.
        start_id: The id before the first token.
        end_id: The id that ends a hypothesis.
        forbidden_ids: Ids never to emit, besides 0 and start_id.
        return_attention: Whether to keep the attention.

    Returns:
        `Hypotheses`, those cut at the limit behind all that ended.

    Raises:
        ValueError: for numbers out of range, and as said above.

    Example:

    >>> chances = np.log(np.array([[0, 0, 0, 0.4, 0.6], [0, 0, 0, 0.9, 0.1]]) + 1e-9)
    >>> def next_token(state, token):
    ...     row = keras.ops.cast(token == 4, "int32")
    ...     return keras.ops.take(chances, row, axis=0), state, None
    >>> found = beam_search(next_token, np.zeros((1, 1)), num_beams=2, max_length=3)
    >>> keras.ops.convert_to_numpy(found.ids).tolist()
    [[[4, 3, 0]]]

    Reference: Wu et al. (2016), "Google's Neural Machine Translation System", section 7
    """
    advice = "Use num_beams=1 for greedy search."
    num_beams = check_integer("num_beams", num_beams, 1, advice)
    num_return = check_num_return(num_return, num_beams)
    if num_beams == 1:
        return greedy_search(
            next_token,
            state,
            memory=memory,
            max_length=max_length,
            max_lengths=max_lengths,
            min_length=min_length,
            length_penalty=length_penalty,
            length_rule=length_rule,
            coverage_penalty=coverage_penalty,
            source_mask=source_mask,
            start_id=start_id,
            end_id=end_id,
            forbidden_ids=forbidden_ids,
            return_attention=return_attention,
        )
    rules = Rules(start_id, end_id, min_length, max_length, forbidden_ids)
    scoring = Scoring(length_penalty, length_rule, coverage_penalty)
    source_mask = scoring.checked_mask(source_mask)
    batch = num_rows(state, memory)
    limits = sentence_limits(max_lengths, batch, max_length)[:, None]  # (B, 1)
    steps = BeamSteps(rules, scoring, batch, limits, num_beams, source_mask)
    pool = steps.empty_pool(num_return)
    return steps.run(next_token, state, memory, pool, return_attention)
