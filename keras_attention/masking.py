"""Masks and the masked softmax: pure functions, one polarity (True = may attend)."""

import keras
import numpy as np
from keras import ops


def as_boolean_mask(mask, name="mask"):
    """Turns a mask into booleans and refuses what is not a mask.

    Args:
        mask: Array or tensor of any shape. Booleans, or 0/1 as integers or floats;
            True and 1 mean "may attend".
        name: Name of the argument, for the error.

    Returns:
        A boolean tensor of the same shape.

    Raises:
        ValueError: if a value is neither 0 nor 1, such as the -1e9 of an additive
            mask. Inside a compiled function values cannot be read: there every entry
            other than 1 counts as masked, so padding is never attended by mistake.

    Example:

    >>> keras.ops.convert_to_numpy(as_boolean_mask([[1, 1, 0]])).tolist()
    [[True, True, False]]
    """
    mask = ops.convert_to_tensor(mask)
    if _dtype(mask) == "bool":
        return mask
    values = read_values(mask)
    if values is not None and not np.isin(values, (0, 1)).all():
        stranger = values[~np.isin(values, (0, 1))].flat[0]
        raise ValueError(
            f"`{name}` must hold booleans or 0/1, where 1 means 'may attend'. "
            f"Received: {_dtype(mask)} with the value {stranger}. Turn an additive "
            "mask into a boolean one first: mask = additive_mask == 0."
        )
    return ops.equal(mask, ops.cast(1, mask.dtype))


def padding_mask(ids, pad_id=0):
    """True where `ids` (B, S) hold a token, False on padding.

    Example:

    >>> keras.ops.convert_to_numpy(padding_mask(np.array([[5, 7, 0]]))).tolist()
    [[True, True, False]]
    """
    return ops.not_equal(ids, pad_id)


def causal_mask(query_length, key_length):
    """Boolean (1, T, S): query t may attend to the keys 0..t.

    Example:

    >>> keras.ops.convert_to_numpy(causal_mask(2, 3)).astype(int).tolist()
    [[[1, 0, 0], [1, 1, 0]]]
    """
    query_position = ops.arange(query_length)[None, :, None]
    key_position = ops.arange(key_length)[None, None, :]
    return ops.less_equal(key_position, query_position)


def local_mask(query_length, key_length, window):
    """Boolean (1, T, S): query t may attend to the keys t - window .. t + window.

    Example:

    >>> mask = local_mask(3, 4, window=1)
    >>> keras.ops.convert_to_numpy(mask).astype(int).tolist()
    [[[1, 1, 0, 0], [1, 1, 1, 0], [0, 1, 1, 1]]]
    """
    query_position = ops.arange(query_length)[None, :, None]
    key_position = ops.arange(key_length)[None, None, :]
    return ops.less_equal(ops.abs(key_position - query_position), window)


def combine_masks(*masks):
    """The logical and of masks that broadcast; None stands for "no mask".

    Returns:
        A boolean tensor, or None when every mask is None.
    """
    combined = None
    for mask in masks:
        if mask is not None:
            mask = as_boolean_mask(mask)
            combined = mask if combined is None else ops.logical_and(combined, mask)
    return combined


def masked_softmax(scores, mask=None, axis=-1):
    """Softmax over the positions where `mask` is True.

    Weights of masked positions are exactly 0, and so are all weights where nothing may
    be attended. What the masked scores hold (Inf and NaN included) has no influence on
    the weights or on the gradients. 16-bit scores are lifted to float32 first.

    Args:
        scores: Tensor of any shape.
        mask: Mask that broadcasts to `scores`, True or 1 = may attend; or None.
        axis: The axis of the keys.

    Returns:
        Tensor shaped like `scores`, float32 (float64 for float64 scores).

    Example:

    >>> scores = np.array([[0.0, 0.0, 9.0]])
    >>> weights = masked_softmax(scores, np.array([[True, True, False]]))
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.5, 0.5, 0.0]]
    """
    scores, mask = _masked(scores, mask)
    weights = _softmax(scores, axis)
    return weights if mask is None else ops.where(mask, weights, 0.0)


def _softmax(scores, axis):
    """The backend's softmax, without Keras's warning that a single key gets all."""
    if scores.shape[axis] == 1:
        return ops.exp(scores - scores)
    return ops.softmax(scores, axis=axis)


