"""Shared test set-up: quiet backends and equal seeds."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import pytest


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(scope="session")
def tatoeba():
    """The folder of the English-French sentences, if it is there.

    ATTENTION_ZOO_TATOEBA names it; the default is shared/data/tatoeba beside the
    checkout.
    """
    return _data_folder("ATTENTION_ZOO_TATOEBA", "tatoeba")


@pytest.fixture(scope="session")
def imdb_files():
    """The folder of the real reviews (train.tsv.gz, test.tsv.gz, ...), if it is there.

    ATTENTION_ZOO_IMDB names it; the default is shared/data/imdb beside the checkout.
    """
    return _data_folder("ATTENTION_ZOO_IMDB", "imdb")


def _data_folder(variable, name):
    beside = pathlib.Path(__file__).parents[2] / "shared" / "data" / name
    folder = pathlib.Path(os.environ.get(variable, beside))
    if not folder.is_dir():
        pytest.skip(f"the data '{name}' are absent")
    return folder
