"""What a call of an attention layer may look like: its three forms, its masks' shapes.

Whatever does not fit is refused with one sentence; nothing is guessed from sizes.
"""

from typing import NamedTuple

from keras import ops

from keras_attention.masking import (
    as_boolean_mask,
    causal_mask,
    combine_masks,
    read_values,
)

POOLING, STEP, FULL = "pooling", "step", "full"


def static_shape(tensor):
    """The static shape; of a list of tensors, a list of shapes; of None, None."""
    if isinstance(tensor, list | tuple):
        return [static_shape(t) for t in tensor]
    return None if tensor is None else tuple(tensor.shape)


def call_form(query_shape, value_shape, key_shape):
    """Which of the three forms a call has, or an error that names them."""
    if query_shape and isinstance(query_shape[0], list | tuple):
        raise ValueError(
            "The inputs are separate arguments here: layer(query, value, key). "
            f"Received: a list of {len(query_shape)} tensors as the first argument, "
            "the form of keras.layers.Attention. Write layer(*inputs)."
        )
    named = {"query": query_shape, "value": value_shape, "key": key_shape}
    query, value, key = (None if s is None else len(s) for s in named.values())
    if (query, value, key) == (3, None, None):
        return POOLING
    shapes = ", ".join(f"{name} {_shape_text(s)}" for name, s in named.items())
    if query in (2, 3) and value == 3 and key in (None, 3):
        _check_sizes(query_shape, value_shape, key_shape or value_shape, shapes)
        return STEP if query == 2 else FULL
    raise ValueError(
        "An attention layer takes states (batch, S, width) to pool; or a query (batch, "
        "width) or (batch, T, width) and a value (batch, S, width), with a key (batch, "
        f"S, width) if it differs. Received: {shapes}."
    )


def _check_sizes(query, value, key, shapes):
    """Refuses batches, or numbers of keys and values, that are known to differ."""
    batches = {size for size in (query[0], value[0], key[0]) if size is not None}
    lengths = {size for size in (value[1], key[1]) if size is not None}
    if len(batches) > 1 or len(lengths) > 1:
        raise ValueError(
            "Query, value and key must be of one batch, and there must be as many keys "
            f"as values. Received: {shapes}."
        )


def output_shapes(query_shape, value_shape):
    """Shapes of (context, weights) for the shapes of a call."""
    query_shape = tuple(query_shape)
    if value_shape is None:
        batch, length, width = query_shape
        return (batch, width), (batch, length, 1)
    batch, length, width = value_shape
    if len(query_shape) == 2:
        return (query_shape[0], width), (query_shape[0], length, 1)
    return (*query_shape[:2], width), (*query_shape[:2], length)


class Allowed(NamedTuple):
    """What the masks of a call allow; None stands for everything.

    Attributes:
        pairs: Boolean that broadcasts to (B, T, S), or with heads to (B, H, T, S):
            which query may attend to which key, all masks together.
        queries: Boolean (B, T, 1), False where a query is padding.
        keys: Boolean (B, 1, S), False where a key is padding.
    """

    pairs: object
    queries: object
    keys: object


def allowed(
    query, key, *, query_mask, key_masks, attention_mask, use_causal_mask, heads=None
):
    """All masks of a call as one: which query may attend to which key.

    Args:
        query: Queries (B, T, D), or None for the one query of the pooling form.
        key: Keys (B, S, K).
        query_mask: Padding mask (B, T) of the queries, (B,) for one step, or None.
        key_masks: {name of the argument: padding mask (B, S) of the keys, or None}.
        attention_mask: Mask (B, T, S) for single pairs, 1s to broadcast, or None. With
            `heads` also (B, H, T, S).
        use_causal_mask: Whether query t may attend only to the keys 0..t.
        heads: Number of heads: the pairs get an axis for them.

    Returns:
        An `Allowed`.
    """
    keys = combine_masks(*(_key_padding(n, m, key) for n, m in key_masks.items()))
    queries = _query_padding(query_mask, query)
    masks = [keys, queries]
    if use_causal_mask:
        masks.append(causal_mask(ops.shape(query)[1], ops.shape(key)[1]))
    if heads is not None:
        masks = [None if mask is None else mask[:, None] for mask in masks]
    pairs = combine_masks(*masks, _pair_mask(attention_mask, query, key, heads))
    return Allowed(pairs, queries, keys)


def _query_padding(mask, query):
    """A padding mask of the queries, (B, T) or (B,) for one step -> (B, T, 1)."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "query_mask")
    if len(mask.shape) == 1 and query.shape[1] == 1:
        mask = mask[:, None]
    _check_shape("query_mask", mask, (query.shape[0], query.shape[1]))
    return mask[:, :, None]


def _key_padding(name, mask, key):
    """A padding mask of the keys, (B, S) -> (B, 1, S); `name` is for errors."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, name)
    _check_shape(name, mask, (key.shape[0], key.shape[1]))
    return mask[:, None, :]


