"""attention_submodel: the attention of a model that is built, or trained, already."""

import itertools

import keras
from keras import ops

from keras_attention.base import AttentionLayer, CarryMask

ATTENTION_LAYERS = (
    AttentionLayer,
    keras.layers.MultiHeadAttention,
    keras.layers.GroupQueryAttention,
    keras.layers.Attention,
    keras.layers.AdditiveAttention,
)


def attention_submodel(model):
    """A model that shares `model`'s weights and returns its attention as well.

    It works on any functional or Sequential model that holds attention layers of this
    package or `keras.layers.MultiHeadAttention`, `GroupQueryAttention`, `Attention` or
    `AdditiveAttention`, in models inside it and in `TimeDistributed` too, whether or
    not the model was built to return the scores, before and after a save and load.
    What is inside a layer of your own is not found: its graph is not known.

    Args:
        model: A functional or Sequential `keras.Model`, built.

    Returns:
        A `keras.Model` with the inputs of `model` and the outputs
        `[model's output, {layer name: weights}]`. The layers of an inner model are
        named `"inner/layer"`; a layer that is called again, `"layer_1"`. It trains and
        saves like any model.

    Raises:
        TypeError: if `model` is not a Keras model, or one whose graph Keras does not
            know (a subclassed model).
        ValueError: if the model is not built, or holds no attention layer.

    Example:

    >>> inputs = keras.Input((None, 8))
    >>> context = BahdanauAttention(4, return_attention_scores=False, name="look")(
    ...     inputs
    ... )
    >>> both = attention_submodel(keras.Model(inputs, context))
    >>> output, weights = both(np.ones((2, 5, 8)))
    >>> tuple(weights["look"].shape)
    (2, 5, 1)
    """
    inputs, output, weights = _traced(model)
    if not weights:
        raise ValueError(
            f"The model '{model.name}' holds no attention layer. Looked for: the "
            "layers of keras_attention, and MultiHeadAttention, GroupQueryAttention, "
            "Attention and AdditiveAttention of keras.layers."
        )
    return keras.Model(inputs, [output, weights], name=f"{model.name}_attention")


def _traced(model):
    """Runs the model's graph again on new inputs: inputs, output, {name: weights}."""
    _check_graph(model)
    if isinstance(model, keras.Sequential):
        graph = keras.Model(model.inputs[0], model.outputs[0])
    else:
        graph = keras.Model(model.input, model.output)
    weights, wrap = {}, _Wrappers(graph)

    def call(layer, *args, **kwargs):
        wrapper = wrap(layer)
        if wrapper is None:
            return layer(*args, **kwargs)
        output, maps = wrapper(*args, **kwargs)
        if isinstance(layer, ATTENTION_LAYERS):
            weights.setdefault(layer.name, []).append(maps)
            asked = kwargs.get("return_attention_scores")
            return (output, maps) if _returns_scores(layer, asked) else output
        for name, tensor in maps.items():
            weights.setdefault(f"{layer.name}/{name}", []).append(tensor)
        return output

    copy = keras.models.clone_model(
        graph, clone_function=lambda layer: layer, call_function=call
    )
    return copy.input, copy.output, _named(weights)


class _Wrappers:
    """What is called in the place of a layer, to get its weights as well; one a layer.

    Args:
        graph: The functional model, whose names must not be taken again.
    """

    def __init__(self, graph):
        self.names = {operation.name for operation in graph.operations}
        self.made = {}

    def __call__(self, layer):
        """A layer that returns (output, weights or {name: weights}), or None."""
        if not _is_or_holds_attention(layer):
            return None
        if id(layer) not in self.made:
            self.made[id(layer)] = self._make(layer)
        return self.made[id(layer)]

    def _make(self, layer):
        if isinstance(layer, ATTENTION_LAYERS):
            return WithScores(layer, name=self._free(f"{layer.name}_with_scores"))
        name = self._free(f"{layer.name}_attention")
        if isinstance(layer, keras.layers.TimeDistributed):
            return OverTime(layer.layer, name=name)
        inputs, output, weights = _traced(layer)
        return keras.Model(inputs, [output, weights], name=name)

    def _free(self, base):
        numbered = itertools.chain([base], (f"{base}_{i}" for i in itertools.count(1)))
        name = next(name for name in numbered if name not in self.names)
        self.names.add(name)
        return name


