"""Decoder: a model and a search, compiled as one function of source ids."""

import inspect

import numpy as np
from keras import ops

from zoo.checks import check_integer, check_number
from zoo.compiled import compiled
from zoo.decoding.arguments import check_seed, integers
from zoo.decoding.ensembles import room_of, variables_of
from zoo.decoding.hypotheses import Hypotheses

CALLS = {"next_token", "state", "memory", "max_lengths", "source_mask"}
CALLS |= {"seed", "sentence_ids"}


class Decoder:
    """A search of a model's outputs, compiled, from NumPy to NumPy.

    Nothing of a call is kept, so two threads may use one. Weights that change later
    count at the next call. On TensorFlow one trace serves all shapes; JAX compiles
    anew for each shape, so pad sources to few lengths and batches to few sizes there.

    Args:
        stepper: What gives `start(source_ids) -> (memory, state)` and
            `next_token(state, token, memory)`, and has the model whose weights they
            read as `model` (or the weights as `variables`).
        search: `beam_search`, `greedy_search` or `sample`.
        **options: Those of the search, such as `max_length`; what differs from call to
            call is an argument of the call.

    Raises:
        TypeError: if the search has no such option.
        ValueError: if the stepper has caches, with room for fewer tokens (its own
            `max_length`).

    Example: `Decoder(RecurrentStepper(model), beam_search, max_length=50)(ids).ids`.
    """

    def __init__(self, stepper, search, **options):
        self._check_options(search, options)
        parameters = inspect.signature(search).parameters
        self.max_length = options["max_length"]
        self._samples = "seed" in parameters
        check_room(stepper, check_integer("max_length", self.max_length, 1))
        beta = options.get("coverage_penalty", 0)
        covers = check_number("coverage_penalty", beta, 0) > 0

        def run(source_ids, max_lengths, sentence_ids, seed):
            given = dict(options, max_lengths=max_lengths)
            if covers:
                given["source_mask"] = ops.not_equal(source_ids, 0)
            if "seed" in parameters:
                given.update(seed=seed, sentence_ids=sentence_ids)
            memory, state = stepper.start(source_ids)
            found = search(stepper.next_token, state, memory=memory, **given)
            return {k: v for k, v in found._asdict().items() if v is not None}

        self._run = compiled(run, variables_of(stepper), ranks=(2, 1, 1, 0))

    def __call__(self, source_ids, max_lengths=None, *, seed=None, sentence_ids=None):
        """The hypotheses of a batch.

        Args:
            source_ids: Integers (B, S) of at least 0, 0 after the end.
            max_lengths: Integers (B,) of at least 1, a lower limit for each sentence.
            seed: An integer of at least 0, to draw samples by.
            sentence_ids: Integers (B,) of at least 0: see `sample`.

        Returns:
            `Hypotheses` of NumPy arrays.

        Raises:
            ValueError: for other numbers or another number of them; if `source_ids` is
                of another rank or has no column; or `seed` does not go with the search.
        """
        source_ids = integers("source_ids", source_ids, 0)
        if source_ids.ndim != 2 or not source_ids.shape[1]:
            raise ValueError(
                "`source_ids` must be (sentences, tokens), one column at least. "
                f"Received: shape {source_ids.shape}. For one sentence write ids[None]."
            )
        if (seed is None) == self._samples:
            raise ValueError(
                "`seed` goes with the search `sample`, which needs it, and with no "
                f"other. Received: seed={seed!r}."
            )
        if not len(source_ids):  # not all backends can index nothing
            one = self(np.zeros((1, *source_ids.shape[1:])), seed=seed)
            return Hypotheses(*(None if x is None else x[:0] for x in one))
        if seed is not None:
            check_seed(seed)
        batch = len(source_ids)
        if max_lengths is None:
            max_lengths = np.full(batch, self.max_length)
        if sentence_ids is None:
            sentence_ids = np.arange(batch)
        found = self._run(
            source_ids,
            integers("max_lengths", max_lengths, 1, batch),
            integers("sentence_ids", sentence_ids, 0, batch),
            np.asarray(seed or 0, "int32"),
        )
        return Hypotheses(**{k: ops.convert_to_numpy(v) for k, v in found.items()})

    @staticmethod
    def _check_options(search, options):
        names = set(inspect.signature(search).parameters) - CALLS
        unknown = sorted(set(options) - names)
        if unknown or "max_length" not in options:
            raise TypeError(
                f"The options of {search.__name__} are {sorted(names)}, and max_length "
                f"must be given. Received: {sorted(options)}. What differs from call "
                "to call is an argument of the call."
            )


def check_room(stepper, max_length):
    """Refuses to write more tokens than the stepper's caches have room for."""
    room = room_of(stepper)
    if room is not None and room < max_length:
        raise ValueError(
            f"`max_length` must be at most {room}, for which the stepper has room. "
            f"Received: {max_length}. Make the stepper with max_length={max_length}."
        )
