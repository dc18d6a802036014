"""What a call of an attention layer may look like: its three forms, its masks' shapes.

Whatever does not fit is refused with one sentence; nothing is guessed from sizes.
"""

from keras_attention.masking import as_boolean_mask

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


def query_padding(mask, query):
    """A padding mask of the queries, (B, T) or (B,) for one step -> (B, T, 1)."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "query_mask")
    if len(mask.shape) == 1 and query.shape[1] == 1:
        mask = mask[:, None]
    _check_shape("query_mask", mask, (query.shape[0], query.shape[1]))
    return mask[:, :, None]


def key_padding(name, mask, key):
    """A padding mask of the keys, (B, S) -> (B, 1, S); `name` is for errors."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, name)
    _check_shape(name, mask, (key.shape[0], key.shape[1]))
    return mask[:, None, :]


def pair_mask(mask, query, key):
    """An attention mask (B, T, S), 1s broadcast; other shapes are refused."""
    if mask is None:
        return None
    mask = as_boolean_mask(mask, "attention_mask")
    length = 1 if query is None else query.shape[1]
    _check_shape(
        "attention_mask", mask, (key.shape[0], length, key.shape[1]), broadcast=True
    )
    return mask


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
            "`mask` is the padding mask of the states that are pooled, layer(states, "
            "mask=...). Received: `mask` in a call with a value. Name whose mask it "
            "is: `query_mask`, `value_mask` or `attention_mask`."
        )
