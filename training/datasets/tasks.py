"""The tasks that have a name, and pairs of one's own, each in three parts."""

import os
import pathlib

from training.datasets.pair_files import load_pairs, load_tatoeba
from training.datasets.pairs import split_by_text
from training.datasets.pronunciation import load_pronunciations
from training.datasets.text_files import ending

TASKS = ("reverse", "dates", "g2p", "en-fr")
WHERE = {
    "g2p": (
        "a folder with g014b2b.train and g014b2b.test (WORD<TAB>PHONES, maybe .gz): "
        "CMUdict as the Phonetisaurus project splits it, "
        "https://sourceforge.net/projects/cmusphinx/files/G2P%20Models/"
        "phonetisaurus-cmudict-split.tar.gz"
    ),
    "en-fr": (
        "the file fra.txt that is in fra-eng.zip at https://www.manythings.org/anki/, "
        "or a folder with en-fr.train.tsv, en-fr.val.tsv and en-fr.test.tsv (maybe .gz)"
    ),
}


def load_task(
    task,
    data=None,
    seed=0,
    *,
    source_column=None,
    target_column=None,
    validation_fraction=0.1,
    test_fraction=0.1,
):
    """Reads or makes the pairs of a task.

    Args:
        task: one of
            "reverse": strings of letters and the same strings from behind, made here.
            "dates": dates as many languages write them and as ISO 8601, made here.
            "g2p": English words and their phones, from `data`.
            "en-fr": English sentences and their French translations, from `data`.
            a file .tsv, .csv or .txt (with tabs), maybe with .gz: pairs of one's own,
                split by a hash of the source: see `split_by_text`.
        data: for "g2p", the folder of the published split; for "en-fr", the folder of
            its parts or the file fra.txt.
        seed: integer, for what is made here, and the validation part of "g2p".
        source_column, target_column: for a file, as `load_pairs` takes them.
        validation_fraction, test_fraction: for a file, the shares of its different
            sources that go to validation and test.

    Returns:
        `PairSplits`.

    Raises:
        TypeError: `task` is neither a string nor a path.
        ValueError: an unknown task, an option that the task has no use for, or data
            that is not as described. The message names the file and the line.
        FileNotFoundError: there is no such file or folder, or none was given.

    Example:

        splits = load_task("en-fr", data="fra.txt")
        splits = load_task("pairs.csv", source_column="question", target_column="reply")
    """
    if not isinstance(task, (str, os.PathLike)):
        raise TypeError(
            f"`task` must be a string or a path. Received: {task!r}. Give one of "
            f"{TASKS}, or the path of a .tsv or .csv file."
        )
    columns = source_column, target_column
    fractions = validation_fraction, test_fraction
    if task not in TASKS:
        _refuse_data(task, data)
        return split_by_text(own_pairs(task, *columns), *fractions)
    own_options = (*columns, *fractions)
    if own_options != (None, None, 0.1, 0.1):
        raise ValueError(
            "`source_column`, `target_column`, `validation_fraction` and "
            f"`test_fraction` are for a file of one's own. Received: {own_options} "
            f"with the task {task!r}. Leave them out."
        )
    if task in WHERE:
        return _load_published(task, data, seed)
    _refuse_data(task, data)
    return _make(task, seed)


def own_pairs(task, source_column=None, target_column=None):
    """`load_pairs` where a file stands in the place of a task's name."""
    path = pathlib.Path(task).expanduser()
    if not path.is_file():
        kind = ValueError if path.exists() else FileNotFoundError
        state = "which is no file" if path.exists() else "which does not exist"
        raise kind(
            f"`task` must be one of {TASKS}, or a file that ends in .tsv, .csv or "
            f".txt, maybe with .gz. Received: {str(path)!r}, {state}. Correct the name."
        )
    return load_pairs(path, source_column, target_column)


def _load_published(task, data, seed):
    if data is None:
        raise FileNotFoundError(
            f"The task {task!r} needs `data`. Received: none. Give {WHERE[task]}."
        )
    path = pathlib.Path(data).expanduser()
    if not path.exists():
        raise FileNotFoundError(
            f"There is no {str(path)!r} (from the folder {pathlib.Path.cwd()}). The "
            f"task {task!r} needs {WHERE[task]}."
        )
    if path.is_file() and ending(path) == ".csv":
        raise ValueError(
            f"The task {task!r} needs {WHERE[task]}. Received: {str(path)!r}. Pairs of "
            f"your own take the place of the task's name: task={str(path)!r}."
        )
    return load_tatoeba(path) if task == "en-fr" else load_pronunciations(path, seed)


def _refuse_data(task, data):
    if data is not None:
        raise ValueError(
            f'`data` is for the tasks "g2p" and "en-fr". Received: {str(data)!r} with '
            f"the task {str(task)!r}. Leave it out; pairs of your own take the place "
            "of the task's name."
        )


def _make(task, seed):
    if task == "reverse":
        from training.datasets.reversal import make_reversals

        return make_reversals(seed)
    from training.datasets.dates import make_dates

    return make_dates(seed)
