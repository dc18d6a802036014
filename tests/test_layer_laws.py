"""The twelve laws of README, for every layer of the contract table."""

import inspect
import json
import threading

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from tests.contract import CASES, DK, DQ, DV, B, S, T, normal, to_numpy

pytestmark = pytest.mark.parametrize(
    "case", CASES, ids=[case.layer.__name__ for case in CASES]
)
FORMS = ("pooling", "step", "full", "full with key")
forms = pytest.mark.parametrize("form", FORMS)
REAL = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)  # padded right, padded left


def inputs_of(form, length=S, scale=1.0, seed=0):
    """The positional arguments of a call in one of the forms."""
    value = normal(B, length, DV, seed=seed, scale=scale)
    key = normal(B, length, DK, seed=seed + 1, scale=scale)
    query = normal(B, T, DQ, seed=seed + 2, scale=scale)
    return {
        "pooling": (value,),
        "step": (query[:, 0], value),
        "full": (query, value),
        "full with key": (query, value, key),
    }[form]


def by_key(weights, form):
    """Weights with the keys on the last axis, as (B, T or 1, S)."""
    return weights if form.startswith("full") else np.swapaxes(weights, 1, 2)


def reference_inputs(args, form):
    """Query, value and key of rank 3, as the loops take them."""
    if form == "pooling":
        return None, args[0], args[0]
    query = args[0][:, None] if form == "step" else args[0]
    return query, args[1], args[2] if len(args) > 2 else args[1]


def test_every_public_layer_is_in_the_table(case):
    public = {
        thing
        for name in keras_attention.__all__
        if inspect.isclass(thing := getattr(keras_attention, name))
        and issubclass(thing, keras.layers.Layer)
        and thing not in (keras_attention.AttentionLayer, keras_attention.ScoredAttention)
    }
    assert public >= {case.layer for case in CASES}


# ---- 1, 2: what weights are


@forms
def test_law_1_weights_sum_to_one_over_what_may_be_attended(case, form):
    weights = by_key(
        to_numpy(case.make()(*inputs_of(form, scale=5), value_mask=REAL)[1]), form
    )
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
    assert (weights[np.broadcast_to(~REAL[:, None], weights.shape)] == 0).all()
    assert (weights[np.broadcast_to(REAL[:, None], weights.shape)] > 0).all()


@forms
def test_law_2_nothing_to_attend_to_gives_zeros(case, form):
    mask = np.array([[0] * S, [1] * S], bool)
    context, weights = to_numpy(case.make()(*inputs_of(form), value_mask=mask))
    assert (context[0] == 0).all() and (weights[0] == 0).all()
    assert (context[1] != 0).any() and np.isfinite(context).all()


def test_law_2_a_query_that_is_padding_gets_zeros(case):
    mask = np.array([[1, 1, 0], [1, 1, 1]], bool)
    context, weights = to_numpy(case.make()(*inputs_of("full"), query_mask=mask))
    assert (context[0, 2] == 0).all() and (weights[0, 2] == 0).all()
    np.testing.assert_allclose(weights[mask].sum(-1), 1, atol=1e-6)


# ---- 3, 4: padding and neighbours


