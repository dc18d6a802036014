"""cuDNN on a GPU, which recurrent layers do without: padding may stand anywhere."""

import keras


def without_cudnn(bidirectional):
    """The layer, which then takes padding anywhere, and texts of padding alone.

    cuDNN takes it at the end of a text alone, and in a compiled function Keras finds
    other padding out too late to choose its own loop.
    """
    for layer in (bidirectional.forward_layer, bidirectional.backward_layer):
        layer.use_cudnn = False
    return bidirectional


def model_without_cudnn(model):
    """A model from a file, which does not keep it: all its bidirectional layers."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.Bidirectional):
            without_cudnn(layer)
    return model
