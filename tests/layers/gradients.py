"""Gradients of a function on whichever backend runs, as NumPy arrays."""

import keras
import numpy as np


def gradients(function, arrays, layer=None):
    """d function / d arrays, and with a layer d function / d its trainable weights.

    Args:
        function: Takes as many tensors as there are arrays; returns a scalar.
        arrays: NumPy arrays of floats.
        layer: A built Keras layer that `function` calls, or None.

    Returns:
        A list of NumPy arrays: one for each of `arrays`, then one for each trainable
        weight of the layer, zeros where there is no gradient.
    """
    variables = [] if layer is None else layer.trainable_variables
    backend = keras.backend.backend()
    found = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}[backend](
        function, arrays, variables, layer
    )
    shapes = [a.shape for a in arrays] + [tuple(v.shape) for v in variables]
    return [
        np.zeros(shape) if g is None else keras.ops.convert_to_numpy(g)
        for g, shape in zip(found, shapes, strict=True)
    ]


def _tensorflow(function, arrays, variables, layer):
    import tensorflow as tf

    inputs = [tf.constant(a) for a in arrays]
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    return tape.gradient(result, [*inputs, *(v.value for v in variables)])


def _jax(function, arrays, variables, layer):
    import jax

    def scalar(inputs, weights):
        mapping = list(zip(variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=mapping):
            return function(*inputs)

    inputs = [jax.numpy.asarray(a) for a in arrays]
    of_inputs, of_weights = jax.grad(scalar, argnums=(0, 1))(
        inputs, [v.value for v in variables]
    )
    return [*of_inputs, *of_weights]


def _torch(function, arrays, variables, layer):
    import torch

    inputs = [torch.tensor(a, requires_grad=True) for a in arrays]
    targets = [*inputs, *(v.value for v in variables)]
    return torch.autograd.grad(function(*inputs), targets, allow_unused=True)