@forms
@pytest.mark.parametrize("filler", [0.0, 7.0, np.inf, -np.inf, np.nan])
def test_law_3_more_padding_changes_nothing(case, form, filler):
    layer, args = case.make(), inputs_of(form)
    context, weights = to_numpy(layer(*args))
    extra = [np.full((B, 3, a.shape[2]), filler, "float32") for a in args if a.ndim > 2]
    first_key = 0 if form == "pooling" else 1
    padded = list(args)
    for i in range(first_key, len(args)):
        padded[i] = np.concatenate([args[i], extra[i if form != "step" else 0]], 1)
    mask = np.array([[1] * S + [0] * 3] * B)
    longer_context, longer = to_numpy(layer(*padded, value_mask=mask))
    np.testing.assert_allclose(longer_context, context, atol=1e-6)
    longer, weights = by_key(longer, form), by_key(weights, form)
    np.testing.assert_allclose(longer[..., :S], weights, atol=1e-6)
    assert (longer[..., S:] == 0).all()


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="GradientTape")
@pytest.mark.parametrize("filler", [0.0, np.inf, np.nan])
def test_law_3_holds_backward(case, filler):
    import tensorflow as tf

    layer, (query, value) = case.make(), inputs_of("full")

    def gradients(query, value, **masks):
        query, value = tf.constant(query), tf.constant(value)
        with tf.GradientTape() as tape:
            tape.watch([query, value])
            context, _ = layer(query, value, **masks)
            loss = tf.reduce_sum(context[:, :T] ** 2)
        return tape.gradient(loss, [query, value, *layer.trainable_variables])

    plain = gradients(query, value)
    padding = np.full((B, 2, DQ), filler, "float32")
    longer_query = np.concatenate([query, padding], 1)
    padding = np.full((B, 3, DV), filler, "float32")
    longer_value = np.concatenate([value, padding], 1)
    masks = {
        "query_mask": np.array([[1] * T + [0] * 2] * B, bool),
        "value_mask": np.array([[1] * S + [0] * 3] * B, bool),
    }
    padded = gradients(longer_query, longer_value, **masks)
    np.testing.assert_allclose(padded[0][:, :T], plain[0], atol=1e-6)
    np.testing.assert_allclose(padded[1][:, :S], plain[1], atol=1e-6)
    assert not padded[0][:, T:].numpy().any() and not padded[1][:, S:].numpy().any()
    for ours, theirs in zip(padded[2:], plain[2:], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@forms
def test_law_4_rows_do_not_depend_on_their_batch(case, form):
    layer, args = case.make(), inputs_of(form)
    context, weights = to_numpy(layer(*args, value_mask=REAL))
    for row in range(B):
        alone = to_numpy(
            layer(*(a[row : row + 1] for a in args), value_mask=REAL[row : row + 1])
        )
        np.testing.assert_allclose(alone[0][0], context[row], atol=1e-6)
        np.testing.assert_allclose(alone[1][0], weights[row], atol=1e-6)


# ---- 5, 6: scores, dropout, number types


@forms
def test_law_5_asking_for_weights_does_not_change_the_context(case, form):
    layer, args = case.make(), inputs_of(form)
    context, _ = to_numpy(layer(*args, value_mask=REAL))
    alone = to_numpy(layer(*args, value_mask=REAL, return_attention_scores=False))
    np.testing.assert_array_equal(alone, context)
    silent = case.make(return_attention_scores=False)
    silent(*args)
    silent.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(silent(*args, value_mask=REAL)), context)
    both = silent(*args, value_mask=REAL, return_attention_scores=True)
    assert isinstance(both, tuple) and len(both) == 2


@forms
def test_law_5_dropout_never_shows_in_the_weights(case, form):
    plain, dropping = case.make(), case.make(dropout=0.5, seed=3)
    args = inputs_of(form)
    plain(*args), dropping(*args)
    dropping.set_weights(plain.get_weights())
    context, weights = to_numpy(plain(*args, value_mask=REAL))
    trained, seen = to_numpy(dropping(*args, value_mask=REAL, training=True))
    np.testing.assert_allclose(seen, weights, atol=1e-7)
    assert np.abs(trained - context).max() > 1e-3
    resting, _ = to_numpy(dropping(*args, value_mask=REAL))
    np.testing.assert_array_equal(resting, context)


@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@forms
def test_law_6_sixteen_bits_stay_finite(case, form, dtype, scale):
    layer = case.make(dtype=dtype)
    args = [np.clip(a, -6e4, 6e4) for a in inputs_of(form, scale=scale)]
    args[0] = -np.abs(args[0])  # all scores on one side
    mask = np.array([[1, 1, 0, 0, 0], [0] * S], bool)
    context, weights = layer(*args, value_mask=mask)
    assert keras.backend.standardize_dtype(context.dtype) == layer.compute_dtype
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    context = to_numpy(ops.cast(context, "float32"))
    weights = by_key(to_numpy(weights), form)
    assert np.isfinite(context).all() and np.isfinite(weights).all()
    np.testing.assert_allclose(weights[0].sum(-1), 1, atol=1e-6)
    assert (context[1] == 0).all() and (weights[1] == 0).all()


