"""Faults that people met in other attention software: masks, padding and numbers."""

import functools

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from keras_attention.masking import masked_softmax
from tests.layers.contract import CASES, DV, VARIANTS, normal, to_numpy
from tests.layers.gradients import gradients
from tests.layers.test_laws_keras import every_case
from tests.layers.text_models import (
    BEFORE,
    HEADS,
    POSITIONS,
    decoder,
    encoder,
    predict,
    text_model,
    text_parts,
    translator,
)

every_row = pytest.mark.parametrize(
    "case", [*CASES, *VARIANTS], ids=lambda case: case.name
)
every_before = pytest.mark.parametrize("before", BEFORE)


def like(longer, shorter):
    """The part of a larger array that is where the smaller one is."""
    return longer[tuple(slice(size) for size in shorter.shape)]


# ---- empty and padded texts


@every_case
def test_an_empty_review_gives_no_nan_and_trains(case):
    """Masked pooling gave NaN for a row of padding, and then a loss of NaN."""
    ids, context, weights = text_parts(case)
    context = context if len(context.shape) == 2 else context[:, 0]
    prediction = keras.layers.Dense(1, activation="sigmoid")(context)
    model = keras.Model(ids, prediction)
    look = keras.Model(ids, [prediction, weights])
    reviews = np.array([[5, 7, 9, 0], [0, 0, 0, 0]])
    predicted, maps = predict(case, look, reviews)
    assert np.isfinite(predicted).all() and not maps[1].any() and maps[0].any()
    one = predict(case, look, reviews[:1])
    np.testing.assert_allclose(one[0][0], predicted[0], atol=1e-5)
    np.testing.assert_allclose(one[1][0], maps[0], atol=1e-5)
    model.compile("adam", "binary_crossentropy")
    for labels in ([[1], [0]], [[0], [1]]):
        assert np.isfinite(model.train_on_batch(reviews, np.array(labels)))
    assert all(np.isfinite(w).all() for w in model.get_weights())
    assert np.isfinite(model.predict_on_batch(reviews)).all()


@every_before
def test_an_empty_review_goes_through_positions_and_blocks(before):
    """The same, where the row of padding meets layer norms and positions first."""
    ids, context, _ = text_parts(CASES[0], BEFORE[before]())
    model = keras.Model(ids, keras.layers.Dense(1)(context))
    model.compile("adam", "mse")
    reviews = np.array([[5, 7, 9, 0], [0, 0, 0, 0]])
    predicted = model.predict_on_batch(reviews)
    row = model.predict_on_batch(reviews[:1])
    np.testing.assert_allclose(row[0], predicted[0], atol=1e-5)
    assert np.isfinite(model.train_on_batch(reviews, np.array([[1], [0]])))
    assert all(np.isfinite(w).all() for w in model.get_weights())


@every_case
@every_before
def test_more_padding_changes_nothing_after_scale_and_positions(case, before):
    """A product and a custom layer of positions lost the mask without a word."""
    scale = keras.layers.Rescaling(DV**0.5)
    model = text_model(case, [scale, *BEFORE[before]()])
    short = predict(case, model, np.array([[1, 2, 3]]))
    longer = predict(case, model, np.array([[1, 2, 3, 0, 0]]))
    for long, want in zip(longer, short, strict=True):
        np.testing.assert_allclose(like(long, want), want, atol=1e-5)
    assert (longer[1][..., 3:] == 0).all()


@pytest.mark.parametrize("normalization", ["pre", "post"])
@pytest.mark.parametrize("before", POSITIONS)
def test_more_padding_changes_nothing_in_decoder_blocks(before, normalization):
    """The same, for a stack of encoder and decoder over ids of source and target."""
    source, target = (keras.Input((None,), dtype="int32") for _ in range(2))
    embed = keras.Sequential(
        [
            keras.layers.Embedding(31, DV, mask_zero=True),
            keras.layers.Rescaling(DV**0.5),
            *POSITIONS[before](),
        ]
    )
    memory = encoder(normalization=normalization)(embed(source))
    block = decoder(normalization=normalization, return_attention_scores=True)
    output, maps = block(embed(target), memory)
    model = keras.Model([target, source], [output, maps["cross_attention"]])
    ids = np.array([[1, 2, 3]]), np.array([[4, 5, 6, 7]])
    short = model.predict_on_batch(list(ids))
    longer = model.predict_on_batch([np.pad(i, ((0, 0), (0, 2))) for i in ids])
    for long, want in zip(longer, short, strict=True):
        np.testing.assert_allclose(like(long, want), want, atol=1e-5)
    assert (longer[1][..., 4:] == 0).all() and (longer[0][:, 3:] == 0).all()


