"""Checks of numbers that a person gives: what came, what is expected, how to go on."""

import numbers


def check_integer(name, value, least, advice=""):
    """Refuses what is not an integer of at least `least`.

    Example:

    >>> check_integer("num_beams", 5, 1)
    5
    """
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if not whole or value < least:
        raise ValueError(
            f"`{name}` must be an integer of at least {least}. Received: {value!r}."
            f"{advice and ' ' + advice}"
        )
    return int(value)


def check_number(name, value, least, advice=""):
    """Refuses what is not a finite number of at least `least`.

    Example:

    >>> check_number("length_penalty", 1, 0)
    1.0
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not least <= value < float("inf"):
        raise ValueError(
            f"`{name}` must be a finite number of at least {least}. Received: "
            f"{value!r}.{advice and ' ' + advice}"
        )
    return float(value)


def check_fraction(name, value):
    """Refuses what is not a number from 0 to under 1.

    Example:

    >>> check_fraction("dropout", 0.1)
    0.1
    """
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0 <= value < 1:
        raise ValueError(f"`{name}` must be 0 <= {name} < 1. Received: {value!r}.")
    return float(value)


def check_choice(name, value, choices):
    """Refuses what is not one of the choices.

    Example:

    >>> check_choice("cell", "gru", ("gru", "lstm"))
    'gru'
    """
    if not any(value is choice or value == choice for choice in choices):
        raise ValueError(
            f"`{name}` must be one of {', '.join(map(str, choices))}. Received: "
            f"{value!r}."
        )
    return value