def _named(weights):
    """{name: [one map a call]} -> {name: map}, later calls under names still free."""
    named = {name: maps[0] for name, maps in weights.items()}
    for name, maps in weights.items():
        for tensor in maps[1:]:
            numbered = (f"{name}_{i}" for i in itertools.count(1))
            named[next(n for n in numbered if n not in named)] = tensor
    return named


def _returns_scores(layer, asked):
    return getattr(layer, "return_attention_scores", False) if asked is None else asked


def holds_attention(model):
    """Whether a layer of the model, at any depth, is one `attention_submodel` reads.

    Args:
        model: A `keras.Model`.

    Example:

    >>> inputs = keras.Input((3,))
    >>> holds_attention(keras.Model(inputs, keras.layers.Dense(1)(inputs)))
    False
    """
    return any(_is_or_holds_attention(layer) for layer in model.layers)


def _is_or_holds_attention(layer):
    if isinstance(layer, keras.layers.TimeDistributed):
        layer = layer.layer
    if isinstance(layer, keras.Model):
        return _has_graph(layer) and holds_attention(layer)
    return isinstance(layer, ATTENTION_LAYERS)


def _has_graph(model):
    return isinstance(model, keras.Sequential) or hasattr(model, "operations")


def _check_graph(model):
    if not isinstance(model, keras.Model):
        raise TypeError(
            f"`model` must be a keras.Model. Received: {type(model).__name__}. Put a "
            "layer into one: keras.Model(inputs, layer(inputs))."
        )
    if not _has_graph(model):
        raise TypeError(
            f"`model` must be a functional or Sequential model. Received: "
            f"'{model.name}' of the class {type(model).__name__}, whose graph Keras "
            "does not know. Return the weights from its `call`, or rebuild it with "
            "keras.Model(inputs, outputs)."
        )
    if not model.built or not getattr(model, "inputs", None):
        raise ValueError(
            f"The model '{model.name}' is not built, so its graph is unknown. Give it "
            "a keras.Input first, or call it on a batch."
        )


class _Wrapper(keras.layers.Layer):
    """A layer around a layer that it shares, in files too.

    Args:
        layer: The layer.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        kwargs["dtype"] = layer.dtype_policy
        super().__init__(**kwargs)
        self.layer = layer
        self.supports_masking = True
        self.built = True

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the inner layer has set its own

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
class WithScores(_Wrapper):
    """Calls an attention layer and returns `(output, weights)`.

    Keras counts a layer's outputs by its first call, so a layer that was called
    without its scores cannot be called again for them in the same kind of graph. This
    one makes the second call inside its own.

    Args:
        layer: An attention layer of this package or of `keras.layers`.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(layer, **kwargs)
        self.carry_mask = CarryMask(dtype=layer.dtype_policy)

    def call(self, *args, return_attention_scores=None, **kwargs):
        if isinstance(self.layer, AttentionLayer) or return_attention_scores:
            return self.layer(*args, return_attention_scores=True, **kwargs)
        # Layers of Keras may give other numbers when asked for their scores (at padded
        # queries, for one), and the model's output must stay the model's: so they are
        # called twice. Some take the mask off their inputs: so the first call gets
        # copies, which carry the mask too.
        _, weights = self.layer(
            *self._copies(args), return_attention_scores=True, **self._copies(kwargs)
        )
        return self.layer(*args, **kwargs), weights

    def _copies(self, arguments):
        return keras.tree.map_structure(
            lambda x: self.carry_mask(x) if ops.is_tensor(x) else x, arguments
        )


@keras.saving.register_keras_serializable(package="keras_attention")
class OverTime(_Wrapper):
    """`keras.layers.TimeDistributed` that returns the weights of each step as well.

    Args:
        layer: What the TimeDistributed holds: an attention layer, or a model with some.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(layer, **kwargs)
        if isinstance(layer, ATTENTION_LAYERS):
            self.inner = WithScores(layer)
        else:
            self.inner = attention_submodel(layer)

    def call(self, inputs, mask=None):
        shape = ops.shape(inputs)
        flat = ops.reshape(inputs, (-1, *shape[2:]))  # steps beside rows
        masks = {}
        if mask is not None and len(mask.shape) > 2:
            masks["mask"] = ops.reshape(mask, (-1, *ops.shape(mask)[2:]))
        output, maps = self.inner(flat, **masks)
        if not isinstance(maps, dict):
            maps = {self.layer.name: maps}
        return keras.tree.map_structure(
            lambda x: ops.reshape(x, (shape[0], shape[1], *ops.shape(x)[1:])),
            (output, maps),
        )