# ---- half precision


@every_row
@pytest.mark.parametrize("dtype", ["float16", "mixed_float16", "bfloat16"])
def test_large_negative_scores_in_sixteen_bits(case, dtype):
    """NaN in half precision once a row was padding and all scores were at -900 x."""
    layer, form = case.make(dtype=dtype), case.main
    key = 30 * np.abs(normal(2, 4, DV))
    inputs = [-key] if form == "self" else [-key, key]
    mask = np.array([[1, 1, 0, 0], [0, 0, 0, 0]])
    padding = case.padding(form, mask)
    context, weights = layer(*inputs, **padding)
    weights = case.by_key(to_numpy(weights), form)
    assert np.isfinite(weights).all()
    assert weights[0].any() or not case.sums_to_one
    assert (weights[0][..., 2:] == 0).all() and (weights[1] == 0).all()
    silent = layer(*inputs, **padding, return_attention_scores=False)
    for each in (context, silent):
        each = to_numpy(ops.cast(each, "float32"))
        assert np.isfinite(each).all() and (each[1] == 0).all()

    def loss(*args):
        context, _ = layer(*args, **padding, training=True)
        return ops.sum(ops.cast(context, "float32"))

    # NumPy takes no scalars of bfloat16, such as a learned gain, from TensorFlow.
    trained = None if dtype == "bfloat16" else layer
    for gradient in gradients(loss, inputs, trained):
        assert np.isfinite(gradient.astype("float32")).all()


# ---- what a mask is


@every_case
def test_a_padding_mask_where_batch_and_length_are_equal(case):
    """(batch, keys) was taken for (queries, keys) if the sizes happened to agree."""
    form = case.main
    inputs, mask = case.inputs(form, length=4, batch=4, steps=4), np.tri(4, dtype=bool)
    weights = to_numpy(case.make()(*inputs, **case.padding(form, mask))[1])
    seen = case.over_heads(np.repeat(mask[:, None], 4, axis=1))
    assert (weights[~seen] == 0).all()
    assert (weights[seen] > 0).all() or not case.everywhere or form == "self"
    with pytest.raises(ValueError, match="`attention_mask` must have the shape"):
        case.make()(*inputs, attention_mask=mask)


@every_case
@pytest.mark.parametrize("shape", [(2, 5), (2, 3, 5), (2, 1, 1, 5), (2, 1, 3, 5)])
def test_masks_of_every_documented_shape(case, shape):
    """Batch 2, 3 queries, 5 keys of width 7: each shape works, or is refused."""
    form = case.main
    steps = 5 if form == "self" else 3
    keys = np.array([[1, 1, 1, 0, 0], [1, 0, 0, 0, 0]], bool)
    inputs = [normal(2, steps, 7), normal(2, 5, 7, seed=1)][: 1 + (form != "self")]
    shape = tuple(steps if size == 3 else size for size in shape)
    mask = np.broadcast_to(keys.reshape(2, *[1] * (len(shape) - 2), 5), shape)
    layer = case.make()
    if len(shape) == 4 and case.heads is None:
        with pytest.raises(ValueError, match="`attention_mask` must have the shape"):
            layer(*inputs, attention_mask=mask)
        return
    padding = case.padding(form, mask)
    if len(shape) > 2:
        with pytest.raises(ValueError, match=r"_?mask` must have the shape"):
            layer(*inputs, **padding)
        padding = {"attention_mask": mask}
    weights = to_numpy(layer(*inputs, **padding)[1])
    dead = case.over_heads(np.repeat(~keys[:, None], steps, axis=1))
    assert (weights[dead] == 0).all() and weights.any()


