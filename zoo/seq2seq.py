"""Sequence-to-sequence models: factories that return plain functional keras.Models.

Each takes `[source_ids (B, S), target_ids (B, T)]`, 0 on padding, the target begun by
the start id 1, and gives logits (B, T, V) of the token that comes next.
"""

from keras_attention import BahdanauAttention, LocalAttention, LuongAttention
from zoo import registry, seq2seq_graphs
from zoo.seq2seq_sizes import DEFAULTS, checked_sizes
from zoo.trained import check_contradictions, load_trained, weights_path
from zoo.weight_files import load_file


def seq2seq_bahdanau(
    *,
    weights=None,
    source_vocabulary_size=None,
    target_vocabulary_size=None,
    share_embeddings=None,
    embedding_dim=None,
    units=None,
    num_layers=None,
    attention_units=None,
    cell=None,
    dropout=None,
    name="seq2seq_bahdanau",
):
    """A recurrent translator with additive attention: that of Bahdanau et al.

    A bidirectional encoder; a decoder that attends by its state before each step and
    reads what it saw; a readout tanh(W [h; c]). The output layer has the weights of the
    target's embedding.

    Sizes that are left out are those of the trained weights, or without such weights
    those in brackets.

    Args:
        weights: A task it was trained for (see `zoo.list_models()`), None (random), or
            the path of a `.weights.h5` or `.keras` file.
        source_vocabulary_size: Number of ids of the sources [8000].
        target_vocabulary_size: Number of ids of the targets [8000].
        share_embeddings: Whether the two texts have one vocabulary and one embedding
            [False].
        embedding_dim: Width of the embeddings and of the readout [256].
        units: Width of the decoder's state and of each encoder direction [256].
        num_layers: Number of layers of encoder and decoder [1].
        attention_units: Width of the attention's hidden layer [256].
        cell: "gru", as in the paper, or "lstm" ["gru"].
        dropout: Fraction dropped from embeddings, memory and readout [0.2].
        name: Name of the model.

    Returns:
        A `keras.Model` from [source_ids (B, S), target_ids (B, T)] to logits (B, T, V).

    Raises:
        ValueError: for a `weights` that is unknown or contradicts the sizes, or sizes
            that are none.

    Example:

    >>> model = seq2seq_bahdanau(
    ...     source_vocabulary_size=11, target_vocabulary_size=13, units=5
    ... )
    >>> model.predict([np.ones((2, 7)), np.ones((2, 3))], verbose=0).shape
    (2, 3, 13)

    Reference: Bahdanau, Cho & Bengio (2015), "Neural Machine Translation by Jointly
    Learning to Align and Translate", arXiv:1409.0473, section 3 and appendix A.
    """
    arguments = locals()

    def build(architecture, name):
        attention = BahdanauAttention(
            architecture["attention_units"], use_bias=True, name="attention"
        )
        return seq2seq_graphs.recurrent(architecture, attention, "bahdanau", name)

    return _made(build, "seq2seq_bahdanau", arguments)


def seq2seq_luong(
    *,
    weights=None,
    source_vocabulary_size=None,
    target_vocabulary_size=None,
    share_embeddings=None,
    embedding_dim=None,
    units=None,
    num_layers=None,
    score=None,
    local=None,
    window=None,
    input_feeding=None,
    cell=None,
    dropout=None,
    name="seq2seq_luong",
):
    """A recurrent translator with multiplicative attention: that of Luong et al.

    A bidirectional encoder; a decoder that runs its cell and then attends; the
    attentional vector tanh(W [c; h]), which makes the logits and, with input feeding,
    goes into the next step. The output layer has the weights of the target's embedding.

    Sizes that are left out are those of the trained weights, or without such weights
    those in brackets.

    Args:
        weights: As in `seq2seq_bahdanau`.
        source_vocabulary_size: Number of ids of the sources [8000].
        target_vocabulary_size: Number of ids of the targets [8000].
        share_embeddings: Whether the two texts have one vocabulary and one embedding
            [False].
        embedding_dim: Width of the embeddings and the attentional vector [256].
        units: Width of the decoder's state and of each encoder direction [256].
        num_layers: Number of layers of encoder and decoder [1].
        score: A score of `LuongAttention` ["general"]. With "dot" and "scaled_dot",
            which need one width, a direction of the encoder has half of `units`.
        local: "monotonic" or "predictive" for attention to a window: see
            `LocalAttention`. None sees all of the source [None].
        window: With `local`: half the width of the window, D in the paper.
        input_feeding: Whether the attentional vector goes into the next step [True].
        cell: "gru" or "lstm" ["gru"].
        dropout: Fraction dropped from embeddings, memory and output [0.2].
        name: Name of the model.

    Returns:
        A `keras.Model` from [source_ids (B, S), target_ids (B, T)] to logits (B, T, V).

    Raises:
        ValueError: as `seq2seq_bahdanau`.

    Example:

    >>> model = seq2seq_luong(
    ...     source_vocabulary_size=11, target_vocabulary_size=13, local="monotonic",
    ...     window=3,
    ... )
    >>> model.predict([np.ones((2, 7)), np.ones((2, 3))], verbose=0).shape
    (2, 3, 13)

    Reference: Luong, Pham & Manning (2015), "Effective Approaches to Attention-based
    Neural Machine Translation", arXiv:1508.04025.
    """
    arguments = locals()

    def build(architecture, name):
        return seq2seq_graphs.recurrent(
            architecture, _luong_attention(architecture), "luong", name
        )

    return _made(build, "seq2seq_luong", arguments)


