"""Sentiment models: factories that return plain functional keras.Models."""

import warnings

import keras
from keras import ops

from keras_attention import BahdanauAttention
from zoo import registry
from zoo.checks import check_fraction, check_integer
from zoo.cudnn import without_cudnn
from zoo.text import START_ID, UNKNOWN_ID
from zoo.trained import check_contradictions, load_trained, weights_path
from zoo.weight_files import load_file

HEAD = "classifier"


def imdb_bilstm_attention(
    *,
    weights="imdb",
    vocabulary_size=30_000,
    embedding_dim=128,
    lstm_units=64,
    attention_units=64,
    dropout=0.3,
    num_classes=2,
    classifier_activation="auto",
    name="imdb_bilstm_attention",
):
    """A bidirectional LSTM over the words, pooled by additive attention.

    Embedding -> BiLSTM -> BahdanauAttention -> Dense. The attention looks at words
    alone, not at the start marker, so the weights of a text's words sum to 1.

    Args:
        weights: "imdb" (trained, the default), None (random), or the path of a
            `.weights.h5` or `.keras` file.
        vocabulary_size: Number of ids with an embedding. Greater ids are read as
            unknown (2), so that arrays of `keras.datasets.imdb` fit as they come.
        embedding_dim: Width of the word vectors.
        lstm_units: Width of each of the two LSTM directions.
        attention_units: Width of the attention's hidden layer.
        dropout: Fraction dropped from the word vectors and before the head, in
            training.
        num_classes: 2 gives one output, the probability of the class 1; more give one
            output each. With trained weights and another number than theirs, the body
            is kept and the head is new; a warning says so.
        classifier_activation: "auto" gives probabilities; None gives logits.
        name: Name of the model.

    Returns:
        A `keras.Model` from token ids (B, S), 0 on padding at either side, to
        probabilities (B, 1), or (B, num_classes) for more than two classes.

    Raises:
        ValueError: for a `weights` that is unknown or contradicts the architecture.

    Example:

    >>> model = imdb_bilstm_attention(weights=None, vocabulary_size=50)
    >>> model.predict(np.array([[1, 14, 22]]), verbose=0).shape
    (1, 1)

    Reference:
        Bahdanau, Cho & Bengio (2015) for the scores; Raffel & Ellis (2016) for
        pooling by attention. Card: zoo/cards/imdb_bilstm_attention.md.
    """
    architecture = _arguments(locals())

    def build(architecture, activation, name):
        ids, states = _bilstm_states(architecture, return_sequences=True)
        pool = BahdanauAttention(
            architecture["attention_units"], use_bias=True, name="attention"
        )
        context, _ = pool(states, mask=ids > START_ID)
        return _classifier(ids, context, architecture, activation, name)

    return _with_weights(
        build,
        "imdb_bilstm_attention",
        weights,
        architecture,
        classifier_activation,
        name,
    )


def imdb_bilstm(
    *,
    weights="imdb",
    vocabulary_size=30_000,
    embedding_dim=128,
    lstm_units=64,
    dropout=0.3,
    num_classes=2,
    classifier_activation="auto",
    name="imdb_bilstm",
):
    """The same model without attention: the last state of each LSTM direction.

    What attention is worth is the difference to `imdb_bilstm_attention`.

    Args:
        weights: "imdb" (trained, the default), None (random), or a file's path.
        vocabulary_size: Number of ids with an embedding; greater ids are unknown.
        embedding_dim: Width of the word vectors.
        lstm_units: Width of each of the two LSTM directions.
        dropout: Fraction dropped from the word vectors and before the head.
        num_classes: 2 gives one output; more give one each.
        classifier_activation: "auto" gives probabilities; None gives logits.
        name: Name of the model.

    Returns:
        A `keras.Model` from token ids (B, S) to probabilities (B, 1), or
        (B, num_classes) for more than two classes.

    Raises:
        ValueError: for a `weights` that is unknown or contradicts the architecture.

    Example:

    >>> model = imdb_bilstm(weights=None, vocabulary_size=50, num_classes=3)
    >>> model.predict(np.array([[1, 14, 22]]), verbose=0).shape
    (1, 3)
    """
    architecture = _arguments(locals())

    def build(architecture, activation, name):
        ids, states = _bilstm_states(architecture, return_sequences=False)
        return _classifier(ids, states, architecture, activation, name)

    return _with_weights(
        build, "imdb_bilstm", weights, architecture, classifier_activation, name
    )


