"""Faults that people met in other attention software: seeds, files and state."""

import json
import threading

import keras
import numpy as np
import pytest
from keras import ops

import keras_attention
from keras_attention import (
    BahdanauAttention,
    LocalAttention,
    MonotonicAttention,
    attention_submodel,
)
from tests.layers.contract import DV, normal, to_numpy
from tests.layers.test_laws_keras import attend_to_itself, every_case, open_specs
from tests.layers.text_models import (
    IDS,
    alone,
    assert_equal,
    decoder,
    encoder,
    predict,
    text_model,
    text_parts,
    translator,
)

on_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="SavedModel"
)


# ---- dropout and seeds


@every_case
def test_weights_are_without_dropout_in_training_and_prediction(case):
    """Rows of returned weights summed to 0.29 or 1.97 when there was dropout."""
    model = text_model(case, dropout=0.5)
    _, weights = model(IDS, training=True)
    weights = case.by_key(to_numpy(weights), alone(case))
    real = (IDS != 0)[:, None] & np.ones((1, weights.shape[-2], 1), bool)
    if weights.shape[-2] > 1:
        real &= (IDS != 0)[:, :, None]
    real = case.over_heads(real)
    assert (weights >= 0).all() and (weights[~real] == 0).all()
    if case.sums_to_one:
        sums = weights.sum(-1)[real.any(-1)]
        np.testing.assert_allclose(sums, 1, atol=1e-6)
    first, second = (predict(case, model, IDS) for _ in range(2))
    assert_equal(first, second)
    _, maps = attention_submodel(model).predict(IDS, verbose=0)
    (found,) = maps.values()
    assert_equal(case.by_key(found, alone(case)), first[1], atol=1e-6)
    assert_equal(first[1], weights, atol=1e-6)


def test_weights_of_blocks_are_without_dropout():
    """The same, for every map of a Transformer block."""
    tokens, source = normal(2, 5, 8), normal(2, 7, 8, seed=1)
    options = {"dropout": 0.5, "return_attention_scores": True}
    _, own = encoder(**options)(tokens, training=True)
    _, both = decoder(**options)(tokens, source, training=True)
    for weights in (own, *both.values()):
        np.testing.assert_allclose(to_numpy(weights).sum(-1), 1, atol=1e-6)


def trained(case, path=None, **options):
    """Weights after three batches; with a path, saved and loaded after the first."""
    keras.utils.set_random_seed(11)
    ids, context, _ = text_parts(case, **options)
    model = keras.Model(ids, context)
    model.compile("adam", "mse", jit_compile=False)
    for i in range(3):
        model.train_on_batch(IDS, normal(*context_shape(context), seed=i))
        if path is not None and i == 0:
            model.save(path)
            model = keras.saving.load_model(path)
    return model.get_weights()


def context_shape(context):
    """The shape of a context for `IDS`."""
    return (*IDS.shape[: len(context.shape) - 1], context.shape[-1])


@every_case
def test_equal_seeds_train_equally_and_a_file_goes_on(case, tmp_path):
    """A second run in one process, after the same seed call, gave other numbers."""
    path = tmp_path / "model.keras"
    for saved in (None, path):
        first, second = (trained(case, saved, dropout=0.5) for _ in range(2))
        assert_equal(first, second)
    # Keras files hold no state of a dropout; without one they go on exactly.
    assert_equal(trained(case, path), trained(case), atol=1e-7)


@every_case
def test_two_layers_after_one_seed_call_differ(case):
    """Two layers began with the same numbers and dropped the same weights."""
    keras.utils.set_random_seed(11)
    one, other = case.make(dropout=0.5), case.make(dropout=0.5)
    inputs = case.inputs(case.main)
    one(*inputs), other(*inputs)
    for first, second in zip(one.weights, other.weights, strict=True):
        first, second = to_numpy(first), to_numpy(second)
        constant = first.size == 1 or np.ptp(first.astype("float64")) == 0
        assert constant or np.abs(first - second).max() > 0
    other.set_weights(one.get_weights())
    contexts = [to_numpy(layer(*inputs, training=True)[0]) for layer in (one, other)]
    assert np.abs(contexts[0] - contexts[1]).max() > 1e-3


# ---- files and configurations

INNER = {
    "local": lambda: LocalAttention(2, score=BahdanauAttention(5)),
    "predictive": lambda: LocalAttention(
        2, "predictive", score=BahdanauAttention(5), units=5
    ),
    "monotonic": lambda: MonotonicAttention(BahdanauAttention(5, normalize=True)),
}