def kinds_of(mask):
    """The mask as booleans, integers and floats, and as what is added to scores."""
    same = [mask, mask.astype("int32"), mask.astype("float32")]
    return same, np.where(mask, 0.0, -1e9).astype("float32")


def check_kinds(call, **masks):
    """Whether masks of 0 and 1 agree, and additive ones are refused."""
    for name, mask in masks.items():
        same, additive = kinds_of(mask)
        want, *others = (keras.tree.flatten(call(**{name: m})) for m in same)
        for other in others:
            for got, expected in zip(other, want, strict=True):
                np.testing.assert_array_equal(to_numpy(got), to_numpy(expected))
        with pytest.raises(ValueError, match=r"mask` must hold .*additive"):
            call(**{name: additive})


@every_case
def test_masks_mean_attend_whatever_their_type(case):
    """An additive mask was cast to booleans: 0 on the real token, 1.0 on the pads."""
    form, layer = case.main, case.make()
    inputs = case.inputs(form)
    queries, keys = inputs[0].shape[1], inputs[-1].shape[1]
    name = case.names[0] if form == "self" else "value_mask"
    masks = {
        name: np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], bool),
        "query_mask": np.arange(queries)[None].repeat(2, 0) < 2,
        "attention_mask": np.tri(queries, keys, dtype=bool)[None],
    }
    check_kinds(lambda **mask: layer(*inputs, **mask), **masks)


def test_masks_of_blocks_and_positions():
    """The same, for every mask that a block or a layer of positions takes."""
    tokens, source = normal(2, 5, 8), normal(2, 7, 8, seed=1)
    real = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], bool)
    pairs = np.tri(5, dtype=bool)[None]
    block, decode = encoder(), decoder()
    check_kinds(lambda **m: block(tokens, **m), mask=real, attention_mask=pairs)
    check_kinds(
        lambda **m: decode(tokens, source, **m),
        target_mask=real,
        source_mask=np.arange(7)[None].repeat(2, 0) < 4,
        attention_mask=pairs,
    )
    for layer in (
        keras_attention.RotaryEmbedding(),
        *POSITIONS["sinusoidal"](),
        *POSITIONS["learned"](),
    ):
        check_kinds(functools.partial(layer, tokens), mask=real[:, ::-1])


@every_case
def test_an_additive_mask_that_cannot_be_read_never_attends_to_pads(case):
    """Where a compiled function hides its values, nothing is attended rather."""
    form = case.main
    inputs = case.inputs(form)
    specs = [keras.Input(a.shape[1:]) for a in inputs]
    mask = keras.Input((5,))
    _, weights = case.make()(*specs, **case.padding(form, mask))
    model = keras.Model([*specs, mask], weights)
    real = np.array([[1, 0, 0, 0, 0], [1, 1, 0, 0, 0]], bool)
    (_, _, ones), additive = kinds_of(real)
    dead = case.over_heads(np.repeat(~real[:, None], inputs[0].shape[1], axis=1))
    weights = model.predict_on_batch([*inputs, ones])
    assert (weights[dead] == 0).all() and weights.any()
    if keras.backend.backend() == "torch":  # which compiles nothing
        with pytest.raises(ValueError, match=r"must hold .*additive"):
            model.predict_on_batch([*inputs, additive])
        return
    assert (model.predict_on_batch([*inputs, additive])[dead] == 0).all()


@every_case
def test_a_row_masks_keys_and_a_column_masks_queries(case):
    """A mask on the wrong axis gave 1/3, 1/3, 1/3 to what is masked."""
    tokens = normal(2, 3, DV)
    inputs = [tokens] if case.main == "self" else [tokens, normal(2, 3, DV, seed=1)]
    mask = np.array([1, 1, 0], bool)
    layer = case.make()
    row = to_numpy(layer(*inputs, attention_mask=mask[None, None])[1])
    assert (row[..., 2] == 0).all() and row[..., :2].any()
    context, column = to_numpy(layer(*inputs, attention_mask=mask[None, :, None]))
    assert (column[..., 2, :] == 0).all() and column[..., :2, 2].any()
    assert (context[:, 2] == 0).all()
    if case.sums_to_one:
        np.testing.assert_allclose(row.sum(-1), 1, atol=1e-6)
        np.testing.assert_allclose(column[..., :2, :].sum(-1), 1, atol=1e-6)


