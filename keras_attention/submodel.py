"""attention_submodel: the attention of a model that is built, or trained, already."""

import itertools

import keras
from keras import ops

from keras_attention.wrappers import WithScores, Wrapper, has_scores


def attention_submodel(model):
    """A model that shares `model`'s weights and returns its attention as well.

    It works on any functional or Sequential model that holds attention layers or
    Transformer blocks of this package or `keras.layers.MultiHeadAttention`,
    `GroupQueryAttention`, `Attention` or `AdditiveAttention`, in models inside it and
    in `TimeDistributed` too, whether or not the model was built to return the scores,
    before and after a save and load. What is inside a layer of your own is not found,
    as its graph is not known, unless the layer says what it holds: see `wrappers`.

    Args:
        model: A functional or Sequential `keras.Model`, built.

    Returns:
        A `keras.Model` with the inputs of `model` and the outputs
        `[model's output, {layer name: weights}]`. The layers of an inner model are
        named `"inner/layer"`, the attentions of a block `"block/self_attention"` and
        `"block/cross_attention"`; what is called again, `"layer_1"`. It trains and
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
        for name, tensor in _named(layer, maps).items():
            weights.setdefault(name, []).append(tensor)
        asked = kwargs.get("return_attention_scores")
        if has_scores(layer) and _returns_scores(layer, asked):
            return _with_scores(layer, output, maps)
        return output

    copy = keras.models.clone_model(
        graph, clone_function=lambda layer: layer, call_function=call
    )
    return copy.input, copy.output, _numbered(weights)


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
        if has_scores(layer):
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


def _named(layer, maps):
    """{name: map} of a call: the layer's name, or "layer/name" for each of several."""
    if isinstance(maps, dict):
        return {f"{layer.name}/{name}": tensor for name, tensor in maps.items()}
    return {layer.name: maps}


def _numbered(weights):
    """{name: [one map a call]} -> {name: map}, later calls under names still free."""
    named = {name: maps[0] for name, maps in weights.items()}
    for name, maps in weights.items():
        for tensor in maps[1:]:
            numbered = (f"{name}_{i}" for i in itertools.count(1))
            named[next(n for n in numbered if n not in named)] = tensor
    return named


def _with_scores(layer, output, maps):
    """What the layer returned in the model's own graph, its scores included."""
    names = getattr(layer, "attention_names", ())
    if getattr(layer, "lists_weights", False):
        maps = [maps[name] for name in names]
    elif len(names) == 1:
        (maps,) = maps.values()
    if isinstance(output, tuple):
        return output[0], maps, *output[1:]
    return output, maps


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
    return has_scores(layer)


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


@keras.saving.register_keras_serializable(package="keras_attention")
class OverTime(Wrapper):
    """`keras.layers.TimeDistributed` that returns the weights of each step as well.

    Args:
        layer: What the TimeDistributed holds: an attention layer, or a model with some.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        super().__init__(layer, **kwargs)
        if has_scores(layer):
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
        if has_scores(self.layer):
            maps = _named(self.layer, maps)
        output, maps = keras.tree.map_structure(
            lambda x: ops.reshape(x, (shape[0], shape[1], *ops.shape(x)[1:])),
            (output, maps),
        )
        if mask is not None:
            output = self.carry_mask(output, mask=mask)  # as TimeDistributed does
        return output, maps
