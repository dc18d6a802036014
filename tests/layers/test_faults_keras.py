"""Faults that people met in other attention software: shapes and backends."""

import ast
import pathlib
import warnings

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from keras_attention import (
    BahdanauAttention,
    LocalAttention,
    LuongAttention,
    MonotonicAttention,
    attention_submodel,
)
from tests.layers.contract import CASES, DV, normal, to_numpy
from tests.layers.test_laws_keras import attend_to_itself, every_case
from tests.layers.text_models import (
    BEFORE,
    IDS,
    alone,
    assert_equal,
    text_model,
    text_parts,
    translator,
)

BACKEND = keras.backend.backend()
every_before = pytest.mark.parametrize("before", BEFORE)


# ---- shapes


@every_case
def test_one_set_of_weights_serves_every_length(case, tmp_path):
    """A weight had the number of time steps in its shape: 7 worked and 300 did not."""
    inputs = case.inputs(case.main, length=7)
    layer = case.make()
    specs = [keras.Input((None, a.shape[-1])) for a in inputs]
    model = keras.Model(specs, layer(*specs))
    fixed = [keras.Input(a.shape[1:]) for a in inputs]
    again = case.make()
    same = keras.Model(fixed, again(*fixed))
    again.set_weights(layer.get_weights())
    assert_equal(same(list(inputs)), model(list(inputs)), atol=1e-6)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for length in (1, 7, 300):
        inputs = list(case.inputs(case.main, length=length))
        assert_equal(loaded(inputs), model(inputs), atol=1e-6)
    assert [w.shape for w in again.weights] == [w.shape for w in layer.weights]
    assert 300 not in {size for w in model.weights for size in w.shape}


def test_blocks_serve_every_length():
    """The same, for a Transformer over ids."""
    _, model = translator()
    for length in (1, 7, 300):
        ids = np.full((1, length), 3)
        output, *_ = model.predict_on_batch([ids, ids])
        assert output.shape[1] == length
    assert not {7, 300} & {size for w in model.weights for size in w.shape}


def two_widths():
    """Queries of a decoder of width 64, values of a BiLSTM of width 2 x 64."""
    source = keras.Input((None, 3))
    lstm = keras.layers.LSTM(64, return_sequences=True)
    return keras.Input((None, 64)), keras.layers.Bidirectional(lstm)(source), source


WIDE = {
    "Bahdanau": lambda: BahdanauAttention(8),
    "general": lambda: LuongAttention("general"),
    "concat": lambda: LuongAttention("concat"),
    "local": lambda: LocalAttention(2, score="general"),
    "monotonic": lambda: MonotonicAttention("general"),
    "location": lambda: keras_attention.LocationSensitiveAttention(8),
    "heads": lambda: keras_attention.MultiHeadAttention(2, 8),
}


@pytest.mark.parametrize("kind", WIDE)
def test_a_decoder_of_64_attends_to_states_of_128(kind):
    """Query and memory of other widths died inside a product of matrices."""
    query, states, source = two_widths()
    context, weights = WIDE[kind]()(query, states)
    assert context.shape == (None, None, 64 if kind == "heads" else 128)
    model = keras.Model([query, source], [context, weights])
    got, maps = model.predict_on_batch([normal(2, 3, 64), normal(2, 5, 3)])
    assert got.shape == (2, 3, context.shape[-1]) and maps.shape[-2:] == (3, 5)


@pytest.mark.parametrize(
    "make",
    [
        lambda: LuongAttention("dot"),
        lambda: LuongAttention("scaled_dot"),
        lambda: LocalAttention(2, score="dot"),
        lambda: MonotonicAttention("dot"),
        keras_attention.ScaledDotProductAttention,
    ],
)
def test_a_dot_product_of_64_and_128_is_refused_by_name(make):
    """The same, where it cannot work: the error names both widths."""
    query, states, _ = two_widths()
    with pytest.raises(ValueError, match="query 64, key 128"):
        make()(query, states)
    with pytest.raises(ValueError, match="query 64, key 128"):
        make().build((None, 3, 64), (None, 5, 128))


