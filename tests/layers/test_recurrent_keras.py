"""AttentionDecoder in Keras: files, dropout, number types, compiled, in models."""

import inspect
import json
import threading

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from keras_attention import (
    AttentionDecoder,
    BahdanauAttention,
    LocationSensitiveAttention,
    LuongAttention,
    MonotonicAttention,
    MultiHeadAttention,
    attention_submodel,
)
from tests.layers.contract import normal, to_numpy
from tests.layers.decoders import (
    ATTENTIONS,
    KEYS,
    MASKS,
    OUT,
    SETTINGS,
    STEPS,
    UNITS,
    B,
    E,
    F,
    H,
    S,
    T,
    inputs_of,
    make,
    random_weights,
)

BACKEND = keras.backend.backend()
WAYS = ["luong, fed", "luong, not fed", "bahdanau"]
every_way = pytest.mark.parametrize("setting", WAYS)
every_setting = pytest.mark.parametrize("setting", SETTINGS)
SOURCES = np.array([[5, 6, 7, 0, 0], [4, 5, 6, 7, 8]])
TARGETS = np.array([[1, 5, 6, 7, 0, 0], [1, 4, 5, 6, 7, 8]])
LABELS = np.array([[5, 6, 7, 3, 0, 0], [4, 5, 6, 7, 8, 3]])
WORDS = 11


def translator(setting="luong, fed", attention=None, name="decoder", **options):
    """[source ids (B, S), target ids (B, T)] -> logits (B, T, words)."""
    layers = keras.layers
    source = keras.Input((None,), dtype="int32", name="source_ids")
    target = keras.Input((None,), dtype="int32", name="target_ids")
    encoder = layers.LSTM(5, return_sequences=True, return_state=True)
    memory, forward_h, forward_c, backward_h, backward_c = layers.Bidirectional(
        encoder
    )(layers.Embedding(WORDS, 7, mask_zero=True)(source))
    start = [
        layers.Dense(H, activation="tanh")(layers.Concatenate()(pair))
        for pair in ([forward_h, backward_h], [forward_c, backward_c])
    ]
    decoder = AttentionDecoder(
        layers.LSTMCell(H),
        attention or BahdanauAttention(UNITS),
        name=name,
        **SETTINGS[setting],
        **options,
    )
    tokens = layers.Embedding(WORDS, E, mask_zero=True)(target)
    outputs = decoder(tokens, memory, initial_state=start)
    if decoder.return_attention_scores:
        outputs = outputs[0]
    return keras.Model([source, target], layers.Dense(WORDS)(outputs))


# ---- files and configuration


@every_setting
def test_a_translator_comes_back_from_its_file(setting, tmp_path):
    model = translator(setting)
    want = to_numpy(model([SOURCES, TARGETS]))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(99)
    other = translator(setting)
    other.load_weights(tmp_path / "model.weights.h5")
    for again in (loaded, other):
        np.testing.assert_array_equal(to_numpy(again([SOURCES, TARGETS])), want)


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("cell", ["gru", "stacked"])
def test_any_cell_and_attention_come_back(cell, attention, tmp_path):
    decoder, arrays = make(cell, attention, "luong, wider"), inputs_of(attention)
    specs = [keras.Input((None, a.shape[-1])) for a in arrays]
    model = keras.Model(specs, decoder(*specs))
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    want, got = (keras.tree.flatten(m(arrays)) for m in (model, loaded))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(to_numpy(one), to_numpy(other))
    assert len(loaded.weights) == len(model.weights)


OTHERS = {
    "cell": lambda: keras.layers.GRUCell(H, dropout=0.5),
    "attention": lambda: [LuongAttention("general"), BahdanauAttention(3)],
    "order": lambda: "bahdanau",
    "attention_units": lambda: OUT,
    "activation": lambda: "relu",
    "use_bias": lambda: True,
    "kernel_initializer": lambda: "he_normal",
    "kernel_regularizer": lambda: keras.regularizers.L2(0.01),
    "dropout": lambda: 0.25,
    "return_attention_scores": lambda: False,
    "seed": lambda: 23,
    "name": lambda: "another",
    "dtype": lambda: "mixed_bfloat16",
}


