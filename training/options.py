"""Options as data: a frozen dataclass is checked when made, and makes a command line.

Importing this module imports neither Keras nor TensorFlow.
"""

import dataclasses
import numbers
import os


def option(default, help, least=None, most=None):
    """A field with its help text and its bounds (both included).

    The default `dataclasses.MISSING` makes it one that must be given.
    """
    metadata = {"help": help, "least": least, "most": most}
    return dataclasses.field(default=default, metadata=metadata)


class RunOptions:
    """Base of the options of a run: dataclasses with the fields `out` and `resume`."""

    @property
    def options(self):
        """All that decides the result, as plain types: not where it is written."""
        options = dataclasses.asdict(self)
        del options["out"], options["resume"]
        return options


def make_plain(config):
    """Paths become strings, and numbers of NumPy Python's, as JSON and Keras need."""
    for field in dataclasses.fields(config):
        object.__setattr__(config, field.name, _plain(getattr(config, field.name)))


def _plain(value):
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        return value
    return int(value) if isinstance(value, numbers.Integral) else float(value)


def check_bounds(config):
    """Refuses a value outside its field's bounds, or that is no such number."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        if isinstance(value, str) and not value.strip():
            raise ValueError(f"`{field.name}` is empty. Give a value, or leave it out.")
        _check_bounds(field, value)


def _check_bounds(field, value):
    least, most = field.metadata.get("least"), field.metadata.get("most")
    if value is None or (least is None and most is None):
        return
    whole = _plain_type(field.type) is int
    kind = numbers.Integral if whole else numbers.Real
    if not isinstance(value, kind) or isinstance(value, bool):
        wanted = "an integer" if whole else "a number"
        raise ValueError(f"`{field.name}` must be {wanted}. Received: {value!r}.")
    above = least is None or least <= value < float("inf")  # False for nan
    if not above or (most is not None and value > most):
        bounds = f"at least {least}" + ("" if most is None else f" and at most {most}")
        raise ValueError(f"`{field.name}` must be {bounds}. Received: {value}.")


def add_options(
    parser, config_class, leave_out=(), only=None, optional=False, help=None
):
    """Gives an argparse parser an option for every field of a config class.

    Args:
        parser: An `argparse.ArgumentParser`.
        config_class: A dataclass of options.
        leave_out: Names of fields without an option.
        only: Names of the fields that have one; None is all.
        optional: Whether every option that is left out is None.
        help: Other help texts than the fields' own, by name of the field.
    """
    texts = help or {}
    for field in dataclasses.fields(config_class):
        if field.name in leave_out or (only and field.name not in only):
            continue
        flag = "--" + field.name.replace("_", "-")
        if field.type is bool or field.type == "bool":
            parser.add_argument(
                flag, action="store_true", help=field.metadata.get("help")
            )
            continue
        missing = field.default is dataclasses.MISSING
        required = missing and not optional
        parser.add_argument(
            flag,
            type=_plain_type(field.type),
            default=None if missing or optional else field.default,
            required=required,
            metavar=_plain_type(field.type).__name__.upper(),
            help=texts.get(field.name) or _help(field),
        )


def _help(field):
    text = field.metadata.get("help", "folder of the run")
    shown = field.default not in (None, dataclasses.MISSING) and "[" not in text
    return f"{text} [{field.default}]" if shown else text


def _plain_type(annotation):
    """int for `int | None`, and so on."""
    return next(t for t in (int, float, str) if t.__name__ in str(annotation))


def from_options(config_class, options, **others):
    """A config from parsed options, which may hold more."""
    names = {field.name for field in dataclasses.fields(config_class)}
    given = {key: value for key, value in vars(options).items() if key in names}
    return config_class(**{**given, **others})
