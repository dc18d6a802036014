"""Positions: the papers' formulas, padding, decoding by steps, refusals, files."""

import json
import math

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import positional
from keras_attention.positional import (
    LearnedPositionEmbedding,
    RotaryEmbedding,
    SinusoidalPositionEncoding,
)
from tests.layers.contract import normal, to_numpy

B, T, D, H, MAX = 3, 5, 14, 2, 11  # D is even for rotary
BACKEND = keras.backend.backend()
MAKE = {
    "sinusoidal": SinusoidalPositionEncoding,
    "learned": lambda **kwargs: LearnedPositionEmbedding(MAX, **kwargs),
    "rotary": RotaryEmbedding,
}
every_layer = pytest.mark.parametrize("make", MAKE.values(), ids=MAKE)


def encoding_by_loops(length, width, base=10000):
    """Vaswani et al. (2017), section 3.5, a number at a time."""
    encoding = np.zeros((length, width))
    for position in range(length):
        for column in range(width):
            i = column // 2
            angle = position / base ** (2 * i / width)
            wave = math.cos if column % 2 else math.sin
            encoding[position, column] = wave(angle)
    return encoding


def rotation_by_loops(x, positions, base=10000):
    """Su et al. (2021), equation 34, of x (B, T, d), a pair at a time."""
    turned, width = np.zeros(x.shape), x.shape[-1]
    for row, slot in np.ndindex(x.shape[:2]):
        for i in range(width // 2):
            angle = positions[slot] * base ** (-2 * i / width)
            a, b = x[row, slot, 2 * i : 2 * i + 2].astype("float64")
            turned[row, slot, 2 * i] = a * math.cos(angle) - b * math.sin(angle)
            turned[row, slot, 2 * i + 1] = a * math.sin(angle) + b * math.cos(angle)
    return turned


# ---- the formulas


@pytest.mark.parametrize(
    ("width", "base"), [(D, 10000), (7, 10000), (1, 10000), (7, 3.5)]
)
def test_sinusoidal_adds_the_formula_of_the_paper(width, base):
    x = normal(B, T, width)
    got = to_numpy(SinusoidalPositionEncoding(max_wavelength=base)(x))
    np.testing.assert_allclose(
        got, x + encoding_by_loops(T, width, base), rtol=1e-5, atol=1e-6
    )


def test_sinusoidal_takes_any_length():
    layer = SinusoidalPositionEncoding()
    for length in (1, 5000):
        got = to_numpy(layer(np.zeros((1, length, 7), "float32")))[0]
        np.testing.assert_allclose(got, encoding_by_loops(length, 7), atol=5e-4)


def test_encodings_of_positions_of_any_shape():
    positions = np.array([[[4, 0, 2]], [[1, 3, 3]]])
    got = to_numpy(positional.sinusoidal_encoding(positions, 7))
    np.testing.assert_allclose(
        got, encoding_by_loops(5, 7)[positions], rtol=1e-5, atol=1e-6
    )


def test_learned_adds_its_rows():
    layer, x = LearnedPositionEmbedding(MAX), normal(B, T, 7)
    got, (table,) = to_numpy(layer(x)), layer.get_weights()
    assert table.shape == (MAX, 7)
    np.testing.assert_allclose(got, x + table[:T], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("base", [10000, 3.5])
def test_rotary_rotates_pairs_as_in_the_paper(base):
    x = normal(B, T, D)
    got = to_numpy(RotaryEmbedding(max_wavelength=base)(x, start=7))
    want = rotation_by_loops(x, range(7, 7 + T), base)
    np.testing.assert_allclose(got, want, atol=1e-5)


def test_rotary_with_and_without_heads_agree():
    x = normal(B, T, H, D)
    layer, mask = RotaryEmbedding(), np.arange(T) >= np.array([[0], [2], [3]])
    for kwargs in ({}, {"start": 7}, {"start": np.array([7, 0, 2])}, {"mask": mask}):
        got = to_numpy(layer(x, **kwargs))
        for head in range(H):
            want = to_numpy(layer(x[:, :, head], **kwargs))
            np.testing.assert_allclose(got[:, :, head], want, rtol=1e-5, atol=1e-6)


def test_rotated_products_depend_on_the_distance_only():
    query, key, layer = (
        normal(B, T, D, seed=1),
        normal(B, T, D, seed=2),
        RotaryEmbedding(),
    )

    def products(query_start, key_start):
        turned = to_numpy(layer(query, start=query_start))
        return np.einsum("btd,bsd->bts", turned, to_numpy(layer(key, start=key_start)))

    np.testing.assert_allclose(products(3, 0), products(103, 100), atol=1e-4)
    assert np.abs(products(3, 0) - products(5, 0)).max() > 0.1


def test_rotary_keeps_norms_and_leaves_position_0_alone():
    x = normal(B, T, D)
    got = to_numpy(RotaryEmbedding()(x))
    norms = [np.linalg.norm(y, axis=-1) for y in (x, got)]
    np.testing.assert_allclose(*norms, rtol=1e-5)
    np.testing.assert_array_equal(got[:, 0], x[:, 0])
    assert np.abs(got[:, 1:] - x[:, 1:]).min() > 1e-7


# ---- start and padding


@every_layer
def test_a_decoder_step_equals_its_row_of_the_whole(make):
    x, layer = normal(B, T, D), make()
    whole = to_numpy(layer(x))
    for t in range(T):
        for start in (t, np.int64(t), np.full(B, t), np.array(t, "uint8")):
            step = to_numpy(layer(x[:, t : t + 1], start=start))
            np.testing.assert_allclose(step[:, 0], whole[:, t], rtol=1e-5, atol=1e-6)


@every_layer
def test_every_row_may_have_its_own_start(make):
    x, layer, starts = normal(B, T, D), make(), [4, 0, 2]
    got = to_numpy(layer(x, start=np.array(starts)))
    for row, start in enumerate(starts):
        want = to_numpy(layer(x[row : row + 1], start=start))[0]
        np.testing.assert_allclose(got[row], want, rtol=1e-5, atol=1e-6)


@every_layer
@pytest.mark.parametrize("start", [0, 3, np.array([3, 0, 1])], ids=str)
def test_padding_on_the_left_changes_nothing(make, start):
    x, layer = normal(B, T, D), make()
    want = to_numpy(layer(x, start=start))
    for pads in (1, 2):
        padding = np.full((B, pads, D), np.nan, "float32")
        mask = np.arange(pads + T) >= np.full((B, 1), pads)
        got = to_numpy(layer(np.concatenate([padding, x], 1), start=start, mask=mask))
        np.testing.assert_allclose(got[:, pads:], want, rtol=1e-5, atol=1e-6)


@every_layer
def test_rows_padded_on_the_left_go_on_from_their_real_lengths(make):
    x, layer, pads = normal(1, T, D), make(), 2
    padded = np.concatenate([np.zeros((1, pads, D), "float32"), x], axis=1)
    layer(padded[:, :-1], mask=np.arange(pads + T - 1)[None] >= pads)  # the prompt
    last = to_numpy(layer(padded[:, -1:], start=np.array([T - 1])))
    np.testing.assert_allclose(
        last[:, 0], to_numpy(layer(x))[:, -1], rtol=1e-5, atol=1e-6
    )


@every_layer
def test_padding_on_the_right_and_holes_count_as_slots(make):
    x, layer = normal(B, T, D), make()
    mask = np.array([[1, 1, 1, 0, 0], [1, 0, 1, 0, 1], [1, 1, 1, 1, 1]])
    got, want = to_numpy(layer(x, mask=mask)), to_numpy(layer(x))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


@every_layer
def test_masks_come_by_themselves_and_go_on(make):
    ids = np.array([[0, 0, 4, 2, 6], [1, 3, 0, 0, 0], [0, 0, 0, 0, 0]])
    embedding, layer = keras.layers.Embedding(7, D, mask_zero=True), make()
    model = keras.Sequential([embedding, layer])
    vectors = embedding(ids)
    want = layer(ops.copy(vectors), mask=ids != 0)
    for start in (0, np.zeros(B, "int32")):
        got = layer(vectors, start=start)
        np.testing.assert_allclose(to_numpy(got), to_numpy(want), rtol=1e-5, atol=1e-6)
        assert (to_numpy(got._keras_mask) == (ids != 0)).all()
    np.testing.assert_allclose(
        model.predict(ids, verbose=0), to_numpy(want), rtol=1e-5, atol=1e-6
    )


@every_layer
def test_a_mask_of_zeros_and_ones_or_a_list_goes_on_as_booleans(make):
    mask = [[1, 1, 0], [0, 1, 1]]
    for given in (mask, np.array(mask), np.array(mask, "float32")):
        got = make()(normal(2, 3, D), mask=given)
        assert to_numpy(got._keras_mask).tolist() == np.array(mask, bool).tolist()


# ---- refusals


def test_learned_refuses_what_reaches_beyond_its_table():
    layer = LearnedPositionEmbedding(5, name="places")
    for length, start in (
        (7, 0),
        (3, 3),
        (1, 5),
        (3, np.array([0, 3])),
        (300, np.uint8(9)),
        (1, -1),
    ):
        said = rf"'places' ends at its `max_length` of 5.* length {length}, .*Cut"
        with pytest.raises(ValueError, match=said):
            layer(normal(2, length, 7), start=start)
    layer(normal(2, 5, 7)), layer(normal(2, 3, 7), start=2)


def test_learned_refuses_another_width_than_it_was_built_for():
    layer = LearnedPositionEmbedding(5)
    layer(normal(2, 5, 7))
    for width in (1, 11):
        with pytest.raises(ValueError, match=f"width 7. Received: {width}."):
            layer(normal(2, 5, width))


def test_learned_refuses_too_long_inputs_of_a_functional_model():
    layer = LearnedPositionEmbedding(5)
    layer(keras.Input((5, 7)))
    for length, start in ((7, 0), (5, 1), (None, 5)):
        with pytest.raises(ValueError, match="`max_length` of 5"):
            layer(keras.Input((length, 7)), start=start)


@pytest.mark.parametrize("jit_compile", [False, "auto"])
@pytest.mark.parametrize("size", [1, 5])
def test_learned_refuses_too_long_inputs_in_predict(size, jit_compile):
    if BACKEND == "torch":
        jit_compile = False
    model = keras.Sequential([keras.Input((None, 7)), LearnedPositionEmbedding(size)])
    model.compile(jit_compile=jit_compile)
    lengths = range(1, size + 1)
    for length in lengths:
        assert model.predict(normal(2, length, 7), verbose=0).shape == (2, length, 7)
    with pytest.raises(Exception, match=r"max_length|size|slice|[Ii]nvalid"):
        model.predict(normal(2, size + 2, 7), verbose=0)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="lengths are static elsewhere")
@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("size", "start"), [(5, 0), (5, 3), (1, 0)])
def test_learned_fails_in_a_graph_of_unknown_length(size, start, masked, jit_compile):
    import tensorflow as tf

    layer = LearnedPositionEmbedding(size)
    layer.build((None, None, 7))

    @tf.function(
        input_signature=[tf.TensorSpec((None, None, 7))], jit_compile=jit_compile
    )
    def graph(x):
        mask = tf.ones(tf.shape(x)[:2], "bool") if masked else None
        return layer(x, start=start, mask=mask)

    assert graph(normal(2, size - start, 7)).shape == (2, size - start, 7)
    with pytest.raises((tf.errors.InvalidArgumentError, tf.errors.UnknownError)):
        graph(normal(2, size - start + 1, 7))


