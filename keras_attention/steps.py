"""Recurrences: steps that each go on from the one before, alike on every backend."""

import keras
from keras import ops

UNROLLED = 4  # Steps written out one by one: a loop costs more than it saves.


def over_steps(step, state, inputs):
    """The outputs of steps that each go on from the state the one before left.

    Args:
        step: `(state, inputs of one step) -> (state, output)`.
        state: The first state; outputs are of its shape and type.
        inputs: List of tensors (T, ...), one of each for a step.

    Returns:
        The outputs (T, ...).

    Example:

    >>> def add(state, inputs):
    ...     return state + inputs[0], state + inputs[0]
    >>> outputs = over_steps(add, np.array([1.0]), [np.array([[1.0], [2.0]])])
    >>> keras.ops.convert_to_numpy(outputs).tolist()
    [[2.0], [4.0]]
    """
    length = inputs[0].shape[0]
    if length == 0:
        return ops.zeros((0, *ops.shape(state)), state.dtype)
    if isinstance(length, int) and length <= UNROLLED:  # JAX has symbols too
        return _unrolled(step, state, inputs)
    if keras.backend.backend() != "tensorflow":
        return ops.scan(step, state, inputs)[1]
    # On TensorFlow `ops.scan` has no gradient inside jit_compile=True; a loop with a
    # known bound and no TensorArray has.
    length = ops.shape(inputs[0])[0]
    state = ops.convert_to_tensor(state)
    ranks = [1] * len(state.shape)
    index = ops.reshape(ops.arange(length), (-1, *ranks))

    def body(t, state, outputs):
        state, output = step(state, [ops.take(x, t, axis=0) for x in inputs])
        return t + 1, state, ops.where(index == t, output[None], outputs)

    outputs = ops.zeros((length, *ops.shape(state)), dtype=state.dtype)
    start = ops.convert_to_tensor(0), state, outputs
    return ops.while_loop(
        lambda t, *_: t < length, body, start, maximum_iterations=length
    )[2]


def _unrolled(step, state, inputs):
    """`over_steps` without a loop."""
    outputs = []
    for t in range(inputs[0].shape[0]):
        state, output = step(state, [x[t] for x in inputs])
        outputs.append(output)
    return ops.stack(outputs)


def affine_prefix(factor, term):
    """q[s] = factor[s] q[s-1] + term[s] for all s, in log2(S) rounds of doubling.

    Args:
        factor: Factors (B, S).
        term: Terms (B, S).

    Returns:
        q (B, S).

    Example:

    >>> q = affine_prefix(np.array([[0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 1.0]]))
    >>> keras.ops.convert_to_numpy(q).tolist()
    [[1.0, 2.0, 5.0]]
    """
    factor, term = ops.convert_to_tensor(factor), ops.convert_to_tensor(term)
    length = ops.shape(term)[1]

    def double(shift, factor, term):
        term = term + factor * _shifted(term, shift)
        return 2 * shift, factor * _shifted(factor, shift), term

    if isinstance(length, int):
        shift = 1
        while shift < length:
            shift, factor, term = double(shift, factor, term)
        return term
    start = ops.convert_to_tensor(1), factor, term
    # XLA makes gradients of loops with a known bound only; 31 rounds reach every int.
    return ops.while_loop(
        lambda shift, *_: shift < length, double, start, maximum_iterations=31
    )[2]


def _shifted(x, shift):
    """x (B, S) moved `shift` keys on, after zeros."""
    if isinstance(shift, int):
        return ops.pad(x[:, :-shift], ((0, 0), (shift, 0)))
    origin = ops.arange(ops.shape(x)[1]) - shift
    return ops.where(origin >= 0, ops.take(x, ops.maximum(origin, 0), axis=1), 0)


def affine_recursion(factor, term):
    """`affine_prefix` a key at a time, as it is written.

    Example:

    >>> q = affine_recursion(np.array([[0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 1.0]]))
    >>> keras.ops.convert_to_numpy(q).tolist()
    [[1.0, 2.0, 5.0]]
    """
    term = ops.convert_to_tensor(term)

    def step(q, inputs):
        q = inputs[0] * q + inputs[1]
        return q, q

    inputs = [ops.swapaxes(x, 0, 1) for x in (factor, term)]  # (S, B)
    return ops.swapaxes(over_steps(step, ops.zeros_like(term[:, 0]), inputs), 0, 1)
