"""The examples in docstrings run, and public docstrings say what house style asks."""

import doctest
import importlib
import inspect
import pkgutil

import keras
import numpy as np
import pytest

import keras_attention


def modules(package):
    yield package
    for info in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        yield importlib.import_module(info.name)


LIBRARY = list(modules(keras_attention))


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
    assert (module.__doc__ or "").strip(), f"{module.__name__} has no docstring"


@pytest.mark.parametrize("name", keras_attention.__all__)
def test_public_names_are_documented(name):
    thing = getattr(keras_attention, name)
    if not inspect.isclass(thing):
        return
    doc = inspect.getdoc(thing)
    for argument in inspect.signature(thing.__init__).parameters:
        assert argument == "self" or f"{argument}:" in doc, f"{name}: {argument}"
