"""One literal table of what the zoo holds."""

import dataclasses
import difflib
import pathlib

from zoo.text import Tokenizer
from zoo.tokens import SequenceTokenizer
from zoo.weight_files import check_file

WEIGHTS_FOLDER = pathlib.Path(__file__).parent / "weights"
CARDS_FOLDER = pathlib.Path(__file__).parent / "cards"


@dataclasses.dataclass(frozen=True)
class TrainedWeights:
    """One set of trained weights: which file, made for what, how good.

    Attributes:
        file: File name in zoo/weights.
        sha256: Of that file; checked before it is read.
        tokenizers: (file name, SHA-256) by role: "text"; or "source" and "target",
            which are one file where the two texts have one vocabulary.
        architecture: The factory's arguments the weights belong to.
        parameters: Number of weights of the model.
        maxlen: Number of ids a text is cut to.
        data: What it was trained on.
        metric: What it reaches, with the protocol.
        licence: Of the weights.
        labels: Class names of a classifier, by class index.
    """

    file: str
    sha256: str
    tokenizers: dict[str, tuple[str, str]]
    architecture: dict
    parameters: int
    maxlen: int
    data: str
    metric: str
    licence: str
    labels: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model of the zoo.

    Attributes:
        name: What `zoo.load` calls it.
        task: "sentiment" or another of the pipelines.
        factory: What the function that makes the model is called.
        weights: Trained weights by the name that `weights=` takes; the first is the
            default.
    """

    name: str
    task: str
    factory: str
    weights: dict[str, TrainedWeights]


_IMDB = {
    "tokenizers": {
        "text": (
            "imdb.tokenizer.json",
            "a0c243904e8a973196bd5e34ec6600e976d964d24fb1f1c3288384fb60adf2f5",
        )
    },
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
        factory="imdb_bilstm_attention",
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
        factory="imdb_bilstm",
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


def trained_by(factory):
    """All trained weights that a factory takes, by name."""
    return {
        name: weights
        for entry in ENTRIES
        if entry.factory == factory
        for name, weights in entry.weights.items()
    }


def load_tokenizers(trained):
    """The tokenizers of trained weights by role, their files checked.

    Args:
        trained: A `TrainedWeights`.
    """
    kinds, made = {"text": Tokenizer}, {}
    for role, (file, sha256) in trained.tokenizers.items():
        if file not in made:
            check_file(WEIGHTS_FOLDER / file, sha256)
            kind = kinds.get(role, SequenceTokenizer)
            made[file] = kind.load(WEIGHTS_FOLDER / file)
    return {role: made[file] for role, (file, _) in trained.tokenizers.items()}