@every_case
def test_values_of_width_7_with_keys_of_width_5(case):
    """A context had the width of the keys in its symbolic shape."""
    if "full with key" not in case.forms:
        pytest.skip("one input")
    arrays = normal(2, 3, 5), normal(2, 11, 7), normal(2, 11, 5)
    layer = case.make() if case.heads is None else case.make(output_dim=7)
    context, _ = layer(*(keras.Input((None, a.shape[-1])) for a in arrays))
    assert context.shape == (None, None, 7)
    assert layer(*arrays)[0].shape == (2, 3, 7)


def structure(result):
    """Shapes of what a call returned: a tuple of them, or one alone."""
    if isinstance(result, tuple | list):
        return [tuple(each.shape) for each in result]
    return tuple(result.shape)


@every_case
@pytest.mark.parametrize("default", [True, False])
@pytest.mark.parametrize("first", ["eager", "symbolic"])
def test_the_number_of_outputs_follows_this_call_alone(case, default, first):
    """A symbolic call returned as many outputs as the eager one before it."""
    layer = case.make(return_attention_scores=default)
    arrays = case.inputs(case.main)
    specs = [keras.Input((None, a.shape[-1])) for a in arrays]
    calls = {"eager": arrays, "symbolic": specs}
    order = [first, *({"eager", "symbolic"} - {first})]
    for scores in (True, False, None, True):
        asked = {} if scores is None else {"return_attention_scores": scores}
        wants = default if scores is None else scores
        shapes = {kind: structure(layer(*calls[kind], **asked)) for kind in order}
        for kind in order:
            assert isinstance(shapes[kind], list) == wants
        eager, symbolic = (keras.tree.flatten(list(shapes[k])) for k in calls)
        for real, one in zip(eager, symbolic, strict=True):
            assert one is None or one == real
    shapes = layer.compute_output_shape(*(a.shape for a in arrays))
    assert isinstance(shapes[0], tuple) == default
    unknown = layer.compute_output_shape(*(s.shape for s in specs))
    context = unknown[0] if default else unknown
    assert context[:2] == (None, None)


@every_case
def test_one_layer_with_and_without_weights_in_one_model(case):
    """Two symbolic calls of one layer, which ask for different outputs."""
    layer = case.make()
    arrays = list(case.inputs(case.main))
    specs = [keras.Input((None, a.shape[-1])) for a in arrays]
    # Keras takes no more outputs of a layer than the first call in a graph had.
    for asked in (True, False, True):
        result = layer(*specs, return_attention_scores=asked)
        assert isinstance(result, tuple | list) == asked
        got = keras.Model(specs, result)(arrays)
        assert_equal(got, layer(*arrays, return_attention_scores=asked), atol=1e-6)


@every_case
def test_a_sentence_encoder_for_each_sentence_of_a_text(case):
    """Inside TimeDistributed it did not build, and its weights were out of reach."""
    ids, context, _ = text_parts(case)
    inner = keras.Model(ids, context)
    texts = keras.Input((None, None), dtype="int32")
    states = keras.layers.TimeDistributed(inner)(texts)
    model = keras.Model(texts, states)
    data = np.stack([IDS, IDS[::-1], IDS])  # (3 texts, 2 sentences, 5 words)
    want = inner(IDS)
    _, maps = attention_submodel(inner).predict(IDS, verbose=0)
    assert_equal(model.predict(data, verbose=0)[0], want, atol=1e-5)
    output, found = attention_submodel(model).predict(data, verbose=0)
    assert_equal(output[1], to_numpy(want)[::-1], atol=1e-5)
    (weights,), (alone_weights,) = found.values(), maps.values()
    assert_equal(weights[0], alone_weights, atol=1e-5)


