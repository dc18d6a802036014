"""Time and peak memory of each layer against Keras's nearest and PyTorch's, in one run.

    python -m benchmarks.layers                 # on TensorFlow; needs the extra `torch`
    KERAS_BACKEND=jax python -m benchmarks.layers --only multi-head

Every side gets the same arrays, B x T x D, as query and as value, returns the context
alone, and runs compiled (PyTorch eagerly, as it usually is). `forward+backward` takes
the gradients for the inputs and the weights. Sides take turns, each after a run that
does not count, in an order that rotates; the median counts. Peak memory (`--memory`) is
that of a process of its own above what it held before the first call.
"""

import argparse
import dataclasses
import gc
import multiprocessing
import pathlib
import statistics
import time
from collections.abc import Callable

import keras
import numpy as np

import keras_attention

SHAPES = {"short": (32, 128, 256), "long": (4, 1024, 256)}  # B, T = S, D
PHASES = ("forward", "forward+backward")
HEADS = 8


@dataclasses.dataclass(frozen=True)
class Row:
    """A layer of ours, and what is nearest to it elsewhere.

    Attributes:
        name: Its name in the table.
        ours: (D, T) -> function of (query, value) -> context, and its layer.
        theirs: The same of `keras.layers`, or None.
        torch: (D, T) -> the same of PyTorch, or None.
        nearest: What `theirs` is.
    """

    name: str
    ours: Callable
    theirs: Callable | None = None
    torch: Callable | None = None
    nearest: str = "-"


# ---- the sides


def ours(name, *arguments, alone=False, **options):
    """A layer of this package; arguments that are functions are given D."""

    def make(width, length):
        given = [a(width) if callable(a) else a for a in arguments]
        named = {k: v(width) if callable(v) else v for k, v in options.items()}
        layer = getattr(keras_attention, name)(
            *given, return_attention_scores=False, **named
        )
        if alone:
            return layer, lambda query, value: layer(query)
        return layer, lambda query, value: layer(query, value)

    return make


def keras_pair(layer_class, **options):
    """A layer of Keras that takes [query, value]."""

    def make(width, length):
        layer = layer_class(**options)
        return layer, lambda query, value: layer([query, value])

    return make


def keras_heads(heads, **options):
    def make(width, length):
        layer = keras.layers.MultiHeadAttention(heads, width // heads, **options)
        return layer, lambda query, value: layer(query, value)

    return make


def torch_product(scale):
    """torch.nn.functional.scaled_dot_product_attention."""

    def make(width, length):
        import torch

        def attend(query, value):
            return torch.nn.functional.scaled_dot_product_attention(
                query, value, value, scale=None if scale else 1.0
            )

        return None, attend

    return make


def torch_heads(heads, bias=True):
    """torch.nn.MultiheadAttention without its weights asked for."""

    def make(width, length):
        import torch

        module = torch.nn.MultiheadAttention(width, heads, bias, batch_first=True)
        return module, lambda query, value: module(
            query, value, value, need_weights=False
        )[0]

    return make


def width(size):
    return size


ADDITIVE = keras_pair(keras.layers.AdditiveAttention)
DOT = keras_pair(keras.layers.Attention)


def keras_general(width, length):
    """keras.layers.Attention behind a Dense: q . W k."""
    dense = keras.layers.Dense(width, use_bias=False)
    attention = keras.layers.Attention()
    model = keras.Sequential([dense])  # tracks the weights
    return model, lambda query, value: attention([dense(query), value])


ROWS = [
    Row("bahdanau", ours("BahdanauAttention", width), ADDITIVE, None, "Additive"),
    Row("luong dot", ours("LuongAttention"), DOT, torch_product(False), "Attention"),
    Row(
        "luong general",
        ours("LuongAttention", "general"),
        keras_general,
        None,
        "Dense + Attention",
    ),
    Row("luong concat", ours("LuongAttention", "concat"), ADDITIVE, None, "Additive"),
    Row(
        "scaled dot-product",
        ours("ScaledDotProductAttention"),
        keras_pair(keras.layers.Attention, use_scale=True),
        torch_product(True),
        "Attention(use_scale)",
    ),
    Row("local monotonic", ours("LocalAttention", 10), DOT, None, "Attention"),
    Row(
        "local predictive",
        ours("LocalAttention", 10, "predictive"),
        DOT,
        None,
        "Attention",
    ),
    Row(
        "self-attention",
        ours("SelfAttention", width, alone=True),
        keras_heads(1, use_bias=False),
        torch_heads(1, bias=False),
        "MultiHeadAttention(1)",
    ),
    Row(
        "multi-head",
        ours("MultiHeadAttention", HEADS, lambda d: d // HEADS),
        keras_heads(HEADS),
        torch_heads(HEADS),
        "MultiHeadAttention(8)",
    ),
    Row("monotonic", ours("MonotonicAttention")),
    Row("location-sensitive", ours("LocationSensitiveAttention", width)),
]


# ---- a side, ready to run


def compiled(layer, function, arrays):
    """{phase: a function without arguments} of a Keras side, on this backend."""
    backend = keras.backend.backend()
    inputs = [keras.ops.convert_to_tensor(a) for a in arrays]
    function(*(x[:1, :2] for x in inputs))  # builds, without the memory of a call
    makers = {"tensorflow": _tensorflow, "jax": _jax, "torch": _torch}
    return makers[backend](layer, function, inputs)


def _tensorflow(layer, function, inputs):
    import tensorflow as tf

    forward = tf.function(lambda: function(*inputs))

    @tf.function
    def both():
        sources = [*inputs, *(v.value for v in layer.trainable_variables)]
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            loss = tf.reduce_sum(function(*inputs) ** 2)
        return [g for g in tape.gradient(loss, sources) if g is not None]

    return dict(zip(PHASES, (forward, both), strict=True))


def _jax(layer, function, inputs):
    import jax

    weights = [v.value for v in layer.trainable_variables]

    def context(weights, inputs):
        pairs = list(zip(layer.trainable_variables, weights, strict=True))
        with keras.StatelessScope(state_mapping=pairs):
            return function(*inputs)

    def loss(weights, inputs):
        return (context(weights, inputs) ** 2).sum()

    forward = jax.jit(context)
    both = jax.jit(jax.grad(loss, argnums=(0, 1)))
    return {
        PHASES[0]: lambda: jax.block_until_ready(forward(weights, inputs)),
        PHASES[1]: lambda: jax.block_until_ready(both(weights, inputs)),
    }


def _torch(layer, function, inputs):
    import torch

    weights = [] if layer is None else list(layer.parameters())
    sources = [x.detach().clone().requires_grad_() for x in inputs]

    def forward():
        with torch.no_grad():
            return function(*inputs)

    def both():
        loss = (function(*sources) ** 2).sum()
        return torch.autograd.grad(loss, [*sources, *weights], allow_unused=True)

    return dict(zip(PHASES, (forward, both), strict=True))


def side(row, name, shape):
    """{phase: function} of the side "ours", "keras" or "torch" of a row; or None."""
    maker = {"ours": row.ours, "keras": row.theirs, "torch": row.torch}[name]
    if maker is None:
        return None
    batch, length, width = SHAPES[shape]
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=(batch, length, width)).astype("float32") for _ in "qv"]
    layer, function = maker(width, length)
    if name != "torch":
        return compiled(layer, function, arrays)
    import torch

    return _torch(layer, function, [torch.from_numpy(a) for a in arrays])