def test_config_holds_every_argument():
    others = {name: value() for name, value in OTHERS.items()}
    decoder = AttentionDecoder(**others)
    parameters = {}
    for cls in AttentionDecoder.__mro__:
        if cls.__module__.startswith("keras_attention") and "__init__" in vars(cls):
            parameters |= inspect.signature(cls.__init__).parameters
    names = {n for n, p in parameters.items() if p.kind != p.VAR_KEYWORD} - {"self"}
    assert names == set(others) - {"name", "dtype"} | {"input_feeding"}
    config = json.loads(json.dumps(decoder.get_config()))
    assert names <= set(config)
    again = AttentionDecoder.from_config(config)
    assert again.get_config() == decoder.get_config()
    for name in ("order", "attention_units", "use_bias", "dropout", "seed"):
        assert getattr(again, name) == others[name]
    assert again.activation is keras.activations.relu
    assert [type(a) for a in again.attention] == [LuongAttention, BahdanauAttention]
    assert again.cell.dropout == 0.5
    unfed = make(input_feeding=False).get_config()
    assert AttentionDecoder.from_config(unfed).input_feeding is False


@every_setting
@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("attention", ["bahdanau", "heads", "several"])
def test_symbolic_shapes_equal_real_shapes(attention, setting, scores):
    decoder = make("gru", attention, setting, return_attention_scores=scores)
    arrays = inputs_of(attention)
    real = decoder(*arrays)
    symbolic = decoder(*(keras.Input(batch_shape=a.shape) for a in arrays))
    shapes = decoder.compute_output_shape(*(a.shape for a in arrays))
    keras.tree.assert_same_structure(real, symbolic)
    flat = keras.tree.flatten(real)
    assert [tuple(x.shape) for x in keras.tree.flatten(symbolic)] == [
        tuple(x.shape) for x in flat
    ]
    listed = keras.tree.flatten(
        keras.tree.map_shape_structure(lambda shape: [list(shape)], shapes)
    )
    assert listed == [size for x in flat for size in x.shape]


def test_no_weight_depends_on_a_length_and_all_are_made_in_build():
    built, called = make(built=False), make(built=False)
    built.build((None, None, E), (None, None, F))
    called(*inputs_of())
    assert [w.shape for w in built.weights] == [w.shape for w in called.weights]
    assert len({w.path for w in called.weights}) == len(called.weights)
    number = len(built.weights)
    for length in (1, 31, 97):
        outputs, weights = built(*inputs_of(steps=length, keys=length + 2))
        assert tuple(outputs.shape) == (B, length, H)
        assert tuple(weights.shape) == (B, length, length + 2)
    assert len(built.weights) == number
    assert not {1, 31, 97} & {n for w in built.weights for n in w.shape}


@every_setting
@pytest.mark.parametrize("cell", ["lstm", "gru", "stacked"])
def test_every_weight_gets_a_gradient(cell, setting):
    decoder, arrays = make(cell, "several", setting), inputs_of("several")
    specs = [keras.Input(a.shape[1:]) for a in arrays]
    outputs, _ = decoder(*specs)
    model = keras.Model(specs, outputs)
    model.compile(keras.optimizers.SGD(10.0), "mse", jit_compile=False)
    before = [to_numpy(w).copy() for w in decoder.trainable_variables]
    model.train_on_batch(arrays, normal(B, *outputs.shape[1:], seed=9))
    for weight, old in zip(decoder.trainable_variables, before, strict=True):
        assert np.abs(to_numpy(weight) - old).max() > 0, weight.path


# ---- masks that Keras carries, sub-models


class SeeMask(keras.layers.Layer):
    supports_masking = True

    def call(self, inputs, mask=None):
        return ops.zeros((2, 3), bool) if mask is None else mask


