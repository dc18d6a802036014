"""Decoders to test: cells, attentions and orders, and their equations in loops."""

import keras
import numpy as np

from keras_attention import (
    AttentionDecoder,
    BahdanauAttention,
    LocalAttention,
    LocationSensitiveAttention,
    LuongAttention,
    MonotonicAttention,
    MultiHeadAttention,
    ScaledDotProductAttention,
)
from tests.layers.contract import normal, to_numpy

B, T, S, E, F, H, UNITS, OUT = 2, 7, 5, 3, 11, 13, 17, 19
# Inputs and memory are padded on the right in one row and on the left in the other.
STEPS = np.array([[1, 1, 1, 1, 1, 0, 0], [0, 0, 1, 1, 1, 1, 1]], bool)
KEYS = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)
MASKS = {"inputs_mask": STEPS, "memory_mask": KEYS}

CELLS = {
    "lstm": lambda: keras.layers.LSTMCell(H),
    "gru": lambda: keras.layers.GRUCell(H),
    "simple": lambda: keras.layers.SimpleRNNCell(H),
    "stacked": lambda: [keras.layers.GRUCell(23), keras.layers.LSTMCell(H)],
}
ATTENTIONS = {
    "bahdanau": lambda **k: BahdanauAttention(UNITS, **k),
    "normalized": lambda **k: BahdanauAttention(UNITS, normalize=True, **k),
    "general": lambda **k: LuongAttention("general", **k),
    "concat": lambda **k: LuongAttention("concat", **k),
    "local-m": lambda **k: LocalAttention(2, score="general", **k),
    "local-p": lambda **k: LocalAttention(2, "predictive", score="general", **k),
    "monotonic": lambda **k: MonotonicAttention("general", hard=False, **k),
    "recursive": lambda **k: MonotonicAttention(
        BahdanauAttention(UNITS), hard=False, mode="recursive", **k
    ),
    "hard": lambda **k: MonotonicAttention("general", hard=True, **k),
    "location": lambda **k: LocationSensitiveAttention(
        UNITS, filters=3, kernel_size=3, **k
    ),
    "sum of locations": lambda **k: LocationSensitiveAttention(
        UNITS, filters=3, kernel_size=4, accumulate=True, **k
    ),
    "heads": lambda **k: MultiHeadAttention(2, 4, output_dim=29, **k),
    "several": lambda **k: [
        BahdanauAttention(UNITS, **k),
        LocationSensitiveAttention(7, filters=3, kernel_size=3, **k),
        ScaledDotProductAttention(**k),
    ],
}
SETTINGS = {
    "luong, fed": {},
    "luong, wider": {"attention_units": OUT, "use_bias": True, "activation": "relu"},
    "luong, not fed": {"input_feeding": False},
    "bahdanau": {"order": "bahdanau"},
    "bahdanau, W_c": {"order": "bahdanau", "attention_units": OUT, "use_bias": True},
}


def make(
    cell="lstm", attention="bahdanau", setting="luong, fed", built=True, **options
):
    """A decoder whose weights are all of one size, biases included."""
    decoder = AttentionDecoder(
        CELLS[cell](), ATTENTIONS[attention](), **{**SETTINGS[setting], **options}
    )
    return random_weights(decoder, width_of_memory(attention)) if built else decoder


def width_of_memory(attention):
    """A dot product wants one width."""
    return H if attention == "several" else F


def random_weights(decoder, memory_width=F):
    decoder.build((None, None, E), (None, None, memory_width))
    rng = np.random.default_rng(7)
    for variable in decoder.trainable_variables:
        variable.assign(0.4 * rng.normal(size=variable.shape))
    return decoder


def inputs_of(attention="bahdanau", scale=1.0, seed=0, batch=B, steps=T, keys=S):
    width = width_of_memory(attention)
    return [
        normal(batch, steps, E, seed=seed, scale=scale),
        normal(batch, keys, width, seed=seed + 1, scale=scale),
    ]