# ---- backends


class Pool(keras.layers.Layer):
    """A layer of one's own round another, which takes its mask as an argument."""

    def __init__(self, case, **kwargs):
        super().__init__(**kwargs)
        self.case, self.layer = case, case.make()
        self.supports_masking = True

    def call(self, states, mask=None):
        name = self.case.names[0] if alone(self.case) != "full" else "value_mask"
        inputs = [states] * (1 + (alone(self.case) == "full"))
        return self.layer(*inputs, **{name: mask})

    def compute_mask(self, states, mask=None):
        return None


@every_case
def test_a_mask_reaches_a_compiled_layer_of_ones_own(case):
    """Compiled on JAX, a custom layer lost its mask and attended to padding."""
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(31, DV, mask_zero=True)(ids)
    model = keras.Model(ids, Pool(case)(states))
    model.compile("sgd", "mse", jit_compile=BACKEND != "torch")
    compiled = model.predict_on_batch(IDS)
    assert_equal(compiled, model(IDS), atol=2e-6)
    weights = case.by_key(compiled[1], alone(case))
    assert weights.any() and (weights[0, ..., 3:] == 0).all()
    assert (weights[1, ..., 1:] == 0).all()


@every_before
def test_a_mask_reaches_compiled_positions_and_blocks(before):
    """The same, for what stands before the attention."""
    ids, context, weights = text_parts(CASES[0], BEFORE[before]())
    model = keras.Model(ids, [context, weights])
    model.compile("sgd", "mse", jit_compile=BACKEND != "torch")
    compiled = model.predict_on_batch(IDS)
    assert_equal(compiled, model(IDS), atol=1e-5)
    assert (compiled[1][IDS == 0] == 0).all()


@every_case
def test_models_with_symbolic_masks_of_unknown_sizes_build(case):
    """A symbol was handed to a TensorFlow function, and the model did not build."""
    form = case.main
    inputs = list(case.inputs(form))
    specs = [keras.Input((None, a.shape[-1])) for a in inputs]
    keys, pairs = keras.Input((None,), dtype="bool"), keras.Input((None, None))
    outputs = case.make()(*specs, **case.padding(form, keys), attention_mask=pairs)
    model = keras.Model([*specs, keys, pairs], outputs)
    real = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)
    near = np.tri(inputs[0].shape[1], 5, 1, dtype="float32")[None].repeat(2, 0)
    _, weights = model.predict_on_batch([*inputs, real, near])
    dead = ~(near.astype(bool) & case.allowed(form, real))
    assert weights.any() and (weights[case.over_heads(dead)] == 0).all()


def test_no_layer_calls_a_backend():
    """The same by reading: layers import Keras and NumPy alone, and draw elsewhere."""
    package = pathlib.Path(keras_attention.__file__).parent
    found = set()
    for path in package.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {(name.name.split(".")[0], path.name) for name in node.names}
            elif isinstance(node, ast.ImportFrom):
                found.add((node.module.split(".")[0], path.name))
    modules = {module for module, _ in found}
    assert {"keras", "numpy"} <= modules
    assert not modules & {"tensorflow", "tf", "jax", "torch"}, found


def models_of(case):
    """Models of many kinds round a layer, with what they take."""
    yield text_model(case), IDS
    for before in BEFORE.values():
        yield text_model(case, before()), IDS
    ids, context, _ = text_parts(case)
    if len(context.shape) == 3:
        context = keras.layers.LSTM(3)(context)
    yield keras.Model(ids, keras.layers.Dense(1)(context)), IDS
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(31, DV, mask_zero=True)(ids)
    layer = case.make(return_attention_scores=False)
    yield keras.Model(ids, attend_to_itself(case, layer, states)), IDS