@every_way
def test_masks_keras_carries_equal_masks_given_by_hand_and_go_on(setting):
    ids = [np.array([[5, 7, 9, 0, 0, 0, 0], [3, 4, 5, 6, 7, 8, 0]]), SOURCES]
    embedded = [
        keras.layers.Embedding(WORDS, width, mask_zero=True)(x)
        for x, width in zip(ids, (E, F), strict=True)
    ]
    decoder = make(setting=setting)
    carried = decoder(*embedded)
    plain = [to_numpy(x) for x in embedded]
    by_hand = decoder(*plain, inputs_mask=ids[0] != 0, memory_mask=ids[1] != 0)
    for got, want in zip(carried, by_hand, strict=True):
        np.testing.assert_array_equal(to_numpy(got), to_numpy(want))
    np.testing.assert_array_equal(to_numpy(SeeMask()(carried[0])), ids[0] != 0)
    assert not to_numpy(SeeMask()(carried[1])).any()
    for x, mask in zip(embedded, ids, strict=True):  # nothing is taken off the inputs
        np.testing.assert_array_equal(to_numpy(SeeMask()(x)), mask != 0)


@every_way
def test_longer_batches_give_a_translator_the_same_logits(setting):
    model = translator(setting)
    want = model.predict([SOURCES, TARGETS], verbose=0)
    longer = [np.pad(SOURCES, ((0, 0), (0, 3))), np.pad(TARGETS, ((0, 0), (0, 2)))]
    got = model.predict(longer, verbose=0)[:, :6]
    np.testing.assert_allclose(
        got[TARGETS != 0], want[TARGETS != 0], rtol=1e-5, atol=1e-6
    )


@every_way
@pytest.mark.parametrize("scores", [True, False])
def test_the_sub_model_shows_the_weights(setting, scores, tmp_path):
    model = translator(setting, return_attention_scores=scores)
    both = attention_submodel(model)
    both.save(tmp_path / "attention.keras")
    loaded = keras.saving.load_model(tmp_path / "attention.keras", safe_mode=True)
    for one in (both, loaded):
        logits, maps = one.predict([SOURCES, TARGETS], verbose=0)
        want = model.predict([SOURCES, TARGETS], verbose=0)
        np.testing.assert_allclose(logits, want, rtol=1e-5, atol=1e-6)
        assert list(maps) == ["decoder/attention"]
        weights = maps["decoder/attention"]
        assert weights.shape == (2, 6, 5)
        np.testing.assert_allclose(weights.sum(-1)[TARGETS != 0], 1, atol=1e-6)
        assert (weights[0, :, 3:] == 0).all() and (weights[0, 4:] == 0).all()
    assert both.count_params() == model.count_params()


def test_the_sub_model_shows_the_weights_of_several(tmp_path):
    several = [BahdanauAttention(UNITS), LuongAttention("general")]
    model = translator(attention=several)
    decoder = model.get_layer("decoder")
    seen = keras.Model(model.inputs, keras.tree.flatten(decoder.output))
    want = seen.predict([SOURCES, TARGETS], verbose=0)
    for one in (model, seen):
        both = attention_submodel(one)
        outputs, maps = both.predict([SOURCES, TARGETS], verbose=0)
        assert sorted(maps) == ["decoder/attention_0", "decoder/attention_1"]
        for i in range(2):
            got = maps[f"decoder/attention_{i}"]
            np.testing.assert_allclose(got, want[1 + i], rtol=1e-5, atol=1e-6)
    for got, expected in zip(outputs, want, strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-6)
    assert np.abs(want[1] - want[2]).max() > 1e-4


# ---- dropout


def showing_h(cell, setting, **options):
    """A decoder whose outputs begin with h: W_c is [1; 0] and linear, or absent."""
    if setting != "bahdanau":
        options.update(attention_units=H, activation="linear")
    decoder = AttentionDecoder(
        cell, BahdanauAttention(UNITS), **{**SETTINGS[setting], **options}
    )
    random_weights(decoder)
    if setting != "bahdanau":
        decoder.output_kernel.assign(np.eye(H + F, H))
    return decoder