# ---- the equations, a row and a step at a time


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(cell, x, states):
    """Hochreiter & Schmidhuber (1997) with forget gates, gates in Keras's order."""
    kernel, recurrent, bias = (to_numpy(w).astype("float64") for w in cell.weights[:3])
    i, f, c, o = np.split(x @ kernel + states[0] @ recurrent + bias, 4)
    carry = sigmoid(f) * states[1] + sigmoid(i) * np.tanh(c)
    hidden = sigmoid(o) * np.tanh(carry)
    return hidden, [hidden, carry]


def gru_by_hand(cell, x, states):
    """Cho et al. (2014), the reset gate after the product, as Keras has it."""
    kernel, recurrent, bias = (to_numpy(w).astype("float64") for w in cell.weights[:3])
    of_x, of_h = x @ kernel + bias[0], states[0] @ recurrent + bias[1]
    (z, r, n), (uz, ur, un) = np.split(of_x, 3), np.split(of_h, 3)
    update = sigmoid(z + uz)
    new = np.tanh(n + sigmoid(r + ur) * un)
    hidden = update * states[0] + (1 - update) * new
    return hidden, [hidden]


def simple_by_hand(cell, x, states):
    kernel, recurrent, bias = (to_numpy(w).astype("float64") for w in cell.weights[:3])
    hidden = np.tanh(x @ kernel + states[0] @ recurrent + bias)
    return hidden, [hidden]


def stacked_by_hand(cell, x, states):
    below, above = cell.cells
    x, first = gru_by_hand(below, x, states[:1])
    x, second = lstm_by_hand(above, x, states[1:])
    return x, [*first, *second]


BY_HAND = {
    "lstm": (lstm_by_hand, (H, H)),
    "gru": (gru_by_hand, (H,)),
    "simple": (simple_by_hand, (H,)),
    "stacked": (stacked_by_hand, (23, H, H)),
}


def attend_by_hand(layer, query, keys):
    """Scores of Bahdanau et al. (2015), A.1.2, or Luong et al. (2015), "general"."""
    weights = {w.name: to_numpy(w).astype("float64") for w in layer.weights}
    if isinstance(layer, BahdanauAttention):
        hidden = np.tanh(query @ weights["query_kernel"] + keys @ weights["key_kernel"])
        scores = hidden @ weights["score_vector"]
    else:
        scores = keys @ (query @ weights["kernel"])
    exponents = np.exp(scores - scores.max())
    return exponents / exponents.sum()


def decode_by_hand(decoder, cell, inputs, memory, steps, keys, start=None):
    """Outputs (B, T, .) and weights (B, T, S) of one attention."""
    step, sizes = BY_HAND[cell]
    top = 1 if cell == "stacked" else 0
    outputs, maps = [], np.zeros((*inputs.shape[:2], memory.shape[1]))
    for row in range(len(inputs)):
        states = [np.zeros(n) for n in sizes] if start is None else start[row]
        fed, rows = np.zeros(decoder.attention_units or 0), []
        for t in range(inputs.shape[1]):
            if not steps[row, t]:
                rows.append(None)
                continue
            seen, x = keys[row], inputs[row, t]

            def look(query, row=row, t=t, seen=seen):
                maps[row, t, seen] = attend_by_hand(
                    decoder.attention, query, memory[row, seen]
                )
                return maps[row, t] @ memory[row]

            if decoder.order == "bahdanau":
                context = look(states[top])
                h, states = step(decoder.cell, np.concatenate([x, context]), states)
            else:
                if decoder.input_feeding:
                    x = np.concatenate([x, fed])
                h, states = step(decoder.cell, x, states)
                context = look(h)
            output = np.concatenate([h, context])
            if decoder.attention_units is not None:
                output = output @ to_numpy(decoder.output_kernel).astype("float64")
                if decoder.use_bias:
                    output = output + to_numpy(decoder.output_bias)
                relu = decoder.activation is keras.activations.relu
                output = np.maximum(output, 0) if relu else np.tanh(output)
            fed = output
            rows.append(output)
        width = next(len(r) for r in rows if r is not None)
        outputs.append([np.zeros(width) if r is None else r for r in rows])
    return np.array(outputs), maps
