"""Positions as numbers: which one a slot has, its sines, and rotations by it."""

import numpy as np
from keras import ops


def sinusoidal_encoding(positions, width, max_wavelength=10000):
    """Sines and cosines of positions: (...) -> (..., width), at least float32.

    `PE(pos, 2i) = sin(pos / max_wavelength^(2i / width))`, `PE(pos, 2i + 1) = cos(...)`
    (Vaswani et al. (2017), section 3.5). An odd width ends on a sine.

    Example:

    >>> encoding = sinusoidal_encoding(np.array([0, 9]), width=4)
    >>> keras.ops.convert_to_numpy(encoding)[0].tolist()
    [0.0, 1.0, 0.0, 1.0]
    """
    angles = _angles(positions, width, max_wavelength)
    pairs = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)
    shape = (*ops.shape(angles)[:-1], 2 * angles.shape[-1])
    return ops.reshape(pairs, shape)[..., :width]


def rotate(inputs, positions, max_wavelength=10000):
    """Turns each pair of neighbours by an angle that grows with the position.

    `(x_2i, x_2i+1)` becomes `(x_2i cos a - x_2i+1 sin a, x_2i sin a + x_2i+1 cos a)`
    with `a = pos * max_wavelength^(-2i / d)` (Su et al. (2021), equation 34). Inputs
    are (B, T, d) or, by heads, (B, T, H, d), d even; positions (T,) or (B, T). The
    result has the inputs' shape and type; the sums are at least float32.

    Example:

    >>> turned = rotate(np.array([[[1.0, 0.0]]]), np.array([np.pi / 2]))
    >>> np.abs(keras.ops.convert_to_numpy(turned).round(3)).tolist()
    [[[0.0, 1.0]]]
    """
    inputs = ops.convert_to_tensor(inputs)
    wide = wide_type(inputs.dtype)
    angles = _angles(ops.cast(positions, wide), inputs.shape[-1], max_wavelength)
    if len(inputs.shape) == 4:
        angles = ops.expand_dims(angles, -2)  # (..., T, 1, d / 2), for every head
    cos, sin, x = ops.cos(angles), ops.sin(angles), ops.cast(inputs, wide)
    even, odd = x[..., 0::2], x[..., 1::2]
    turned = ops.stack([even * cos - odd * sin, even * sin + odd * cos], axis=-1)
    return ops.cast(ops.reshape(turned, ops.shape(inputs)), inputs.dtype)


def wide_type(dtype):
    """The type of angles and sums: 16 bits cannot count beyond 256."""
    return "float64" if "float64" in str(dtype) else "float32"


def _angles(positions, width, max_wavelength):
    """pos * max_wavelength^(-2i / width) for each pair i: (*positions.shape, pairs)."""
    positions = ops.convert_to_tensor(positions)
    positions = ops.cast(positions, wide_type(positions.dtype))
    frequencies = float(max_wavelength) ** (-np.arange(0, width, 2) / width)
    return ops.expand_dims(positions, -1) * ops.cast(frequencies, positions.dtype)


def slot_positions(length, start, mask):
    """Positions of the slots: (T,), or (B, T) where rows may differ."""
    positions = ops.arange(length, dtype="int32")
    if mask is not None and mask.shape[1] != 0:
        first = ops.cast(ops.argmax(ops.cast(mask, "int32"), axis=1), "int32")
        positions = ops.maximum(positions - first[:, None], 0)
    start = ops.cast(start, "int32")
    return positions + (start[:, None] if len(start.shape) else start)