DROPPING = {"dropout": 0.3, "recurrent_dropout": 0.4}
DROPPERS = {
    "lstm": lambda: keras.layers.LSTMCell(H, seed=3, **DROPPING),
    "gru": lambda: keras.layers.GRUCell(H, seed=3, **DROPPING),
    "simple": lambda: keras.layers.SimpleRNNCell(H, seed=3, **DROPPING),
    "stacked": lambda: keras.layers.StackedRNNCells(
        [
            keras.layers.GRUCell(23, seed=3, **DROPPING),
            keras.layers.LSTMCell(H, seed=4, **DROPPING),
        ]
    ),
}


@pytest.mark.parametrize("cell", DROPPERS)
def test_the_cells_dropout_is_that_of_keras(cell):
    """Without feeding the cell sees what it sees in `keras.layers.RNN`."""
    decoder, (inputs, memory) = (
        showing_h(DROPPERS[cell](), "luong, not fed"),
        inputs_of(),
    )
    again = DROPPERS[cell]()
    again.build((None, E))
    again.set_weights(decoder.cell.get_weights())
    rnn = keras.layers.RNN(again, return_sequences=True)
    calls = []
    for training in (True, True, True, False):
        got = to_numpy(decoder(inputs, memory, training=training)[0])
        want = to_numpy(rnn(inputs, training=training))
        np.testing.assert_allclose(got, want, atol=1e-5)
        calls.append(got)
    assert np.abs(calls[0] - calls[1]).max() > 1e-2  # each call draws anew
    assert np.abs(calls[0] - calls[3]).max() > 1e-2


@every_way
@pytest.mark.parametrize("recurrent", [False, True])
def test_the_cell_drops_the_same_at_every_step(setting, recurrent):
    """With equal inputs and states that do not count all steps are alike."""
    rate = {"recurrent_dropout" if recurrent else "dropout": 0.5}
    decoder = showing_h(keras.layers.SimpleRNNCell(H, use_bias=False, **rate), setting)
    cell, width = decoder.cell, decoder.cell_width
    kernel = to_numpy(cell.kernel).copy()
    kernel[E:] = 0  # of what is fed
    cell.kernel.assign(kernel)
    if recurrent:  # h[t] = tanh(0.3 m h[t-1]): what is dropped once stays 0
        cell.kernel.assign(np.zeros((width, H)))
        cell.recurrent_kernel.assign(0.3 * np.eye(H))
    else:
        cell.recurrent_kernel.assign(np.zeros((H, H)))
    inputs, memory = np.repeat(normal(B, 1, E), T, 1), normal(B, S, F)
    start = [np.full((B, H), 0.9, "float32")]
    got = to_numpy(decoder(inputs, memory, initial_state=start, training=True)[0])
    got = got[..., :H]
    if recurrent:
        assert 0 < (got[:, 0] == 0).mean() < 1
        np.testing.assert_array_equal(got == 0, (got[:, :1] == 0).repeat(T, 1))
    else:
        plain = to_numpy(decoder(inputs, memory, initial_state=start)[0])[..., :H]
        np.testing.assert_allclose(got, got[:, :1].repeat(T, 1), rtol=1e-5, atol=1e-6)
        assert np.abs(got - plain).max() > 1e-2


