"""Checks of what a search is asked for: what came, what is expected, how to go on."""

import numbers

import numpy as np

from zoo.checks import check_integer, check_number


def check_num_return(num_return, num_beams):
    """Refuses to return more hypotheses than there are beams.

    Example:

    >>> check_num_return(2, 5)
    2
    """
    num_return = check_integer("num_return", num_return, 1)
    if num_return > num_beams:
        raise ValueError(
            "`num_return` must be at most `num_beams`, since every hypothesis returned "
            f"comes out of a beam. Received: num_return={num_return}, "
            f"num_beams={num_beams}. Search with num_beams={num_return} or more."
        )
    return num_return


def check_sampling(temperature, top_k, top_p):
    """Refuses settings that no sample can be drawn with.

    Example:

    >>> check_sampling(0.7, top_k=None, top_p=0.9)
    """
    advice = "For the most probable token each time use greedy_search."
    if check_number("temperature", temperature, 0, advice) == 0:
        raise ValueError(f"`temperature` must be above 0. Received: 0. {advice}")
    if top_k is not None:
        check_integer("top_k", top_k, 1, "Use top_k=None for the whole vocabulary.")
    number = isinstance(top_p, numbers.Real) and not isinstance(top_p, bool)
    if top_p is not None and not (number and 0 < top_p <= 1):
        raise ValueError(
            "`top_p` is the share of the probability to draw from and must be above 0 "
            f"and at most 1. Received: {top_p!r}. Use top_p=None for all of it."
        )


def check_seed(seed):
    """Refuses what is not an integer from 0 to under 2^31; a backend's tensors pass.

    Example:

    >>> check_seed(7)
    7
    """
    if isinstance(seed, np.ndarray | np.generic):
        seed = seed.item() if seed.ndim == 0 else seed
    elif hasattr(seed, "dtype"):
        return seed
    if check_integer("seed", seed, 0) >= 2**31:
        raise ValueError(
            f"`seed` must be under 2**31. Received: {seed}. Take a smaller one."
        )
    return int(seed)


def integers(name, values, least, batch=None):
    """An int32 array of whole numbers: nothing is rounded, and nothing wraps around.

    Args:
        name: Of the argument.
        values: Array, or what NumPy makes one of.
        least: The least that an integer may be.
        batch: B, if there must be one for each sentence, (B,); None for any shape.

    Raises:
        ValueError: for other numbers, and another shape.

    Example:

    >>> integers("max_lengths", [7, 9], least=1, batch=2).tolist()
    [7, 9]
    """
    array = np.asarray(values)
    if batch is not None and array.shape != (batch,):
        raise ValueError(
            f"`{name}` must be integers (sentences,), one for each. Received: shape "
            f"{array.shape} for {batch} sentences. Leave it out, or give {batch}."
        )
    if not array.size:
        return array.astype("int32")
    whole = array.dtype.kind in "iuf" and np.isfinite(array).all()
    if not whole or (np.rint(array) != array).any():
        raise ValueError(
            f"`{name}` must be integers. Received: values of the type {array.dtype} "
            "that are no whole numbers. Round them yourself: nothing is rounded here."
        )
    if array.min() < least or array.max() >= 2**31:
        raise ValueError(
            f"`{name}` must be integers from {least} to under 2**31. Received: "
            f"{array.min()} to {array.max()}. Correct those outside."
        )
    return array.astype("int32")