@pytest.mark.parametrize("kind", INNER)
def test_weights_of_a_score_inside_a_layer_are_saved(kind, tmp_path):
    """Weights of layers that a layer kept for itself were not saved, in silence."""
    inputs = [normal(2, 3, 8), normal(2, 5, 8, seed=1)]
    specs = open_specs(inputs)

    def build(seed):
        keras.utils.set_random_seed(seed)
        return keras.Model(specs, INNER[kind]()(*specs))

    model, other = build(1), build(2)
    assert len(model.weights) == {"local": 3, "predictive": 5, "monotonic": 6}[kind]
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other.load_weights(path)
    assert_equal(other.get_weights(), model.get_weights())
    assert_equal(other(inputs), model(inputs))


class Stack(keras.layers.Layer):
    """Blocks in a list, and positions before them."""

    def __init__(self, number, **kwargs):
        super().__init__(**kwargs)
        # PyTorch builds what has no `build` by a call of 89 made-up tokens.
        self.place = keras_attention.LearnedPositionEmbedding(max_length=97)
        self.blocks = [encoder(dropout=0.1) for _ in range(number)]

    def call(self, inputs, training=None):
        x = self.place(inputs)
        for block in self.blocks:
            x = block(x, training=training)
        return x


@pytest.mark.parametrize("number", [1, 2, 3])
def test_blocks_kept_in_a_list_are_saved(number, tmp_path):
    """The same, for 1, 2 and 3 blocks; and a weight that is missing is an error."""
    specs, inputs = keras.Input((None, 8)), normal(2, 5, 8)

    def build(number, seed):
        keras.utils.set_random_seed(seed)
        return keras.Model(specs, Stack(number, name="stack")(specs))

    model, other = build(number, 1), build(number, 2)
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    assert np.abs(to_numpy(other(inputs)) - to_numpy(model(inputs))).max() > 1e-2
    other.load_weights(path)
    assert_equal(other(inputs), model(inputs))
    learned = len(model.trainable_weights)
    assert learned == len(other.trainable_weights) == 1 + 16 * number
    with pytest.raises(ValueError):
        build(number + 1, 3).load_weights(path)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_stacks_of_encoder_and_decoder_are_saved(number, tmp_path):
    """The same, for whole Transformers in both kinds of file."""
    _, model = translator(number)
    ids = [IDS, IDS[:, :4]]
    want = model(ids)
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(99)
    _, other = translator(number)
    other.load_weights(tmp_path / "model.weights.h5")
    again = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    for one in (other, again):
        assert len(one.weights) == len(model.weights) == 1 + (16 + 26) * number
        assert_equal(one(ids), want)


class Two(keras.layers.Layer):
    """Two layers of one kind side by side, made in the constructor."""

    def __init__(self, case, **kwargs):
        super().__init__(**kwargs)
        self.case, self.first, self.second = case, case.make(), case.make()

    def call(self, states):
        layers = (self.first, self.second)
        return [attend_to_itself(self.case, layer, states)[0] for layer in layers]


@every_case
def test_two_layers_of_one_kind_do_not_collide_in_a_file(case, tmp_path):
    """In .h5 files the second of two sub-layers took the place of the first."""
    specs, states = keras.Input((None, DV)), normal(2, 5, DV)

    def build(seed):
        keras.utils.set_random_seed(seed)
        return keras.Model(specs, Two(case)(specs))

    model, other = build(1), build(2)
    single = case.make()
    attend_to_itself(case, single, states)
    assert len(model.weights) == 2 * len(single.weights)
    path = tmp_path / "model.weights.h5"
    model.save_weights(path)
    other.load_weights(path)
    assert_equal(other.get_weights(), model.get_weights())
    assert_equal(other(states), model(states))


@keras.saving.register_keras_serializable(package="tests")
def squared(x):
    return ops.square(ops.relu(x))


def assert_config_survives(layer):
    """Through JSON, through Keras's own form, and through a clone."""
    config = json.loads(json.dumps(layer.get_config()))
    again = type(layer).from_config(config)
    assert json.dumps(again.get_config()) == json.dumps(layer.get_config())
    text = json.dumps(keras.saving.serialize_keras_object(layer))
    again = keras.saving.deserialize_keras_object(json.loads(text))
    assert json.dumps(again.get_config()) == json.dumps(layer.get_config())
    return again


