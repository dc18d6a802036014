"""copy_weights: multi-head attention from and to that of Keras and of PyTorch."""

import sys

import keras
import numpy as np

from keras_attention.multi_head import MultiHeadAttention

PARTS = ("query", "key", "value", "output")


def copy_weights(source, target):
    """Copies the weights of a multi-head attention; then both give the same outputs.

    One of the two is a `MultiHeadAttention` of this package. The other is one too, or a
    `keras.layers.MultiHeadAttention`, a `keras.layers.GroupQueryAttention` or a
    `torch.nn.MultiheadAttention`. What does not fit is refused before anything is
    written.

    The outputs agree wherever a query has something to attend to: in a row of nothing,
    and for a padded query, ours are zeros. They agree to the target's number type.
    PyTorch's masks are the other way round (True = masked), its arguments are `query,
    key, value`, and unless `batch_first=True` its first axis is the length. Dropout,
    regularizers and what else is not a weight is not copied.

    Args:
        source: The attention to copy from. A Keras layer must be built.
        target: The attention to copy to. A Keras layer must be built.

    Raises:
        TypeError: if an argument is nothing of the above, or neither is ours.
        ValueError: if a layer is not built, if the two differ in heads, widths or
            biases, or if one does what the other cannot do.

    Example:

    >>> theirs = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4)
    >>> ours = MultiHeadAttention(num_heads=2, key_dim=4)
    >>> tokens = np.random.default_rng(0).normal(size=(3, 5, 8)).astype("float32")
    >>> wanted = theirs(tokens, tokens)
    >>> ours.build(tokens.shape)
    >>> copy_weights(source=theirs, target=ours)
    >>> output, weights = ours(tokens)
    >>> bool(keras.ops.max(keras.ops.abs(output - wanted)) < 1e-5)
    True
    """
    given, wanted = _view("source", source), _view("target", target)
    if not (isinstance(given, _Ours) or isinstance(wanted, _Ours)):
        raise TypeError(
            "`copy_weights` copies from or to a keras_attention.MultiHeadAttention. "
            f"Received: {given.title} and {wanted.title}. Copy to one of those, and "
            "from there to the other."
        )
    given.check()
    wanted.check()
    arrays = given.read()
    have, want = ({**v.facts(), **_shapes(v.read())} for v in (given, wanted))
    differing = [name for name in want if have.get(name) != want[name]]
    differing += [name for name in have if name not in want]
    if differing:
        received = "; ".join(
            f"{name} {have.get(name)} in the source, {want.get(name)} in the target"
            for name in differing
        )
        raise ValueError(
            "`source` and `target` must be of one form, with kernels and biases of the "
            f"same shapes. Received: {received}. Make the target with the source's "
            "numbers of heads, widths and biases, and build it for the same inputs."
        )
    wanted.write(arrays)


def _shapes(arrays):
    return {name: array.shape for name, array in arrays.items()}


def _view(argument, module):
    """The view of a source or target, by its class."""
    torch = sys.modules.get("torch")  # whoever has a torch module has imported it
    if isinstance(module, MultiHeadAttention):
        return _Ours(argument, module)
    if isinstance(
        module, keras.layers.MultiHeadAttention | keras.layers.GroupQueryAttention
    ):
        return _Keras(argument, module)
    if torch is not None and isinstance(module, torch.nn.MultiheadAttention):
        return _Torch(argument, module)
    raise TypeError(
        f"`{argument}` must be a MultiHeadAttention, of keras_attention, keras.layers "
        "or torch.nn (MultiheadAttention), or a keras.layers.GroupQueryAttention. "
        f"Received: {type(module).__name__}. Give the layer itself, not its weights or "
        "the model that holds it."
    )


class _View:
    """A module seen as ours: its form, and its kernels (D, U) and biases (U,) by name.

    Args:
        argument: "source" or "target", for errors.
        module: The layer or module.
    """

    def __init__(self, argument, module):
        self.argument, self.module = argument, module
        package = type(module).__module__.partition(".")[0]
        self.title = f"{package}'s {type(module).__name__}"

    def check(self):
        """Refuses what has no weights yet, or does what others cannot do."""
        if not getattr(self.module, "built", True):
            raise ValueError(
                f"`{self.argument}` must be built, to have weights. Received: "
                f"{self.title}, which is not. Call it once, or its `build`."
            )
        for name, value in self.special().items():
            if value:
                raise ValueError(
                    f"`{self.argument}` must be plain multi-head attention, as all "
                    f"classes know it. Received: {self.title} with {name}={value}. "
                    "Make it without."
                )

    def special(self):
        """Settings that no other class has: {name: value, falsy if plain}."""
        return {}

    def heads(self):
        """Numbers of heads of the queries, and of the keys and values."""
        raise NotImplementedError(f"{type(self).__name__} must override `heads`.")

    def facts(self):
        """What must be equal, beside the shapes: {name: value}."""
        names = ("num_heads", "num_key_value_heads")
        numbers = dict(zip(names, self.heads(), strict=True))
        return {**numbers, "activation": "softmax", "rotary_embedding": None}

    def read(self):
        """Copies of the weights: {"query_kernel": array (D, U), ...}."""
        raise NotImplementedError(f"{type(self).__name__} must override `read`.")

    def write(self, arrays):
        """Overwrites the weights; `arrays` is like what `read` gives."""
        raise NotImplementedError(f"{type(self).__name__} must override `write`.")


