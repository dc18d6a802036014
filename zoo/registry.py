"""One literal table of what the zoo holds; zoo.list_models() prints it."""

import dataclasses
import difflib
import io
import pathlib

from zoo.text import Tokenizer
from zoo.weight_files import check_file

WEIGHTS_FOLDER = pathlib.Path(__file__).parent / "weights"
CARDS_FOLDER = pathlib.Path(__file__).parent / "cards"


@dataclasses.dataclass(frozen=True)
class TrainedWeights:
    """One set of trained weights: which file, made for what, how good.

    Attributes:
        file: File name in zoo/weights.
        sha256: Of that file; checked before it is read.
        tokenizer, tokenizer_sha256: The tokenizer's file, likewise.
        architecture: The factory's arguments the weights belong to.
        parameters: Number of weights of the model.
        labels: Class names, by class index.
        maxlen: Number of ids a text is cut to; its end is kept.
        data: What it was trained on.
        metric: What it reaches, with the protocol.
        licence: Of the weights.
    """

    file: str
    sha256: str
    tokenizer: str
    tokenizer_sha256: str
    architecture: dict
    parameters: int
    labels: tuple[str, ...]
    maxlen: int
    data: str
    metric: str
    licence: str


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model of the zoo.

    Attributes:
        name: What `zoo.load` and the factory are called.
        task: "sentiment" or another of the pipelines.
        weights: Trained weights by the name that `weights=` takes; the first is the
            default.
    """

    name: str
    task: str
    weights: dict[str, TrainedWeights]


_IMDB = {
    "tokenizer": "imdb.tokenizer.json",
    "tokenizer_sha256": (
        "a0c243904e8a973196bd5e34ec6600e976d964d24fb1f1c3288384fb60adf2f5"
    ),
    "labels": ("negative", "positive"),
    "maxlen": 400,
    "data": "IMDB",
    "licence": "Apache-2.0",
}
_SIZES = {
    "vocabulary_size": 30_000,
    "embedding_dim": 128,
    "lstm_units": 64,
    "dropout": 0.3,
    "num_classes": 2,
}

ENTRIES = (
    Entry(
        name="imdb_bilstm_attention",
        task="sentiment",
        weights={
            "imdb": TrainedWeights(
                file="imdb_bilstm_attention.weights.h5",
                sha256=(
                    "1273cc95c6702e0c09d819663ca1cf43347b850f45046cf756ffe770cffc0dd7"
                ),
                architecture={**_SIZES, "attention_units": 64},
                parameters=3_947_265,
                metric="90.91% of the 25,000 test reviews",
                **_IMDB,
            )
        },
    ),
    Entry(
        name="imdb_bilstm",
        task="sentiment",
        weights={
            "imdb": TrainedWeights(
                file="imdb_bilstm.weights.h5",
                sha256=(
                    "557b7a27d6e8e48167bc914c06a31a7a83d6688d546bdf169cbb093f3b500880"
                ),
                architecture=_SIZES,
                parameters=3_938_945,
                metric="90.65% of the 25,000 test reviews",
                **_IMDB,
            )
        },
    ),
)


def find(name):
    """The entry called `name`.

    Raises:
        ValueError: if there is none, with the closest name.
    """
    names = [entry.name for entry in ENTRIES]
    if name in names:
        return ENTRIES[names.index(name)]
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f"Did you mean '{close[0]}'? " if close else ""
    raise ValueError(
        f"There is no model called '{name}'. {hint}See zoo.list_models(): "
        f"{', '.join(names)}."
    )


def load_tokenizer(trained):
    """The tokenizer of trained weights, its file checked.

    Args:
        trained: A `TrainedWeights`.
    """
    path = WEIGHTS_FOLDER / trained.tokenizer
    check_file(path, trained.tokenizer_sha256)
    return Tokenizer.load(path)


class ModelTable(list):
    """A list of dictionaries, a model each, that shows itself as a table."""

    def __repr__(self):
        from rich.console import Console

        text = io.StringIO()
        Console(width=140, file=text).print(self.to_rich())
        return text.getvalue().rstrip()

    def to_rich(self):
        """The table for a rich console; it fits 80 columns."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
        columns = [
            column for column in (self[0] if self else ()) if column != "weights"
        ]
        for column in columns:
            shown = "MB" if column == "megabytes" else column
            table.add_column(shown, no_wrap=column != "metric")
        for row in self:
            table.add_row(*(_cell(column, row[column]) for column in columns))
        return table


def _cell(column, value):
    if column == "parameters":
        return f"{value:,}"
    if column == "megabytes":
        return f"{value:.1f}"
    return str(value)


def list_models():
    """What the zoo holds: a row for each set of trained weights.

    Returns:
        A list of dictionaries with the keys name, weights, task, data, metric (with
        its protocol), parameters, megabytes (of the weights' file), licence.

    Example:

    >>> [row["name"] for row in list_models()]
    ['imdb_bilstm_attention', 'imdb_bilstm']
    """
    return ModelTable(
        {
            "name": entry.name,
            "weights": name,
            "task": entry.task,
            "data": weights.data,
            "metric": weights.metric,
            "parameters": weights.parameters,
            "megabytes": (WEIGHTS_FOLDER / weights.file).stat().st_size / 1e6,
            "licence": weights.licence,
        }
        for entry in ENTRIES
        for name, weights in entry.weights.items()
    )