@every_way
def test_masks_of_a_call_do_not_stay_with_the_cell(setting):
    cell = keras.layers.StackedRNNCells(
        [keras.layers.GRUCell(23, **DROPPING), keras.layers.LSTMCell(H, **DROPPING)]
    )
    decoder = showing_h(cell, setting)
    for batch in (2, 3):  # a mask that stayed would be of the other size
        outputs, _ = decoder(*inputs_of(batch=batch), training=True)
        assert outputs.shape[0] == batch
    inputs, memory = inputs_of()
    before = to_numpy(decoder(inputs, memory)[0])
    decoder(inputs, memory, training=True)
    prepared = decoder.prepare_memory(memory)
    state = decoder.initial_state(prepared)
    output, _, _ = decoder.step(inputs[:, 0], state, prepared)
    np.testing.assert_allclose(to_numpy(output), before[:, 0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("setting", ["luong, not fed", "bahdanau"])
def test_the_decoders_dropout_is_of_h_and_c(setting):
    """Of outputs that are [h; c], each is dropped or scaled, anew at each step."""
    decoder = showing_h(keras.layers.GRUCell(H), setting, dropout=0.25, seed=5)
    plain, maps = to_numpy(decoder(*inputs_of()))
    outputs, weights = to_numpy(decoder(*inputs_of(), training=True))
    dropped = outputs == 0
    np.testing.assert_allclose(outputs[~dropped], plain[~dropped] / 0.75, rtol=1e-4)
    assert 0.15 < dropped.mean() < 0.35
    assert not (dropped[:, 0] == dropped[:, 1]).all()
    np.testing.assert_allclose(weights, maps, rtol=1e-5, atol=1e-6)


def test_the_decoders_dropout_is_fed_on():
    decoder = showing_h(keras.layers.GRUCell(H), "luong, fed", dropout=0.25, seed=5)
    plain, _ = to_numpy(decoder(*inputs_of()))
    outputs, _ = to_numpy(decoder(*inputs_of(), training=True))
    dropped = outputs == 0
    first = ~dropped[:, 0]
    np.testing.assert_allclose(
        outputs[:, 0][first], plain[:, 0][first] / 0.75, rtol=1e-4
    )
    assert 0.15 < dropped.mean() < 0.35 and not (dropped[:, 0] == dropped[:, 1]).all()
    later = ~dropped[:, 1]
    assert np.abs(outputs[:, 1][later] - plain[:, 1][later] / 0.75).max() > 1e-3


RANDOM = {
    "bahdanau": lambda: BahdanauAttention(UNITS, dropout=0.5),
    "location": lambda: LocationSensitiveAttention(UNITS, dropout=0.5),
    "heads": lambda: MultiHeadAttention(2, 4, dropout=0.5),
    "noise": lambda: MonotonicAttention("general", sigmoid_noise=1.0, hard=False),
    "both": lambda: MonotonicAttention("general", sigmoid_noise=1.0, dropout=0.5),
}


@every_way
@pytest.mark.parametrize("attention", RANDOM)
def test_the_attentions_dropout_is_drawn_anew_at_each_step(attention, setting):
    """It shows in contexts and not in weights; in a compiled function too."""
    decoder = AttentionDecoder(
        keras.layers.GRUCell(H), RANDOM[attention](), **SETTINGS[setting]
    )
    random_weights(decoder)
    arrays = inputs_of()
    specs = [keras.Input((None, a.shape[-1])) for a in arrays]
    model = keras.Model(specs, list(decoder(*specs)))
    plain, maps = to_numpy(decoder(*arrays))
    outputs, weights = to_numpy(decoder(*arrays, training=True))
    assert np.isfinite(outputs).all() and np.abs(outputs - plain).max() > 1e-3
    if attention in ("bahdanau", "location", "heads"):
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
        np.testing.assert_allclose(weights[:, 0], maps[:, 0], atol=1e-5)
    model.compile("sgd", "mse", jit_compile=BACKEND == "jax")
    loss = model.train_on_batch(arrays, [outputs, weights])
    assert np.all(np.isfinite(loss))


def test_dropped_weights_are_dropped_or_scaled_at_each_step():
    """With values of 1 a context is the sum of the weights that are left."""
    decoder = AttentionDecoder(
        keras.layers.GRUCell(H), BahdanauAttention(3, dropout=0.25), order="bahdanau"
    )
    random_weights(decoder)
    memory = np.ones((B, S, F), "float32")  # equal keys: weights 1 / S
    context = to_numpy(decoder(normal(B, T, E), memory, training=True)[0])[..., H:]
    kept = context * 0.75 * S
    np.testing.assert_allclose(kept, kept.round(), atol=1e-4)
    assert len(np.unique(kept.round())) > 2 and kept.max() < S + 0.1
    assert not np.allclose(kept, kept[:, :1], atol=0.1)


@every_way
def test_the_seed_decides_what_is_dropped(setting):
    def decoder(seed):
        decoder = AttentionDecoder(
            keras.layers.LSTMCell(H, seed=seed, **DROPPING),
            BahdanauAttention(UNITS, dropout=0.5, seed=seed),
            dropout=0.5,
            seed=seed,
            **SETTINGS[setting],
        )
        return random_weights(decoder)

    one, same, other = (
        to_numpy(decoder(seed)(*inputs_of(), training=True)[0]) for seed in (3, 3, 4)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-3


# ---- number types


@every_way
@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e4])
def test_16_bits_are_finite_at_any_scale(policy, scale, setting):
    decoder = AttentionDecoder(
        keras.layers.LSTMCell(H, dtype="float32"),
        BahdanauAttention(UNITS, dtype=policy),
        dtype=policy,
        **SETTINGS[setting],
    )
    arrays = [ops.cast(x, decoder.compute_dtype) for x in inputs_of(scale=scale)]
    outputs, weights = decoder(*arrays, **MASKS)
    assert keras.backend.standardize_dtype(outputs.dtype) == decoder.compute_dtype
    assert keras.backend.standardize_dtype(weights.dtype) == "float32"
    for x in (outputs, weights):
        assert np.isfinite(to_numpy(ops.cast(x, "float32"))).all()
    exact = AttentionDecoder(
        keras.layers.LSTMCell(H), BahdanauAttention(UNITS), **SETTINGS[setting]
    )
    exact.build((None, None, E), (None, None, F))
    exact.set_weights([np.asarray(w, "float32") for w in decoder.get_weights()])
    if scale == 1.0:
        want = to_numpy(exact(*(ops.cast(x, "float32") for x in arrays), **MASKS)[0])
        got = to_numpy(ops.cast(outputs, "float32"))
        np.testing.assert_allclose(got, want, atol=5e-2)


@every_way
def test_a_cell_of_16_bits_decodes_and_trains(setting):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = translator(setting)
    finally:
        keras.config.set_dtype_policy("float32")
    assert model.get_layer("decoder").cell.compute_dtype == "bfloat16"
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=False)
    losses = [float(model.train_on_batch([SOURCES, TARGETS], LABELS)) for _ in "12"]
    assert np.isfinite(losses).all() and losses[1] < losses[0]