def _pair_mask(mask, query, key, heads):
    """An attention mask (B, T, S) or, with heads, (B, H, T, S) too; 1s broadcast."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "attention_mask")
    length = 1 if query is None else query.shape[1]
    expected = (key.shape[0], length, key.shape[1])
    if heads is not None and len(mask.shape) == 4:
        expected = (expected[0], heads, *expected[1:])
    _check_shape("attention_mask", mask, expected, broadcast=True)
    return mask if heads is None or len(mask.shape) == 4 else mask[:, None]


def _check_shape(name, mask, expected, broadcast=False):
    """Refuses a mask by its rank or a known dimension; never guesses from sizes."""
    allowed = (1, None) if broadcast else (None,)
    fits = len(mask.shape) == len(expected) and all(
        got == want or want is None or got in allowed
        for got, want in zip(mask.shape, expected, strict=True)
    )
    if not fits:
        raise ValueError(
            f"`{name}` must have the shape {_shape_text(expected)}"
            f"{', 1s to broadcast' if broadcast else ''}. Received: "
            f"{_shape_text(mask.shape)}. A padding mask (batch, S) goes into "
            "`value_mask`; a mask for each query (batch, T, S) into `attention_mask`."
        )


def _shape_text(shape):
    if shape is None:
        return "None"
    return "(" + ", ".join("?" if size is None else str(size) for size in shape) + ")"


def refuse_plain_mask(mask):
    """Refuses `mask` in a call that has a value: it does not say whose it is."""
    if mask is not None:
        raise ValueError(
            "`mask` is the padding mask of a single input, layer(states, mask=...). "
            "Received: `mask` in a call with a value. Name whose mask it is: "
            "`query_mask`, `value_mask` or `attention_mask`."
        )


def refuse_state(layer):
    """Refuses a `state` given to a mechanism that has none."""
    raise ValueError(
        f"{type(layer).__name__} has no state: each step depends on its own query "
        "alone. Received: `state` in a call. Leave it out."
    )


def refuse_widths(what, query, key):
    """Refuses a query and a key of different widths, in the name of `what`."""
    if None not in (query, key) and query != key:
        raise ValueError(
            f"{what} needs query and key of one width. Received: query {query}, key "
            f'{key}. Use LuongAttention("general"), which learns a projection, or give '
            "them one width."
        )


def self_form(shape):
    """Refuses what is not one tensor of tokens (batch, T, width)."""
    if (shape and isinstance(shape[0], list | tuple)) or len(shape) != 3:
        raise ValueError(
            "Self-attention takes one tensor of tokens (batch, T, width). Received: "
            f"{shape}. A query over other values is LuongAttention, "
            "ScaledDotProductAttention or MultiHeadAttention."
        )


def sequence_form(name, query_shape, value_shape, key_shape):
    """Refuses what is not sequences (batch, length, width), in the name of a layer."""
    named = {"query": query_shape, "value": value_shape, "key": key_shape}
    shapes = [s for s in named.values() if s is not None]
    listed = any(s and isinstance(s[0], list | tuple) for s in shapes)
    received = ", ".join(f"{k} {_shape_text(s)}" for k, s in named.items())
    ranks = {len(s) for s in shapes}
    if listed or ranks != {3} or (value_shape is None and key_shape is not None):
        raise ValueError(
            f"{name} takes a query (batch, T, width), a value (batch, S, width) unless "
            "it is the query, and a key (batch, S, width) if it differs, as separate "
            f"arguments. Received: {received}. One decoder state is a sequence of one: "
            "query[:, None]."
        )
    value_shape = value_shape or query_shape
    _check_sizes(query_shape, value_shape, key_shape or value_shape, received)


def check_cache(query, others, cache, position, heads):
    """Refuses a cache that does not fit, and a position without one or outside it.

    Args:
        query: Queries (B, T, D).
        others: Whether there is a value, a key or a causal mask beside the cache.
        cache: Keys (B, G, S, d), values (B, G, S, v) and real (B, S), or None.
        position: Where to write, or None.
        heads: The G and d of the layer.
    """
    if cache is None:
        if position is not None:
            raise ValueError(
                "`position` says where to write into `cache`. Received: no cache. Make "
                "one with `empty_cache(batch_size, length)`."
            )
        return
    if others:
        raise ValueError(
            "`cache` takes the place of `value` and `key`, and is causal by itself. "
            "Received: a cache and one of `value`, `key` or `use_causal_mask`. Leave "
            "them out; `project_memory(value, key)` makes a cache of them."
        )
    parts = [tuple(getattr(part, "shape", ())) for part in cache]
    keys, values, real = parts if len(parts) == 3 else ((), (), ())
    batch = query.shape[0]
    fits = len(keys) == 4 and keys[1::2] == heads and keys[:3] == values[:3]
    fits = fits and real == (keys[0], keys[2])
    if not fits or (keys[0] != batch and None not in (keys[0], batch)):
        raise ValueError(
            f"`cache` must hold keys (batch, {heads[0]}, length, {heads[1]}), as many "
            f"values, and which are real, for a batch of {batch}. Received: "
            f"{', '.join(map(_shape_text, parts))}. Make it with this layer's "
            "`empty_cache` or `project_memory`."
        )
    if position is not None:
        _check_position(position, query.shape[1], keys[2])


def _check_position(position, steps, length):
    """Refuses a position that is no integer or, where it is known, out of the cache."""
    kind = str(getattr(position, "dtype", ""))
    whole = "int" in kind or (isinstance(position, int) and position is not True)
    number = position if isinstance(position, int) else read_values(position)
    known = whole and number is not None and None not in (steps, length)
    if not whole or (known and not 0 <= int(number) <= length - steps):
        raise ValueError(
            f"`position` must be an integer from 0 to {length} - {steps}: a cache of "
            f"{length} slots, and {steps} new tokens. Received: {position!r}. Make a "
            "longer one with `empty_cache`."
        )


def alignment_of(state, batch, length):
    """The weights (B, S) that a state (B, S, 1) holds; other shapes are refused."""
    shape = tuple(getattr(state, "shape", ()))
    expected = (batch, length, 1)
    if len(shape) != 3 or any(
        None not in (got, want) and got != want
        for got, want in zip(shape, expected, strict=True)
    ):
        raise ValueError(
            f"`state` must be the weights {_shape_text(expected)} that a step "
            f"returned. Received: {_shape_text(shape)}. Begin with `initial_state`."
        )
    return state[..., 0]
