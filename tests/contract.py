"""The contract table: every public attention layer, how to make it, what it must equal.

A new layer joins by one row; test_layer_laws.py then holds it to the twelve laws.
"""

import dataclasses
from collections.abc import Callable

import keras
import numpy as np

import keras_attention

# Distinct primes, so that no swapped axis goes unnoticed.
B, T, S, DQ, DK, DV, UNITS = 2, 3, 5, 7, 11, 13, 17


@dataclasses.dataclass(frozen=True)
class Case:
    """One layer of the table."""

    layer: type
    make: Callable  # (**constructor arguments) -> layer
    reference: Callable  # (layer, query, value, key, may_attend) -> context, weights
    other_config: dict  # a value other than the default for every argument


def to_numpy(tensors):
    """A tensor, or a tuple of them, out of the backend."""
    if isinstance(tensors, tuple | list):
        return type(tensors)(to_numpy(t) for t in tensors)
    return keras.ops.convert_to_numpy(tensors)


def normal(*shape, seed=0, scale=1.0):
    rng = np.random.default_rng([seed, *shape])
    return (scale * rng.normal(size=shape)).astype("float32")


def additive_by_loops(layer, query, value, key, may_attend):
    """Bahdanau et al. (2015), equations 5-6 and A.1.2, a number at a time."""
    W = None if query is None else to_numpy(layer.query_kernel).astype("float64")
    U = to_numpy(layer.key_kernel).astype("float64")
    v = to_numpy(layer.score_vector).astype("float64")
    b = 0.0 if layer.bias is None else to_numpy(layer.bias).astype("float64")
    batch, steps = value.shape[0], 1 if query is None else query.shape[1]
    context = np.zeros((batch, steps, value.shape[2]))
    weights = np.zeros((batch, steps, value.shape[1]))
    for i in range(batch):
        for t in range(steps):
            energies = {}
            for s in range(value.shape[1]):
                if may_attend[i, t, s]:
                    hidden = key[i, s] @ U + b
                    if query is not None:
                        hidden = hidden + query[i, t] @ W
                    energies[s] = float(v @ np.tanh(hidden))
            total = sum(np.exp(e) for e in energies.values())
            for s, energy in energies.items():
                weights[i, t, s] = np.exp(energy) / total
                context[i, t] += weights[i, t, s] * value[i, s]
    return context, weights


CASES = [
    Case(
        layer=keras_attention.BahdanauAttention,
        make=lambda **kwargs: keras_attention.BahdanauAttention(
            **{"units": UNITS, **kwargs}
        ),
        reference=additive_by_loops,
        other_config={
            "units": 19,
            "use_bias": True,
            "dropout": 0.25,
            "return_attention_scores": False,
            "kernel_initializer": "he_normal",
            "kernel_regularizer": keras.regularizers.L2(0.01),
            "seed": 23,
            "name": "another",
            "dtype": "mixed_bfloat16",
        },
    ),
]