@every_case
def test_configs_hold_objects_as_well_as_names(case):
    """Configs lacked arguments, or could not be written if one was an object."""
    options = {"dtype": keras.DTypePolicy("mixed_bfloat16"), "trainable": False}
    if case.learns:
        options["kernel_initializer"] = keras.initializers.RandomNormal(0.1, 0.2, 3)
        options["kernel_regularizer"] = keras.regularizers.L1L2(0.1, 0.2)
    again = assert_config_survives(case.make(**{**case.other_config, **options}))
    assert again.dtype_policy.name == "mixed_bfloat16" and not again.trainable
    if case.learns:
        assert again.kernel_initializer.stddev == 0.2
        np.testing.assert_allclose(again.kernel_regularizer.l2, 0.2)


def test_configs_of_blocks_and_positions_hold_objects():
    """The same, for functions: an activation of one's own in a block."""
    options = {"feed_forward_activation": squared, "normalization": "post", "seed": 3}
    rotary = keras_attention.RotaryEmbedding(max_wavelength=100)
    for make in (encoder, decoder):
        block = make(**options, rotary_embedding=rotary, dropout=0.1)
        again = assert_config_survives(block)
        assert again.feed_forward_activation is squared
        assert again.rotary_embedding.max_wavelength == 100
    learned = keras_attention.LearnedPositionEmbedding(
        7, embeddings_initializer=keras.initializers.Constant(3), dtype="bfloat16"
    )
    assert assert_config_survives(learned).embeddings_initializer.value == 3
    assert_config_survives(keras_attention.SinusoidalPositionEncoding(max_wavelength=9))


# ---- state


def step_twice(layer, target, source):
    """Contexts and weights of two decoder steps, the state handed on."""
    state, results = layer.initial_state(source), []
    for t in range(2):
        results.append(layer(target[:, t], source, state=state))
        state = layer.next_state(state, results[-1][1])
    return to_numpy(results)


def decode_all(block, target, source):
    """Outputs of a decoder block, a token at a time."""
    cache, outputs = block.empty_cache(len(target), 11, source), []
    for t in range(target.shape[1]):
        output, cache = block(target[:, t : t + 1], cache=cache, position=t)
        outputs.append(to_numpy(output))
    return outputs


@pytest.mark.parametrize("threads", [False, True])
@every_case
def test_a_batch_leaves_nothing_for_the_next(case, threads):
    """Decoding A, B, A: the third attended to the memory of the second."""
    layer = case.make()
    sizes = [(2, 3, 5), (3, 2, 7), (2, 3, 5)]  # B, T, S
    calls = [
        case.inputs(case.main, batch=b, steps=t, length=s, seed=b) for b, t, s in sizes
    ]

    def run(inputs):
        result = [to_numpy(layer(*inputs))]
        if "step" in case.forms:
            result.append(step_twice(layer, *inputs))
        return result

    assert_state_free(layer, run, calls, threads)


def test_decoding_leaves_nothing_for_the_next_batch():
    """The same, for caches of blocks."""
    block = decoder()
    sizes = [(2, 3, 5), (3, 2, 7), (2, 3, 5)]
    calls = [(normal(b, t, 8, seed=b), normal(b, s, 8)) for b, t, s in sizes]
    block(*calls[0])
    for threads in (False, True):
        assert_state_free(block, lambda c: decode_all(block, *c), calls, threads)


def assert_state_free(layer, run, calls, threads):
    """Whether A, B, A gives the same for both As, and nothing new is on the layer."""
    want = run(calls[0])
    before, results = set(vars(layer)), [None] * len(calls)

    def work(i):
        results[i] = run(calls[i])

    jobs = [threading.Thread(target=work, args=(i,)) for i in range(len(calls))]
    for i, job in enumerate(jobs):
        job.start() if threads else work(i)
    for job in jobs if threads else ():
        job.join()
    assert_equal(results[0], want)
    assert_equal(results[2], want)
    assert set(vars(layer)) == before


@on_tensorflow
@every_case
def test_an_export_holds_no_memory_of_a_batch(case, tmp_path):
    """An exported decoder went on attending to the batch it was exported after."""
    import tensorflow as tf

    model = text_model(case)
    model.predict_on_batch(IDS)
    model.export(tmp_path / "served", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "served"))
    other = np.array([[2, 4, 6, 8, 0, 0, 0]] * 3)
    got = served.serve(tf.constant(other, model.inputs[0].dtype))
    assert_equal(got, model(other), atol=1e-6)
