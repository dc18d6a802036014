"""The arguments of the factory that made a model of two texts, read off its layers."""

import re

import keras

from keras_attention import LocalAttention


def architecture_of(model):
    """The arguments that make a model of the same sizes again.

    Args:
        model: What `zoo.seq2seq_bahdanau`, `zoo.seq2seq_luong` or
            `zoo.seq2seq_transformer` made, or a copy of it.

    Returns:
        A dictionary with all of the factory's arguments that decide a model.

    Raises:
        ValueError: if it lacks the layers that the factories make.

    Example:

    >>> from zoo.seq2seq import seq2seq_transformer
    >>> architecture_of(seq2seq_transformer(num_layers=2))["num_layers"]
    2
    """
    layers = {layer.name: layer for layer in model.layers}
    try:
        target = layers["target_embedding"]
        source = layers.get("source_embedding", target)
        numbered = [name for name in layers if re.fullmatch(r"encoder_\d+", name)]
        of_kind = _transformer if "decoder_1" in layers else _recurrent
        return {
            "source_vocabulary_size": source.input_dim,
            "target_vocabulary_size": target.input_dim,
            "share_embeddings": source is target,
            "embedding_dim": target.output_dim,
            "num_layers": len(numbered),
            "dropout": layers["target_dropout"].rate,
            **of_kind(layers),
        }
    except (KeyError, AttributeError) as error:
        raise ValueError(
            f"The model '{model.name}' must be of zoo.seq2seq_bahdanau, "
            "zoo.seq2seq_luong or zoo.seq2seq_transformer. Received: layers "
            f"{', '.join(sorted(layers))}; missing: {error}."
        ) from None


def _transformer(layers):
    block = layers["decoder_1"]
    return {"num_heads": block.num_heads, "intermediate_dim": block.intermediate_dim}


def _recurrent(layers):
    decoder = layers["decoder"]
    cell = getattr(decoder.cell, "cells", [decoder.cell])[0]
    recurrent = {
        "units": cell.units,
        "cell": "lstm" if isinstance(cell, keras.layers.LSTMCell) else "gru",
    }
    attention = decoder.attention
    if decoder.order == "bahdanau":
        return {**recurrent, "attention_units": attention.units}
    local = isinstance(attention, LocalAttention)
    return {
        **recurrent,
        "score": (attention.scorer if local else attention).score_name,
        "local": attention.mode if local else None,
        "window": attention.window if local else None,
        "input_feeding": decoder.input_feeding,
    }
