"""The options of a run that trains a classifier, as data: one frozen dataclass.

The command line is made from it, so an option is named, explained and checked here and
nowhere else. Importing this module imports neither Keras nor TensorFlow.
"""

import dataclasses

from training.options import RunOptions, check_bounds, make_plain, option

MODELS = ("imdb_bilstm_attention", "imdb_bilstm")
FIXED_BY_WEIGHTS = (
    "vocabulary",
    "vocabulary_size",
    "embedding_dim",
    "lstm_units",
    "attention_units",
)


@dataclasses.dataclass(frozen=True)
class SentimentConfig(RunOptions):
    """What `training.sentiment.train` takes. None means the default in brackets.

    Raises:
        ValueError: for a value out of bounds, or options that contradict each other.
    """

    name: str
    out: str
    data: str = option(
        "tfds",
        "tfds (IMDB by tensorflow_datasets), keras (IMDB by keras.datasets), a folder "
        "in aclImdb layout, or a .csv/.tsv file",
    )
    text_column: str = option("text", "column of the texts, by name or position from 1")
    label_column: str = option("label", "column of the labels, by name or position")
    data_dir: str | None = option(None, "folder of the tfds data sets [tfds's own]")
    test_data: str | None = option(
        None, "a .csv/.tsv file to evaluate on at the end [the source's test split]"
    )
    label_names: str | None = option(
        None, "class names, comma-separated, for labels that are 0, 1, ... [the labels]"
    )
    unlabelled: str | None = option(
        None,
        "more texts, without labels: a .txt or .txt.gz file with one a line, a folder, "
        "or tfds; a teacher learned from the labelled ones labels them",
    )
    taught_epochs: int | None = option(
        None,
        "with `unlabelled`: how many of the epochs, the first, learn from them [1]",
        least=1,
    )
    weights: str | None = option(
        None,
        "start from a trained model: a name of its weights in the zoo (imdb), or the "
        "folder of a run",
    )
    vocabulary: str | None = option(
        None,
        "imdb (that of keras.datasets.imdb) or own (made from the training texts) "
        "[imdb for tfds and keras, else own]",
    )
    vocabulary_size: int | None = option(
        None, "number of ids that have a word vector [30000]", least=5
    )
    epochs: int | None = option(
        None, "passes over the training texts [what 1,000 steps take: 4 to 40]", least=1
    )
    batch_size: int = option(64, "texts in a step", least=1)
    maxlen: int = option(400, "ids a text is cut to; its end is kept", least=2)
    learning_rate: float = option(2e-3, "peak; warmed up, then a cosine to 0", least=0)
    embedding_dim: int | None = option(None, "width of word vectors [128]", least=1)
    lstm_units: int | None = option(None, "width of each LSTM direction [64]", least=1)
    attention_units: int | None = option(None, "width of the attention [64]", least=1)
    dropout: float | None = option(
        None, "of word vectors and before the head [0.3]", least=0, most=0.99
    )
    word_dropout: float = option(
        0.05, "fraction of words hidden as unknown in training", least=0, most=0.99
    )
    label_smoothing: float = option(0.05, "moves targets to the middle", 0, 0.99)
    average: float = option(
        0.2,
        "fraction of an epoch that the average of weights reaches back; 0: none",
        least=0,
        most=1,
    )
    validation_fraction: float = option(
        0.1, "of the training texts, to choose the best epoch; 0 keeps the last", 0, 0.9
    )
    seed: int = option(
        0, "of weights, order, dropout and validation split", least=0, most=2**32 - 1
    )
    resume: bool = option(False, "go on from the last finished epoch of --out")

    def __post_init__(self):
        if self.name not in MODELS:
            raise ValueError(
                f"There is no training program for '{self.name}'. Expected one of: "
                f"{', '.join(MODELS)}."
            )
        make_plain(self)
        check_bounds(self)
        if self.taught_epochs and not self.unlabelled:
            raise ValueError(
                "`taught_epochs` are those that learn from `unlabelled` texts. Give "
                "such texts, or leave it out."
            )
        if self.epochs and self.taught_epochs and self.taught_epochs > self.epochs:
            raise ValueError(
                "`taught_epochs` are the first of `epochs`, so at most as many. "
                f"Received: {self.taught_epochs} of {self.epochs}."
            )
        if self.unlabelled and self.data == "keras":
            raise ValueError(
                "The source 'keras' gives ids, and texts without labels cannot be "
                "compared with ids. Leave `unlabelled` out, or take the source 'tfds'."
            )
        if self.name == "imdb_bilstm" and self.attention_units is not None:
            raise ValueError(
                "`attention_units` has no effect on imdb_bilstm, which has no "
                "attention. Leave it out, or train imdb_bilstm_attention."
            )
        fixed = [name for name in FIXED_BY_WEIGHTS if getattr(self, name) is not None]
        if self.weights and fixed:
            raise ValueError(
                f"`weights` decide {', '.join(fixed)} already. Leave them out, or "
                "start without `weights`."
            )
        check_vocabulary(self.vocabulary, self.data)

    @property
    def architecture(self):
        """The arguments of the model's factory that were given."""
        names = ("embedding_dim", "lstm_units", "attention_units", "dropout")
        given = {name: getattr(self, name) for name in names}
        return {name: value for name, value in given.items() if value is not None}


def check_vocabulary(vocabulary, data):
    """Refuses a vocabulary that is unknown, or another than the data's ids are of."""
    if vocabulary not in (None, "imdb", "own"):
        raise ValueError(
            f"`vocabulary` must be 'imdb' or 'own'. Received: {vocabulary!r}."
        )
    if data == "keras" and vocabulary == "own":
        raise ValueError(
            "The source 'keras' gives ids of the vocabulary 'imdb'. Received: "
            "vocabulary='own'. Leave it out, or take the source 'tfds'."
        )
