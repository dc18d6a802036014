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
def imdb_files():
    """The folder of the real reviews (train.tsv.gz, test.tsv.gz, ...), if it is there.

    ATTENTION_ZOO_IMDB names it; the default is shared/data/imdb beside the checkout.
    """
    beside = pathlib.Path(__file__).parents[2] / "shared" / "data" / "imdb"
    folder = pathlib.Path(os.environ.get("ATTENTION_ZOO_IMDB", beside))
    if not folder.is_dir():
        pytest.skip("the IMDB files are absent")
    return folder
