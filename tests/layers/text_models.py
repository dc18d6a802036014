"""Small models over ids round each layer, which the tests of faults share."""

import keras
import numpy as np

import keras_attention
from keras_attention import TransformerDecoderBlock, TransformerEncoderBlock
from tests.layers.contract import DQ, DV, to_numpy
from tests.layers.test_laws_keras import attend_to_itself

IDS = np.array([[5, 7, 9, 0, 0], [3, 0, 0, 0, 0]])
HEADS = 2
POSITIONS = {
    "none": list,
    "sinusoidal": lambda: [keras_attention.SinusoidalPositionEncoding()],
    "learned": lambda: [keras_attention.LearnedPositionEmbedding(max_length=11)],
}
BEFORE = {
    **POSITIONS,
    "encoder": lambda: [encoder()],
    "rotary encoders": lambda: [
        encoder(rotary_embedding=keras_attention.RotaryEmbedding()),
        encoder(normalization="post"),
    ],
    "learned, encoder": lambda: [*POSITIONS["learned"](), encoder()],
}


def encoder(**options):
    return TransformerEncoderBlock(HEADS, 17, key_dim=4, **options)


def decoder(**options):
    return TransformerDecoderBlock(HEADS, 17, key_dim=4, **options)


def alone(case):
    """The form of a call in which a layer attends to one tensor."""
    return next(form for form in ("pooling", "self", "full") if form in case.forms)


def text_parts(case, before=(), **options):
    """Ids, and the context and the weights of a layer over their embeddings."""
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(31, DV, mask_zero=True)(ids)
    for layer in before:
        states = layer(states)
    return ids, *attend_to_itself(case, case.make(**options), states)


def text_model(case, before=(), **options):
    ids, context, weights = text_parts(case, before, **options)
    return keras.Model(ids, [context, weights])


def predict(case, model, *arrays):
    """Context, and weights with the keys on the last axis."""
    context, weights = model.predict_on_batch(*arrays)
    return context, case.by_key(weights, alone(case))


def translator(number=2):
    """A Transformer of some blocks over ids; its target's states and cross weights."""
    target, source = (keras.Input((None,), dtype="int32") for _ in range(2))
    embed = keras.layers.Embedding(31, DQ + 1, mask_zero=True)
    place = keras_attention.SinusoidalPositionEncoding()
    x, memory, maps = place(embed(target)), place(embed(source)), []
    for _ in range(number):
        memory = encoder()(memory)
    for _ in range(number):
        x, both = decoder()(x, memory, return_attention_scores=True)
        maps.append(both["cross_attention"])
    return embed, keras.Model([target, source], [x, *maps])


def assert_equal(got, want, atol=0.0):
    pairs = zip(keras.tree.flatten(got), keras.tree.flatten(want), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(
            to_numpy(one), to_numpy(other), rtol=10 * atol, atol=atol
        )
