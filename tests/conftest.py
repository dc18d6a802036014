"""Shared test set-up: quiet backends and equal seeds."""

import os
import pathlib

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import pytest

MOST_MAPS = 30_000


@pytest.fixture(autouse=True)
def _seed():
    keras.utils.set_random_seed(0)


@pytest.fixture(autouse=True)
def _forget_compiled_code():
    """On JAX, drop compiled functions before they fill the process's address table.

    Each one is a handful of memory maps, Linux allows a process 65,530 of them, and
    XLA crashes at the limit: thousands of tests in one process get there.
    """
    yield
    maps = pathlib.Path("/proc/self/maps")
    if keras.backend.backend() != "jax" or not maps.exists():
        return
    if maps.read_text().count("\n") > MOST_MAPS:
        import jax

        jax.clear_caches()


@pytest.fixture(scope="session")
def tatoeba():
    """The folder of the English-French sentences, if it is there.

    ATTENTION_ZOO_TATOEBA names it; the default is shared/data/tatoeba beside the
    checkout.
    """
    return _data_folder("ATTENTION_ZOO_TATOEBA", "tatoeba")


@pytest.fixture(scope="session")
def cmudict():
    """The folder of the words and their phones, if it is there.

    ATTENTION_ZOO_CMUDICT names it; the default is shared/data/g2p beside the checkout.
    """
    return _data_folder("ATTENTION_ZOO_CMUDICT", "g2p")


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
