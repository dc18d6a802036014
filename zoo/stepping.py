"""Steppers: how a trained model reads a source, and writes one token after another.

A stepper gives a search what it drives: `start(source_ids) -> (memory, state)` and
`next_token(state, token, memory) -> (logits, state, attention)`. The layers are the
model's own, so what is decoded is what was trained.
"""

import keras
from keras import ops

from keras_attention import AttentionDecoder, TransformerDecoderBlock


def stepper_for(model, max_length):
    """The stepper of a model of `zoo.seq2seq`.

    Args:
        model: A `keras.Model` from [source_ids, target_ids] to logits.
        max_length: Number of tokens there is room for.

    Raises:
        ValueError: if the model has no decoder that is known here.
    """
    names = {layer.name for layer in model.layers}
    kinds = {type(layer) for layer in model.layers}
    if any(issubclass(kind, AttentionDecoder) for kind in kinds) and "memory" in names:
        return RecurrentStepper(model)
    blocks = any(issubclass(kind, TransformerDecoderBlock) for kind in kinds)
    if blocks and "encoder_norm" in names:
        return TransformerStepper(model, max_length)
    raise ValueError(
        f"The model '{model.name}' cannot be decoded: it must hold an AttentionDecoder "
        "or TransformerDecoderBlocks, under the names that zoo's factories give. "
        f"Received: layers of the kinds {sorted(kind.__name__ for kind in kinds)}. "
        "Make it by a factory of zoo, or give zoo.decoding a next-token function."
    )


class TransformerStepper:
    """Steps of a `zoo.seq2seq_transformer`, with caches of keys and values.

    Args:
        model: The model.
        max_length: Number of tokens there is room for in the caches.
    """

    def __init__(self, model, max_length):
        self.model, self.max_length = model, max_length
        self.encode = keras.Model(
            model.inputs[0], model.get_layer("encoder_norm").output
        )
        self.blocks = [
            layer
            for layer in model.layers
            if isinstance(layer, TransformerDecoderBlock)
        ]
        self.embed = model.get_layer("target_embedding")
        self.scale = model.get_layer("target_scale")
        self.place = model.get_layer("target_positions")
        self.norm = model.get_layer("decoder_norm")

    def start(self, source_ids):
        """Reads sources (B, S): what all steps share, and the state before the first.

        The source's keys and values are projected here, once, and the caches of the
        target's are empty.
        """
        source = self.encode(source_ids, training=False)
        mask = ops.not_equal(source_ids, 0)
        caches = [
            block.empty_cache(ops.shape(source)[0], self.max_length, source, mask)
            for block in self.blocks
        ]
        state = {
            "self": [cache["self"] for cache in caches],
            "position": ops.convert_to_tensor(0, "int32"),
        }
        return [cache["cross"] for cache in caches], state

    def next_token(self, state, token, memory):
        """The logits after one more token; the attention is the last block's."""
        position = state["position"]
        x = self.place(self.scale(self.embed(token[:, None])), start=position)
        caches, weights = [], None
        for block, own, cross in zip(self.blocks, state["self"], memory, strict=True):
            x, maps, cache = block(
                x,
                cache={"self": own, "cross": cross},
                position=position,
                return_attention_scores=True,
                training=False,
            )
            caches.append(cache["self"])
            weights = maps["cross_attention"]
        logits = self.embed(self.norm(x), reverse=True)[:, 0]  # (R, V)
        attention = ops.mean(weights, axis=1)[:, 0]  # (R, S): the mean over the heads
        return logits, {"self": caches, "position": position + 1}, attention


class RecurrentStepper:
    """Steps of a `zoo.seq2seq_bahdanau` or `zoo.seq2seq_luong`.

    Args:
        model: The model.
    """

    def __init__(self, model):
        self.model = model
        bridges = [x for x in model.layers if x.name.startswith("bridge_")]
        bridges.sort(key=lambda bridge: int(bridge.name.removeprefix("bridge_")))
        outputs = [model.get_layer("memory"), *bridges]
        self.encode = keras.Model(model.inputs[0], [layer.output for layer in outputs])
        self.decoder = model.get_layer("decoder")
        self.embed = model.get_layer("target_embedding")

    def start(self, source_ids):
        """Reads sources (B, S): what all steps share, and the state before the first.

        The memory's keys are projected here, once.
        """
        memory, *states = self.encode(source_ids, training=False)
        prepared = self.decoder.prepare_memory(memory, ops.not_equal(source_ids, 0))
        return prepared, self.decoder.initial_state(prepared, states)

    def next_token(self, state, token, memory):
        """The logits after one more token, and what the decoder looked at."""
        output, weights, state = self.decoder.step(self.embed(token), state, memory)
        return self.embed(output, reverse=True), state, weights
