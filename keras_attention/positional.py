"""Positions in a model: sinusoidal, rotary and learned, three layers."""

import numbers

import keras
import numpy as np
from keras import ops

from keras_attention.masking import as_boolean_mask, read_values
from keras_attention.positions import (
    rotate,
    sinusoidal_encoding,
    slot_positions,
    wide_type,
)
from keras_attention.precise import LARGEST


class PositionLayer(keras.layers.Layer):
    """Base of the layers below: checks, masks, types. A subclass defines `place`."""

    ranks, even, takes = (3,), False, "(batch, length, width) of a known width"

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True

    def build(self, inputs_shape):
        self._check(inputs_shape)
        self.built = True

    # Keras fills `mask`, or `inputs_mask` in a call where `start` is a tensor too.
    def call(self, inputs, start=0, mask=None, inputs_mask=None):
        mask = self.compute_mask(inputs, inputs_mask if mask is None else mask)
        self._check(inputs.shape, start, mask)
        inputs = ops.cast(inputs, wide_type(self.compute_dtype))
        placed = self.place(inputs, ops.shape(inputs)[1], start, mask)
        if largest := LARGEST.get(self.compute_dtype):
            placed = ops.clip(placed, -largest, largest)
        return ops.cast(placed, self.compute_dtype)

    def compute_mask(self, inputs, previous_mask=None):
        return None if previous_mask is None else as_boolean_mask(previous_mask)

    def compute_output_shape(self, inputs_shape):
        return tuple(inputs_shape)

    def compute_output_spec(self, inputs, start=0, mask=None, inputs_mask=None):
        self._check(inputs.shape, start)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def _check(self, shape, start=0, mask=None):
        """Refuses inputs by rank or width, and a `start` or mask that does not fit."""
        width = shape[-1] if len(shape) in self.ranks else None
        if width is None or (self.even and width % 2):
            raise ValueError(
                f"{type(self).__name__} takes inputs {self.takes}. Received: "
                f"{tuple(shape)}. Token ids go through keras.layers.Embedding first."
            )
        whole = type(start) is int or "int" in str(getattr(start, "dtype", ""))
        rows = getattr(start, "shape", ())
        if (
            not whole
            or (len(rows) and not _fits(rows, shape[:1]))
            or (mask is not None and not _fits(mask.shape, shape[:2]))
        ):
            raise ValueError(
                "`start` must be an integer, or integers () or (batch,), and `mask` a "
                f"padding mask (batch, length). Received: `start` {start}, `mask` "
                f"{getattr(mask, 'shape', None)}, inputs {tuple(shape)}. Omit both."
            )


class WavelengthLayer(PositionLayer):
    """Base of the layers without weights, whose angles slow down pair by pair."""

    def __init__(self, *, max_wavelength=10000, **kwargs):
        super().__init__(**kwargs)
        number = isinstance(max_wavelength, numbers.Real) and max_wavelength is not True
        if not number or not 1 < max_wavelength < float("inf"):
            raise ValueError(
                "`max_wavelength` must be a number above 1. "
                f"Received: {max_wavelength!r}. The papers take 10000."
            )
        self.max_wavelength = float(max_wavelength)

    def get_config(self):
        return {**super().get_config(), "max_wavelength": self.max_wavelength}


@keras.saving.register_keras_serializable(package="keras_attention")
class SinusoidalPositionEncoding(WavelengthLayer):
    """Adds sines and cosines of each position to the inputs: `y = x + PE`.

    `PE` is `sinusoidal_encoding` (Vaswani et al. (2017), section 3.5). No weights; any
    length will do. The paper multiplies embeddings by sqrt(D) before this: as
    `keras.layers.Rescaling(D**0.5)`, for a bare product loses their mask.

    Padding: positions count from a row's first real token, so that padding on the left
    changes nothing. To go on after such rows, give each row's real length as `start`.
    Other padding and holes count as slots. The mask is handed on.

    Args:
        max_wavelength: Number above 1, the base of the wavelengths.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Embeddings (B, T, D).
        start: Position of the first slot, to decode by steps: integer(s) () or (B,).
        mask: Padding mask (B, T), True for tokens. Keras fills it.

    Example:

    >>> tuple(SinusoidalPositionEncoding()(np.zeros((2, 3, 5))).shape)
    (2, 3, 5)
    """

    def place(self, inputs, length, start, mask):
        positions = ops.cast(slot_positions(length, start, mask), inputs.dtype)
        width = inputs.shape[-1]
        return inputs + sinusoidal_encoding(positions, width, self.max_wavelength)