def test_learned_never_reuses_a_row_for_a_start_it_cannot_read():
    layer = LearnedPositionEmbedding(5)
    x = np.zeros((2, 3, 7), "float32")
    layer.build(x.shape)
    starts = np.array([2, 3], "int32")
    if BACKEND == "tensorflow":
        import tensorflow as tf

        results = [tf.function(layer, jit_compile=True)(x, starts)]
        with pytest.raises(tf.errors.InvalidArgumentError, match="not in"):
            tf.function(layer)(x, starts)
    elif BACKEND == "jax":
        import jax

        results = [jax.jit(lambda x, start: layer(x, start=start))(x, starts)]
    else:
        return  # PyTorch reads it
    for got in map(to_numpy, results):
        assert np.isfinite(got[0]).all() and np.isfinite(got[1, :2]).all()
        assert np.isnan(got[1, 2]).all()


@pytest.mark.parametrize("width", [1, 7])
def test_rotary_refuses_odd_widths(width):
    for shape in ((B, T, width), (B, T, H, width)):
        with pytest.raises(ValueError, match=rf"even width.*\({B}, {T}.*, {width}\)"):
            RotaryEmbedding()(normal(*shape))


@every_layer
def test_token_ids_and_other_ranks_are_refused(make):
    ids = np.arange(B * T).reshape(B, T)
    for built in (False, True):
        layer = make()
        if built:
            layer(normal(B, T, D))
        for wrong in (ids, normal(B, T), normal(B, T, H, D, 2), keras.Input((T,))):
            with pytest.raises(ValueError, match=r"takes inputs \(batch.*Embedding"):
                layer(wrong)
    with pytest.raises(ValueError, match="takes inputs"):
        make()(keras.Input((T, None)))


