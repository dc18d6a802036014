"""Ensembles: several models that choose each token together."""

from keras import ops

from zoo.decoding.rows import call


def ensemble(next_tokens):
    """One next-token function of several, by the mean of their probabilities.

    The attention is the mean of what those with attention give, so these must read the
    same source tokens.

    Args:
        next_tokens: Next-token functions of models with one vocabulary.

    Returns:
        A next-token function whose state and memory are lists of those of each; its
        logits are log-probabilities.

    Raises:
        ValueError: if there are none, or if lists of another length, or logits of
            vocabularies of other sizes, come later.

    Example:

    >>> def sure(chances):
    ...     return lambda state, token: (np.log([chances]), state, None)
    >>> both = ensemble([sure([0.2, 0.8]), sure([0.6, 0.4])])
    >>> logits, state, attention = both([(), ()], np.array([1]))
    >>> [round(float(chance), 6) for chance in keras.ops.exp(logits)[0]]
    [0.4, 0.6]
    """
    next_tokens = list(next_tokens)
    if not next_tokens:
        raise ValueError(
            "`next_tokens` must hold at least one next-token function. Received: an "
            "empty list. Give the functions of the models to combine."
        )

    def next_token(state, token, memory=None):
        memory = [None] * len(next_tokens) if memory is None else memory
        _check_count("state", state, len(next_tokens))
        _check_count("memory", memory, len(next_tokens))
        each = zip(next_tokens, state, memory, strict=True)
        results = [call(step, s, token, m) for step, s, m in each]
        logits, attention, states = zip(*results, strict=True)
        _check_vocabularies(logits)
        attention = [a for a in attention if a is not None]
        mean = ops.mean(ops.stack(attention), axis=0) if attention else None
        return log_mean_probabilities(logits), list(states), mean

    return next_token


def log_mean_probabilities(logits):
    """log of the mean of the softmax of each: list of (R, V) -> (R, V)."""
    logs = ops.stack([ops.log_softmax(x, axis=-1) for x in logits])  # (M, R, V)
    greatest = ops.max(logs, axis=0)
    # Where no model gives a token a chance, -inf less -inf would be NaN.
    greatest = ops.where(greatest > -float("inf"), greatest, 0.0)
    return ops.log(ops.mean(ops.exp(logs - greatest), axis=0)) + greatest


def _check_vocabularies(logits):
    sizes = [x.shape[-1] for x in logits]
    if len(set(sizes)) > 1:
        raise ValueError(
            "`next_tokens` must be of models with one vocabulary. Received: logits of "
            f"{', '.join(map(str, sizes))} ids. Combine models that were trained with "
            "one target tokenizer."
        )


def _check_count(name, values, count):
    if not isinstance(values, list | tuple) or len(values) != count:
        raise ValueError(
            f"`{name}` of an ensemble of {count} models must be a list of {count}, one "
            f"for each. Received: {_shown(values)}. Put them into one in their order."
        )


def _shown(values):
    kind = type(values).__name__
    return f"{kind} of {len(values)}" if isinstance(values, list | tuple) else kind


class EnsembleStepper:
    """Several steppers as one, for a `Decoder`.

    Args:
        steppers: Steppers of models with one vocabulary and one source tokenizer.

    Raises:
        ValueError: if there are none.
    """

    def __init__(self, steppers):
        self.steppers = list(steppers)
        self.next_token = ensemble([s.next_token for s in self.steppers])

    @property
    def variables(self):
        """The weights of all models."""
        return [v for s in self.steppers for v in variables_of(s)]

    @property
    def max_length(self):
        """Number of tokens that all have room for; None where none has a limit."""
        rooms = [room_of(stepper) for stepper in self.steppers]
        return min((room for room in rooms if room is not None), default=None)

    def start(self, source_ids):
        """(memory, state) of source ids (B, S): a list of each."""
        starts = [s.start(source_ids) for s in self.steppers]
        memory, state = (list(x) for x in zip(*starts, strict=True))
        return memory, state


def room_of(stepper):
    """Number of tokens a stepper has room for; None where it says none."""
    return getattr(stepper, "max_length", None)


def variables_of(stepper):
    """The weights a stepper computes with: its own `variables`, or its model's."""
    if hasattr(stepper, "variables"):
        return list(stepper.variables)
    return list(stepper.model.variables)