class _Ours(_View):
    def heads(self):
        return self.module.num_heads, self.module.groups

    def facts(self):
        layer = self.module
        own = {"activation": layer.activation}
        own["rotary_embedding"] = _settings(layer.rotary_embedding)
        return {**super().facts(), **own}

    def variables(self):
        names = [f"{part}_{kind}" for part in PARTS for kind in ("kernel", "bias")]
        found = {name: getattr(self.module, name) for name in names}
        return {name: v for name, v in found.items() if v is not None}

    def read(self):
        return {name: _array(v) for name, v in self.variables().items()}

    def write(self, arrays):
        for name, variable in self.variables().items():
            variable.assign(arrays[name])


class _Keras(_View):
    def special(self):
        layer, config = self.module, self.module.get_config()
        special = {name: config.get(name) for name in ("use_gate", "sliding_window")}
        if isinstance(layer, keras.layers.MultiHeadAttention):
            rank = len(layer.query_dense.equation.partition(",")[0])
            if rank != 3 or tuple(layer.attention_axes) != (1,):
                axes = f"{layer.attention_axes} for inputs of rank {rank}"
                special["attention_axes"] = axes
            if len(layer.output_dense.kernel.shape) != 3:
                special["output_shape"] = config["output_shape"]
        expected = {f"{p}_{kind}" for p in PARTS for kind in ("kernel", "bias")}
        special["weights"] = sorted(set(self.variables()) - expected)  # such as LoRA's
        return special

    def heads(self):
        layer = self.module
        if isinstance(layer, keras.layers.GroupQueryAttention):
            return layer.num_query_heads, layer.num_key_value_heads
        return layer.num_heads, layer.num_heads

    def variables(self):
        """By our names; theirs are `query/kernel`, `attention_output/bias` ..."""
        paths = [(v.path.split("/")[-2:], v) for v in self.module.weights]
        return {
            f"{part.removeprefix('attention_')}_{kind}": v for (part, kind), v in paths
        }

    def read(self):
        return {
            name: _array(v).reshape(self.flat_shape(name, v))
            for name, v in self.variables().items()
        }

    def write(self, arrays):
        for name, variable in self.variables().items():
            variable.assign(arrays[name].reshape(variable.shape))

    @staticmethod
    def flat_shape(name, variable):
        """Kernels (D, H, d) and (H, d, O) are ours of (D, H x d) and (H x d, O)."""
        if name.endswith("bias"):
            return (-1,)
        shape = variable.shape
        return (-1, shape[-1]) if name == "output_kernel" else (shape[0], -1)


class _Torch(_View):
    def special(self):
        module = self.module
        plain = {"in_proj_weight", "in_proj_bias", "out_proj.weight", "out_proj.bias"}
        plain |= {f"{letter}_proj_weight" for letter in "qkv"}
        others = {name for name, _ in module.named_parameters()} - plain
        return {
            "add_bias_kv": module.bias_k is not None,
            "add_zero_attn": module.add_zero_attn,
            "parameters": sorted(others),
        }

    def heads(self):
        return self.module.num_heads, self.module.num_heads

    def tensors(self):
        """Views into the parameters, by our names; kernels are ours transposed."""
        module = self.module
        if module.in_proj_weight is not None:
            kernels = module.in_proj_weight.data.chunk(3)
        else:
            kernels = [
                getattr(module, f"{letter}_proj_weight").data for letter in "qkv"
            ]
        kernels = [*kernels, module.out_proj.weight.data]
        tensors = {f"{p}_kernel": k.T for p, k in zip(PARTS, kernels, strict=True)}
        if module.in_proj_bias is not None:
            biases = [*module.in_proj_bias.data.chunk(3), module.out_proj.bias.data]
            tensors |= {f"{p}_bias": b for p, b in zip(PARTS, biases, strict=True)}
        return tensors

    def read(self):
        tensors = self.tensors().items()
        return {name: t.cpu().double().numpy().copy() for name, t in tensors}

    def write(self, arrays):
        for name, tensor in self.tensors().items():
            tensor.copy_(tensor.new_tensor(arrays[name]))


def _array(variable):
    """A Keras variable as float64, which every other type fits into."""
    return np.asarray(keras.ops.convert_to_numpy(variable)).astype("float64")


def _settings(rotary):
    """A rotary embedding's class and settings, without its name; None stays None."""
    if rotary is None:
        return None
    own = {"name", "dtype", "trainable"}
    config = {k: v for k, v in rotary.get_config().items() if k not in own}
    return type(rotary).__name__, config
