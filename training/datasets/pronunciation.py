"""Reads words with their pronunciations: CMUdict in the published g014b2b split."""

import pathlib

from training.datasets.pair_files import read_pairs
from training.datasets.pairs import PairSplits, leave_out_sources, split_pairs

VALIDATION_FRACTION = 0.02  # of 106,837 words


def load_pronunciations(folder, seed=0, validation_fraction=VALIDATION_FRACTION):
    """Reads words with their phones, the test words left out of the rest.

    Args:
        folder: a folder with one file that ends in .train and one that ends in .test
            (each maybe with .gz), such as g014b2b.train; their lines are
            WORD<TAB>PHONES. A word with several pronunciations has a line for each.
        seed: integer, for the choice of the validation words.
        validation_fraction: float in (0, 1), the share of the training words that goes
            to validation, with all their pronunciations.

    Returns:
        `PairSplits`.

    Raises:
        FileNotFoundError: there is no such folder, or not one file of each kind.
        ValueError: a line is not a word and its phones, by file and line.
    """
    path = pathlib.Path(folder).expanduser()
    test = read_pairs(_only(path, "test"))
    train = leave_out_sources(read_pairs(_only(path, "train")), test)
    train, validation = split_pairs(train, validation_fraction, seed)
    return PairSplits(train, validation, test)


def _only(folder, name):
    files = [*folder.glob(f"*.{name}"), *folder.glob(f"*.{name}.gz")]
    if len(files) != 1:
        found = ", ".join(sorted(file.name for file in files)) or "none"
        raise FileNotFoundError(
            f"{folder} needs one file that ends in .{name} or .{name}.gz. Received: "
            f"{found}. Give the folder that holds g014b2b.train and g014b2b.test."
        )
    return files[0]