@every_layer
@pytest.mark.parametrize(
    "start",
    [0.5, True, None, np.zeros(B, "float32"), np.zeros(2, int), np.zeros((B, 1), int)],
)
def test_a_start_that_is_not_a_position_is_refused(make, start):
    with pytest.raises(ValueError, match=r"`start` must be an integer.*Received"):
        make()(normal(B, T, D), start=start)


@every_layer
@pytest.mark.parametrize("shape", [(B, T + 2), (B,), (B, T, 1), (1, T)])
def test_a_mask_of_another_shape_is_refused(make, shape):
    with pytest.raises(ValueError, match="`mask` a padding mask"):
        make()(normal(B, T, D), mask=np.ones(shape, bool))


@pytest.mark.parametrize("value", [0, -1, 2.5, "5", None, True])
def test_max_length_must_be_a_positive_integer(value):
    with pytest.raises(ValueError, match=r"`max_length`.*Received.*Take the length"):
        LearnedPositionEmbedding(value)


@pytest.mark.parametrize("value", [1, 0, -5, math.inf, math.nan, "big", None, True])
@pytest.mark.parametrize("layer", [SinusoidalPositionEncoding, RotaryEmbedding])
def test_max_wavelength_must_be_a_number_above_1(layer, value):
    with pytest.raises(ValueError, match=r"`max_wavelength` must.*Received.*papers"):
        layer(max_wavelength=value)


