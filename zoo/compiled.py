"""Functions compiled by the backend, whose weights are read anew at each call.

`keras.Model.predict_on_batch` compiles as well, but after each call on JAX it writes
the weights back to the model, so that two threads, or a training, may lose theirs; and
on TensorFlow it traces anew for the first few shapes.
"""

import functools

import keras


def compiled(function, variables, ranks):
    """A function on int32 arrays, compiled for the backend in use.

    On TensorFlow it is traced once for all shapes; on JAX once for each shape; on
    PyTorch it runs as it is, without gradients.

    Args:
        function: Of tensors, to a tree of tensors.
        variables: The Keras variables it reads.
        ranks: Number of axes of each argument.

    Returns:
        A function of NumPy arrays, to the same tree.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        return _by_tensorflow(function, ranks)
    if backend == "jax":
        return _by_jax(function, variables)
    return _as_it_is(function)


def _by_tensorflow(function, ranks):
    import tensorflow as tf

    signature = [tf.TensorSpec([None] * rank, tf.int32) for rank in ranks]
    # TensorFlow counts tracings by code, and warns of five: those of other decoders are
    # not this one's. A partial has no code of its own, so it is counted for itself.
    own = functools.partial(function)
    return tf.function(own, input_signature=signature, autograph=False)


def _by_jax(function, variables):
    import jax

    @jax.jit
    def run(values, *inputs):
        mapping = zip(variables, values, strict=True)
        with keras.StatelessScope(state_mapping=mapping):
            return function(*inputs)

    return lambda *inputs: run([v.value for v in variables], *inputs)


def _as_it_is(function):
    import torch

    def run(*inputs):
        inputs = [keras.ops.convert_to_tensor(x, "int32") for x in inputs]
        with torch.no_grad():
            return function(*inputs)

    return run
