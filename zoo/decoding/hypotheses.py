"""What a search gives back, and the record of steps that it is read off."""

from typing import NamedTuple

from keras import ops


class Hypotheses(NamedTuple):
    """N hypotheses of each of B sentences, the best first; L is `max_length`.

    Those that ended come first, by score; then those that were cut, by score.

    One rule of length throughout: a length is the number of tokens emitted, the end
    token among them. The length penalty divides by it, and that many rows of `ids` and
    of `attention` are real. A hypothesis cut at its limit has no end token.

    Where there are fewer than N hypotheses (a vocabulary of few words, logits that are
    NaN) the last have score -inf and length 0.

    Attributes:
        ids: int32 (B, N, L), 0 after the end.
        scores: float32 (B, N): log-probability by length, less the coverage penalty.
        log_probabilities: float32 (B, N): the model's own, summed over the tokens.
        lengths: int32 (B, N).
        finished: Boolean (B, N), False where a hypothesis was cut.
        attention: float32 (B, N, L, S), 0 after the end; None if the model has none or
            it was not asked for. Row t is what was looked at to emit token t.
    """

    ids: object
    scores: object
    log_probabilities: object
    lengths: object
    finished: object
    attention: object = None


def start_record(max_length, links, attention):
    """A record of no steps: what is written each step, and room for all steps.

    Args:
        max_length: Number of steps there is room for.
        links: int32 (2, R) of a step: the row that a row came of, and its token.
        attention: float32 (R, S) of a step, or None.
    """
    shape = ops.shape(links)
    record = {"links": ops.zeros((max_length, *shape), "int32")}
    if attention is not None:
        shape = ops.shape(attention)
        record["attention"] = ops.zeros((max_length, *shape), "float32")
    return record


def write_record(record, step, links, attention):
    """The record with what happened in a step."""
    step = ops.cast(step, "int32")
    written = {"links": ops.slice_update(record["links"], (step, 0, 0), links[None])}
    if "attention" in record:
        written["attention"] = ops.slice_update(
            record["attention"], (step, 0, 0), attention[None]
        )
    return written


def trace_back(record, steps, lengths, rows, tokens):
    """Follows hypotheses from their last step back to their first.

    Args:
        record: Of `write_record`.
        steps: Number of steps written, a scalar.
        lengths: int32 (Q,).
        rows: int32 (Q,): the row that emitted the last token.
        tokens: int32 (Q,): the last token.

    Returns:
        (2, L, Q) int32: the row that emitted each token, and the token. What is after
        the end has no meaning.
    """
    links = record["links"]
    last = ops.stack([rows, tokens])  # (2, Q)
    path = ops.zeros((ops.shape(links)[0], *ops.shape(last)), "int32")

    def back(step, row, path):
        linked = ops.take(links[step], row, axis=1)  # (2, Q)
        here = ops.where(ops.equal(lengths, step + 1), last, linked)
        # Before its last step a hypothesis is nowhere: any row will do.
        row = ops.where(ops.less(lengths, step + 1), 0, here[0])
        return step - 1, row, ops.slice_update(path, (step, 0, 0), here[None])

    start = ops.cast(steps, "int32") - 1, ops.zeros_like(rows), path
    path = ops.while_loop(lambda step, *_: step >= 0, back, start)[2]
    return ops.transpose(path, (1, 0, 2))


def ids_and_attention(record, path, lengths):
    """What hypotheses emitted, and what they looked at.

    Args:
        record: Of `write_record`.
        path: Of `trace_back`.
        lengths: int32 (B, N), with B N = Q.

    Returns:
        ids (B, N, L) and attention (B, N, L, S) or None, 0 after the end.
    """
    rows, tokens = path[0], path[1]  # (L, Q)
    max_length = ops.shape(rows)[0]
    shape = (*ops.shape(lengths), max_length)
    real = ops.less(ops.arange(max_length, dtype="int32"), lengths[..., None])
    ids = ops.where(real, ops.reshape(ops.transpose(tokens), shape), 0)
    if "attention" not in record:
        return ids, None
    _, num_rows, width = ops.shape(record["attention"])
    flat = ops.reshape(record["attention"], (max_length * num_rows, width))
    first = ops.arange(max_length, dtype="int32")[:, None] * num_rows
    places = ops.reshape(ops.transpose(rows + first), shape)
    places = ops.where(real, places, 0)
    attention = ops.take(flat, places, axis=0)  # (B, N, L, S)
    return ids, ops.where(real[..., None], attention, 0.0)
