"""attention_submodel: the attention of a model that is built, or trained, already."""

import itertools

import keras

from keras_attention.base import CarryMask, ScoredAttention

ATTENTION_LAYERS = (
    ScoredAttention,
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
    weights, wrappers = {}, {}

    def call(layer, *args, **kwargs):
        output, found = _call_with_weights(layer, wrappers, *args, **kwargs)
        for name, tensor in found.items():
            weights.setdefault(name, []).append(tensor)
        return output

    copy = keras.models.clone_model(
        graph, clone_function=lambda layer: layer, call_function=call
    )
    return copy.input, copy.output, _named(weights)


def _named(weights):
    """{name: [one map a call]} -> {name: map}, later calls under names still free."""
    named = {name: maps[0] for name, maps in weights.items()}
    for name, maps in weights.items():
        for tensor in maps[1:]:
            numbered = (f"{name}_{i}" for i in itertools.count(1))
            named[next(n for n in numbered if n not in named)] = tensor
    return named


def _call_with_weights(layer, wrappers, *args, **kwargs):
    """Calls one layer of the graph: its output, {name: weights} of what it attends."""
    if isinstance(layer, ATTENTION_LAYERS):
        if _returns_scores(layer, kwargs):
            output = layer(*args, **kwargs)
            return output, {layer.name: output[1]}
        kwargs.pop("return_attention_scores", None)
        wrapper = wrappers.setdefault(layer.name, WithScores(layer))
        output, weights = wrapper(*args, **kwargs)
        return output, {layer.name: weights}
    if isinstance(layer, keras.layers.TimeDistributed):
        return layer(*args, **kwargs), _weights_over_time(layer, *args, **kwargs)
    if isinstance(layer, keras.Model) and _has_graph(layer) and holds_attention(layer):
        output, weights = attention_submodel(layer)(*args, **kwargs)
        return output, {f"{layer.name}/{name}": w for name, w in weights.items()}
    return layer(*args, **kwargs), {}


def _returns_scores(layer, call_kwargs):
    asked = call_kwargs.get("return_attention_scores")
    if asked is None:
        return getattr(layer, "return_attention_scores", False)
    return asked


def _weights_over_time(wrapper, *args, **kwargs):
    """The weights of an attention layer or model inside a TimeDistributed."""
    inner = wrapper.layer
    if isinstance(inner, ATTENTION_LAYERS):
        tensor = args[0] if args else kwargs["inputs"]
        one_step = keras.Input(tensor.shape[2:], dtype=tensor.dtype)
        names = {inner.name: keras.Model(one_step, WithScores(inner)(one_step)[1])}
    elif (
        isinstance(inner, keras.Model) and _has_graph(inner) and holds_attention(inner)
    ):
        both = attention_submodel(inner)
        names = {name: keras.Model(both.input, w) for name, w in both.output[1].items()}
    else:
        return {}
    return {
        f"{wrapper.name}/{name}": keras.layers.TimeDistributed(model)(*args, **kwargs)
        for name, model in names.items()
    }


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
        return holds_attention(layer)
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


@keras.saving.register_keras_serializable(package="keras_attention")
class WithScores(keras.layers.Layer):
    """Calls an attention layer that it shares and returns `(output, weights)`.

    Keras counts a layer's outputs by its first call, so a layer that was called
    without its scores cannot be called again for them in the same kind of graph. This
    one makes the second call inside its own.

    Args:
        layer: An attention layer of this package or of `keras.layers`.
        **kwargs: `name` of `keras.layers.Layer`.
    """

    def __init__(self, layer, **kwargs):
        kwargs.setdefault("name", f"{layer.name}_with_scores")
        kwargs["dtype"] = layer.dtype_policy
        super().__init__(**kwargs)
        self.layer = layer
        self.carry_mask = CarryMask(dtype=layer.dtype_policy)
        self.supports_masking = True
        self.built = True

    def call(
        self,
        query,
        value=None,
        key=None,
        *,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
        **kwargs,
    ):
        tensors = {"query": query, "value": value, "key": key}
        masks = {"query": query_mask, "value": value_mask, "key": key_mask}
        if value is None:  # the states to pool, or the list of keras.layers.Attention
            masks["query"] = query_mask if mask is None else mask

        def ask(**more):
            # Some layers of Keras take the mask off their inputs when called.
            inputs = [
                self._masked(tensor, masks[name])
                for name, tensor in tensors.items()
                if tensor is not None
            ]
            return self.layer(*inputs, **kwargs, **more)

        output, weights = ask(return_attention_scores=True)
        if not isinstance(self.layer, ScoredAttention):
            # Layers of Keras may give other numbers when asked for their scores (at
            # padded queries, for one), and the model's output must stay the model's.
            output = ask()
        return output, weights

    def _masked(self, tensor, mask):
        if isinstance(tensor, list | tuple):
            masks = mask or [None] * len(tensor)
            return [self._masked(*pair) for pair in zip(tensor, masks, strict=True)]
        return tensor if mask is None else self.carry_mask(tensor, mask=mask)

    def compute_mask(self, inputs, previous_mask=None):
        return None  # the inner layer has set its own

    def get_config(self):
        config = super().get_config()
        config.pop("dtype")
        return {**config, "layer": keras.saving.serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config):
        config["layer"] = keras.saving.deserialize_keras_object(config["layer"])
        return cls(**config)
