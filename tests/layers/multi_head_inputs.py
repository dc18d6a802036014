"""Multi-head layers, inputs and masks that its tests and those of caches share."""

import numpy as np

from keras_attention import MultiHeadAttention
from tests.layers.contract import DK, DQ, DV, B, S, T, normal

H, D, V, OUT = 4, 6, 3, 17  # heads, widths of a head's keys and values, of the output
RIGHT = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
LEFT = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], bool)
EMPTY = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 0, 1]], bool)
QUERIES = np.array([[1, 1, 0], [0, 1, 1]], bool)
RNG = np.random.default_rng(5)
PAIRS = RNG.random((B, T, S)) > 0.5
PAIRS[:, :, 0] = True  # something to attend to
BY_HEADS = RNG.random((B, H, T, S)) > 0.5
BY_HEADS[0, 1, 2] = False  # nothing, in one head alone

MASKS = {
    "none": {},
    "right padding": {"value_mask": RIGHT},
    "left padding": {"value_mask": LEFT},
    "an empty row": {"value_mask": EMPTY},
    "padded queries": {"query_mask": QUERIES},
    "two key masks": {"value_mask": RIGHT, "key_mask": LEFT},
    "pairs": {"attention_mask": PAIRS},
    "pairs by heads": {"attention_mask": BY_HEADS},
    "one for all rows": {"attention_mask": PAIRS[:1]},
    "one for all queries": {"attention_mask": EMPTY[:, None]},
    "one for all keys": {"attention_mask": QUERIES[:, :, None]},
    "one for all heads": {"attention_mask": PAIRS[:, None]},
    "heads alone": {
        "attention_mask": np.array([1, 0, 1, 1], bool)[None, :, None, None]
    },
    "causal": {"use_causal_mask": True},
    "all": {
        "query_mask": QUERIES,
        "value_mask": LEFT,
        "key_mask": RIGHT,
        "attention_mask": BY_HEADS,
        "use_causal_mask": True,
    },
}
GROUPED = {"num_key_value_heads": 2, "value_dim": V}
N = 7  # tokens


def fill(layer):
    """Other weights in every call, none of them zero, biases included."""
    layer.set_weights([np.random.normal(0, 0.3, w.shape) for w in layer.get_weights()])
    return layer


def built(*shapes, **kwargs):
    """Our layer with H heads, built for the shapes of a query, a value and a key."""
    layer = MultiHeadAttention(**{"num_heads": H, "key_dim": D, **kwargs})
    layer.build(*shapes)
    return fill(layer)


def cross(**kwargs):
    return built((B, T, DQ), (B, S, DV), (B, S, DK), **kwargs)


def inputs():
    """Query, value and key, all of other widths."""
    return normal(B, T, DQ), normal(B, S, DV), normal(B, S, DK)


def decoder(**kwargs):
    return built((B, N, DQ), **kwargs)


def padded(tokens, side, filler=7.0):
    """Tokens with three more slots on a side, and their padding mask."""
    extra = np.full((B, 3, tokens.shape[-1]), filler, "float32")
    parts = (tokens, extra) if side == "right" else (extra, tokens)
    mask = np.arange(tokens.shape[1] + 3) < tokens.shape[1]
    mask = np.broadcast_to(mask if side == "right" else mask[::-1], (B, len(mask)))
    return np.concatenate(parts, 1), mask


def places(side):
    """Where the tokens are in what `padded` returns."""
    return slice(None, N) if side == "right" else slice(3, None)


def assert_close(got, want, atol=1e-6):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)
