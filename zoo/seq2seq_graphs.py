"""The graphs of the sequence-to-sequence models: ids of two texts in, logits out.

Each is a functional `keras.Model` of named layers, so that `zoo.stepping` finds the
layers that decode.
"""

import keras

from keras_attention import (
    AttentionDecoder,
    SinusoidalPositionEncoding,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)
from zoo.cudnn import without_cudnn


def embeddings(architecture):
    """The embedding of the sources and that of the targets, which also makes logits.

    They are one where the vocabularies are (`share_embeddings`). The output layer has
    the weights of the target's embedding: Press & Wolf (2017), "Using the Output
    Embedding to Improve Language Models".
    """
    width = architecture["embedding_dim"]
    options = {
        "output_dim": width,
        "mask_zero": True,
        "embeddings_initializer": keras.initializers.RandomNormal(stddev=width**-0.5),
    }
    target = keras.layers.ReversibleEmbedding(
        architecture["target_vocabulary_size"], name="target_embedding", **options
    )
    if architecture["share_embeddings"]:
        return target, target
    source = keras.layers.Embedding(
        architecture["source_vocabulary_size"], name="source_embedding", **options
    )
    return source, target


def ids_inputs():
    """The two inputs of every model: source ids (B, S) and target ids (B, T)."""
    return [
        keras.Input((None,), dtype="int32", name=name)
        for name in ("source_ids", "target_ids")
    ]


# ---- Transformer


def transformer(architecture, name):
    """Vaswani et al. (2017), with layer norms before the sub-layers.

    Args:
        architecture: The arguments of `zoo.seq2seq_transformer`, by name.
        name: Of the model.

    Returns:
        A `keras.Model` from [source_ids, target_ids] to logits (B, T, V).
    """
    source_ids, target_ids = ids_inputs()
    source_embedding, target_embedding = embeddings(architecture)
    memory = _placed(source_embedding(source_ids), architecture, "source")
    for number in range(1, architecture["num_layers"] + 1):
        block = TransformerEncoderBlock(**_block(architecture, f"encoder_{number}"))
        memory = block(memory)
    memory = keras.layers.LayerNormalization(name="encoder_norm")(memory)
    tokens = _placed(target_embedding(target_ids), architecture, "target")
    for number in range(1, architecture["num_layers"] + 1):
        block = TransformerDecoderBlock(**_block(architecture, f"decoder_{number}"))
        tokens = block(tokens, memory)
    tokens = keras.layers.LayerNormalization(name="decoder_norm")(tokens)
    logits = target_embedding(tokens, reverse=True)
    return keras.Model([source_ids, target_ids], logits, name=name)


def _placed(vectors, architecture, side):
    """Embeddings (B, L, D) times sqrt(D), plus their positions, with dropout."""
    scale = keras.layers.Rescaling(
        architecture["embedding_dim"] ** 0.5, name=f"{side}_scale"
    )
    positions = SinusoidalPositionEncoding(name=f"{side}_positions")
    dropout = keras.layers.Dropout(architecture["dropout"], name=f"{side}_dropout")
    return dropout(positions(scale(vectors)))


def _block(architecture, name):
    return {
        "num_heads": architecture["num_heads"],
        "intermediate_dim": architecture["intermediate_dim"],
        "dropout": architecture["dropout"],
        "name": name,
    }


# ---- recurrent


def recurrent(architecture, attention, order, name):
    """A bidirectional encoder, a learned bridge, and a decoder that attends.

    The bridge makes the decoder's first states of the last states of both directions:
    Bahdanau et al. (2015), section A.2.2, which takes the backward one alone.

    Args:
        architecture: The arguments of `zoo.seq2seq_bahdanau` or `zoo.seq2seq_luong`, by
            name.
        attention: The attention layer.
        order: "bahdanau" or "luong": see `AttentionDecoder`.
        name: Of the model.

    Returns:
        A `keras.Model` from [source_ids, target_ids] to logits (B, T, V).
    """
    source_ids, target_ids = ids_inputs()
    source_embedding, target_embedding = embeddings(architecture)
    memory, states = _encoded(source_embedding(source_ids), architecture)
    tokens = target_embedding(target_ids)
    tokens = _dropout(architecture, "target_dropout")(tokens)
    outputs, _ = _decoder(architecture, attention, order)(
        tokens, memory, initial_state=states
    )
    outputs = _dropout(architecture, "output_dropout")(outputs)
    logits = target_embedding(outputs, reverse=True)
    return keras.Model([source_ids, target_ids], logits, name=name)


def _encoded(vectors, architecture):
    """Embeddings (B, S, D) -> memory (B, S, F) and the decoder's states.

    F is 2 x units; where a bare product compares it with the decoder's state, units.
    """
    units, rnn = architecture["units"], _rnn(architecture)
    bare = architecture.get("score") in ("dot", "scaled_dot")
    direction = units // 2 if bare else units
    memory = _dropout(architecture, "source_dropout")(vectors)
    states = []
    for number in range(1, architecture["num_layers"] + 1):
        layer = rnn(direction, return_sequences=True, return_state=True)
        encoder = keras.layers.Bidirectional(layer, name=f"encoder_{number}")
        memory, *last = without_cudnn(encoder)(memory)
        half = len(last) // 2  # the forward direction's, then the backward one's
        for state in zip(last[:half], last[half:], strict=True):
            both = keras.layers.Concatenate()(state)
            bridge = keras.layers.Dense(
                units, activation="tanh", name=f"bridge_{len(states) + 1}"
            )
            states.append(bridge(both))
        rate = architecture["dropout"]
        last_one = number == architecture["num_layers"]
        name = "memory" if last_one else f"encoder_{number}_dropout"
        memory = keras.layers.Dropout(rate, name=name)(memory)
    return memory, states


def _decoder(architecture, attention, order):
    cells = {"lstm": keras.layers.LSTMCell, "gru": keras.layers.GRUCell}
    cell = cells[architecture["cell"]]
    layers = [cell(architecture["units"]) for _ in range(architecture["num_layers"])]
    options = {}
    if order == "luong":
        options["input_feeding"] = architecture["input_feeding"]
    return AttentionDecoder(
        layers if len(layers) > 1 else layers[0],
        attention,
        order=order,
        attention_units=architecture["embedding_dim"],
        name="decoder",
        **options,
    )


def _rnn(architecture):
    return {"lstm": keras.layers.LSTM, "gru": keras.layers.GRU}[architecture["cell"]]


def _dropout(architecture, name):
    return keras.layers.Dropout(architecture["dropout"], name=name)
