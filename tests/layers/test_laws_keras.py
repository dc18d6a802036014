"""Laws 7-10 and 12, how a layer lives in Keras, for every layer of the table."""

import inspect
import json
import pathlib
import threading

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from tests.layers.contract import CASES, DK, DQ, DV, B, S, T, normal, to_numpy

LEARNERS = [case for case in CASES if case.learns]
PAIRS = [(case, form) for case in CASES for form in case.forms]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
every_learner = pytest.mark.parametrize("case", LEARNERS, ids=lambda case: case.name)
every_form = pytest.mark.parametrize(
    ("case", "form"), PAIRS, ids=[f"{case.name}-{form}" for case, form in PAIRS]
)
REAL = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)  # padded right, padded left
BASES = (keras_attention.AttentionLayer, keras_attention.ScoredAttention)


def open_specs(inputs):
    """keras.Input for arrays, with lengths of None."""
    return [keras.Input((None,) * (a.ndim - 2) + (a.shape[-1],)) for a in inputs]


def attend_to_itself(case, layer, states):
    """The layer on one tensor alone, whatever its forms are."""
    alone = "pooling" in case.forms or "self" in case.forms
    return layer(states) if alone else layer(states, states)


def context_of(result):
    return result[0] if isinstance(result, tuple | list) else result


def test_every_public_layer_is_in_the_table():
    public = {
        thing
        for name in keras_attention.__all__
        if inspect.isclass(thing := getattr(keras_attention, name))
        and issubclass(thing, keras_attention.AttentionLayer)
        and thing not in BASES
    }
    assert public == {case.layer for case in CASES}


# Not of the kind query and values -> context and weights: with tests of their own.
OF_THEIR_OWN = {
    "AttentionDecoder": ("test_recurrent.py", "test_recurrent_keras.py"),
    "LearnedPositionEmbedding": ("test_positional.py",),
    "RotaryEmbedding": ("test_positional.py",),
    "SinusoidalPositionEncoding": ("test_positional.py",),
    "TransformerDecoderBlock": ("test_transformer.py",),
    "TransformerEncoderBlock": ("test_transformer.py",),
}


def test_every_other_public_layer_has_tests_of_its_own():
    others = {
        name
        for name in keras_attention.__all__
        if inspect.isclass(thing := getattr(keras_attention, name))
        and issubclass(thing, keras.layers.Layer)
        and thing not in (*BASES, *(case.layer for case in CASES))
    }
    assert others == set(OF_THEIR_OWN)
    for name, files in OF_THEIR_OWN.items():
        for file in files:
            assert f"{name}(" in (pathlib.Path(__file__).parent / file).read_text()


# ---- 7, 8: widths, lengths, building


@every_case
def test_law_7_widths_may_differ(case):
    if "full with key" not in case.forms:
        pytest.skip("one input")
    context, weights = case.make()(*case.inputs("full with key"))
    assert context.shape[:2] == (B, T) and weights.shape[-2:] == (T, S)


@every_case
def test_law_7_a_dot_product_of_two_widths_is_refused_in_build(case):
    if not case.one_width:
        pytest.skip("widths may differ")
    with pytest.raises(ValueError, match=f"query {DK}, key {DV}.*general"):
        case.make().build((B, T, DK), (B, S, DV))


@every_form
def test_law_8_no_weight_depends_on_a_length(case, form):
    layer, specs = case.make(), open_specs(case.inputs(form))
    model = keras.Model(specs, layer(*specs))
    shapes = [tuple(w.shape) for w in layer.weights]
    for length in (1, 31, 300):
        _, weights = to_numpy(model(list(case.inputs(form, length=length))))
        assert case.by_key(weights, form).shape[-1] == length
    assert [tuple(w.shape) for w in layer.weights] == shapes
    assert not {1, 31, 300} & {n for shape in shapes for n in shape}


@every_form
def test_law_8_all_weights_are_made_in_build(case, form):
    built, called = case.make(), case.make()
    built.build(*(a.shape for a in case.inputs(form)))
    called(*case.inputs(form))
    assert [w.shape for w in built.weights] == [w.shape for w in called.weights]
    assert len({w.path for w in called.weights}) == len(called.weights)


