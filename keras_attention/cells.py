"""RNN cells as a decoder sees them: flat states, the top layer's output, dropout."""

import contextlib
import inspect

import keras
from keras import ops

STACKED = keras.layers.StackedRNNCells


def as_cell(cell):
    """A cell as it is, or a list of cells as `StackedRNNCells`; others are refused.

    Example:

    >>> as_cell([keras.layers.GRUCell(4), keras.layers.GRUCell(3)]).output_size
    3
    """
    listed = isinstance(cell, list | tuple)
    strangers = [one for one in (cell if listed else [cell]) if not _is_cell(one)]
    if strangers or (listed and not cell):
        received = repr(strangers[0]) if strangers else "an empty list"
        raise ValueError(
            "`cell` must be an RNN cell of Keras, such as keras.layers.LSTMCell(256), "
            f"or a list of them. Received: {received}. A cell is a layer with a "
            "`state_size`; keras.layers.LSTM is a loop over one."
        )
    if listed and len({id(one) for one in cell}) < len(cell):
        raise ValueError(
            "`cell` must hold different cells. Received: one of them in two places. "
            "Make a second one."
        )
    return STACKED(list(cell), dtype=cell[0].dtype_policy) if listed else cell


def _is_cell(cell):
    is_layer = isinstance(cell, keras.layers.Layer) and hasattr(cell, "state_size")
    return is_layer and not isinstance(cell, keras.layers.RNN)


def state_sizes(cell):
    """The widths of all states, one after the other.

    Example:

    >>> state_sizes(as_cell([keras.layers.LSTMCell(4), keras.layers.GRUCell(3)]))
    [4, 4, 3]
    """
    return keras.tree.flatten(cell.state_size)


def output_size(cell):
    """The width of the cell's output.

    Example:

    >>> output_size(keras.layers.LSTMCell(4))
    4
    """
    return getattr(cell, "output_size", None) or state_sizes(cell)[0]


def top_index(cell):
    """Which of the flat states is the last output: the first of the top cell.

    Example:

    >>> top_index(as_cell([keras.layers.LSTMCell(4), keras.layers.LSTMCell(4)]))
    2
    """
    if not isinstance(cell, STACKED):
        return 0
    top = cell.cells[-1]
    return len(state_sizes(cell)) - len(state_sizes(top)) + top_index(top)


def run_cell(cell, inputs, states, training):
    """One step: (B, E) and flat states -> output (B, H) and flat states."""
    nested = cell.state_size
    if isinstance(nested, int):
        nested = [nested]
    takes = "training" in inspect.signature(cell.call).parameters
    output, following = cell(
        inputs,
        keras.tree.pack_sequence_as(nested, states),
        **({"training": bool(training)} if takes else {}),
    )
    following = keras.tree.flatten(following)
    return output, [
        ops.cast(new, old.dtype) for new, old in zip(following, states, strict=True)
    ]


def check_states(cell, states, batch=None):
    """Refuses another number of states, other widths or rows; takes symbols too.

    Example:

    >>> check_states(keras.layers.LSTMCell(4), [np.zeros((2, 4)), np.zeros((2, 4))])
    """
    sizes = state_sizes(cell)
    shapes = [tuple(state.shape) for state in keras.tree.flatten(states)]
    if len(shapes) != len(sizes) or any(
        len(shape) != 2
        or shape[1] not in (None, size)
        or (isinstance(batch, int) and shape[0] not in (None, batch))
        for shape, size in zip(shapes, sizes, strict=True)
    ):
        raise ValueError(
            f"The cell's states are {len(sizes)} tensors (batch, width) of the widths "
            f"{sizes} and the inputs' batch. Received: {shapes}. An LSTMCell has "
            "[h, c], a GRUCell [h], stacked cells those of each cell in turn."
        )


def first_states(cell, batch, given=None):
    """Flat states to begin with: the given ones, or the cell's own.

    Args:
        cell: The cell.
        batch: Number of rows B.
        given: States (B, width), in a list or nested as the cell's, or None.
    """
    if given is not None:
        check_states(cell, given, batch)
    elif hasattr(cell, "get_initial_state"):
        given = cell.get_initial_state(batch_size=batch)
    else:
        given = [
            ops.zeros((batch, size), cell.compute_dtype) for size in state_sizes(cell)
        ]
    return [
        ops.cast(ops.convert_to_tensor(state), cell.compute_dtype)
        for state in keras.tree.flatten(given)
    ]


MASKS_OF_KERAS = "get_recurrent_dropout_mask"  # what Keras's own cells have


@contextlib.contextmanager
def dropout_masks(cell, batch, width, training):
    """Within it the cell drops the same inputs and states at every step.

    The masks are drawn here, as a loop cannot draw: on JAX its seeds would stay inside.
    """
    parts = [part for part in _cells(cell, width) if hasattr(part[0], MASKS_OF_KERAS)]
    if not training or not parts:
        yield
        return
    try:
        for part, size in parts:
            _reset(part)
            part.get_dropout_mask(ops.zeros((batch, size), part.compute_dtype))
            size = state_sizes(part)[0]
            part.get_recurrent_dropout_mask(
                ops.zeros((batch, size), part.compute_dtype)
            )
        yield
    finally:
        for part, _ in parts:
            _reset(part)


def _reset(cell):
    cell.reset_dropout_mask()
    cell.reset_recurrent_dropout_mask()


def _cells(cell, width):
    """The cells of a stack, each with the width of its input."""
    if not isinstance(cell, STACKED):
        return [(cell, width)]
    found = []
    for part in cell.cells:
        found += _cells(part, width)
        width = output_size(part)
    return found
