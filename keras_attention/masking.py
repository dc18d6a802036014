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
    values = _readable(mask)
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
    scores = ops.convert_to_tensor(scores)
    if _dtype(scores) != "float64":
        scores = ops.cast(scores, "float32")
    floor = np.finfo(_dtype(scores)).min
    if mask is not None:
        mask = as_boolean_mask(mask)
        scores = ops.where(mask, scores, floor)
    peak = ops.stop_gradient(ops.max(scores, axis=axis, keepdims=True, initial=floor))
    exponentials = ops.exp(scores - peak)
    if mask is not None:
        exponentials = ops.where(mask, exponentials, 0.0)
    total = ops.sum(exponentials, axis=axis, keepdims=True)
    return exponentials / ops.where(total > 0, total, 1.0)


def _dtype(tensor):
    """The dtype's name, the same on every backend."""
    return keras.backend.standardize_dtype(tensor.dtype)


def _readable(tensor):
    """The tensor's values as NumPy, or None where it has none yet (tracing)."""
    try:
        return ops.convert_to_numpy(tensor)
    except (NotImplementedError, TypeError, ValueError, AttributeError, RuntimeError):
        return None