def test_law_6_holds_at_the_end_of_the_range(case):
    """bfloat16 goes to 3e38, where sums of products overflow even in float32."""
    query, value = (np.full((1, 2, n), 1e38, "float32") for n in (DQ, DV))
    query[:, 0] *= -1
    context, weights = case.make(dtype="bfloat16")(query, value)
    assert np.isfinite(to_numpy(weights)).all()
    assert np.isfinite(to_numpy(ops.cast(context, "float32"))).all()


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
def test_law_6_dropout_does_not_overflow(case, dtype):
    layer = case.make(dropout=0.5, dtype=dtype, seed=1)
    states = np.full((4, S, DV), 6e4, "float16")
    context, _ = layer(states, training=True)
    assert np.isfinite(to_numpy(ops.cast(context, "float32"))).all()


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_law_6_a_training_step_stays_finite(case, dtype):
    query = keras.Input((T, DQ))
    value = keras.Input((S, DV))
    context, _ = case.make(dtype=dtype)(query, value)
    model = keras.Model([query, value], keras.layers.Dense(1)(context))
    model.compile(keras.optimizers.SGD(1e-3), "mse", jit_compile=False)
    args = inputs_of("full", scale=100)
    assert np.isfinite(model.train_on_batch(list(args), np.zeros((B, T, 1))))
    assert all(np.isfinite(w).all() for w in model.get_weights())


def test_the_seed_decides_what_is_dropped(case):
    args = inputs_of("full")
    one, same, other = (case.make(dropout=0.5, seed=n) for n in (3, 3, 4))
    first = to_numpy(one(*args, training=True)[0])
    for layer in (same, other):
        layer(*args)
        layer.set_weights(one.get_weights())
    again = case.make(dropout=0.5, seed=3)
    again.build(*(a.shape for a in args))
    again.set_weights(one.get_weights())
    np.testing.assert_array_equal(to_numpy(again(*args, training=True)[0]), first)
    assert np.abs(to_numpy(other(*args, training=True)[0]) - first).max() > 1e-3


# ---- 7, 8: widths, lengths, building


def test_law_7_widths_may_differ(case):
    context, weights = case.make()(*inputs_of("full with key"))
    assert context.shape == (B, T, DV) and weights.shape == (B, T, S)


@forms
def test_law_8_no_weight_depends_on_a_length(case, form):
    specs = [
        keras.Input((None,) * (a.ndim - 2) + (a.shape[-1],)) for a in inputs_of(form)
    ]
    layer = case.make()
    model = keras.Model(specs, layer(*specs))
    shapes = [tuple(w.shape) for w in layer.weights]
    for length in (1, 23, 300):
        args = inputs_of(form, length=length)
        _, weights = to_numpy(model(list(args)))
        assert by_key(weights, form).shape[-1] == length
    assert [tuple(w.shape) for w in layer.weights] == shapes
    assert not {1, 23, 300} & {n for shape in shapes for n in shape}


@forms
def test_law_8_all_weights_are_made_in_build(case, form):
    built, called = case.make(), case.make()
    built.build(*(a.shape for a in inputs_of(form)))
    called(*inputs_of(form))
    assert [w.shape for w in built.weights] == [w.shape for w in called.weights]
    assert len({w.path for w in called.weights}) == len(called.weights)


def test_two_weights_of_one_shape_begin_with_other_numbers(case):
    layer = case.make()
    layer.build((B, T, DV), (B, S, DV))
    weights = layer.get_weights()
    for i, one in enumerate(weights):
        for other in weights[:i]:
            assert one.shape != other.shape or np.abs(one - other).max() > 1e-3