@keras.saving.register_keras_serializable(package="keras_attention")
class RotaryEmbedding(WavelengthLayer):
    """Rotates queries or keys, so that q . k depends on how far apart they are.

    Pairs `(x_2i, x_2i+1)` are turned by `rotate`, as in Su et al. (2021), equation 34;
    those of `keras_hub.layers.RotaryEmbedding` are half the width apart. Padding as in
    `SinusoidalPositionEncoding`.

    Args:
        max_wavelength: Number above 1, the base of the wavelengths.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Queries or keys (B, T, d) or, by heads, (B, T, H, d); d is even.
        start, mask: As in `SinusoidalPositionEncoding`.

    Example:

    >>> tuple(RotaryEmbedding()(np.ones((2, 3, 5, 4))).shape)
    (2, 3, 5, 4)
    """

    ranks, even, turns_pairs = (3, 4), True, True
    takes = "(batch, length, width) or (batch, length, heads, width) of an even width"

    def place(self, inputs, length, start, mask):
        return rotate(inputs, slot_positions(length, start, mask), self.max_wavelength)


@keras.saving.register_keras_serializable(package="keras_attention")
class LearnedPositionEmbedding(PositionLayer):
    """Adds a learned vector for each position to the inputs: `y_t = x_t + table[t]`.

    (Gehring et al. (2017), section 3.1.) Inputs that reach beyond the table fail, or
    where a compiled function cannot read `start`, may give NaN; never another
    position's row. Padding as in `SinusoidalPositionEncoding`.

    Args:
        max_length: How many positions the table has, at least 1.
        embeddings_initializer: Initializer of the table (max_length, D).
        embeddings_regularizer: Regularizer of the table.
        **kwargs: `name`, `dtype`, `trainable` of `keras.layers.Layer`.

    Call arguments:
        inputs: Embeddings (B, T, D), where start + T <= max_length.
        start, mask: As in `SinusoidalPositionEncoding`.

    Example:

    >>> tuple(LearnedPositionEmbedding(max_length=7)(np.zeros((2, 3, 5))).shape)
    (2, 3, 5)
    """

    def __init__(
        self,
        max_length,
        *,
        embeddings_initializer="uniform",
        embeddings_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        whole = isinstance(max_length, numbers.Integral) and max_length is not True
        if not whole or max_length < 1:
            raise ValueError(
                "`max_length`, the number of positions, must be an integer of at least "
                f"1. Received: {max_length!r}. Take the length of the longest input."
            )
        self.max_length = int(max_length)
        self.embeddings_initializer = keras.initializers.get(embeddings_initializer)
        self.embeddings_regularizer = keras.regularizers.get(embeddings_regularizer)

    def build(self, inputs_shape):
        super().build(inputs_shape)
        self.embeddings = self.add_weight(
            shape=(self.max_length, inputs_shape[-1]),
            initializer=self.embeddings_initializer,
            regularizer=self.embeddings_regularizer,
            name="embeddings",
            autocast=False,
        )

    def _check(self, shape, start=0, mask=None):
        super()._check(shape, start, mask)
        first = np.array(start) if type(start) is int else read_values(start)
        length = shape[1] if isinstance(shape[1], int) else 1  # 1: not known yet
        inside = first is None or (first >= 0) & (first <= self.max_length - length)
        if not np.all(inside):
            raise ValueError(
                f"{type(self).__name__} '{self.name}' ends at its `max_length` of "
                f"{self.max_length}. Received: inputs of length {shape[1]}, `start` "
                f"{first.tolist()}. Cut the inputs, or raise `max_length`."
            )
        if self.built and shape[-1] != self.embeddings.shape[1]:
            raise ValueError(
                f"{type(self).__name__} '{self.name}' was built for the width "
                f"{self.embeddings.shape[1]}. Received: {shape[-1]}. Make a new layer."
            )

    def place(self, inputs, length, start, mask):
        table = ops.convert_to_tensor(self.embeddings)
        readable = type(length) is int or keras.backend.backend() == "tensorflow"
        if type(start) is int and readable:
            # Unlike an index, a slice beyond the end fails whatever compiles it.
            rows = ops.slice(table, (start, 0), (length, table.shape[1]))
            if mask is not None:
                rows = ops.take(rows, slot_positions(length, 0, mask), axis=0)
        else:
            positions = slot_positions(length, start, mask)
            rows = ops.take(table, positions, axis=0)
            # Compilers clip an index, or read 0, where it is out of range.
            inside = ops.logical_and(positions >= 0, positions < self.max_length)
            rows = ops.where(inside[..., None], rows, float("nan"))
        return inputs + ops.cast(rows, inputs.dtype)

    def get_config(self):
        initializer = keras.initializers.serialize(self.embeddings_initializer)
        regularizer = keras.regularizers.serialize(self.embeddings_regularizer)
        return {
            **super().get_config(),
            "max_length": self.max_length,
            "embeddings_initializer": initializer,
            "embeddings_regularizer": regularizer,
        }


def _fits(shape, expected):
    pairs = zip(shape, expected, strict=False)
    return len(shape) == len(expected) and all(None in p or p[0] == p[1] for p in pairs)