@every_learner
def test_two_kernels_of_one_shape_begin_with_other_numbers(case):
    layer = case.make(kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    same = case.make(kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    for each in (layer, same):
        each.build(*((B, T, DV) for _ in case.inputs(case.main)))
    weights = [to_numpy(w) for w in layer.weights if "bias" not in w.name]
    for i, one in enumerate(weights):
        for other in weights[:i]:
            assert one.shape != other.shape or np.abs(one - other).max() > 1e-3
    for one, other in zip(own(layer), own(same), strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))


@every_learner
def test_kernels_of_a_seed_generator_begin_with_other_numbers(case):
    generator = keras.random.SeedGenerator(3)
    layer = case.make(kernel_initializer=keras.initializers.HeNormal(seed=generator))
    layer.build(*((B, T, DV) for _ in case.inputs(case.main)))
    weights = [to_numpy(w) for w in own(layer) if "bias" not in w.name]
    for i, one in enumerate(weights):
        for other in weights[:i]:
            assert one.shape != other.shape or np.abs(one - other).max() > 1e-3


def own(layer):
    """The weights a layer made itself, without those of a scorer inside it."""
    inner = {id(w) for w in layer.scorer.weights} if hasattr(layer, "scorer") else set()
    return [w for w in layer.weights if id(w) not in inner]


@every_learner
def test_the_regularizer_is_on_every_kernel(case):
    layer = case.make(kernel_regularizer=keras.regularizers.L2(0.5))
    layer(*case.inputs(case.main))
    mine = [to_numpy(w).astype("float64") for w in own(layer) if "bias" not in w.name]
    got = sum(float(to_numpy(loss)) for loss in layer.losses)
    np.testing.assert_allclose(got, 0.5 * sum((w**2).sum() for w in mine), rtol=1e-5)


@every_learner
def test_law_8_every_weight_gets_a_gradient(case):
    inputs = case.inputs(case.main)
    specs = [keras.Input(a.shape[1:]) for a in inputs]
    layer = case.make()
    context, _ = layer(*specs)
    model = keras.Model(specs, context)
    model.compile(keras.optimizers.SGD(10.0), "mse", jit_compile=False)
    before = [w.copy() for w in layer.get_weights()]
    model.train_on_batch(list(inputs), normal(B, *context.shape[1:], seed=9))
    for weight, old, new in zip(
        layer.weights, before, layer.get_weights(), strict=True
    ):
        # Softmax does not see what is added to all the scores of a query.
        if weight.name != "key_bias":
            assert np.abs(new - old).max() > 0, weight.name


# ---- 9: configuration and files


def constructor_arguments(layer):
    """{name: default} of a constructor and of those it hands arguments on to."""
    found = {}
    for cls in reversed(layer.__mro__):
        if cls.__module__.startswith("keras_attention") and "__init__" in vars(cls):
            found |= inspect.signature(cls.__init__).parameters
    return {k: v.default for k, v in found.items() if k not in ("self", "kwargs")}


@every_case
def test_law_9_config_holds_every_argument(case):
    layer, defaults = case.make(**case.other_config), constructor_arguments(case.layer)
    defaults = {k: v for k, v in defaults.items() if k not in case.refuses}
    assert set(defaults) <= set(case.other_config), "the table lacks an argument"
    config = json.loads(json.dumps(layer.get_config()))
    assert set(defaults) <= set(config)
    for name, default in defaults.items():
        assert default is inspect.Parameter.empty or config[name] != default
    again = case.layer.from_config(config)
    assert again.get_config() == layer.get_config()


@every_form
def test_law_9_files_give_the_layer_back(case, form, tmp_path):
    inputs = case.inputs(form)
    specs = [keras.Input(a.shape[1:]) for a in inputs]
    model = keras.Model(specs, case.make()(*specs))
    expected = to_numpy(model(list(inputs)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(99)
    other = keras.Model(specs, case.make()(*specs))
    other.load_weights(tmp_path / "model.weights.h5")
    for again in (loaded, other):
        for got, want in zip(to_numpy(again(list(inputs))), expected, strict=True):
            np.testing.assert_array_equal(got, want)


@every_form
@pytest.mark.parametrize("scores", [True, False])
def test_law_9_symbolic_shapes_equal_real_shapes(case, form, scores):
    layer, inputs = case.make(), case.inputs(form)
    real = layer(*inputs, return_attention_scores=scores)
    specs = [keras.Input(batch_shape=a.shape) for a in inputs]
    symbolic = layer(*specs, return_attention_scores=scores)
    real = real if scores else (real,)
    symbolic = symbolic if scores else (symbolic,)
    assert [tuple(r.shape) for r in real] == [tuple(s.shape) for s in symbolic]
    shapes = layer.compute_output_shape(*(a.shape for a in inputs))
    assert list(shapes)[: len(real)] == [tuple(r.shape) for r in real]
    dtypes = [keras.backend.standardize_dtype(t.dtype) for t in (*real, *symbolic)]
    assert set(dtypes) == {"float32"}


# ---- 10: no state


@every_form
def test_law_10_nothing_of_a_call_is_kept(case, form):
    layer, first = case.make(), case.inputs(form)
    layer(*first)
    before = set(vars(layer))
    padding = case.padding(form, REAL)
    expected = to_numpy(layer(*first, **padding))
    layer(*case.inputs(form, length=2, seed=5))
    assert set(vars(layer)) == before
    for got, want in zip(to_numpy(layer(*first, **padding)), expected, strict=True):
        np.testing.assert_array_equal(got, want)


@every_case
def test_law_10_two_threads_may_use_one_model(case):
    specs = open_specs(case.inputs(case.main))
    model = keras.Model(specs, case.make()(*specs))
    jobs = [list(case.inputs(case.main, length=n, seed=n)) for n in (2, 5, 11, 23)]
    expected = [to_numpy(model(job)) for job in jobs]
    wrong = []

    def work(i):
        for _ in range(10):
            got = to_numpy(model(jobs[i]))
            if not all(map(np.array_equal, got, expected[i])):
                wrong.append(i)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@every_case
def test_the_seed_decides_what_is_dropped(case):
    inputs = case.inputs(case.main)
    one, same, other = (case.make(dropout=0.5, seed=n) for n in (3, 3, 4))
    first = to_numpy(one(*inputs, training=True)[0])
    for layer in (same, other):
        layer.build(*(a.shape for a in inputs))
        layer.set_weights(one.get_weights())
    np.testing.assert_array_equal(to_numpy(same(*inputs, training=True)[0]), first)
    assert np.abs(to_numpy(other(*inputs, training=True)[0]) - first).max() > 1e-3


# ---- 12: everywhere Keras models go


@every_form
@pytest.mark.parametrize("jit", [False, True])
def test_law_12_compiled_equals_eager(case, form, jit):
    inputs = case.inputs(form)
    specs = open_specs(inputs)
    model = keras.Model(specs, case.make()(*specs))
    eager = to_numpy(model(list(inputs)))
    # PyTorch's compiler is a C++ compiler, which a laptop may not have.
    jit = jit and keras.backend.backend() != "torch"
    model.compile("sgd", "mse", jit_compile=jit)
    compiled = model.predict_on_batch(list(inputs))
    for got, want in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(got, want, atol=2e-6)


@every_case
@pytest.mark.parametrize("sentences", [4, None])
def test_law_12_inside_time_distributed(case, sentences):
    layer = case.make(return_attention_scores=False)
    states = keras.Input((None, DV))
    inner = keras.Model(states, attend_to_itself(case, layer, states))
    texts = keras.Input((sentences, None, DV))
    model = keras.Model(texts, keras.layers.TimeDistributed(inner)(texts))
    data = normal(B, 4, S, DV)
    together = model.predict(data, verbose=0)
    assert together.shape[:2] == (B, 4)
    alone = to_numpy(inner(data[:, 2]))
    np.testing.assert_allclose(together[:, 2], alone, atol=2e-6)


@every_case
def test_law_12_in_sequential_with_masks(case):
    if case.main == "full" and not {"pooling", "self"} & set(case.forms):
        pytest.skip("two inputs")
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(31, DV, mask_zero=True),
            case.make(return_attention_scores=False),
            keras.layers.Dense(1),
        ]
    )
    ids = np.array([[5, 7, 9], [3, 0, 0]])
    longer = np.pad(ids, ((0, 0), (2, 3)))
    short, long = (model.predict(x, verbose=0) for x in (ids, longer))
    if long.ndim == 3:
        long = long[:, 2:5]
    np.testing.assert_allclose(long, short, rtol=1e-5, atol=1e-6)


@every_case
def test_law_12_in_a_subclassed_model_that_trains(case):
    class Pooler(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(31, DV, mask_zero=True)
            self.attention = case.make()
            self.dense = keras.layers.Dense(1)

        def call(self, ids):
            states = self.embedding(ids)
            return self.dense(attend_to_itself(case, self.attention, states)[0])

    model = Pooler()
    model.compile("adam", "mse", jit_compile=False)
    ids = np.array([[5, 7, 9], [3, 0, 0]])
    before = model.predict(ids, verbose=0)
    model.fit(ids, np.ones_like(before), epochs=2, verbose=0)
    short = model.predict(ids, verbose=0)
    assert np.abs(short - before).max() > 1e-4
    longer = model.predict(np.pad(ids, ((0, 0), (0, 3))), verbose=0)
    if longer.ndim == 3:
        longer, short = longer[:, :3][ids != 0], short[ids != 0]
    np.testing.assert_allclose(longer, short, rtol=1e-5, atol=1e-6)


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="GradientTape")
@every_case
def test_law_12_in_a_custom_training_loop(case):
    import tensorflow as tf

    layer, inputs = case.make(), case.inputs(case.main)
    padding = case.padding(case.main, REAL)
    context = to_numpy(layer(*inputs)[0])
    target = context + 0.1 * normal(*context.shape, seed=9)
    queries = [tf.Variable(inputs[0])] if not layer.trainable_variables else []
    trained = layer.trainable_variables or queries

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            first = queries[0] if queries else inputs[0]
            context, _ = layer(first, *inputs[1:], **padding, training=True)
            loss = tf.reduce_mean((context - target) ** 2)
        gradients = tape.gradient(loss, trained)
        for variable, gradient in zip(trained, gradients, strict=True):
            variable.assign(variable - 0.01 * gradient)
        return loss

    losses = [float(step()) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


# ---- masks, in the words of a call


@every_case
@pytest.mark.parametrize("name", ["value_mask", "key_mask"])
def test_every_mask_of_the_keys_counts_and_is_named_in_errors(case, name):
    if "full with key" not in case.forms:
        pytest.skip("one input")
    layer, inputs = case.make(), case.inputs("full with key")
    weights = to_numpy(layer(*inputs, **{name: REAL})[1])
    dead = case.over_heads(~case.allowed("full", REAL))
    assert (weights[dead] == 0).all() and weights.any()
    with pytest.raises(ValueError, match=f"`{name}` must have the shape"):
        layer(*inputs, **{name: np.ones((B, S + 1), bool)})


@every_case
def test_every_padding_mask_of_one_input_counts(case):
    for form in {"pooling", "self"} & set(case.forms):
        for name in case.names:
            layer = case.make()
            weights = to_numpy(layer(*case.inputs(form), **{name: REAL})[1])
            weights = case.by_key(weights, form)
            dead = np.broadcast_to(
                ~REAL.reshape(B, *[1] * (weights.ndim - 2), S), weights.shape
            )
            assert (weights[dead] == 0).all() and (weights[~dead] > 0).any()


@every_form
def test_masks_of_every_kind_mean_the_same(case, form):
    layer, inputs = case.make(), case.inputs(form)
    want = to_numpy(layer(*inputs, **case.padding(form, REAL)))
    for mask in (REAL.astype("int32"), REAL.astype("float32"), REAL.tolist()):
        got = to_numpy(layer(*inputs, **case.padding(form, mask)))
        for one, expected in zip(got, want, strict=True):
            np.testing.assert_array_equal(one, expected)
    additive = np.where(REAL, 0.0, -1e9).astype("float32")
    with pytest.raises(ValueError, match=r"may attend.*additive"):
        layer(*inputs, **case.padding(form, additive))


@every_case
def test_masks_keras_carries_equal_masks_given_by_hand(case):
    layer = case.make()
    embedding = keras.layers.Embedding(31, DV, mask_zero=True)
    ids = np.array([[5, 7, 9, 0, 0], [3, 0, 0, 0, 0]])
    states = embedding(ids)
    carried = to_numpy(attend_to_itself(case, layer, states))
    plain = to_numpy(states)
    if {"pooling", "self"} & set(case.forms):
        by_hand = layer(plain, **{case.names[0]: ids != 0})
    else:
        by_hand = layer(plain, plain, query_mask=ids != 0, value_mask=ids != 0)
    for got, want in zip(carried, to_numpy(by_hand), strict=True):
        np.testing.assert_array_equal(got, want)


@every_case
def test_the_querys_mask_goes_on_and_a_pooled_context_has_none(case):
    ids = np.array([[5, 7, 0], [3, 0, 0]])
    states = keras.layers.Embedding(31, DV, mask_zero=True)(ids)

    class SeeMask(keras.layers.Layer):
        supports_masking = True

        def call(self, inputs, mask=None):
            return ops.zeros((2, 3), bool) if mask is None else mask

    layer = case.make()
    pairs = [states] if case.main == "self" else [states, states]
    np.testing.assert_array_equal(to_numpy(SeeMask()(layer(*pairs)[0])), ids != 0)
    np.testing.assert_array_equal(to_numpy(SeeMask()(states)), ids != 0)
    if "pooling" in case.forms:
        pooled, _ = case.make()(states)
        assert not to_numpy(SeeMask()(pooled)).any()


@every_case
def test_shapes_that_could_be_read_two_ways_are_refused(case):
    layer = case.make()
    square = normal(4, 4, DV)
    mask = np.tri(4, dtype=bool)
    if case.main == "self":
        inputs, padding = (square,), {case.names[0]: mask}
    else:
        inputs, padding = (normal(4, 4, DV, seed=1), square), {"value_mask": mask}
    weights = to_numpy(layer(*inputs, **padding)[1])
    weights = np.moveaxis(weights, -2, 1) if case.heads is None else weights[:, 0]
    dead = np.broadcast_to(~mask[:, None], weights.shape)
    assert (weights[dead] == 0).all() and weights.any()
    with pytest.raises(ValueError, match=r"`attention_mask` must have the shape"):
        layer(*inputs, attention_mask=mask)
    name = next(iter(padding))
    with pytest.raises(ValueError, match=f"`{name}` must have the shape"):
        layer(*inputs, **{name: np.ones((4, 4, 4), bool)})


@every_case
def test_calls_of_another_form_are_refused(case):
    layer = case.make()
    with pytest.raises(ValueError, match=r"Received: (a list of|.*\[?\()"):
        layer([normal(B, T, DV), normal(B, S, DV)])
    with pytest.raises(ValueError, match="Received"):
        layer(normal(B, DQ))
    if case.main == "self":
        return
    with pytest.raises(ValueError, match="Received"):
        layer(normal(B, T, DV), key=normal(B, S, DK))
    with pytest.raises(ValueError, match="must be of one batch"):
        layer(normal(B + 1, T, DV), normal(B, S, DV))
    with pytest.raises(ValueError, match="as many keys as values"):
        layer(normal(B, T, DK), normal(B, S, DV), normal(B, S + 1, DK))


@every_case
def test_forms_a_layer_has_not_are_refused_with_a_way_out(case):
    if "step" in case.forms and "pooling" not in case.forms:
        with pytest.raises(
            ValueError, match=r"compares queries.*layer\(query, value\)"
        ):
            case.make()(normal(B, S, DV))
    if "step" in case.forms:
        with pytest.raises(ValueError, match="Name whose mask it is"):
            case.make()(*case.inputs("full"), mask=REAL)
        with pytest.raises(ValueError, match="order of queries"):
            case.make()(*case.inputs("step"), use_causal_mask=True)


@every_case
def test_a_state_is_refused_by_layers_without_one(case):
    layer = case.make()
    if "step" not in case.forms or layer.has_state:
        pytest.skip("a state means something here, or is no argument")
    with pytest.raises(ValueError, match=r"has no state.*Received: `state`"):
        layer(*case.inputs("step"), state=np.zeros((B,)))
    states = normal(B, S, DV)
    assert layer.initial_state(states) is None and layer.next_state(None, None) is None


@every_case
def test_causal_queries_do_not_see_later_keys(case):
    layer = case.make()
    pairs = [normal(B, S, DV, seed=i) for i in range(1 if case.main == "self" else 2)]
    weights = to_numpy(layer(*pairs, use_causal_mask=True)[1])
    assert (np.triu(weights, 1) == 0).all()
    if case.sums_to_one:
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)


@every_case
@pytest.mark.parametrize("dropout", [-0.1, 1.0, 2])
def test_dropout_that_is_no_fraction_is_refused(case, dropout):
    with pytest.raises(ValueError, match="`dropout` must be"):
        case.make(dropout=dropout)


@every_case
def test_an_unknown_activation_is_refused(case):
    with pytest.raises(ValueError, match=r"`activation` must be.*'tanh'"):
        case.make(activation="tanh")


@every_learner
def test_a_width_that_is_unknown_is_refused(case):
    specs = [keras.Input((None, None)) for _ in case.inputs(case.main)]
    with pytest.raises(ValueError, match="last dimension of the inputs must be known"):
        case.make()(*specs)
