"""Laws 1-6 and 11, what numbers come out, for every row of the contract table.

Rows that only differ in a score, a mode or an activation are held to these laws alone.
"""

import dataclasses

import keras
import numpy as np
import pytest
from keras import ops

from tests.layers.contract import CASES, VARIANTS, B, S, T, to_numpy
from tests.layers.gradients import gradients

ROWS = [(case, ()) for case in CASES]
ROWS += [(case, (pytest.mark.slow,)) for case in VARIANTS]
every_row = pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=marks) for case, marks in ROWS]
)
every_form = pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{case.name}-{form}", marks=marks)
        for case, marks in ROWS
        for form in case.forms
    ],
)
# The equations are checked for every row, however little time there is.
equations = pytest.mark.parametrize(
    ("case", "form"),
    [
        pytest.param(case, form, id=f"{case.name}-{form}")
        for case, _ in ROWS
        for form in case.forms
    ],
)
REAL = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)  # padded right, padded left


def call(case, layer, form, mask=None, inputs=None, **kwargs):
    """(context, weights by key) of a call whose keys are padded by `mask`."""
    inputs = case.inputs(form) if inputs is None else inputs
    padding = {} if mask is None else case.padding(form, mask)
    context, weights = to_numpy(layer(*inputs, **padding, **kwargs))
    return context, case.by_key(weights, form)


def as_float32(tensor):
    return to_numpy(ops.cast(tensor, "float32"))


def check_sums(case, weights, allowed):
    """Law 1 on weights by key, for what was allowed (B, T, S)."""
    allowed = case.over_heads(allowed)
    assert (weights >= 0).all()
    assert (weights[~allowed] == 0).all()
    sums = weights.sum(-1)
    live = allowed.any(-1)
    assert (sums[~live] == 0).all() and (sums <= 1 + 1e-6).all()
    if case.sums_to_one:
        np.testing.assert_allclose(sums[live], 1, rtol=1e-5, atol=1e-6)
    if case.everywhere:
        assert (weights[allowed] > 0).all()


# ---- 1, 2: what weights are


@every_form
def test_law_1_weights_sum_to_one_over_what_may_be_attended(case, form):
    _, weights = call(case, case.make(), form, REAL)
    assert weights.any()
    check_sums(case, weights, case.allowed(form, REAL))


@every_form
def test_law_2_nothing_to_attend_to_gives_zeros(case, form):
    mask = np.array([[0] * S, [1] * S], bool)
    context, weights = call(case, case.make(), form, mask)
    assert (context[0] == 0).all() and (weights[0] == 0).all()
    assert (context[1] != 0).any() and np.isfinite(context).all()


@every_row
def test_law_2_a_query_that_is_padding_gets_zeros(case):
    if case.main == "self":
        context, weights = call(case, case.make(), "self", REAL)
        dead = ~REAL
    else:
        mask = np.array([[1, 1, 0], [1, 1, 1]], bool)
        context, weights = call(case, case.make(), "full", query_mask=mask)
        dead = ~mask
    assert (context[dead] == 0).all() and (context[~dead] != 0).any()
    assert (np.moveaxis(weights, -2, 1)[dead] == 0).all()


# ---- 3, 4: padding and neighbours


def padded(case, form, inputs, filler):
    """Inputs with three more tokens at the side of the keys, and their mask."""
    first = 0 if form in ("self", "pooling") else 1
    longer = list(inputs)
    for i in range(first, len(inputs)):
        extra = np.full((B, 3, inputs[i].shape[-1]), filler, "float32")
        longer[i] = np.concatenate([inputs[i], extra], 1)
    return longer, np.array([[1] * S + [0] * 3] * B)


