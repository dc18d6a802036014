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


def over_sequence(step, state, sequence, extras=()):
    """The outputs of steps over a sequence (B, T, E), of any structure.

    Args:
        step: `(state, x (B, E), extras of the step) -> (state, outputs)`.
        state: The first state, a tree of tensors; the next ones have its types.
        sequence: Tensor (B, T, E).
        extras: Tree of tensors (T, ...) that no gradient is wanted of.

    Returns:
        The outputs: a list, as each step's, of tensors (B, T, ...).

    Example:

    >>> def add(state, x, extras):
    ...     return [state[0] + x], [state[0] + x]
    >>> zeros, ones = np.zeros((1, 1), "float32"), np.ones((1, 3, 1), "float32")
    >>> (outputs,) = over_sequence(add, [zeros], ones)
    >>> keras.ops.convert_to_numpy(outputs)[0].tolist()
    [[1.0], [2.0], [3.0]]
    """
    sequence, length = ops.convert_to_tensor(sequence), sequence.shape[1]
    state = keras.tree.map_structure(ops.convert_to_tensor, state)

    def at(t):
        return keras.tree.map_structure(lambda x: ops.take(x, t, axis=0), extras)

    unrolled = isinstance(length, int) and length <= UNROLLED
    if unrolled or keras.backend.backend() == "torch":
        outputs = []
        for t in range(length):
            state, output = step(state, sequence[:, t], at(t))
            outputs.append(output)
        return [ops.stack(parts, axis=1) for parts in zip(*outputs, strict=True)]

    def call(x, states):
        t, *flat = states
        following, outputs = step(keras.tree.pack_sequence_as(state, flat), x, at(t))
        return outputs, [t + 1, *keras.tree.flatten(following)]

    flat = [ops.convert_to_tensor(0, dtype="int32"), *keras.tree.flatten(state)]
    # Keras's own loop has gradients inside jit_compile=True, which `ops.scan` lacks.
    cell = _StepCell(call, len(flat))
    loop = keras.layers.RNN(cell, return_sequences=True, name="steps")
    return loop.inner_loop(sequence, flat, None)[1]


class _StepCell:
    """A function as a cell of `keras.layers.RNN`."""

    def __init__(self, function, number):
        self.call = function
        self.state_size = [1] * number  # which nobody asks

    def __call__(self, inputs, states):
        return self.call(inputs, states)


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
