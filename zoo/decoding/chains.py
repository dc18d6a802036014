"""Searches that continue each hypothesis by one token: greedy search and samples."""

from keras import ops

from zoo.checks import check_integer
from zoo.decoding.arguments import check_sampling, check_seed
from zoo.decoding.chain_steps import ChainSteps
from zoo.decoding.rows import num_rows
from zoo.decoding.rules import Rules
from zoo.decoding.sampling import draw, row_keys, uniform
from zoo.decoding.scoring import Scoring


def greedy_search(
    next_token,
    state,
    *,
    memory=None,
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
    """The hypothesis of the most probable token at each step, one for each sentence.

    Of equal logits the lowest id is taken. The penalties do not change the ids; they
    make the scores those of `beam_search`.

    Args:
        next_token: `(state, token (R,)[, memory]) -> (logits (R, V), state, attention
            (R, S) or None)`; token is int32, the one emitted before.
        state: Tree of tensors whose first axis is the sentence. Scalars are shared.
        memory: Tree of tensors whose first axis is the sentence, which no step changes.
            None: `next_token` takes two arguments.
        max_length: The greatest length of a hypothesis.
        max_lengths: (B,) integers of at least 1, a lower limit for each sentence.
        min_length: The least length of a hypothesis that ends.
        length_penalty: alpha: see `length_divisor`.
        length_rule: "gnmt" or "average".
        coverage_penalty: beta of Wu et al. (2016), eq. 14.
        source_mask: Boolean (B, S), True at real source tokens, for coverage_penalty.
        start_id: The id before the first token.
        end_id: The id that ends a hypothesis.
        forbidden_ids: Ids never to emit, besides 0 and start_id.
        return_attention: Whether to keep the attention.

    Returns:
        `Hypotheses` with N = 1.

    Raises:
        ValueError: for numbers out of range.

    Example:

    >>> logits = np.array([[0.0, 0.0, 0.0, 1.0, 2.0]])
    >>> def next_token(state, token):
    ...     return logits - 2 * keras.ops.one_hot(token, 5), state, None
    >>> found = greedy_search(next_token, np.zeros((1, 1)), max_length=4)
    >>> keras.ops.convert_to_numpy(found.ids).tolist()
    [[[4, 3, 0, 0]]]
    """
    rules = Rules(start_id, end_id, min_length, max_length, forbidden_ids)
    scoring = Scoring(length_penalty, length_rule, coverage_penalty)
    source_mask = scoring.checked_mask(source_mask)
    chains = ChainSteps(rules, scoring, 1, source_mask, return_attention)

    def best(logits, step):
        return ops.cast(ops.argmax(logits, axis=-1), "int32")

    return chains.run(next_token, state, memory, max_lengths, best)


def sample(
    next_token,
    state,
    *,
    memory=None,
    seed,
    num_return=1,
    temperature=1.0,
    top_k=None,
    top_p=None,
    max_length,
    max_lengths=None,
    min_length=0,
    length_penalty=0.6,
    length_rule="gnmt",
    start_id=1,
    end_id=3,
    forbidden_ids=(),
    sentence_ids=None,
    return_attention=True,
):
    """Hypotheses drawn at random, token by token, by the model's probabilities.

    What is drawn depends on the seed, on the sentence's number, on the hypothesis's
    number and on the step alone: the same seed gives the same draws, on every backend,
    and whatever else is in the batch. Two samples of a sentence may be alike.

    Args:
        next_token: As for `beam_search`.
        state: Tree of tensors whose first axis is the sentence. Scalars are shared.
        memory: Tree of tensors whose first axis is the sentence, or None.
        seed: An integer of at least 0, or a scalar int32 tensor.
        num_return: Number of samples of each sentence.
        temperature: What logits are divided by, above 0: below 1 the probable become
            more probable.
        top_k: To draw from the top_k most probable tokens only.
        top_p: To draw from the fewest most probable tokens only whose probabilities
            come to top_p (after temperature and top_k): nucleus sampling.
        max_length: The greatest length of a hypothesis.
        max_lengths: (B,) integers of at least 1, a lower limit for each sentence.
        min_length: The least length of a hypothesis that ends.
        length_penalty: alpha of the scores: see `length_divisor`.
        length_rule: "gnmt" or "average".
        start_id: The id before the first token.
        end_id: The id that ends a hypothesis.
        forbidden_ids: Ids never to emit, besides 0 and start_id.
        sentence_ids: (B,) integers, the numbers of the sentences; 0..B-1 by default. To
            draw the same for a sentence in any batch give it the same number.
        return_attention: Whether to keep the attention.

    Returns:
        `Hypotheses`, the best by score first, those cut at the limit behind all that
        ended. Log-probabilities are the model's own,
        whatever the temperature.

    Raises:
        ValueError: for numbers out of range, such as temperature 0.

    Example:

    >>> logits = np.array([[0.0, 0.0, 0.0, 0.0, 2.0]])
    >>> def next_token(state, token):
    ...     return keras.ops.repeat(logits, len(token), axis=0), state, None
    >>> found = sample(next_token, np.zeros((1, 1)), seed=7, top_k=1, max_length=2)
    >>> keras.ops.convert_to_numpy(found.ids).tolist()
    [[[4, 4]]]

    Reference: Holtzman et al. (2020), "The Curious Case of Neural Text Degeneration",
    section 3.1
    """
    rules = Rules(start_id, end_id, min_length, max_length, forbidden_ids)
    scoring = Scoring(length_penalty, length_rule)
    num_return = check_integer("num_return", num_return, 1)
    check_sampling(temperature, top_k, top_p)
    check_seed(seed)
    chains = ChainSteps(rules, scoring, num_return, None, return_attention)
    batch = num_rows(state, memory)
    keys = row_keys(seed, sentence_ids, batch, num_return)

    def drawn(logits, step):
        return draw(logits, uniform(keys, step), temperature, top_k, top_p)

    return chains.run(next_token, state, memory, max_lengths, drawn)
