"""The steps of beam search: beams go on, hypotheses that end go into a pool."""

from typing import NamedTuple

from keras import ops

from zoo.decoding.hypotheses import (
    Hypotheses,
    ids_and_attention,
    start_record,
    trace_back,
    write_record,
)
from zoo.decoding.ranking import (
    best_logits,
    first_of_each,
    log_totals,
    number_or_never,
    take_places,
)
from zoo.decoding.rows import as_tensors, call, take_rows
from zoo.decoding.rules import Rules
from zoo.decoding.scoring import Scoring, coverage_logs, ranks

NEVER = -float("inf")


class Pool(NamedTuple):
    """The best hypotheses that ended, by sentence, the best first."""

    ranks: object  # (B, N), -inf where there is none
    scores: object  # (B, N, 2): score, log-probability
    ends: object  # (B, N, 3): length, row that emitted the last token, that token


class Beams(NamedTuple):
    """What is to be continued."""

    log_probabilities: object  # (B, K), -inf where there is none
    tokens: object  # (B x K,), the last ones
    coverage: object  # (B x K, S), 0 at first; () where it does not count


class BeamSteps(NamedTuple):
    """What stays as it is from step to step."""

    rules: Rules
    scoring: Scoring
    batch: object
    limits: object  # (B, 1)
    num_beams: int
    source_mask: object

    def empty_pool(self, size):
        """No hypotheses, and room for `size` of each sentence."""
        shape = (self.batch, size)
        return Pool(
            ops.full(shape, NEVER, dtype="float32"),
            ops.full((*shape, 2), NEVER, dtype="float32"),
            ops.zeros((*shape, 3), "int32"),
        )

    def run(self, next_token, state, memory, pool, return_attention):
        """The first step, of one row a sentence, and all others, of num_beams."""
        rules, scoring = self.rules, self.scoring
        state, memory = as_tensors((state, memory))
        token = ops.full((self.batch,), rules.start_id, dtype="int32")
        logits, attention, state = call(next_token, state, token, memory)
        rules.check_vocabulary(logits.shape[-1])
        scoring.check_attention(attention, self.source_mask)
        beams = Beams(ops.zeros((self.batch, 1), "float32"), token, 0.0)
        pool, beams, links, parents = self.advance(0, logits, attention, beams, pool)
        state = take_rows(state, parents)
        repeats = ops.repeat(
            ops.arange(self.batch, dtype="int32"), self.num_beams, axis=0
        )
        memory = take_rows(memory, repeats)
        masks = take_rows(self.source_mask, repeats) if scoring.covers else None
        kept = attention if return_attention else None
        if kept is not None:
            kept = ops.take(kept, repeats, axis=0)
        record = start_record(rules.max_length, links, kept)
        record = write_record(record, 0, links, kept)
        later = self._replace(source_mask=masks)

        def going_on(step, state, beams, pool, record):
            live = ops.any(beams.log_probabilities > NEVER)
            return ops.logical_and(step < rules.max_length, live)

        def body(step, state, beams, pool, record):
            logits, attention, state = call(next_token, state, beams.tokens, memory)
            pool, beams, links, parents = later.advance(
                step, logits, attention, beams, pool
            )
            record = write_record(record, step, links, attention)
            return step + 1, take_rows(state, parents), beams, pool, record

        start = ops.convert_to_tensor(1, "int32"), state, beams, pool, record
        steps, _, _, pool, record = ops.while_loop(going_on, body, start)
        return self.result(record, steps, pool)

    def advance(self, step, logits, attention, beams, pool):
        """One step: (pool, beams, links, the row that each new beam continues).

        Args:
            step: Number of tokens emitted so far.
            logits: (B x k, V), with k beams: 1 in the first step, then num_beams.
        """
        size, length = self.num_beams, step + 1
        covered = None
        if self.scoring.covers:
            coverage = beams.coverage + attention
            covered = coverage_logs(coverage, self.source_mask)
        values, places, tokens = self.candidates(logits, beams, length)
        pool = self.collect(pool, values, places, tokens, covered, length)
        # At least num_beams of twice as many go on, for a beam ends in one way only.
        alive = ops.where(ops.equal(tokens, self.rules.end_id), NEVER, values)
        alive, chosen = ops.top_k(alive, size)  # (B, K)
        chosen = ops.cast(chosen, "int32")
        places, tokens = take_places(places, chosen), take_places(tokens, chosen)
        bound = self.scoring.scores(alive[:, :1], self.limits)
        done = ops.logical_or(bound <= pool.ranks[:, -1:], length >= self.limits)
        alive = ops.where(done, NEVER, alive)
        flat = (self.batch * size,)
        width = ops.shape(beams.log_probabilities)[1]
        parents = ops.reshape(places + first_of_each(self.batch, width), flat)
        rows = ops.reshape(places + first_of_each(self.batch, size), flat)
        tokens = ops.reshape(tokens, flat)
        coverage = ops.take(coverage, parents, axis=0) if covered is not None else ()
        beams = Beams(ops.reshape(alive, (self.batch, size)), tokens, coverage)
        return pool, beams, ops.stack([rows, tokens]), parents

    def candidates(self, logits, beams, length):
        """The 2 num_beams best continuations of each sentence, the best first.

        Returns:
            Their log-probabilities, the beams they continue and their last tokens, all
            (B, 2 x num_beams); -inf where there is none.
        """
        count, vocabulary = 2 * self.num_beams, logits.shape[-1]
        # As many of each beam, and as many more as may be passed over.
        kept = min(vocabulary, count + len(self.rules.never) + 1)
        values, tokens = best_logits(logits, kept)
        before = ops.reshape(beams.log_probabilities, (-1, 1))
        values = number_or_never(values - log_totals(logits, values[:, :1]) + before)
        values = ops.where(self.rules.may_emit(tokens, length), values, NEVER)
        width = ops.shape(beams.log_probabilities)[1] * kept
        values = ops.reshape(values, (self.batch, width))
        tokens = ops.reshape(tokens, (self.batch, width))
        if width < count:
            more = ((0, 0), (0, count - width))
            values = ops.pad(values, more, constant_values=NEVER)
            tokens = ops.pad(tokens, more)
        values, places = ops.top_k(values, count)
        places = ops.cast(places, "int32")
        beam = ops.minimum(places, width - 1) // kept
        return values, beam, take_places(tokens, places)

    def collect(self, pool, values, places, tokens, covered, length):
        """The pool with those of the num_beams best candidates that end here."""
        size = self.num_beams
        values, places, tokens = (x[:, :size] for x in (values, places, tokens))
        logs = None if covered is None else self.of_beams(covered, places)
        scores = self.scoring.scores(values, length, logs)
        finished = ops.equal(tokens, self.rules.end_id)
        ends = ops.logical_or(finished, length >= self.limits)
        ends = ops.logical_and(ends, values > NEVER)
        rows = places + first_of_each(self.batch, size)
        lengths = ops.zeros_like(tokens) + length
        fresh = Pool(
            ops.where(ends, ranks(scores, finished), NEVER),
            ops.stack([scores, values], axis=-1),
            ops.stack([lengths, rows, tokens], axis=-1),
        )
        both = [ops.concatenate(pair, axis=1) for pair in zip(pool, fresh, strict=True)]
        num_return = pool.ranks.shape[1]
        order, best = ops.top_k(both[0], num_return)
        best = ops.cast(best, "int32")
        kept = (take_places(x, best) for x in both[1:])
        return Pool(ops.reshape(order, (self.batch, num_return)), *kept)

    def of_beams(self, values, places):
        """values (B x k,) of the beams in places (B, K)."""
        return take_places(ops.reshape(values, (self.batch, -1)), places)

    def result(self, record, steps, pool):
        """The pool as `Hypotheses`."""
        there = pool.ranks > NEVER
        lengths = ops.where(there, pool.ends[..., 0], 0)
        rows, tokens = (ops.reshape(pool.ends[..., i], (-1,)) for i in (1, 2))
        path = trace_back(record, steps, ops.reshape(lengths, (-1,)), rows, tokens)
        ids, attention = ids_and_attention(record, path, lengths)
        ended = ops.equal(pool.ends[..., 2], self.rules.end_id)
        return Hypotheses(
            ids=ids,
            scores=ops.where(there, pool.scores[..., 0], NEVER),
            log_probabilities=ops.where(there, pool.scores[..., 1], NEVER),
            lengths=lengths,
            finished=ops.logical_and(there, ended),
            attention=attention,
        )