FACTORIES = {
    "imdb_bilstm_attention": imdb_bilstm_attention,
    "imdb_bilstm": imdb_bilstm,
}


# ---- the graph


def _bilstm_states(architecture, return_sequences):
    """Ids (B, S) -> states (B, S, 2 x units), or the last ones (B, 2 x units)."""
    ids = keras.Input((None,), dtype="int32", name="ids")
    known = ops.where(ids < architecture["vocabulary_size"], ids, UNKNOWN_ID)
    vectors = keras.layers.Embedding(
        architecture["vocabulary_size"],
        architecture["embedding_dim"],
        mask_zero=True,
        name="embedding",
    )(known)
    vectors = keras.layers.SpatialDropout1D(architecture["dropout"])(vectors)
    lstm = keras.layers.LSTM(
        architecture["lstm_units"], return_sequences=return_sequences, name="lstm"
    )
    both = keras.layers.Bidirectional(lstm, name="bilstm")
    return ids, without_cudnn(both)(vectors)


def _classifier(ids, context, architecture, activation, name):
    """A context (B, F) -> the model from ids to probabilities or logits."""
    context = keras.layers.Dropout(architecture["dropout"])(context)
    return _head(ids, context, architecture["num_classes"], activation, name)


def _head(ids, context, classes, activation, name):
    if activation == "auto":
        activation = "sigmoid" if classes == 2 else "softmax"
    head = keras.layers.Dense(
        1 if classes == 2 else classes, activation=activation, name=HEAD
    )
    return keras.Model(ids, head(context), name=name)


# ---- trained weights


def _arguments(given):
    """The architecture among a factory's arguments."""
    others = ("weights", "classifier_activation", "name")
    return {key: value for key, value in given.items() if key not in others}


def _with_weights(build, entry_name, weights, architecture, activation, name):
    """Builds the model and gives it the weights asked for, or says why it cannot."""
    _check_arguments(architecture, activation)
    trained = registry.find(entry_name).weights
    if weights is None or weights not in trained:
        model = build(architecture, activation, name)
        if weights is not None:
            load_file(model, weights_path(weights, trained))
        return model
    known = trained[weights]
    classes = known.architecture["num_classes"]
    body = {**architecture, "num_classes": classes}
    check_contradictions(weights, known.architecture, body)
    model = build(body, activation, name)
    load_trained(model, known)
    if architecture["num_classes"] == classes:
        return model
    warnings.warn(
        f"The head of '{name}' for {architecture['num_classes']} classes is new and "
        f"untrained; the body has the weights '{weights}', trained for {classes} "
        "classes.",
        stacklevel=3,
    )
    return with_new_head(model, architecture["num_classes"], activation)


def with_new_head(model, num_classes, classifier_activation="auto"):
    """The model with a new, untrained head; the body's weights are shared, not copied.

    Args:
        model: A model of this module, or one whose last layer is named "classifier".
        num_classes: Of the new head.
        classifier_activation: "auto" or None, as in the factories.

    Returns:
        A `keras.Model` of the same name.
    """
    context = model.get_layer(HEAD).input
    return _head(
        model.inputs[0], context, num_classes, classifier_activation, model.name
    )


def _check_arguments(architecture, activation):
    for key, value in architecture.items():
        if key == "dropout":
            check_fraction(key, value)
        else:
            least = {"num_classes": 2, "vocabulary_size": 3}.get(key, 1)
            check_integer(key, value, least)
    if activation not in ("auto", None):
        raise ValueError(
            "`classifier_activation` must be 'auto' (probabilities) or None (logits). "
            f"Received: {activation!r}."
        )