# ---- types


@pytest.mark.parametrize(
    "dtype", ["bfloat16", "mixed_bfloat16", "float16", "mixed_float16"]
)
def test_positions_do_not_collapse_in_16_bits(dtype):
    positions = {
        "sinusoidal": SinusoidalPositionEncoding(dtype=dtype),
        "learned": LearnedPositionEmbedding(2000, dtype=dtype),
        "rotary": RotaryEmbedding(dtype=dtype),
    }
    for name, layer in positions.items():
        got = layer(np.ones((1, 2000, 64), "float32"))
        assert keras.backend.standardize_dtype(got.dtype) == layer.compute_dtype
        rows = to_numpy(ops.cast(got, "float32"))[0, 256:]
        assert np.isfinite(rows).all()
        assert (rows[1:] != rows[:-1]).any(-1).all(), name
        if name != "learned":
            assert len(np.unique(rows, axis=0)) == len(rows), name


@every_layer
def test_16_bits_are_rounded_once_and_stay_finite(make):
    x = normal(B, T, D, scale=0.25)
    for dtype, unit in (("mixed_bfloat16", 2**-8), ("mixed_float16", 2**-11)):
        layer, exact = make(dtype=dtype), make()
        rounded = to_numpy(ops.cast(ops.cast(x, layer.compute_dtype), "float32"))
        layer.build(x.shape), exact.build(x.shape)
        exact.set_weights(layer.get_weights())
        got = to_numpy(ops.cast(layer(x), "float32"))
        want = to_numpy(exact(rounded))
        np.testing.assert_allclose(got, want, rtol=unit, atol=1e-7)
        huge = layer(ops.full((B, T, D), 6.5e4, dtype=layer.compute_dtype))
        assert np.isfinite(to_numpy(ops.cast(huge, "float32"))).all()


@pytest.mark.skipif(BACKEND == "jax", reason="float64 is off in JAX by default")
def test_float64_layers_compute_in_float64():
    x = np.random.default_rng(0).normal(size=(1, 5, D))
    got = to_numpy(SinusoidalPositionEncoding(dtype="float64")(x, start=4000))
    assert got.dtype == "float64"
    np.testing.assert_allclose(
        got[0], x[0] + encoding_by_loops(4005, D)[4000:], atol=1e-12
    )
    got = to_numpy(RotaryEmbedding(dtype="float64")(x, start=4000))
    np.testing.assert_allclose(got, rotation_by_loops(x, range(4000, 4005)), atol=1e-11)


# ---- what Keras asks


@every_layer
def test_unknown_lengths_build_and_symbolic_shapes_equal_real_ones(make):
    layer = make(dtype="mixed_bfloat16")
    symbolic = layer(keras.Input((None, D)))
    assert symbolic.shape == (None, None, D) and symbolic.dtype == "bfloat16"
    made = len(layer.weights)
    real = layer(normal(B, T, D))
    assert layer.compute_output_shape((B, T, D)) == tuple(real.shape) == (B, T, D)
    assert len(layer.weights) == made