# ---- measuring


def seconds(row, shape, phase, rounds):
    """{side: median seconds}, the sides taking turns."""
    sides = {name: side(row, name, shape) for name in ("ours", "keras", "torch")}
    runs = {name: phases[phase] for name, phases in sides.items() if phases}
    times = {name: [] for name in runs}
    order = list(runs)
    for _ in range(rounds):
        for name in order:
            runs[name]()  # once for nothing: caches and threads are the last side's
            began = time.perf_counter()
            runs[name]()
            times[name].append(time.perf_counter() - began)
        order = order[1:] + order[:1]
    gc.collect()
    return {name: statistics.median(each) for name, each in times.items()}


def _status(name):
    """A size in KB that Linux tells of this process."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return int(next(x for x in lines if x.startswith(name)).split()[1])


def _peak(name, side_name, shape, phase, results):
    row = next(r for r in ROWS if r.name == name)
    phases = side(row, side_name, shape)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    before = _status("VmRSS")
    phases[phase]()
    after = _status("VmHWM")
    results.put(max(after - before, 1024) / 1024)  # at least 1 MB, for the ratios


def megabytes(row, shape, phase):
    """{side: peak MB of a process of its own above what it held before the call}."""
    context, peaks = multiprocessing.get_context("spawn"), {}
    for name, maker in (
        ("ours", row.ours),
        ("keras", row.theirs),
        ("torch", row.torch),
    ):
        if maker is not None:
            results = context.Queue()
            arguments = (row.name, name, shape, phase, results)
            process = context.Process(target=_peak, args=arguments)
            process.start()
            peaks[name] = results.get()
            process.join()
    return peaks


def cells(values, digits):
    """Ours, theirs and PyTorch's, and the ratios of ours to both, as cells."""
    mine = values["ours"]
    yield f"{mine:.{digits}f}"
    for name in ("keras", "torch"):
        yield (
            f"{values[name]:.{digits}f} ({mine / values[name]:.2f})"
            if (name in values)
            else "-"
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="rows whose name has this in it")
    parser.add_argument("--shape", choices=SHAPES, nargs="+", default=list(SHAPES))
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--memory", action="store_true", help="peak memory as well")
    options = parser.parse_args()
    print("Median milliseconds, ours / theirs in brackets.")
    print("| layer | shape | phase | ours | Keras | PyTorch | nearest of Keras |")
    print("|---|---|---|---|---|---|---|")
    for row in ROWS:
        if options.only not in row.name:
            continue
        for shape in options.shape:
            for phase in PHASES:
                found = seconds(row, shape, phase, options.rounds)
                found = {name: 1000 * each for name, each in found.items()}
                line = [row.name, shape, phase, *cells(found, 1), row.nearest]
                if options.memory:
                    peaks = cells(megabytes(row, shape, phase), 0)
                    line.append("MB: " + " / ".join(peaks))
                print("| " + " | ".join(line) + " |", flush=True)


if __name__ == "__main__":
    main()
