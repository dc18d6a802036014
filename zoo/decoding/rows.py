"""Rows of states and memories, and the calls of a next-token function on them."""

import numpy as np
from keras import ops, tree

from zoo.decoding.arguments import integers


def num_rows(state, memory):
    """The number of sentences B, of the first tensor that has rows."""
    for leaf in tree.flatten(as_tensors((state, memory))):
        if leaf is not None and len(leaf.shape):
            return ops.shape(leaf)[0]
    raise ValueError(
        "A search reads the number of sentences off `state` or `memory`, a tree of "
        f"tensors whose first axis is the sentence. Received: state={state!r}, "
        f"memory={memory!r}. Put a tensor (B, ...) into one of them."
    )


def as_tensors(values):
    """A tree of arrays as one of tensors; None stays."""
    return tree.map_structure(
        lambda x: None if x is None else ops.convert_to_tensor(x), values
    )


def take_rows(values, rows):
    """A tree of tensors with its rows repeated or put into another order.

    Args:
        values: Any tree of tensors (R, ...). A scalar, such as a position that all rows
            share, and None are handed on as they are.
        rows: Integers (Q,).

    Example:

    >>> taken = take_rows({"h": np.array([[5], [7]])}, np.array([1, 1, 0]))
    >>> keras.ops.convert_to_numpy(taken["h"]).ravel().tolist()
    [7, 7, 5]
    """

    def take(x):
        if x is None or not len(x.shape):
            return x
        return ops.take(x, rows, axis=0)

    return tree.map_structure(take, as_tensors(values))


def call(next_token, state, token, memory):
    """(logits (R, V) and attention (R, S) or None, both float32, and the state)."""
    inputs = (state, token) if memory is None else (state, token, memory)
    found = next_token(*inputs)
    if not isinstance(found, tuple | list) or len(found) != 3:
        raise ValueError(
            "`next_token` must return (logits, state, attention or None), three. "
            f"Received: {type(found).__name__}."
        )
    logits, state, attention = found
    logits = ops.cast(logits, "float32")
    if len(logits.shape) != 2:
        raise ValueError(
            "The logits of `next_token` must be (rows, ids), for one step. Received: "
            f"shape {tuple(logits.shape)}. Leave the axis of steps out."
        )
    if attention is not None:
        attention = ops.cast(attention, "float32")
        if len(attention.shape) == 3 and attention.shape[-1] == 1:
            attention = attention[..., 0]  # as a layer's one step gives it
        if len(attention.shape) != 2:
            raise ValueError(
                "The attention of `next_token` must be (rows, source tokens), for one "
                f"step. Received: shape {tuple(attention.shape)}. Of several heads "
                "give the mean."
            )
    return logits, attention, state


def sentence_limits(max_lengths, batch, max_length):
    """(B,): the greatest length of each sentence's hypotheses, at least 1."""
    if max_lengths is None:
        return ops.full((batch,), max_length, dtype="int32")
    if isinstance(max_lengths, list | tuple | np.ndarray):
        max_lengths = integers("max_lengths", max_lengths, 1)
    max_lengths = ops.convert_to_tensor(max_lengths)
    known = [n for n in (*max_lengths.shape, batch) if isinstance(n, int)]
    if len(max_lengths.shape) != 1 or len(set(known)) > 1:
        raise ValueError(
            "`max_lengths` must be integers (sentences,), one for each. Received: "
            f"shape {tuple(max_lengths.shape)} for {batch} sentences. For one limit of "
            "all use max_length."
        )
    return ops.clip(ops.cast(max_lengths, "int32"), 1, max_length)