def test_a_seeded_initializer_gives_each_weight_its_own_numbers(case):
    layer = case.make(kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    layer.build((B, T, DV), (B, S, DV))
    same = case.make(kernel_initializer=keras.initializers.GlorotUniform(seed=1))
    same.build((B, T, DV), (B, S, DV))
    first, second, *_ = layer.get_weights()
    assert first.shape != second.shape or np.abs(first - second).max() > 1e-3
    for one, other in zip(layer.get_weights(), same.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_the_regularizer_is_on_every_kernel(case):
    layer = case.make(kernel_regularizer=keras.regularizers.L2(0.5))
    layer(*inputs_of("full"))
    want = 0.5 * sum((w.astype("float64") ** 2).sum() for w in layer.get_weights())
    got = sum(float(to_numpy(loss)) for loss in layer.losses)
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_law_8_every_weight_gets_a_gradient(case):
    query, value = keras.Input((T, DQ)), keras.Input((S, DV))
    layer = case.make(use_bias=True)
    context, _ = layer(query, value)
    model = keras.Model([query, value], context)
    model.compile(keras.optimizers.SGD(10.0), "mse", jit_compile=False)
    before = [w.copy() for w in layer.get_weights()]
    model.train_on_batch(list(inputs_of("full")), normal(B, T, DV, seed=9))
    for old, new in zip(before, layer.get_weights(), strict=True):
        assert np.abs(new - old).max() > 0


# ---- 9: configuration and files


def test_law_9_config_holds_every_argument(case):
    layer = case.make(**case.other_config)
    arguments = set(inspect.signature(case.layer.__init__).parameters)
    arguments -= {"self", "kwargs"}
    assert arguments <= set(case.other_config), "the table lacks an argument"
    config = json.loads(json.dumps(layer.get_config()))
    assert arguments <= set(config)
    defaults = inspect.signature(case.layer.__init__).parameters
    for name in arguments:
        default = defaults[name].default
        assert default is inspect.Parameter.empty or config[name] != default
    again = case.layer.from_config(config)
    assert again.get_config() == layer.get_config()


@forms
def test_law_9_files_give_the_layer_back(case, form, tmp_path):
    args = inputs_of(form)
    specs = [keras.Input(a.shape[1:]) for a in args]
    model = keras.Model(specs, case.make()(*specs))
    expected = to_numpy(model(list(args)))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(99)
    other = keras.Model(specs, case.make()(*specs))
    other.load_weights(tmp_path / "model.weights.h5")
    for again in (loaded, other):
        for got, want in zip(to_numpy(again(list(args))), expected, strict=True):
            np.testing.assert_array_equal(got, want)


@forms
@pytest.mark.parametrize("scores", [True, False])
def test_law_9_symbolic_shapes_equal_real_shapes(case, form, scores):
    layer, args = case.make(), inputs_of(form)
    real = layer(*args, return_attention_scores=scores)
    specs = [keras.Input(batch_shape=a.shape) for a in args]
    symbolic = layer(*specs, return_attention_scores=scores)
    real = real if scores else (real,)
    symbolic = symbolic if scores else (symbolic,)
    assert [tuple(r.shape) for r in real] == [tuple(s.shape) for s in symbolic]
    shapes = layer.compute_output_shape(*(a.shape for a in args))
    assert list(shapes)[: len(real)] == [tuple(r.shape) for r in real]
    dtypes = [keras.backend.standardize_dtype(t.dtype) for t in (*real, *symbolic)]
    assert set(dtypes) == {"float32"}


# ---- 10: no state


def test_law_10_nothing_of_a_call_is_kept(case):
    layer = case.make()
    first = inputs_of("full with key")
    layer(*first)
    before = set(vars(layer))
    expected = to_numpy(layer(*first, value_mask=REAL))
    layer(*inputs_of("full with key", length=2, seed=5))
    assert set(vars(layer)) == before
    for got, want in zip(
        to_numpy(layer(*first, value_mask=REAL)), expected, strict=True
    ):
        np.testing.assert_array_equal(got, want)


def test_law_10_two_threads_may_use_one_model(case):
    specs = [keras.Input((None, DQ)), keras.Input((None, DV))]
    model = keras.Model(specs, case.make()(*specs))
    jobs = [list(inputs_of("full", length=n, seed=n)) for n in (2, 5, 11, 23)]
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


# ---- 11: the equation


@forms
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("extra", [{}, {"use_bias": True}])
def test_law_11_equals_the_equation_in_loops(case, form, masked, extra):
    layer, args = case.make(**extra), inputs_of(form)
    layer(*args)
    rng = np.random.default_rng(7)
    layer.set_weights([rng.normal(size=w.shape) for w in layer.get_weights()])
    query, value, key = reference_inputs(args, form)
    steps = 1 if query is None else query.shape[1]
    may_attend = np.ones((B, steps, S), bool)
    masks = {}
    if masked:
        pairs = rng.random((B, steps, S)) > 0.4
        masks = {"value_mask": REAL, "attention_mask": pairs}
        may_attend = pairs & REAL[:, None]
    context, weights = to_numpy(layer(*args, **masks))
    want_context, want_weights = case.reference(layer, query, value, key, may_attend)
    if not form.startswith("full"):
        want_context = want_context[:, 0]
    np.testing.assert_allclose(by_key(weights, form), want_weights, atol=1e-5)
    np.testing.assert_allclose(context, want_context, atol=1e-5)


# ---- 12: everywhere Keras models go


@pytest.mark.parametrize("jit", [False, True])
def test_law_12_compiled_equals_eager(case, jit):
    args = inputs_of("full")
    specs = [keras.Input((None, a.shape[2])) for a in args]
    model = keras.Model(specs, case.make()(*specs))
    eager = to_numpy(model(list(args)))
    model.compile("sgd", "mse", jit_compile=jit)
    compiled = model.predict_on_batch(list(args))
    for got, want in zip(compiled, eager, strict=True):
        np.testing.assert_allclose(got, want, atol=1e-6)


@pytest.mark.parametrize("sentences", [4, None])
def test_law_12_inside_time_distributed(case, sentences):
    layer = case.make(return_attention_scores=False)
    texts = keras.Input((sentences, None, DV))
    model = keras.Model(texts, keras.layers.TimeDistributed(layer)(texts))
    data = normal(B, 4, S, DV)
    pooled = model.predict(data, verbose=0)
    assert pooled.shape == (B, 4, DV)
    alone = to_numpy(layer(data[:, 2]))
    np.testing.assert_allclose(pooled[:, 2], alone, atol=1e-6)


def test_law_12_in_sequential_with_masks(case):
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
    np.testing.assert_allclose(
        model.predict(longer, verbose=0), model.predict(ids, verbose=0), atol=1e-6
    )


def test_law_12_in_a_subclassed_model_that_trains(case):
    class Pooler(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(31, DV, mask_zero=True)
            self.attention = case.make()
            self.dense = keras.layers.Dense(1)

        def call(self, ids):
            context, _ = self.attention(self.embedding(ids))
            return self.dense(context)

    model = Pooler()
    model.compile("adam", "mse", jit_compile=False)
    ids = np.array([[5, 7, 9], [3, 0, 0]])
    model.fit(ids, np.array([[1.0], [0.0]]), epochs=2, verbose=0)
    longer = np.pad(ids, ((0, 0), (0, 3)))
    np.testing.assert_allclose(
        model.predict(longer, verbose=0), model.predict(ids, verbose=0), atol=1e-6
    )


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="GradientTape")
def test_law_12_in_a_custom_training_loop(case):
    import tensorflow as tf

    layer, args, target = case.make(), inputs_of("full"), normal(B, T, DV, seed=9)
    layer(*args)
    optimizer = keras.optimizers.SGD(0.1)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            context, _ = layer(*args, value_mask=REAL, training=True)
            loss = tf.reduce_mean((context - target) ** 2)
        gradients = tape.gradient(loss, layer.trainable_variables)
        optimizer.apply(gradients, layer.trainable_variables)
        return loss

    losses = [float(step()) for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


@pytest.mark.parametrize("name", ["value_mask", "key_mask"])
def test_every_mask_of_the_keys_counts_and_is_named_in_errors(case, name):
    layer, args = case.make(), inputs_of("full with key")
    weights = to_numpy(layer(*args, **{name: REAL})[1])
    assert (weights[np.broadcast_to(~REAL[:, None], weights.shape)] == 0).all()
    with pytest.raises(ValueError, match=f"`{name}` must have the shape"):
        layer(*args, **{name: np.ones((B, S + 1), bool)})


@pytest.mark.parametrize("name", ["mask", "query_mask", "value_mask", "key_mask"])
def test_every_padding_mask_of_pooled_states_counts(case, name):
    weights = to_numpy(case.make()(*inputs_of("pooling"), **{name: REAL})[1])[..., 0]
    assert (weights[~REAL] == 0).all() and (weights[REAL] > 0).all()


def test_masks_of_every_kind_mean_the_same(case):
    layer, args = case.make(), inputs_of("full")
    want = to_numpy(layer(*args, value_mask=REAL))
    for mask in (REAL.astype("int32"), REAL.astype("float32"), REAL.tolist()):
        for got, expected in zip(
            to_numpy(layer(*args, value_mask=mask)), want, strict=True
        ):
            np.testing.assert_array_equal(got, expected)
    with pytest.raises(ValueError, match=r"may attend.*additive"):
        layer(*args, value_mask=np.where(REAL, 0.0, -1e9).astype("float32"))


def test_masks_keras_carries_equal_masks_given_by_hand(case):
    layer = case.make()
    embedding = keras.layers.Embedding(31, DV, mask_zero=True)
    ids = np.array([[5, 7, 9, 0, 0], [3, 0, 0, 0, 0]])
    states = embedding(ids)
    by_hand = to_numpy(layer(to_numpy(states), mask=ids != 0))
    carried = to_numpy(layer(states))
    for got, want in zip(carried, by_hand, strict=True):
        np.testing.assert_array_equal(got, want)
    layer = case.make()
    context, weights = layer(states, states)
    by_hand = layer(
        to_numpy(states), to_numpy(states), query_mask=ids != 0, value_mask=ids != 0
    )
    np.testing.assert_array_equal(to_numpy(weights), to_numpy(by_hand[1]))
    np.testing.assert_array_equal(to_numpy(context), to_numpy(by_hand[0]))


def test_the_querys_mask_goes_on_and_a_pooled_context_has_none(case):
    ids = np.array([[5, 7, 0], [3, 0, 0]])
    states = keras.layers.Embedding(31, DV, mask_zero=True)(ids)

    class SeeMask(keras.layers.Layer):
        supports_masking = True

        def call(self, inputs, mask=None):
            return ops.zeros((2, 3), bool) if mask is None else mask

    context, _ = case.make()(states, states)
    np.testing.assert_array_equal(to_numpy(SeeMask()(context)), ids != 0)
    pooled, _ = case.make()(states)
    assert not to_numpy(SeeMask()(pooled)).any()


def test_shapes_that_could_be_read_two_ways_are_refused(case):
    layer = case.make()
    query, value = normal(4, 4, DQ), normal(4, 4, DV)
    mask = np.tri(4, dtype=bool)
    weights = to_numpy(layer(query, value, value_mask=mask)[1])
    assert (weights[np.broadcast_to(~mask[:, None], weights.shape)] == 0).all()
    with pytest.raises(ValueError, match=r"`attention_mask` must have the shape"):
        layer(query, value, attention_mask=mask)
    with pytest.raises(ValueError, match=r"`value_mask` must have the shape"):
        layer(query, value, value_mask=np.ones((4, 4, 4), bool))
    with pytest.raises(ValueError, match="Name whose mask it is"):
        layer(query, value, mask=mask)


def test_calls_of_another_form_are_refused(case):
    layer = case.make()
    with pytest.raises(ValueError, match=r"layer\(\*inputs\)"):
        layer([normal(B, T, DQ), normal(B, S, DV)])
    with pytest.raises(ValueError, match="Received: query"):
        layer(normal(B, DQ))
    with pytest.raises(ValueError, match="Received: query"):
        layer(normal(B, T, DQ), key=normal(B, S, DK))
    with pytest.raises(ValueError, match="must be of one batch"):
        layer(normal(B + 1, DQ), normal(B, S, DV))
    with pytest.raises(ValueError, match="as many keys as values"):
        layer(normal(B, T, DQ), normal(B, S, DV), normal(B, S + 1, DK))
    with pytest.raises(ValueError, match="order of queries"):
        layer(normal(B, S, DV), use_causal_mask=True)


def test_causal_queries_do_not_see_later_keys(case):
    layer = case.make()
    query, value = normal(B, S, DQ), normal(B, S, DV)
    weights = to_numpy(layer(query, value, use_causal_mask=True)[1])
    assert (np.triu(weights, 1) == 0).all()
    np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-6)
