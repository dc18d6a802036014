"""RecurrentBase: what an attention decoder is made of, its weights and its shapes."""

import keras

from keras_attention import mechanisms
from keras_attention.cells import as_cell, output_size, state_sizes, top_index
from keras_attention.kernels import Kernels, check_whole
from keras_attention.precise import PreciseLayer

ORDERS = ("luong", "bahdanau")


class RecurrentBase(Kernels, PreciseLayer):
    """Base of `AttentionDecoder` (abstract): the parts, not what they do.

    Args:
        cell: An RNN cell of Keras, or a list of them, one on the other.
        attention: A layer that attends to a memory, or a list of them.
        order: "luong" or "bahdanau".
        input_feeding: Whether the attentional vector goes into the next step.
        attention_units: Width of the attentional vector, or None.
        activation: Activation of the attentional vector.
        use_bias: Whether W_c has a bias.
        **kwargs: Those of `Kernels` and `PreciseLayer`.
    """

    def __init__(
        self,
        cell,
        attention,
        *,
        order="luong",
        input_feeding=True,
        attention_units=None,
        activation="tanh",
        use_bias=False,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.cell = as_cell(cell)
        self.attention = list(attention) if _is_list(attention) else attention
        mechanisms.check_attentions(self.attentions)
        _check_order(order, input_feeding)
        self.order = order
        self.input_feeding = input_feeding
        if attention_units is None and order == "luong":
            attention_units = output_size(self.cell)
        if attention_units is not None:
            advice = "The cell's width is usual."
            attention_units = check_whole("attention_units", attention_units, advice)
        elif use_bias or activation != "tanh":
            raise ValueError(
                "`activation` and `use_bias` belong to W_c, which order='bahdanau' has "
                f"with `attention_units` alone. Received: activation={activation!r}, "
                f"use_bias={use_bias!r}. Leave them out, or give `attention_units`."
            )
        else:
            self.refuse_kernel_options("order='bahdanau' and no `attention_units`")
        self.attention_units = attention_units
        self.activation = keras.activations.get(activation)
        self.use_bias = use_bias
        if self.dropout > 0:
            self.seed_generator = keras.random.SeedGenerator(self.seed)

    @property
    def attentions(self):
        """The attention layers, as a list."""
        return self.attention if self.lists_weights else [self.attention]

    @property
    def lists_weights(self):
        """Whether the weights are a list."""
        return _is_list(self.attention)

    @property
    def attention_names(self):
        """What `attention_submodel` calls the maps."""
        if not self.lists_weights:
            return ("attention",)
        return tuple(f"attention_{i}" for i in range(len(self.attention)))

    def build(self, inputs_shape, memory_shape):
        self.check_shapes(inputs_shape, memory_shape)
        query, memory = self._query_width, memory_shape[-1]
        if None in (inputs_shape[-1], memory):
            raise ValueError(
                "The inputs and the memory of a decoder must have a known width. "
                f"Received: {inputs_shape} and {memory_shape}. Give `keras.Input` one."
            )
        for attention in self.attentions:
            if not attention.built:  # one that comes from a file is
                attention.build((None, None, query), (None, None, memory))
        context = mechanisms.context_width(self.attentions, query, memory)
        self.joined_width = output_size(self.cell) + context
        fed = context if self.order == "bahdanau" else 0
        if self._feeds:
            fed = self.attention_units
        self.input_width, self.memory_width = inputs_shape[-1], memory
        self.cell_width = self.input_width + fed
        if not self.cell.built:
            self.cell.build((None, self.cell_width))
        if self.attention_units is not None:
            shape = (self.joined_width, self.attention_units)
            self.output_kernel = self.add_kernel("output_kernel", shape)
            self.output_bias = None
            if self.use_bias:
                self.output_bias = self.add_bias("output_bias", shape[1:])
        self.built = True

    @property
    def _feeds(self):
        """Whether the attentional vector goes into the next step."""
        return self.order == "luong" and self.input_feeding

    @property
    def _query_width(self):
        if self.order == "luong":
            return output_size(self.cell)
        return state_sizes(self.cell)[top_index(self.cell)]

    # ---- what Keras asks

    def _as_given(self, weights):
        """One map for one attention, a list for a list."""
        return list(weights) if self.lists_weights else weights[0]

    def check_shapes(self, inputs_shape, memory_shape):
        """Refuses what is not tokens and a memory of one batch."""
        shapes = inputs_shape, memory_shape
        fit = all(len(s) == 3 and not isinstance(s[0], tuple | list) for s in shapes)
        batches = {s[0] for s in shapes} if fit else set()
        if not fit or len(batches - {None}) > 1:
            raise ValueError(
                "A decoder takes inputs (batch, T, width) and a memory (batch, S, "
                f"width) of one batch, as separate arguments. Received: {shapes[0]} "
                f"and {shapes[1]}. Token ids go through keras.layers.Embedding first."
            )
        widths = inputs_shape[-1], memory_shape[-1]
        if self.built and widths != (self.input_width, self.memory_width):
            raise ValueError(
                f"The decoder was built for inputs of the width {self.input_width} and "
                f"a memory of {self.memory_width}. Received: {widths[0]} and "
                f"{widths[1]}. Make another layer for them."
            )
        if inputs_shape[1] == 0:
            raise ValueError(
                "A decoder takes inputs of at least one step. Received: "
                f"{inputs_shape}. Leave such a batch out."
            )

    def _output_shapes(self, inputs_shape, memory_shape):
        """The shapes of the output and of the weights of one attention."""
        width = self.attention_units
        if width is None:
            width = output_size(self.cell) + mechanisms.context_width(
                self.attentions, self._query_width, memory_shape[-1]
            )
        return (*inputs_shape[:2], width), (*inputs_shape[:2], memory_shape[1])

    def get_config(self):
        serialize = keras.saving.serialize_keras_object
        attention = [serialize(a) for a in self.attentions]
        return {
            **super().get_config(),
            "cell": serialize(self.cell),
            "attention": self._as_given(attention),
            "order": self.order,
            "input_feeding": self.input_feeding,
            "attention_units": self.attention_units,
            "activation": keras.activations.serialize(self.activation),
            "use_bias": self.use_bias,
        }

    @classmethod
    def from_config(cls, config):
        deserialize = keras.saving.deserialize_keras_object
        parts = {"cell": deserialize(config["cell"])}
        attention = config["attention"]
        if _is_list(attention):
            parts["attention"] = [deserialize(a) for a in attention]
        else:
            parts["attention"] = deserialize(attention)
        return cls(**{**config, **parts})


def _is_list(attention):
    return isinstance(attention, list | tuple)


def _check_order(order, input_feeding):
    """Refuses an unknown order, and an option that one of them has not."""
    if order not in ORDERS:
        raise ValueError(
            "`order` must be 'luong' (the cell, then the attention) or 'bahdanau' (the "
            f"attention, then the cell). Received: {order!r}. Choose one."
        )
    if order == "bahdanau" and not input_feeding:
        raise ValueError(
            "`input_feeding=False` belongs to order='luong'. Received: it with "
            "order='bahdanau', whose cell always sees the context. Leave it out."
        )
