"""The layers that stand around others in an attention sub-model, to get their weights.

A layer of your own is read like those of this package if it has `attention_names`, a
tuple of names, and its call takes `return_attention_scores`: with True it returns
`(output, weights)` for one name, `(output, {name: weights})` for several, or a list of
weights where it has `lists_weights`.
"""

import keras
from keras import ops

from keras_attention.base import AttentionLayer
from keras_attention.precise import CarryMask

LAYERS_OF_KERAS = (
    keras.layers.MultiHeadAttention,
    keras.layers.GroupQueryAttention,
    keras.layers.Attention,
    keras.layers.AdditiveAttention,
)


def is_kerass(layer):
    """Whether the layer is an attention layer of Keras itself."""
    return isinstance(layer, LAYERS_OF_KERAS)


def has_scores(layer):
    """Whether the layer returns attention weights when it is asked to.

    Example:

    >>> has_scores(BahdanauAttention(4)), has_scores(keras.layers.Dense(4))
    (True, False)
    """
    ours = isinstance(layer, AttentionLayer) or hasattr(layer, "attention_names")
    return ours or is_kerass(layer)


class Wrapper(keras.layers.Layer):
    """A layer around a layer that it shares, in files too.

    Args:
        layer: The layer.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        kwargs["dtype"] = layer.dtype_policy
        super().__init__(**kwargs)
        self.layer = layer
        self.carry_mask = CarryMask(dtype=layer.dtype_policy)
        self.supports_masking = True
        self.built = True

    def compute_mask(self, inputs, previous_mask=None):
        return None  # `call` sets it

    def compute_output_spec(self, *args, **kwargs):
        # Keras marks some products as sparse, which they are not when they are run.
        def dense(x):
            symbolic = isinstance(x, keras.KerasTensor)
            return keras.KerasTensor(x.shape, dtype=x.dtype) if symbolic else x

        args, kwargs = keras.tree.map_structure(dense, (args, kwargs))
        return super().compute_output_spec(*args, **kwargs)

    def get_config(self):
        config = super().get_config()
        config.pop("dtype")
        return {**config, "layer": keras.saving.serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config):
        config["layer"] = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**config)


@keras.saving.register_keras_serializable(package="keras_attention")
class WithScores(Wrapper):
    """Calls an attention layer and returns `(output, weights)`, or a dict of weights.

    `output` is what the layer returns without its scores: `(output, cache)` for a step
    with a cache. For a layer with several attentions the weights are `{name: weights}`.

    Keras counts a layer's outputs by its first call, so a layer that was called
    without its scores cannot be called again for them in the same kind of graph. This
    one makes the second call inside its own.

    Args:
        layer: An attention layer of this package or of `keras.layers`.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def call(
        self,
        *args,
        return_attention_scores=None,
        use_causal_mask=None,
        position=None,
        **kwargs,
    ):
        # What need not be a tensor has a name: Keras refuses it among other `kwargs`.
        named = {"use_causal_mask": use_causal_mask, "position": position}
        kwargs.update({k: v for k, v in named.items() if v is not None})
        if not is_kerass(self.layer) or return_attention_scores:
            results = self.layer(*args, return_attention_scores=True, **kwargs)
            output, weights, *cache = results
            output = (output, *cache) if cache else output
            return output, self._by_name(weights)
        # Layers of Keras may give other numbers when asked for their scores (at padded
        # queries, for one), and the model's output must stay the model's: so they are
        # called twice. Some take the mask off their inputs: so the first call gets
        # copies, which carry the mask too.
        _, weights = self.layer(
            *self._copies(args), return_attention_scores=True, **self._copies(kwargs)
        )
        return self.layer(*args, **kwargs), weights

    def _by_name(self, weights):
        names = getattr(self.layer, "attention_names", None)
        if names is None or isinstance(weights, dict):
            return weights
        weights = weights if isinstance(weights, list) else [weights]
        return dict(zip(names, weights, strict=True))

    def _copies(self, arguments):
        return keras.tree.map_structure(
            lambda x: self.carry_mask(x) if ops.is_tensor(x) else x, arguments
        )