def _luong_attention(architecture):
    local, window = architecture["local"], architecture["window"]
    if local is None:
        return LuongAttention(architecture["score"], name="attention")
    return LocalAttention(window, local, score=architecture["score"], name="attention")


def seq2seq_transformer(
    *,
    weights=None,
    source_vocabulary_size=None,
    target_vocabulary_size=None,
    share_embeddings=None,
    embedding_dim=None,
    num_layers=None,
    num_heads=None,
    intermediate_dim=None,
    dropout=None,
    name="seq2seq_transformer",
):
    """A Transformer: encoder and decoder, with layer norms before the sub-layers.

    The output layer has the weights of the target's embedding. Sizes that are left out
    are those of the trained weights, or without such weights those in brackets.

    Args:
        weights: As in `seq2seq_bahdanau`.
        source_vocabulary_size: Number of ids of the sources [8000].
        target_vocabulary_size: Number of ids of the targets [8000].
        share_embeddings: Whether the two texts have one vocabulary and one embedding
            [False].
        embedding_dim: Width D of the tokens [256].
        num_layers: Number of blocks of encoder and decoder [3].
        num_heads: Number of heads, a divisor of `embedding_dim` [4].
        intermediate_dim: Width of the feed-forward networks [1024].
        dropout: Fraction dropped from embeddings, weights and sub-layers [0.1].
        name: Name of the model.

    Returns:
        A `keras.Model` from [source_ids (B, S), target_ids (B, T)] to logits (B, T, V).

    Raises:
        ValueError: as `seq2seq_bahdanau`.

    Example:

    >>> model = seq2seq_transformer(
    ...     source_vocabulary_size=11, target_vocabulary_size=13, embedding_dim=8
    ... )
    >>> model.predict([np.ones((2, 7)), np.ones((2, 3))], verbose=0).shape
    (2, 3, 13)

    Reference: Vaswani et al. (2017), "Attention Is All You Need", arXiv:1706.03762.
    """
    return _made(seq2seq_graphs.transformer, "seq2seq_transformer", locals())


FACTORIES = {
    "seq2seq_bahdanau": seq2seq_bahdanau,
    "seq2seq_luong": seq2seq_luong,
    "seq2seq_transformer": seq2seq_transformer,
}


# ---- weights


def _made(build, factory, arguments):
    """Builds the model and gives it the weights asked for, or says why it cannot.

    Args:
        build: `(architecture, name) -> model`.
        factory: Name of the factory.
        arguments: All that the factory was given; None where one was left out.
    """
    weights, name = arguments.pop("weights"), arguments.pop("name")
    known = registry.trained_by(factory)
    trained = known.get(weights) if isinstance(weights, str) else None
    defaults = DEFAULTS[factory] if trained is None else trained.architecture
    given = {key: value for key, value in arguments.items() if value is not None}
    wanted = {**defaults, **given}
    if trained is not None:
        check_contradictions(weights, trained.architecture, wanted)
    wanted = checked_sizes(wanted)
    if weights is not None and trained is None:
        weights = weights_path(weights, known)
    model = build(wanted, name)
    if trained is not None:
        load_trained(model, trained)
    elif weights is not None:
        load_file(model, weights)
    return model