# ---- compiled, in models, in threads


@every_way
@pytest.mark.parametrize("jit", [False, True])
def test_a_translator_trains(jit, setting):
    jit = jit and BACKEND != "torch"
    model = translator(setting)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, jit_compile=jit)
    losses = [float(model.train_on_batch([SOURCES, TARGETS], LABELS)) for _ in "1234"]
    assert losses == sorted(losses, reverse=True) and losses[-1] < 0.99 * losses[0]


@every_way
@pytest.mark.parametrize("jit", [False, True])
def test_compiled_equals_eager(jit, setting):
    model = translator(setting)
    eager = to_numpy(model([SOURCES, TARGETS]))
    model.compile(jit_compile=jit and BACKEND != "torch")
    compiled = model.predict_on_batch([SOURCES, TARGETS])
    np.testing.assert_allclose(compiled, eager, atol=1e-5)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="input_signature")
@every_way
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize(
    "attention",
    [
        name if name == "bahdanau" else pytest.param(name, marks=pytest.mark.slow)
        for name in ATTENTIONS
    ],
)
def test_lengths_that_are_not_known_give_the_same_gradients(attention, jit, setting):
    import tensorflow as tf

    decoder = make("lstm", attention, setting)

    def of_all(inputs, memory, inputs_mask, memory_mask):
        with tf.GradientTape() as tape:
            tape.watch([inputs, memory])
            outputs, weights = decoder(
                inputs, memory, inputs_mask=inputs_mask, memory_mask=memory_mask
            )
            maps = keras.tree.flatten(weights)
            loss = sum(tf.reduce_sum(x**2) for x in (outputs, *maps))
        weights = [w.value for w in decoder.trainable_variables]
        return tape.gradient(loss, [inputs, memory, *weights])

    arguments = [tf.constant(x) for x in (*inputs_of(attention), STEPS, KEYS)]
    want = of_all(*arguments)
    unknown = [
        tf.TensorSpec([None] * 2 + list(x.shape[2:]), x.dtype) for x in arguments
    ]
    compiled = tf.function(of_all, input_signature=unknown, jit_compile=jit)
    for one, other in zip(compiled(*arguments), want, strict=True):
        if one is None or other is None:  # of hard weights: there is none, or it is 0
            assert not np.any(one) and not np.any(other)
        else:
            np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="input_signature")