class Wrapped(keras.layers.Layer):
    """A user's layer that leaves its shapes to Keras."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def build(self, shape):
        self.inner.build(shape)

    def call(self, inputs):
        return self.inner(inputs)


@every_layer
@pytest.mark.skipif(BACKEND == "torch", reason="Keras tries made-up lengths there")
def test_layers_inside_other_layers_take_unknown_lengths(make):
    x, layer = normal(B, T, D), make()
    inputs = keras.Input((None, D))
    model = keras.Model(inputs, Wrapped(layer)(inputs))
    want = to_numpy(layer(x))
    np.testing.assert_allclose(model.predict(x, verbose=0), want, rtol=1e-5, atol=1e-6)


@every_layer
def test_time_distributed_takes_the_layers(make):
    x, layer = normal(B, 2, T, D), make()
    got = to_numpy(keras.layers.TimeDistributed(layer)(x))
    for i in range(2):
        np.testing.assert_allclose(
            got[:, i], to_numpy(layer(x[:, i])), rtol=1e-5, atol=1e-6
        )


OTHER = {
    "name": "another",
    "dtype": "mixed_bfloat16",
    "trainable": False,
}
CONFIGS = [
    (SinusoidalPositionEncoding, {"max_wavelength": 500.5, **OTHER}),
    (RotaryEmbedding, {"max_wavelength": 500.5, **OTHER}),
    (
        LearnedPositionEmbedding,
        {
            "max_length": 13,
            "embeddings_initializer": "he_normal",
            "embeddings_regularizer": keras.regularizers.L2(0.01),
            **OTHER,
        },
    ),
]


@pytest.mark.parametrize(("layer", "config"), CONFIGS, ids=list(MAKE))
def test_the_config_is_complete_and_goes_through_json(layer, config):
    made = layer(**config)
    again = layer.from_config(json.loads(json.dumps(made.get_config())))
    assert again.get_config() == made.get_config()
    assert set(config) <= set(made.get_config())
    assert made.get_config() != layer(
        **{"max_length": 7} if "max_length" in config else {}
    )


@every_layer
def test_a_saved_model_is_loaded_in_safe_mode_and_exact(make, tmp_path):
    tokens = keras.Input((None,), dtype="int32")
    start = keras.Input((), dtype="int32")
    vectors = keras.layers.Embedding(7, D, mask_zero=True)(tokens)
    layer = make(name="places")
    model = keras.Model([tokens, start], [layer(vectors, start=start), layer(vectors)])
    x = [np.array([[0, 1, 2, 3, 4], [5, 6, 0, 0, 0]]), np.array([3, 1])]
    want = model.predict(x, verbose=0)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    assert type(again.get_layer("places")) is type(layer)
    for got in (again.predict(x, verbose=0), [again(x)[0], again(x)[1]]):
        for one, other in zip(got, want, strict=True):
            np.testing.assert_allclose(to_numpy(one), other, rtol=1e-5, atol=1e-6)
    again.load_weights(tmp_path / "model.weights.h5")
    np.testing.assert_array_equal(again.predict(x, verbose=0)[0], want[0])


def test_gradients_reach_the_rows_that_are_used_and_no_others():
    layer = LearnedPositionEmbedding(MAX)
    model = keras.Sequential([keras.Input((None, 7)), layer])
    model.compile(optimizer=keras.optimizers.SGD(1.0), loss="mse", jit_compile=False)
    (before,) = layer.get_weights()
    model.train_on_batch(normal(B, T, 7), normal(B, T, 7, seed=1))
    (after,) = layer.get_weights()
    assert (after[:T] != before[:T]).all()
    np.testing.assert_array_equal(after[T:], before[T:])


def test_the_regularizer_counts():
    layer = LearnedPositionEmbedding(
        MAX, embeddings_regularizer=keras.regularizers.L2(1)
    )
    layer(normal(B, T, 7))
    (table,) = layer.get_weights()
    np.testing.assert_allclose(to_numpy(layer.losses[0]), (table**2).sum(), rtol=1e-5)


@pytest.mark.skipif(BACKEND == "torch", reason="torch.compile takes a minute")
@every_layer
def test_compiled_equals_eager(make):
    ids = np.array([[0, 0, 4, 2, 6], [1, 3, 0, 0, 0], [5, 5, 5, 5, 5]])
    model = keras.Sequential([keras.layers.Embedding(7, D, mask_zero=True), make()])
    eager = to_numpy(model(ids))
    model.compile(optimizer="sgd", loss="mse", jit_compile=True)
    np.testing.assert_allclose(model.predict(ids, verbose=0), eager, atol=1e-5)
    loss = model.train_on_batch(ids, np.zeros((B, T, D), "float32"))
    assert np.isfinite(loss)
