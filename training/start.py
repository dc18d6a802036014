"""What a run starts from: the texts of its parts, and a model with its tokenizer."""

import dataclasses
import pathlib

import numpy as np

import zoo
from training import datasets
from training.datasets.sources import KERAS, TFDS
from training.datasets.text_files import ending
from training.dropout import with_dropout
from zoo import registry, sentiment
from zoo.pipelines import SentimentClassifier
from zoo.text import Tokenizer

VOCABULARY_SIZE = 30_000


@dataclasses.dataclass(frozen=True)
class Parts:
    """The texts of a run, by use; validation and test may be None."""

    train: datasets.LabelledTexts
    validation: datasets.LabelledTexts | None
    test: datasets.LabelledTexts | None
    unlabelled: list[str]


def read_data(config, start=None):
    """Reads the source and splits it; texts that are held out leave the training.

    Args:
        config: The run's config.
        start: The pipeline to go on from, or None. Where the classes are the same,
            they come in its order, so that its head fits.

    Returns:
        `Parts`.
    """
    splits = load_source(config, config.data)
    if start is not None:
        splits = _in_order_of(start.labels, splits)
    train, validation, test = splits.train, None, splits.test
    if config.test_data:
        held_out = load_source(config, config.test_data, train.label_names)
        test = held_out.test or held_out.train
    if test is not None:
        train = datasets.leave_out(train, test)
        _check_left(train, splits.train, test)
    if config.validation_fraction:
        train, validation = datasets.split_validation(
            train, config.validation_fraction, config.seed
        )
    unlabelled = []
    if config.unlabelled:
        unlabelled = datasets.unlabelled(config.unlabelled, config.data_dir)
        held_out = {text for part in (validation, test) if part for text in part.texts}
        unlabelled = [text for text in unlabelled if text not in held_out]
    return Parts(train, validation, test, unlabelled)


def _check_left(left, train, test):
    """Refuses test texts that leave no training text, or none of a class."""
    lost = set(train.labels) - set(left.labels)
    if lost:
        names = ", ".join(repr(train.label_names[label]) for label in sorted(lost))
        raise ValueError(
            f"No training text of {names} is left: all stand in {test.source} too, "
            "and texts of the test are not trained on. Give other data to test on."
        )


def load_source(config, source, label_names=None):
    """`training.datasets.load` with those options of a run that the source takes."""
    if label_names is None and config.label_names:
        label_names = tuple(name.strip() for name in config.label_names.split(","))
    options = {}
    tables = [s for s in (config.data, config.test_data) if s and is_table(s)]
    if is_table(source) or not tables:
        options["text_column"] = config.text_column
        options["label_column"] = config.label_column
    of_unlabelled = config.unlabelled == "tfds" != source
    if source == config.data and not of_unlabelled:
        options["data_dir"] = config.data_dir
    return datasets.load(source, label_names=label_names, **options)


def is_table(source):
    """Whether a source is a .csv or .tsv file, by its name."""
    return ending(pathlib.Path(source)) in (".csv", ".tsv")


def tokenized(tokenizer, data):
    """The same examples as token ids; the source may have given ids already.

    Raises:
        ValueError: if the source gave ids of another vocabulary than the tokenizer's.
    """
    if data is None:
        return None
    if data.is_tokenized:
        if data.source in KERAS and tokenizer.words != imdb_tokenizer().words:
            raise ValueError(
                f"{data.source} holds ids of the vocabulary of keras.datasets.imdb. "
                "Received: a model with a vocabulary of its own, to which they mean "
                "other words. Take the source 'tfds', which gives texts."
            )
        return data
    ids = [encoding.ids for encoding in tokenizer.encode_batch(data.texts)]
    return dataclasses.replace(data, texts=ids)


def trained_start(config):
    """The trained pipeline that `weights` names, or None.

    Raises:
        ValueError: if it is neither a name of the registry nor a folder.
    """
    known = registry.find(config.name).weights
    if not config.weights:
        return None
    if config.weights in known:
        return zoo.load(config.name, weights=config.weights)
    if not pathlib.Path(config.weights).expanduser().is_dir():
        raise ValueError(
            f"`weights` must be one of {sorted(known)} or the folder of a run. "
            f"Received: {config.weights!r}."
        )
    start = zoo.load(pathlib.Path(config.weights))  # a model of the zoo it is not
    if start.name != config.name:
        raise ValueError(
            f"`weights` must be a run of {config.name}. Received: '{config.weights}', "
            f"a run of {start.name}. Train {start.name}, or give another folder."
        )
    return start


def starting_classifier(config, data, start=None):
    """The pipeline to train for the classes of the data: a new one, or `start`."""
    labels = data.label_names
    if start is None:
        tokenizer, size = _tokenizer_and_size(config, data)
        model = sentiment.FACTORIES[config.name](
            weights=None,
            vocabulary_size=size,
            num_classes=len(labels),
            **config.architecture,
        )
    else:
        tokenizer, model = start.tokenizer, start.model
        if start.labels != labels:
            model = sentiment.with_new_head(model, len(labels))
        if config.dropout is not None:
            model = with_dropout(model, config.dropout)
    return SentimentClassifier(model, tokenizer, labels, config.maxlen, config.name)


def imdb_tokenizer():
    """The tokenizer of the shipped IMDB models, with the ids of keras.datasets.imdb."""
    imdb = registry.find("imdb_bilstm_attention").weights["imdb"]
    return registry.load_tokenizers(imdb)["text"]


def make_tokenizer(vocabulary, vocabulary_size, data):
    """A tokenizer for the texts: the IMDB one, or a vocabulary of their own."""
    if vocabulary is None:
        vocabulary = "imdb" if data.source in (*TFDS, *KERAS) else "own"
    if vocabulary == "imdb":
        return imdb_tokenizer()
    return Tokenizer.train(data.texts, vocabulary_size)


def _tokenizer_and_size(config, data):
    """The tokenizer, and the number of ids that get a word vector."""
    size = config.vocabulary_size or VOCABULARY_SIZE
    tokenizer = make_tokenizer(config.vocabulary, size, data)
    return tokenizer, min(size, tokenizer.vocabulary_size)


def _in_order_of(names, splits):
    """The same classes in the order the start knows, so that its head fits."""
    known = splits.train.label_names
    if set(names) != set(known) or tuple(names) == known:
        return splits
    place = np.array([names.index(name) for name in known])

    def reorder(part):
        return part and dataclasses.replace(
            part, labels=place[part.labels], label_names=tuple(names)
        )

    return datasets.Splits(reorder(splits.train), reorder(splits.test))