@every_way
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "attention", ["both", pytest.param("heads", marks=pytest.mark.slow)]
)
def test_all_that_is_random_trains_with_lengths_that_are_not_known(
    attention, jit, setting
):
    import tensorflow as tf

    decoder = AttentionDecoder(
        keras.layers.LSTMCell(H, **DROPPING),
        RANDOM[attention](),
        dropout=0.3,
        **SETTINGS[setting],
    )
    random_weights(decoder)

    def of_all(inputs, memory):
        with tf.GradientTape() as tape:
            outputs, _ = decoder(inputs, memory, training=True)
            loss = tf.reduce_sum(outputs**2)
        weights = [w.value for w in decoder.trainable_variables]
        return outputs, tape.gradient(loss, weights)

    unknown = [tf.TensorSpec([None, None, x.shape[2]]) for x in inputs_of()]
    compiled = tf.function(of_all, input_signature=unknown, jit_compile=jit)
    (one, slopes), (other, _) = compiled(*inputs_of()), compiled(*inputs_of())
    assert all(np.isfinite(s).all() and np.abs(s).max() > 0 for s in slopes)
    assert np.abs(one - other).max() > 1e-3  # each call draws anew


@pytest.mark.skipif(BACKEND != "tensorflow", reason="a SavedModel")
@every_way
def test_a_translator_is_exported(setting, tmp_path):
    import tensorflow as tf

    model = translator(setting)
    model.export(tmp_path / "exported", verbose=False)
    loaded = tf.saved_model.load(tmp_path / "exported")
    got = loaded.serve([tf.constant(x, "int32") for x in (SOURCES, TARGETS)])
    np.testing.assert_allclose(got, model([SOURCES, TARGETS]), rtol=1e-5, atol=1e-6)


