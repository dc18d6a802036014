"""The examples in docstrings run, and public docstrings say what house style asks."""

import dataclasses
import doctest
import importlib
import inspect
import pkgutil
import re

import keras
import numpy as np
import pytest

import keras_attention
import training
import zoo


def modules(package):
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(info.name)


LIBRARY = [*modules(keras_attention), *modules(zoo), *modules(training)]
LIBRARY = [module for module in LIBRARY if module.__name__ != "training.__main__"]


@pytest.mark.parametrize("module", LIBRARY, ids=lambda module: module.__name__)
def test_examples_run(module):
    names = {"np": np, "keras": keras, **vars(keras_attention), **vars(module)}
    result = doctest.testmod(module, extraglobs=names)
    assert result.failed == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    assert sum(bool(t.examples) for m in LIBRARY for t in finder.find(m)) >= 8


@pytest.mark.parametrize("module", LIBRARY, ids=lambda module: module.__name__)
def test_a_module_opens_with_one_sentence(module):
    first = (module.__doc__ or "").strip().split("\n\n")[0]
    assert re.fullmatch(r"[A-Za-z`\"].*[.:]", first, flags=re.DOTALL), module.__name__


PUBLIC = [
    (package, name)
    for package in (keras_attention, zoo)
    for name in package.__all__
    if callable(getattr(package, name)) and not name.startswith("_")
]


@pytest.mark.parametrize(("package", "name"), PUBLIC, ids=[n for _, n in PUBLIC])
def test_every_public_argument_is_documented(package, name):
    thing = getattr(package, name)
    if dataclasses.is_dataclass(thing) or name == "Tokenizer":
        return  # attributes; and a class that is made by its class methods
    signed = thing
    if inspect.isclass(thing):  # what a base class takes is documented there
        signed = vars(thing).get("__init__", lambda self: None)
    for argument in inspect.signature(signed).parameters:
        assert argument == "self" or f"{argument}:" in inspect.getdoc(thing), argument
