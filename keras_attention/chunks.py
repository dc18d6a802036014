"""Runs a function over few queries at a time, so that no large tensor is ever whole."""

from keras import ops

CHUNK = 2**20  # numbers at a time; 4 MB in float32, which a processor's cache can hold
BLOCKS = 32  # outer steps; see `over_chunks`


def chunk_length(num_queries, numbers_per_query, chunk=CHUNK):
    """How many queries to take at a time: at least 1, at most all of them.

    Args:
        num_queries: T, an integer; or a scalar tensor, where it is not known yet.
        numbers_per_query: Numbers that one query takes, an integer or a scalar tensor.
        chunk: Numbers to take at a time, at most.

    Returns:
        An integer, or a scalar tensor if an argument is one.

    Example:

    >>> chunk_length(7, 300, chunk=1000), chunk_length(7, 3000, chunk=1000)
    (3, 1)
    """
    fitting = chunk // _at_least_one(numbers_per_query)
    known = isinstance(fitting, int) and isinstance(num_queries, int)
    return _at_least_one((min if known else ops.minimum)(fitting, num_queries))


def over_chunks(step, length, inputs, width, totals=()):
    """Feeds chunks of axis 1 to `step`; joins its first results and sums the others.

    Some backends copy the joined rows at every step of a loop. Two loops, one in the
    other, keep that cheap: the inner one joins the rows of a block.

    Args:
        step: Function of the chunks (B, length, .), one per input. It returns rows
            (B, length, width), then one addend for each of `totals`.
        length: Length of a chunk. What is missing from the last ones is filled with 0.
        inputs: Tensors (B, T, .), all of one type.
        width: Width of the rows.
        totals: Tensors of zeros, shaped like the sums.

    Returns:
        The rows (B, T, width) and the sums, as one tuple.

    Example:

    >>> double = lambda chunk: (2 * chunk, ops.sum(chunk, axis=(0, 1)))
    >>> inputs = np.array([[[1.0], [2.0], [3.0]]])
    >>> rows, total = over_chunks(double, 2, [inputs], 1, totals=[np.zeros(1)])
    >>> keras.ops.convert_to_numpy(rows).tolist(), float(total[0])
    ([[[2.0], [4.0], [6.0]]], 6.0)
    """
    count = _ceil(ops.shape(inputs[0])[1], length)
    longer = length * _at_least_one(_ceil(count, BLOCKS))

    def block(*chunks):
        return _loop(step, length, chunks, width, totals)

    return _loop(block, longer, inputs, width, totals)


def _loop(step, length, inputs, width, totals):
    """`over_chunks` in one loop."""
    inputs = [ops.convert_to_tensor(tensor) for tensor in inputs]
    batch, steps = ops.shape(inputs[0])[:2]
    count = _at_least_one(_ceil(steps, length))
    split = []
    for tensor in inputs:
        size = ops.shape(tensor)[-1]
        missing = ops.zeros((batch, count * length - steps, size), tensor.dtype)
        tensor = ops.concatenate([tensor, missing], axis=1)
        split.append(ops.reshape(tensor, (batch, count, length, size)))

    def body(i, carry):
        rows, *sums = carry
        new, *addends = step(*(tensor[:, i] for tensor in split))
        rows = ops.slice_update(rows, (i, 0, 0, 0), new[None])
        pairs = zip(sums, addends, strict=True)
        # The reshape says what is known of the shape: a loop may not forget it.
        return rows, *(a + ops.reshape(b, ops.shape(a)) for a, b in pairs)

    rows = ops.zeros((count, batch, length, width), inputs[0].dtype)
    rows, *sums = ops.fori_loop(0, count, body, (rows, *totals))
    rows = ops.transpose(rows, (1, 0, 2, 3))
    rows = ops.reshape(rows, (batch, count * length, width))
    return rows[:, :steps], *sums


def _ceil(number, divisor):
    """number / divisor, rounded up."""
    return (number + divisor - 1) // divisor


def _at_least_one(number):
    return (max if isinstance(number, int) else ops.maximum)(number, 1)
