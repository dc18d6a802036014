"""The steps of searches that continue each hypothesis by one token."""

from typing import NamedTuple

from keras import ops

from zoo.decoding.hypotheses import (
    Hypotheses,
    ids_and_attention,
    start_record,
    write_record,
)
from zoo.decoding.ranking import best_logits, log_totals, number_or_never, take_places
from zoo.decoding.rows import as_tensors, call, num_rows, sentence_limits, take_rows
from zoo.decoding.rules import Rules
from zoo.decoding.scoring import Scoring, coverage_logs, ranks

NEVER = -float("inf")


class Growth(NamedTuple):
    """What becomes of the rows, R = B N."""

    live: object  # (R,), False where a hypothesis ended
    log_probabilities: object  # (R,)
    lengths: object  # (R,)
    tokens: object  # (R,), the last ones


class ChainSteps(NamedTuple):
    """What stays as it is from step to step."""

    rules: Rules
    scoring: Scoring
    num_return: int
    source_mask: object
    return_attention: bool

    def run(self, next_token, state, memory, max_lengths, choose):
        """All steps.

        Args:
            choose: `(logits (R, V), -inf where not allowed, step) -> token (R,)`.
        """
        rules, batch = self.rules, num_rows(state, memory)
        state, memory = as_tensors((state, memory))
        token = ops.full((batch,), rules.start_id, dtype="int32")
        # The first step is the same for all hypotheses of a sentence.
        logits, attention, state = call(next_token, state, token, memory)
        rules.check_vocabulary(logits.shape[-1])
        self.scoring.check_attention(attention, self.source_mask)
        sentences = ops.arange(batch, dtype="int32")
        repeats = ops.repeat(sentences, self.num_return, axis=0)
        state, memory, logits, attention, token = take_rows(
            (state, memory, logits, attention, token), repeats
        )
        limits = sentence_limits(max_lengths, batch, rules.max_length)
        limits = ops.take(limits, repeats, axis=0)
        keeps = attention is not None and (self.return_attention or self.scoring.covers)
        zeros = ops.zeros_like(token)
        growth = Growth(zeros < 1, ops.cast(zeros, "float32"), zeros, token)
        growth = self.advance(0, logits, growth, limits, choose)
        links = _links(growth)
        record = start_record(rules.max_length, links, attention if keeps else None)
        record = write_record(record, 0, links, attention)

        def going_on(step, state, growth, record):
            return ops.logical_and(step < rules.max_length, ops.any(growth.live))

        def body(step, state, growth, record):
            logits, attention, state = call(next_token, state, growth.tokens, memory)
            growth = self.advance(step, logits, growth, limits, choose)
            record = write_record(record, step, _links(growth), attention)
            return step + 1, state, growth, record

        start = ops.convert_to_tensor(1, "int32"), state, growth, record
        _, _, growth, record = ops.while_loop(going_on, body, start)
        return self.result(record, growth, (batch, self.num_return))

    def advance(self, step, logits, growth, limits, choose):
        """One step. What has ended is given the end token again."""
        rules, length = self.rules, step + 1
        vocabulary = logits.shape[-1]
        allowed = rules.may_emit(ops.arange(vocabulary, dtype="int32"), length)
        tokens = choose(ops.where(allowed, number_or_never(logits), NEVER), step)
        greatest = best_logits(logits, 1)[0]
        values = take_places(logits, tokens[:, None]) - log_totals(logits, greatest)
        chosen = ops.take(allowed, tokens, axis=0)  # not so where nothing was allowed
        values = ops.where(chosen, number_or_never(values[:, 0]), NEVER)
        live = growth.live
        total = ops.where(
            live, growth.log_probabilities + values, growth.log_probabilities
        )
        lengths = growth.lengths + ops.cast(live, "int32")
        goes_on = ops.logical_and(tokens != rules.end_id, length < limits)
        goes_on = ops.logical_and(goes_on, values > NEVER)
        return Growth(
            live=ops.logical_and(live, goes_on),
            log_probabilities=total,
            lengths=lengths,
            tokens=ops.where(live, tokens, rules.end_id),
        )

    def result(self, record, growth, shape):
        """The rows as `Hypotheses`, (B, N) = shape, the best first."""
        there = growth.log_probabilities > NEVER
        lengths = ops.reshape(ops.where(there, growth.lengths, 0), shape)
        path = ops.transpose(record["links"], (1, 0, 2))  # (2, L, R)
        ids, attention = ids_and_attention(record, path, lengths)
        log_probabilities = ops.reshape(growth.log_probabilities, shape)
        logs = None
        if self.scoring.covers:
            coverage = ops.sum(attention[:, 0], axis=1)  # (B, S)
            logs = coverage_logs(coverage, self.source_mask)[:, None]
        scores = self.scoring.scores(log_probabilities, ops.maximum(lengths, 1), logs)
        finished = ops.any(ops.equal(ids, self.rules.end_id), axis=-1)
        if not self.return_attention:
            attention = None
        found = Hypotheses(ids, scores, log_probabilities, lengths, finished, attention)
        return found if self.num_return == 1 else _best_first(found)


def _links(growth):
    """(2, R): every row goes on from itself."""
    return ops.stack([_count_of(growth.tokens), growth.tokens])


def _count_of(tokens):
    return ops.arange(ops.shape(tokens)[0], dtype="int32")


def _best_first(found):
    """Hypotheses in the order of their ranks."""
    num_return = found.scores.shape[1]
    order = ranks(found.scores, found.finished)
    places = ops.cast(ops.top_k(order, num_return)[1], "int32")
    return Hypotheses(*(None if x is None else take_places(x, places) for x in found))