@every_form
@pytest.mark.parametrize("filler", [7.0, -np.inf, np.nan])
def test_law_3_more_padding_changes_nothing(case, form, filler):
    layer, inputs = case.make(), case.inputs(form)
    context, weights = call(case, layer, form, inputs=inputs)
    longer, mask = padded(case, form, inputs, filler)
    longer_context, longer_weights = call(case, layer, form, mask, longer)
    if form == "self":
        assert (longer_context[:, S:] == 0).all()
        longer_context = longer_context[:, :S]
        longer_weights = longer_weights[..., :S, :]
    np.testing.assert_allclose(longer_context, context, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(longer_weights[..., :S], weights, rtol=1e-5, atol=1e-6)
    assert (longer_weights[..., S:] == 0).all()


@every_row
@pytest.mark.parametrize("filler", [np.inf, np.nan])
def test_law_3_holds_backward(case, filler):
    form, layer = case.main, case.make()
    inputs = case.inputs(form)
    layer(*inputs)
    rows = S if form == "self" else T

    def loss(*args, **masks):
        return ops.sum(layer(*args, **masks)[0][:, :rows] ** 2)

    plain = gradients(loss, inputs, layer)
    longer, mask = padded(case, form, inputs, filler)
    masks = case.padding(form, mask)
    if form != "self":
        extra = np.full((B, 2, inputs[0].shape[-1]), filler, "float32")
        longer[0] = np.concatenate([inputs[0], extra], 1)
        masks["query_mask"] = np.array([[1] * T + [0] * 2] * B, bool)
    found = gradients(lambda *args: loss(*args, **masks), longer, layer)
    for i, array in enumerate(inputs):
        length = array.shape[1]
        np.testing.assert_allclose(found[i][:, :length], plain[i], rtol=1e-4, atol=5e-5)
        assert not found[i][:, length:].any()
    for ours, theirs in zip(found[len(inputs) :], plain[len(inputs) :], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=5e-5)


@every_form
def test_law_4_rows_do_not_depend_on_their_batch(case, form):
    layer, inputs = case.make(), case.inputs(form)
    context, weights = call(case, layer, form, REAL, inputs)
    for row in range(B):
        one = slice(row, row + 1)
        alone = call(case, layer, form, REAL[one], [a[one] for a in inputs])
        np.testing.assert_allclose(alone[0][0], context[row], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(alone[1][0], weights[row], rtol=1e-5, atol=1e-6)


# ---- 5, 6: scores, dropout, number types


@every_form
def test_law_5_asking_for_weights_does_not_change_the_context(case, form):
    layer, inputs = case.make(), case.inputs(form)
    masks = case.padding(form, REAL)
    context, _ = to_numpy(layer(*inputs, **masks))
    alone = to_numpy(layer(*inputs, **masks, return_attention_scores=False))
    np.testing.assert_allclose(alone, context, rtol=1e-5, atol=1e-6)
    silent = case.make(return_attention_scores=False)
    silent(*inputs)
    silent.set_weights(layer.get_weights())
    np.testing.assert_array_equal(to_numpy(silent(*inputs, **masks)), alone)
    both = silent(*inputs, **masks, return_attention_scores=True)
    assert isinstance(both, tuple) and len(both) == 2


@every_form
def test_law_5_dropout_never_shows_in_the_weights(case, form):
    plain, dropping = case.make(), case.make(dropout=0.5, seed=3)
    inputs, masks = case.inputs(form), case.padding(form, REAL)
    plain(*inputs), dropping(*inputs)
    dropping.set_weights(plain.get_weights())
    context, weights = to_numpy(plain(*inputs, **masks))
    trained, seen = to_numpy(dropping(*inputs, **masks, training=True))
    np.testing.assert_allclose(seen, weights, atol=1e-7)
    assert np.abs(trained - context).max() > 1e-3
    resting, _ = to_numpy(dropping(*inputs, **masks))
    np.testing.assert_array_equal(resting, context)


@pytest.mark.parametrize(
    ("dtype", "scale"),
    [
        ("float16", 1e-4),
        ("float16", 1e4),
        ("mixed_float16", 1.0),
        ("mixed_float16", 1e4),
        ("bfloat16", 1e4),
        ("mixed_bfloat16", 1e4),
    ],
)
@every_form
def test_law_6_sixteen_bits_stay_finite(case, form, dtype, scale):
    layer = case.make(dtype=dtype)
    inputs = [np.clip(a, -6e4, 6e4) for a in case.inputs(form, scale=scale)]
    inputs[0] = -np.abs(inputs[0])  # all scores on one side
    mask = np.array([[1, 1, 0, 0, 0], [0] * S], bool)
    context, weights = layer(*inputs, **case.padding(form, mask))
    assert keras.backend.standardize_dtype(context.dtype) == layer.compute_dtype
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    context, weights = as_float32(context), case.by_key(to_numpy(weights), form)
    assert np.isfinite(context).all()
    # Large scores leave keys without weight.
    rare = dataclasses.replace(case, everywhere=False)
    check_sums(rare, weights, case.allowed(form, mask))
    assert (context[1] == 0).all()


@every_row
def test_law_6_holds_at_the_end_of_the_range(case):
    """bfloat16 goes to 3e38, where sums of products overflow even in float32."""
    inputs = [np.full_like(a, 1e38) for a in case.inputs(case.main)]
    inputs[0][:, 0] *= -1
    context, weights = case.make(dtype="bfloat16")(*inputs)
    assert np.isfinite(to_numpy(weights)).all()
    assert np.isfinite(as_float32(context)).all()


@pytest.mark.parametrize("dtype", ["float16", "mixed_float16"])
@every_row
def test_law_6_dropout_does_not_overflow(case, dtype):
    layer = case.make(dropout=0.5, dtype=dtype, seed=1)
    inputs = [np.full(a.shape, 6e4, "float16") for a in case.inputs(case.main)]
    context, _ = layer(*inputs, training=True)
    assert np.isfinite(as_float32(context)).all()


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
@pytest.mark.filterwarnings("ignore:Gradients do not exist")  # of hard weights
@every_row
def test_law_6_a_training_step_stays_finite(case, dtype):
    inputs = case.inputs(case.main, scale=100)
    specs = [keras.Input(a.shape[1:]) for a in inputs]
    context, _ = case.make(dtype=dtype)(*specs)
    model = keras.Model(specs, keras.layers.Dense(1)(context))
    model.compile(keras.optimizers.SGD(1e-3), "mse", jit_compile=False)
    target = np.zeros((B, *context.shape[1:-1], 1))
    assert np.isfinite(model.train_on_batch(list(inputs), target))
    assert all(np.isfinite(w).all() for w in model.get_weights())


# ---- 11: the equation


@equations
@pytest.mark.parametrize("masked", [False, True])
def test_law_11_equals_the_equation_in_loops(case, form, masked):
    layer, inputs = case.make(), case.inputs(form)
    layer(*inputs)
    rng = np.random.default_rng(7)
    layer.set_weights([0.7 * rng.normal(size=w.shape) for w in layer.get_weights()])
    steps = {"self": S, "full": T, "full with key": T}.get(form, 1)
    may_attend, masks = np.ones((B, steps, S), bool), {}
    if masked:
        pairs = rng.random((B, steps, S)) > 0.4
        pairs[:, -1] = True  # so that padding alone decides which keys are real
        masks = {**case.padding(form, REAL), "attention_mask": pairs}
        may_attend = pairs & case.allowed(form, REAL)
    context, weights = to_numpy(layer(*inputs, **masks))
    query, value, key = reference_inputs(inputs, form)
    want_context, want_weights = case.reference(layer, query, value, key, may_attend)
    if form in ("pooling", "step"):
        want_context = want_context[:, 0]
    np.testing.assert_allclose(case.by_key(weights, form), want_weights, atol=1e-5)
    np.testing.assert_allclose(context, want_context, atol=2e-5)


def reference_inputs(inputs, form):
    """Query, value and key of rank 3, as the loops take them."""
    if form in ("pooling", "self"):
        return None if form == "pooling" else inputs[0], inputs[0], inputs[0]
    query = inputs[0][:, None] if form == "step" else inputs[0]
    return query, inputs[1], inputs[2] if len(inputs) > 2 else inputs[1]


@every_row
def test_gradients_equal_finite_differences(case):
    """Along a random direction, for the inputs and every weight at once.

    In float64 where Keras keeps it: JAX has it switched off, and under PyTorch Keras
    goes on in float32. There the distance is the greater, for what float32 rounds is
    divided by it, and the sum is NumPy's, in float64.
    """
    exact = keras.backend.backend() == "tensorflow"
    dtype, distance, tolerance = (
        ("float64", 1e-6, 1e-5) if exact else ("float32", 5e-4, 1e-2)
    )
    form, layer = case.main, case.make(dtype=dtype)
    inputs = [a.astype(dtype) for a in case.inputs(form)]
    layer(*inputs)
    rng = np.random.default_rng(5)
    masks = case.padding(form, REAL)
    probe = rng.normal(size=layer(*inputs, **masks)[0].shape).astype(dtype)

    def loss(*args):
        return ops.sum(ops.multiply(layer(*args, **masks)[0], probe))

    found = gradients(loss, inputs, layer)
    start = [*inputs, *layer.get_weights()]
    step = [rng.normal(size=np.shape(a)).astype(dtype) for a in start]

    def at(distance):
        moved = [a + distance * d for a, d in zip(start, step, strict=True)]
        layer.set_weights(moved[len(inputs) :])
        output = to_numpy(layer(*moved[: len(inputs)], **masks)[0])
        return np.sum(output.astype("float64") * probe)

    slope = (at(distance) - at(-distance)) / (2 * distance)
    want = sum((g * d).sum() for g, d in zip(found, step, strict=True))
    np.testing.assert_allclose(want, slope, rtol=tolerance, atol=tolerance / 5)