def masked_sparsemax(scores, mask=None, axis=-1):
    """Sparsemax over the positions where `mask` is True: softmax with true zeros.

    Martins & Astudillo (2016), equation 2 and algorithm 1: the point of the probability
    simplex that is nearest to the scores. Keys that score 1 or more below the best get
    the weight 0. Masks mean what they mean in `masked_softmax`.

    `keras.ops.sparsemax` of Keras 3.15.1 takes another threshold where three or more
    positions share the weight, and sums to more than 1 there.

    Args:
        scores: Tensor of any shape.
        mask: Mask that broadcasts to `scores`, True or 1 = may attend; or None.
        axis: The axis of the keys.

    Returns:
        Tensor shaped like `scores`, float32 (float64 for float64 scores).

    Example:

    >>> weights = masked_sparsemax(np.array([[0.5, 0.0, -9.0]]))
    >>> keras.ops.convert_to_numpy(weights).tolist()
    [[0.75, 0.25, 0.0]]
    """
    scores, mask = _masked(scores, mask)
    floor = np.finfo(_dtype(scores)).min
    peak = ops.stop_gradient(ops.max(scores, axis=axis, keepdims=True, initial=floor))
    # Below peak - 1 the weight is 0 wherever it is exactly: -2 keeps the sums finite.
    scores = ops.maximum(scores - peak, -2.0)
    weights = ops.maximum(scores - _sparsemax_threshold(scores, axis), 0.0)
    return weights if mask is None else ops.where(mask, weights, 0.0)


def _sparsemax_threshold(scores, axis):
    """tau, so that max(scores - tau, 0) sums to 1: algorithm 1 of the paper."""
    ranked = -ops.sort(-ops.moveaxis(scores, axis, -1), axis=-1)
    ranks = ops.cumsum(ops.ones_like(ranked), axis=-1)
    support = 1 + ranks * ranked > ops.cumsum(ranked, axis=-1)
    size = ops.sum(ops.cast(support, ranked.dtype), axis=-1, keepdims=True)
    total = ops.sum(ops.where(support, ranked, 0.0), axis=-1, keepdims=True)
    return ops.moveaxis((total - 1) / ops.maximum(size, 1.0), -1, axis)


ACTIVATIONS = {"softmax": masked_softmax, "sparsemax": masked_sparsemax}


def get_activation(name):
    """The function `(scores, mask) -> weights` of a name in `ACTIVATIONS`.

    Raises:
        ValueError: for another name.

    Example:

    >>> get_activation("softmax") is masked_softmax
    True
    """
    if name not in ACTIVATIONS:
        raise ValueError(
            f"`activation` must be one of {', '.join(map(repr, ACTIVATIONS))}. "
            f"Received: {name!r}. 'softmax' is the usual one."
        )
    return ACTIVATIONS[name]


def silence_padding(query, key, value, may_attend):
    """Replaces by 0 what nobody may attend to, and queries with nothing to attend to.

    So a NaN in a padded slot reaches neither the sums (0 x NaN is NaN) nor the
    gradients.

    Args:
        query: Queries (B, T, D), or None.
        key: Keys (B, S, K).
        value: Values (B, S, F).
        may_attend: Boolean (B, T, S) or (B, H, T, S), 1s to broadcast; or None.

    Returns:
        The query, key and value.

    Example:

    >>> x = np.array([[[np.nan], [1.0]]])
    >>> _, key, _ = silence_padding(None, x, x, np.array([[[False, True]]]))
    >>> keras.ops.convert_to_numpy(key).tolist()
    [[[0.0], [1.0]]]
    """
    if may_attend is None:
        return query, key, value
    if len(may_attend.shape) == 4:
        may_attend = ops.any(may_attend, axis=1)
    live_keys = ops.any(may_attend, axis=1)[..., None]  # (B, S, 1)
    silent_value = ops.where(live_keys, value, 0)
    key = silent_value if key is value else ops.where(live_keys, key, 0)
    if query is not None:
        live_queries = ops.any(may_attend, axis=2)[..., None]  # (B, T, 1)
        query = ops.where(live_queries, query, 0)
    return query, key, silent_value


def _masked(scores, mask):
    """Scores, at least float32, as low as can be where masked; and the boolean mask."""
    scores = ops.convert_to_tensor(scores)
    if _dtype(scores) != "float64":
        scores = ops.cast(scores, "float32")
    if mask is not None:
        mask = as_boolean_mask(mask)
        scores = ops.where(mask, scores, np.finfo(_dtype(scores)).min)
    return scores, mask


def _dtype(tensor):
    """The dtype's name, the same on every backend."""
    return keras.backend.standardize_dtype(tensor.dtype)


def read_values(tensor):
    """The tensor's values as NumPy, or None where it has none yet (tracing)."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError, AttributeError, RuntimeError):
        return None
