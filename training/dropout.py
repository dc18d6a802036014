"""Another rate of dropout for a model that is trained already."""

import keras

from keras_attention import TransformerDecoderBlock, TransformerEncoderBlock


def with_dropout(model, rate):
    """The same model with another dropout where the zoo's factories put theirs.

    That is in its `Dropout` layers and in the blocks of a Transformer.

    Args:
        model: A functional `keras.Model`.
        rate: Fraction dropped, from 0 to 1.

    Returns:
        A model of the same name with a copy of the weights.
    """

    def layer_for(layer):
        settings = layer.get_config()
        if isinstance(layer, keras.layers.Dropout):
            settings["rate"] = rate
        elif isinstance(layer, TransformerEncoderBlock | TransformerDecoderBlock):
            settings["dropout"] = rate
        return type(layer).from_config(settings)

    changed = keras.models.clone_model(model, clone_function=layer_for)
    changed.set_weights(model.get_weights())
    return changed