def test_the_softmax_of_a_masked_axis():
    """The same for the function: [1, 2, 3] over keys, a row and a column masked."""
    scores = np.tile([1.0, 2.0, 3.0], (1, 3, 1)).astype("float32")
    mask = np.array([1, 1, 0], bool)
    e = np.exp([1.0, 2.0])
    row = to_numpy(masked_softmax(ops.convert_to_tensor(scores), mask[None, None]))
    np.testing.assert_allclose(row[0], [[*e / e.sum(), 0]] * 3, atol=1e-6)
    column = masked_softmax(ops.convert_to_tensor(scores), mask[None, :, None])
    column = to_numpy(column)[0]
    want = np.exp(scores[0, 0]) / np.exp(scores[0, 0]).sum()
    np.testing.assert_allclose(column, [want, want, [0, 0, 0]], atol=1e-6)


# ---- source and target

LENGTHS = [((7, 5), (4, 3)), ((6, 6), (4, 2)), ((6, 6), (2, 5))]
lengths = pytest.mark.parametrize(("sizes", "real"), LENGTHS)


def padded_ids(sizes, real):
    """Target and source: two rows of random ids, of which `real` are no padding."""
    rng = np.random.default_rng(3)
    return [
        np.where(np.arange(size) < number, rng.integers(1, 31, (2, size)), 0)
        for size, number in zip(sizes, real, strict=True)
    ]


@every_case
@lengths
def test_cross_attention_has_the_mask_of_the_source(case, sizes, real):
    """The decoder's attention to the source was given the mask of the target."""
    if case.main == "self":
        pytest.skip("one input")
    target, source = (keras.Input((None,), dtype="int32") for _ in range(2))
    embed = keras.layers.Embedding(31, DV, mask_zero=True)
    context, weights = case.make()(embed(target), embed(source))
    model = keras.Model([target, source], [context, weights])
    ids = padded_ids(sizes, real)
    want, weights = model.predict_on_batch(ids)
    assert weights.shape[-2:] == sizes
    assert (weights[..., real[1] :] == 0).all()
    assert (weights[..., real[0] :, :] == 0).all()
    live = weights[..., : real[0], : real[1]]
    assert (live > 0).all() if case.everywhere else live.any()
    table = to_numpy(embed.embeddings).copy()
    table[0] = 5
    embed.set_weights([table])
    got, _ = model.predict_on_batch(ids)
    np.testing.assert_allclose(got[:, : real[0]], want[:, : real[0]], atol=1e-5)


@lengths
def test_a_transformer_sees_the_whole_source_and_no_later_target(sizes, real):
    """The same, for a stack of blocks: outputs, weights and a training step."""
    embed, model = translator()
    ids = padded_ids(sizes, real)
    want, *maps = model.predict_on_batch(ids)
    for weights in maps:
        assert weights.shape == (2, HEADS, *sizes)
        assert (weights[..., real[1] :] == 0).all()
        assert (weights[:, :, : real[0], : real[1]] > 0).all()
    for step in range(1, real[0]):
        other = ids[0].copy()
        other[:, step : real[0]] = other[:, step : real[0]] % 30 + 1
        got = model.predict_on_batch([other, ids[1]])[0]
        np.testing.assert_allclose(got[:, :step], want[:, :step], atol=1e-5)
        assert np.abs(got[:, step] - want[:, step]).max() > 1e-3
    table = to_numpy(embed.embeddings).copy()
    table[0] = 5
    embed.set_weights([table])
    got = model.predict_on_batch(ids)[0]
    np.testing.assert_allclose(got[:, : real[0]], want[:, : real[0]], atol=1e-5)
    states = keras.Model(model.inputs, model.outputs[0])
    states.compile("sgd", "mse")
    assert np.isfinite(states.train_on_batch(ids, np.zeros_like(want)))
