"""Additive scores by chunks equal the whole, and need a fraction of its memory."""

import os
import subprocess
import sys

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import BahdanauAttention
from keras_attention.chunks import chunk_length, over_chunks
from keras_attention.functional import additive_scores
from tests.layers.contract import normal, to_numpy

BACKEND = keras.backend.backend()
# (B, T, S, units): chunks of four queries, the last with room left; chunks of one.
SHAPES = [(2, 67, 509, 257), (2, 19, 509, 1031)]
on_tensorflow = pytest.mark.skipif(BACKEND != "tensorflow", reason="tf.function")


def arrays(batch, num_queries, num_keys, units):
    """A query, a key, a vector, and a gradient of the scores."""
    return (
        normal(batch, num_queries, units),
        normal(batch, num_keys, units, seed=1),
        normal(units, seed=2),
        normal(batch, num_queries, num_keys, seed=3),
    )


def by_queries(query, key, vector, upstream):
    """Scores and gradients a query at a time, in float64."""
    query, key, vector, upstream = (
        array.astype("float64") for array in (query, key, vector, upstream)
    )
    scores, dq, dk, dv = (np.zeros_like(x) for x in (upstream, query, key, vector))
    for b, t in np.ndindex(query.shape[:2]):
        hidden = np.tanh(query[b, t] + key[b])  # (S, units)
        scores[b, t] = hidden @ vector
        slope = upstream[b, t][:, None] * (1 - hidden**2) * vector
        dq[b, t] = slope.sum(0)
        dk[b] += slope
        dv += upstream[b, t] @ hidden
    return scores, dq, dk, dv


def with_gradients(function, *inputs, upstream):
    """`function(*inputs)` and what `upstream` becomes at each of the inputs."""
    if BACKEND == "jax":
        import jax

        result, pull = jax.vjp(function, *inputs)
        return result, *pull(upstream)
    inputs = [ops.convert_to_tensor(array) for array in inputs]
    if BACKEND == "torch":
        inputs = [tensor.requires_grad_() for tensor in inputs]
        result = function(*inputs)
        result.backward(ops.convert_to_tensor(upstream))
        return result.detach(), *(tensor.grad for tensor in inputs)
    import tensorflow as tf

    with tf.GradientTape() as tape:
        tape.watch(inputs)
        result = function(*inputs)
    return result, *tape.gradient(result, inputs, upstream)


def assert_close(got, want):
    for one, other in zip(got, want, strict=True):
        bound = 1e-5 * max(np.abs(other).max(initial=0), 1)
        np.testing.assert_allclose(to_numpy(one), other, atol=bound)


@pytest.mark.parametrize("shape", SHAPES)
def test_chunks_give_the_scores_and_gradients_of_the_whole(shape):
    *inputs, upstream = arrays(*shape)
    assert np.prod(shape[1:]) > 2**18  # what is smaller is not divided
    got = with_gradients(additive_scores, *inputs, upstream=upstream)
    assert_close(got, by_queries(*inputs, upstream))


@on_tensorflow
@pytest.mark.parametrize("jit", [False, True])
def test_lengths_may_be_unknown_while_tracing(jit):
    import tensorflow as tf

    @tf.function(
        jit_compile=jit,
        input_signature=[
            tf.TensorSpec((None, None, 257)),
            tf.TensorSpec((None, None, 257)),
            tf.TensorSpec((257,)),
            tf.TensorSpec((None, None, None)),
        ],
    )
    def traced(query, key, vector, upstream):
        return with_gradients(additive_scores, query, key, vector, upstream=upstream)

    for shape in [SHAPES[0], (2, 3, 5, 257), (2, 0, 5, 257), (2, 3, 0, 257)]:
        inputs = arrays(*shape)
        assert_close(traced(*inputs), by_queries(*inputs))


def test_a_model_of_unknown_lengths_predicts_and_survives_saving(tmp_path):
    states = keras.Input((None, 3))
    context, weights = BahdanauAttention(17)(states, states)
    model = keras.Model(states, [context, weights])
    path = tmp_path / "model.keras"
    model.save(path)
    again = keras.models.load_model(path)
    for length in (5, 719):  # 2 x 719 x 719 x 17 numbers are many chunks
        inputs = normal(2, length, 3)
        want = to_numpy(model.layers[-1](inputs, inputs))
        assert_close(model.predict(inputs, verbose=0), want)
        assert_close(again.predict(inputs, verbose=0), want)


def test_lengths_may_be_zero():
    for num_queries, num_keys in [(0, 5), (3, 0), (0, 0)]:
        query, key, vector, _ = arrays(2, num_queries, num_keys, 7)
        scores = additive_scores(query, key, vector)
        assert tuple(scores.shape) == (2, num_queries, num_keys)


@on_tensorflow
@pytest.mark.parametrize(("num_queries", "loops"), [(1, 0), (3, 0), (521, 1)])
def test_what_is_small_takes_no_loop(num_queries, loops):
    import tensorflow as tf

    inputs = arrays(2, num_queries, 521, 137)[:3]
    graph = tf.function(additive_scores).get_concrete_function(*inputs).graph
    names = [operation.type for operation in graph.get_operations()]
    assert any("While" in name for name in names) == bool(loops)


@pytest.mark.parametrize("length", [1, 2, 3, 200, 211, 300])
def test_over_chunks_joins_rows_and_sums(length):
    inputs, other = normal(2, 211, 3), normal(2, 211, 5, seed=1)

    def step(chunk, other):
        assert chunk.shape[1] == other.shape[1] == length
        return chunk + other[..., :3], ops.sum(chunk, axis=1)

    zeros = ops.zeros((2, 3))
    rows, total = over_chunks(step, length, [inputs, other], 3, [zeros])
    assert_close([rows, total], [inputs + other[..., :3], inputs.sum(1)])


def test_a_chunk_holds_one_query_at_least_and_all_of_them_at_most():
    assert chunk_length(7, 10, chunk=20) == 2
    assert chunk_length(7, 30, chunk=20) == 1
    assert chunk_length(7, 1, chunk=20) == 7
    assert chunk_length(7, 0, chunk=20) == 7
    assert chunk_length(0, 1, chunk=20) == 1


# ---- memory

MEASURE = """
import resource
import numpy as np
from keras_attention import BahdanauAttention

def peak():  # ru_maxrss is in kB on Linux
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

states = np.random.default_rng(0).normal(size=(1, 2048, 16)).astype("float32")
layer = BahdanauAttention(128)
layer(states[:, :300], states[:, :300])
before = peak()
layer(states, states)
print(peak() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss in kB")
def test_2048_by_2048_takes_less_than_300_mb():
    """The whole sum would take 2048 x 2048 x 128 x 4 bytes, 2 GiB."""
    command = [sys.executable, "-W", "ignore", "-c", MEASURE]
    environment = {**os.environ, "KERAS_BACKEND": BACKEND, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.split()[-1]) < 300