@every_way
def test_in_a_subclassed_model_that_trains(setting):
    class Tagger(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(WORDS, F, mask_zero=True)
            self.decoder = AttentionDecoder(
                keras.layers.GRUCell(H), BahdanauAttention(UNITS), **SETTINGS[setting]
            )
            self.dense = keras.layers.Dense(WORDS)

        def call(self, ids):
            states = self.embedding(ids)
            return self.dense(self.decoder(states, states)[0])

    model = Tagger()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(keras.optimizers.Adam(0.01), loss, jit_compile=False)
    losses = [float(model.train_on_batch(TARGETS, LABELS)) for _ in "123"]
    assert losses == sorted(losses, reverse=True)


@pytest.mark.skipif(BACKEND != "tensorflow", reason="GradientTape")
@every_way
@pytest.mark.parametrize("graph", [False, True])
def test_in_a_custom_training_loop(setting, graph):
    import tensorflow as tf

    decoder, arrays = make("lstm", "location", setting), inputs_of()
    target = to_numpy(decoder(*arrays, **MASKS)[0]) + 0.1

    def step():
        with tf.GradientTape() as tape:
            outputs, _ = decoder(*arrays, **MASKS, training=True)
            loss = tf.reduce_mean((outputs - target) ** 2)
        variables = decoder.trainable_variables
        for variable, slope in zip(
            variables, tape.gradient(loss, variables), strict=True
        ):
            variable.assign(variable - 0.01 * slope)
        return loss

    step = tf.function(step) if graph else step
    losses = [float(step()) for _ in range(4)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


@every_way
def test_nothing_of_a_call_is_kept(setting):
    decoder, arrays = make("stacked", "several", setting), inputs_of("several")
    decoder(*arrays)
    before = {id(layer): set(vars(layer)) for layer in decoder._flatten_layers()}
    want = to_numpy(decoder(*arrays, **MASKS)[0])
    decoder(*inputs_of("several", batch=3, steps=2, keys=4, seed=5))
    after = {id(layer): set(vars(layer)) for layer in decoder._flatten_layers()}
    assert after == before
    np.testing.assert_array_equal(to_numpy(decoder(*arrays, **MASKS)[0]), want)


@every_way
@pytest.mark.parametrize("compiled", [False, True])
def test_a_step_takes_the_tokens_of_a_masked_embedding(compiled, setting):
    """Keras warns, here an error, where a mask would reach a stack of cells."""
    decoder = make("stacked", "general", setting, return_attention_scores=False)
    embed = keras.layers.Embedding(WORDS, E, mask_zero=True)
    ids, (_, memory) = np.array([[4, 0], [5, 6]]), inputs_of(batch=2)

    def decode(ids, memory):
        prepared = decoder.prepare_memory(memory)
        output, _, state = decoder.step(
            embed(ids[:, 0]), decoder.initial_state(prepared), prepared
        )
        return output, decoder.step(embed(ids[:, 1]), state, prepared)[0]

    embed.build()
    step = {"jax": _jit, "tensorflow": _function}.get(BACKEND) if compiled else None
    outputs = (step or (lambda f: f))(decode)(ops.convert_to_tensor(ids), memory)
    want = to_numpy(decoder(to_numpy(embed.embeddings)[ids], memory))
    for t in (0, 1):
        np.testing.assert_allclose(to_numpy(outputs[t]), want[:, t], atol=1e-5)


def _jit(function):
    import jax

    return jax.jit(function)


def _function(function):
    import tensorflow as tf

    return tf.function(function)


@every_way
def test_two_threads_may_decode_with_one_layer(setting):
    decoder, wrong = make("lstm", "location", setting), []
    jobs = [inputs_of(steps=6, keys=n, seed=n) for n in (2, 5, 11)]
    want = [to_numpy(decoder(*job)[0]) for job in jobs]

    def work(i):
        inputs, memory = jobs[i]
        for _ in range(3):
            prepared = decoder.prepare_memory(memory)
            state = decoder.initial_state(prepared)
            for t in range(6):
                output, _, state = decoder.step(inputs[:, t], state, prepared)
                if not np.allclose(to_numpy(output), want[i][:, t], atol=1e-5):
                    wrong.append((i, t))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_it_is_public():
    assert keras_attention.AttentionDecoder is AttentionDecoder
    name = keras.saving.get_registered_name(AttentionDecoder)
    assert name == "keras_attention>AttentionDecoder"


def test_a_cell_of_ones_own_may_have_a_dropout_of_its_own():
    @keras.saving.register_keras_serializable(package="test_recurrent_keras")
    class Own(keras.layers.Layer):
        """A cell with `dropout`, but without the masks of Keras's cells."""

        def __init__(self, units, dropout=0.5, **kwargs):
            super().__init__(**kwargs)
            self.state_size = self.output_size = self.units = units
            self.dropout = dropout

        def build(self, shape):
            self.kernel = self.add_weight(shape=(shape[-1], self.units))

        def call(self, inputs, states, training=None):
            output = keras.ops.tanh(inputs @ self.kernel) + states[0]
            return output, [output]

    decoder = AttentionDecoder(Own(4), BahdanauAttention(3))
    inputs, memory = np.ones((2, 3, 5), "float32"), np.ones((2, 6, 7), "float32")
    plain, _ = decoder(inputs, memory)
    trained, _ = decoder(inputs, memory, training=True)
    np.testing.assert_allclose(to_numpy(trained), to_numpy(plain), rtol=1e-5, atol=1e-6)