@every_case
def test_no_warning_says_that_a_mask_is_destroyed(case):
    """Keras warned of masks that a layer would destroy, although it used them."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for model, data in models_of(case):
            model(data)
            attention_submodel(model)
    assert [str(w.message) for w in caught if "mask" in str(w.message)] == []


def sizes_of(function, *shapes):
    """How many numbers each tensor of the traced function holds."""
    if BACKEND == "jax":
        import jax

        arrays = [jax.ShapeDtypeStruct(shape, "float32") for shape in shapes]
        return sizes_of_jaxpr(jax.make_jaxpr(function)(*arrays).jaxpr)
    import tensorflow as tf

    specs = [tf.TensorSpec(shape) for shape in shapes]
    graph = tf.function(function).get_concrete_function(*specs).graph
    functions = [graph, *(f.graph for f in graph._functions.values())]
    outputs = [o for f in functions for op in f.get_operations() for o in op.outputs]
    shapes = [output.shape for output in outputs]
    return [s.num_elements() or 0 for s in shapes if s.rank is not None]


def sizes_of_jaxpr(jaxpr):
    import jax

    sizes = []
    for equation in jaxpr.eqns:
        sizes += [int(np.prod(v.aval.shape)) for v in equation.outvars]
        for inner in jax.tree.leaves(
            list(equation.params.values()), is_leaf=lambda p: hasattr(p, "eqns")
        ):
            inner = getattr(inner, "jaxpr", inner)
            if hasattr(inner, "eqns"):
                sizes += sizes_of_jaxpr(inner)
    return sizes


ADDITIVE = {
    "Bahdanau": lambda: BahdanauAttention(128),
    "concat": lambda: LuongAttention("concat", units=128),
    "local": lambda: LocalAttention(2, score=BahdanauAttention(128)),
    "monotonic": lambda: MonotonicAttention(BahdanauAttention(128)),
}


@pytest.mark.skipif(BACKEND == "torch", reason="PyTorch traces no graph")
@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", ADDITIVE)
def test_no_tensor_has_queries_keys_and_units_at_once(kind, training):
    """8 x 1000 queries and keys of 128 units filled the memory: 4 GB a tensor."""
    layer, shape = ADDITIVE[kind](), (8, 1000, 16)
    layer.build(shape, shape)

    def loss(query, value):
        context = layer(query, value, return_attention_scores=False, training=training)
        return ops.sum(context)

    sizes = sizes_of(of_gradient(loss) if training else loss, shape, shape)
    scores, chunk = 8 * 1000 * 1000, 8 * 1000 * 128
    assert scores in sizes  # the trace sees what there is
    assert max(sizes) <= max(scores, 2 * chunk) * 1.1


def of_gradient(loss):
    """The gradients of a loss at its two inputs."""
    if BACKEND == "jax":
        import jax

        return jax.grad(loss, argnums=(0, 1))
    import tensorflow as tf

    def gradient(*inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            result = loss(*inputs)
        return tape.gradient(result, inputs)

    return gradient


# ---- sub-models


@every_case
def test_a_model_of_the_weights_can_be_made_saved_and_nested(case, tmp_path):
    """A second model could not be made of the weights that a layer kept on itself."""
    ids, context, weights = text_parts(case, name="look")
    both = keras.Model(ids, [context, weights])
    want = both.predict_on_batch(IDS)
    by_output = keras.Model(both.inputs, both.get_layer("look").output[1])
    outer_ids = keras.Input((None,), dtype="int32")
    nested = keras.Model(outer_ids, both(outer_ids))
    for name, model, expected in (
        ("weights", keras.Model(ids, weights), want[1]),
        ("output", by_output, want[1]),
        ("both", both, want),
        ("nested", nested, want),
    ):
        assert_equal(model.predict(IDS, verbose=0), expected, atol=1e-6)
        model.save(tmp_path / f"{name}.keras")
        again = keras.saving.load_model(tmp_path / f"{name}.keras", safe_mode=True)
        assert_equal(again.predict(IDS, verbose=0), expected, atol=1e-6)
