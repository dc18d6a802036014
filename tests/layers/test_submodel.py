"""attention_submodel: the weights of any model, shared, saved, truly the model's."""

import keras
import numpy as np
import pytest

from keras_attention import (
    BahdanauAttention,
    MultiHeadAttention,
    TransformerDecoderBlock,
    TransformerEncoderBlock,
    attention_submodel,
    holds_attention,
)
from tests.layers.contract import normal, to_numpy

IDS = np.array([[5, 7, 9, 0, 0], [3, 4, 6, 8, 2]])


def classifier(scores_in_graph, name="attention"):
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(31, 12, mask_zero=True)(ids)
    lstm = keras.layers.LSTM(7, return_sequences=True)
    states = keras.layers.Bidirectional(lstm)(states)
    layer = BahdanauAttention(
        5, return_attention_scores=scores_in_graph, name=name, use_bias=True
    )
    context = layer(states)[0] if scores_in_graph else layer(states)
    return keras.Model(ids, keras.layers.Dense(1, activation="sigmoid")(context))


def keras_layer_model(kind):
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(31, 12, mask_zero=True)(ids)
    layer = {
        "mha": lambda: keras.layers.MultiHeadAttention(3, 4, name="look")(x, x),
        "gqa": lambda: keras.layers.GroupQueryAttention(4, 6, 2, name="look")(x, x),
        "dot": lambda: keras.layers.Attention(name="look")([x, x]),
        "additive": lambda: keras.layers.AdditiveAttention(name="look")([x, x]),
    }[kind]
    return keras.Model(ids, layer())


def check(model, inputs=IDS):
    """The sub-model's output is the model's, before and after a save."""
    both = attention_submodel(model)
    output, weights = both.predict(inputs, verbose=0)
    np.testing.assert_allclose(
        output, model.predict(inputs, verbose=0), rtol=1e-5, atol=1e-6
    )
    return both, weights


@pytest.mark.parametrize("scores_in_graph", [True, False])
def test_our_layer_asked_for_scores_or_not(scores_in_graph, tmp_path):
    model = classifier(scores_in_graph)
    both, weights = check(model)
    assert list(weights) == ["attention"]
    assert weights["attention"].shape == (2, 5, 1)
    np.testing.assert_allclose(weights["attention"].sum(1), 1, atol=1e-6)
    assert (weights["attention"][0, 3:] == 0).all()
    assert both.count_params() == model.count_params()

    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    _, again = check(loaded)
    np.testing.assert_array_equal(again["attention"], weights["attention"])

    both.save(tmp_path / "attention.keras")
    reloaded = keras.saving.load_model(tmp_path / "attention.keras")
    output, again = reloaded.predict(IDS, verbose=0)
    np.testing.assert_array_equal(again["attention"], weights["attention"])
    np.testing.assert_allclose(
        output, model.predict(IDS, verbose=0), rtol=1e-5, atol=1e-6
    )


def test_weights_are_shared_and_training_goes_through():
    model = classifier(False)
    both = attention_submodel(model)
    before = both.predict(IDS, verbose=0)[1]["attention"]
    model.compile(keras.optimizers.SGD(5.0), "binary_crossentropy", jit_compile=False)
    model.fit(IDS, np.array([1, 0]), epochs=3, verbose=0)
    after = both.predict(IDS, verbose=0)[1]["attention"]
    assert np.abs(after - before).max() > 1e-4
    np.testing.assert_array_equal(
        after, check(model)[1]["attention"], "a new sub-model sees the same weights"
    )


@pytest.mark.filterwarnings("ignore:(?s).*EinsumDense:UserWarning")  # Keras
@pytest.mark.parametrize("kind", ["mha", "gqa", "dot", "additive"])
def test_layers_of_keras(kind, tmp_path):
    model = keras_layer_model(kind)
    both, weights = check(model)
    maps = weights["look"]
    assert maps.shape[-2:] == (5, 5)
    np.testing.assert_allclose(maps[..., :3, :].sum(-1), 1, atol=1e-5)
    assert (maps[0][..., 3:] == 0).all(), "the embedding's mask was handed on"
    both.save(tmp_path / "attention.keras")
    again = keras.saving.load_model(tmp_path / "attention.keras")
    np.testing.assert_array_equal(again.predict(IDS, verbose=0)[1]["look"], maps)


def test_cross_attention_with_explicit_masks_and_other_lengths():
    query, value = keras.Input((3, 8)), keras.Input((None, 8))
    pairs = keras.Input((3, None), dtype="bool")
    layer = keras.layers.MultiHeadAttention(2, 4, name="cross")
    model = keras.Model(
        [query, value, pairs], layer(query, value, attention_mask=pairs)
    )
    allowed = np.ones((2, 3, 5), bool)
    allowed[:, :, 4] = False
    _, weights = check(model, [normal(2, 3, 8), normal(2, 5, 8), allowed])
    assert weights["cross"].shape == (2, 2, 3, 5)
    assert (weights["cross"][..., 4] == 0).all()


def test_a_flag_beside_a_mask_that_is_a_tensor():
    x, real = keras.Input((5, 8)), keras.Input((5,), dtype="bool")
    layer = MultiHeadAttention(2, 4, return_attention_scores=False, name="look")
    output = layer(x, value_mask=real, use_causal_mask=True)
    _, weights = check(keras.Model([x, real], output), [normal(2, 5, 8), IDS > 4])
    assert not np.triu(weights["look"], 1).any()


def test_several_layers_a_layer_called_twice_and_inner_models():
    states = keras.Input((None, 8))
    shared = BahdanauAttention(5, return_attention_scores=False, name="shared")
    inner = keras.Model(states, shared(states), name="inner")
    sequence = keras.Sequential(
        [
            keras.Input((None, 8)),
            keras.layers.Dense(8),
            BahdanauAttention(3, return_attention_scores=False, name="pool"),
        ],
        name="sequence",
    )
    x, y = keras.Input((None, 8)), keras.Input((None, 8))
    own = BahdanauAttention(4, return_attention_scores=False, name="own")
    joined = keras.layers.Concatenate()([own(x), own(y), inner(x), sequence(y)])
    _, weights = check(keras.Model([x, y], joined), [normal(2, 3, 8), normal(2, 5, 8)])
    lengths = {name: w.shape[1] for name, w in weights.items()}
    assert lengths == {"own": 3, "own_1": 5, "inner/shared": 3, "sequence/pool": 5}


def test_names_that_collide_keep_their_maps():
    x, y, z = (keras.Input((None, 8)) for _ in range(3))
    twice = BahdanauAttention(4, return_attention_scores=False, name="att")
    other = BahdanauAttention(4, return_attention_scores=False, name="att_1")
    joined = keras.layers.Concatenate()([twice(x), twice(y), other(z)])
    data = [normal(2, 3, 8), normal(2, 5, 8), normal(2, 7, 8)]
    _, weights = check(keras.Model([x, y, z], joined), data)
    lengths = {name: w.shape[1] for name, w in weights.items()}
    assert lengths == {"att": 3, "att_1": 7, "att_2": 5}


@pytest.mark.parametrize("wrapped", ["layer", "model"])
def test_inside_time_distributed(wrapped, tmp_path):
    words = keras.Input((None, 8))
    layer = BahdanauAttention(5, return_attention_scores=False, name="words")
    inner = layer if wrapped == "layer" else keras.Model(words, layer(words))
    texts = keras.Input((4, None, 8))
    model = keras.Model(texts, keras.layers.TimeDistributed(inner, name="each")(texts))
    data = normal(2, 4, 5, 8)
    assert holds_attention(model)
    both, weights = check(model, data)
    both.save(tmp_path / "both.keras")
    again = keras.saving.load_model(tmp_path / "both.keras").predict(data, verbose=0)
    np.testing.assert_array_equal(again[1]["each/words"], weights["each/words"])
    assert weights["each/words"].shape == (2, 4, 5, 1)
    alone = to_numpy(layer(data[:, 1], return_attention_scores=True)[1])
    np.testing.assert_allclose(weights["each/words"][:, 1], alone, rtol=1e-5, atol=1e-6)


def masked_model(kind, explicit):
    """A layer on masked states, with one more mask given by hand, or none."""
    ids = keras.Input((None,), dtype="int32")
    states = keras.layers.Embedding(31, 12, mask_zero=True)(ids)
    more = {explicit: ids > 5} if explicit else {}
    ours = BahdanauAttention(5, return_attention_scores=False, name="look")
    theirs = keras.layers.MultiHeadAttention(2, 4, name="look")
    output = {
        "pooling": lambda: ours(states, **more),
        "full": lambda: ours(states, states, **more),
        "step": lambda: ours(states[:, 0], states, **more),
        "mha": lambda: theirs(states, states, **more),
    }[kind]()
    return keras.Model(ids, output)


@pytest.mark.parametrize(
    ("kind", "explicit"),
    [
        ("pooling", None),
        ("pooling", "mask"),
        ("pooling", "query_mask"),
        ("pooling", "value_mask"),
        ("full", None),
        ("full", "value_mask"),
        ("full", "query_mask"),
        ("full", "key_mask"),
        ("step", "value_mask"),
        ("mha", None),
        ("mha", "value_mask"),
        ("mha", "query_mask"),
    ],
)
def test_masks_given_and_filled_in_mean_what_they_mean_in_the_model(kind, explicit):
    check(masked_model(kind, explicit))


def test_the_mask_list_of_kerass_attention_means_what_it_means_in_the_model():
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(31, 12, mask_zero=True)(ids)
    layer = keras.layers.Attention(name="look")
    _, weights = check(keras.Model(ids, layer([x, x], mask=[None, ids > 5])))
    assert (weights["look"][0][:, [0, 3, 4]] == 0).all()
    by_name = keras.layers.Attention(name="look")
    _, weights = check(keras.Model(ids, by_name(inputs=[x, x])))
    assert (weights["look"][0][:, 3:] == 0).all()


def test_products_that_keras_takes_for_sparse():
    inputs = keras.Input((None, 8))
    layer = BahdanauAttention(4, return_attention_scores=False)
    check(keras.Model(inputs, layer(inputs * 2.0)), normal(2, 5, 8))


def test_an_inner_model_called_twice_and_names_that_are_taken(tmp_path):
    states = keras.Input((None, 8))
    look = BahdanauAttention(5, return_attention_scores=False, name="look")
    inner = keras.Model(states, look(states), name="inner")
    x, y = keras.Input((None, 8)), keras.Input((None, 8))
    taken = keras.layers.Dense(8, name="inner_attention")(x)
    joined = keras.layers.Concatenate()([inner(taken), inner(y)])
    data = [normal(2, 3, 8), normal(2, 5, 8)]
    both, weights = check(keras.Model([x, y], joined), data)
    lengths = {name: w.shape[1] for name, w in weights.items()}
    assert lengths == {"inner/look": 3, "inner/look_1": 5}
    both.save(tmp_path / "both.keras")
    again = keras.saving.load_model(tmp_path / "both.keras").predict(data, verbose=0)
    np.testing.assert_array_equal(again[1]["inner/look_1"], weights["inner/look_1"])


def test_a_layer_called_with_and_without_its_scores():
    x, y = keras.Input((None, 8)), keras.Input((None, 8))
    layer = BahdanauAttention(4, return_attention_scores=False, name="look")
    context = layer(x)
    joined = keras.layers.Concatenate()([context, layer(y)])
    _, weights = check(keras.Model([x, y], joined), [normal(2, 3, 8), normal(2, 5, 8)])
    assert {name: w.shape[1] for name, w in weights.items()} == {"look": 3, "look_1": 5}


@pytest.mark.filterwarnings("ignore:.*does not have a `quantize` method:UserWarning")
def test_models_with_the_layer_quantize():
    model = classifier(False)
    before = model.predict(IDS, verbose=0)
    model.quantize("int8")
    np.testing.assert_allclose(model.predict(IDS, verbose=0), before, atol=0.05)


def test_sequential_and_compiled_models():
    model = keras.Sequential(
        [keras.Input((None, 8)), BahdanauAttention(4, return_attention_scores=False)]
    )
    model.compile("adam", loss=lambda y, p: p)
    _, weights = check(model, normal(2, 5, 8))
    assert len(weights) == 1


def translator(scores, nested):
    """Two encoder blocks and a decoder block, asked for their scores or not."""
    source = keras.Input((7,), dtype="int32")
    target = keras.Input((None,), dtype="int32")
    embedding = keras.layers.Embedding(31, 12, mask_zero=True)

    def encode(x):
        for i in range(2):
            block = TransformerEncoderBlock(3, 17, name=f"encoder_{i}")
            x = block(x, return_attention_scores=True)[0] if scores else block(x)
        return x

    x = embedding(source)
    if nested:
        states = keras.Input((7, 12))
        x = keras.Model(states, encode(states), name="stack")(x)
    else:
        x = encode(x)
    decoder = TransformerDecoderBlock(3, 17, name="decoder")
    if not scores:
        return keras.Model([source, target], decoder(embedding(target), x))
    x, maps = decoder(embedding(target), x, return_attention_scores=True)
    mixed = keras.layers.Dense(12)(maps["cross_attention"][:, 0])
    return keras.Model([source, target], keras.layers.Add()([x, mixed]))


@pytest.mark.filterwarnings("ignore:Layer 'stack.*:UserWarning")  # Keras: untrue
@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize("scores", [False, True])
def test_the_maps_inside_transformer_blocks(scores, nested, tmp_path):
    model = translator(scores, nested)
    data = [np.array([[5, 7, 9, 4, 0, 0, 0], [3, 4, 6, 8, 2, 1, 0]]), IDS]
    assert holds_attention(model)
    both, weights = check(model, data)
    inside = "stack/" if nested else ""
    assert {name: maps.shape for name, maps in weights.items()} == {
        f"{inside}encoder_0/self_attention": (2, 3, 7, 7),
        f"{inside}encoder_1/self_attention": (2, 3, 7, 7),
        "decoder/self_attention": (2, 3, 5, 5),
        "decoder/cross_attention": (2, 3, 5, 7),
    }
    cross = weights["decoder/cross_attention"]
    np.testing.assert_allclose(cross[1].sum(-1), 1, atol=1e-6)
    assert not cross[0, ..., 4:].any() and not cross[0, :, 3:].any()
    assert both.count_params() == model.count_params()

    model.save(tmp_path / "model.keras")
    both.save(tmp_path / "attention.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    reloaded = keras.saving.load_model(tmp_path / "attention.keras")
    for again in (check(loaded, data)[1], reloaded.predict(data, verbose=0)[1]):
        for name, maps in weights.items():
            np.testing.assert_array_equal(again[name], maps)


def test_a_block_in_time_distributed_keeps_its_mask(tmp_path):
    ids = keras.Input((4, None), dtype="int32")
    x = keras.layers.Embedding(31, 12, mask_zero=True)(ids)
    for i in range(2):
        block = TransformerEncoderBlock(3, 17, name=f"block_{i}")
        x = keras.layers.TimeDistributed(block, name=f"each_{i}")(x)
    model = keras.Model(ids, x)
    data = np.stack([IDS, IDS, IDS + 1, IDS[::-1]], axis=1)
    both, weights = check(model, data)
    assert list(weights) == [f"each_{i}/block_{i}/self_attention" for i in range(2)]
    for maps in weights.values():
        assert maps.shape == (2, 4, 3, 5, 5) and not maps[0, 0, ..., 3:].any()
    both.save(tmp_path / "both.keras")
    again = keras.saving.load_model(tmp_path / "both.keras").predict(data, verbose=0)
    for name, maps in weights.items():
        np.testing.assert_array_equal(again[1][name], maps)


@pytest.mark.parametrize("scores", [False, True])
def test_a_step_with_a_cache_keeps_its_cache(scores):
    block = TransformerEncoderBlock(3, 17, name="block")
    block.build((2, 5, 12))
    cache = block.empty_cache(2, 5)
    specs = tuple(keras.Input(slots.shape[1:]) for slots in cache)
    token = keras.Input((1, 12))
    results = block(token, cache=specs, position=0, return_attention_scores=scores)
    data = [normal(2, 1, 12), *(to_numpy(slots) for slots in cache)]
    model = keras.Model([token, *specs], [results[0], *results[-1]])
    outputs, weights = attention_submodel(model).predict(data, verbose=0)
    for got, want in zip(outputs, model.predict(data, verbose=0), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    assert weights["block/self_attention"].shape == (2, 3, 1, 5)


class TwoLooks(keras.layers.Layer):
    """A layer of a user that tells the sub-model what it holds."""

    attention_names = ("near", "far")

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.near, self.far = BahdanauAttention(4), BahdanauAttention(5)

    def build(self, shape):
        self.near.build(shape)
        self.far.build(shape)

    def call(self, inputs, return_attention_scores=False):
        near, near_weights = self.near(inputs)
        far, far_weights = self.far(inputs)
        if return_attention_scores:
            return near + far, {"near": near_weights, "far": far_weights}
        return near + far


def test_a_layer_of_your_own_that_says_what_it_holds():
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, TwoLooks(name="looks")(inputs))
    _, weights = check(model, normal(2, 5, 8))
    assert {name: maps.shape for name, maps in weights.items()} == {
        "looks/near": (2, 5, 1),
        "looks/far": (2, 5, 1),
    }


def test_what_has_no_attention_or_no_graph_is_refused():
    x = keras.Input((3,))
    with pytest.raises(ValueError, match="holds no attention layer"):
        attention_submodel(keras.Model(x, keras.layers.Dense(1)(x)))

    class Own(keras.Model):
        def call(self, inputs):
            return inputs

    with pytest.raises(TypeError, match="whose graph Keras"):
        attention_submodel(Own())
    with pytest.raises(TypeError, match=r"must be a keras\.Model"):
        attention_submodel(keras.layers.Dense(1))
    with pytest.raises(ValueError, match="is not built"):
        attention_submodel(
            keras.Sequential([BahdanauAttention(4, return_attention_scores=False)])
        )


def test_the_tutorials_lines_run_as_they_stand():
    inputs = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(31, 12, mask_zero=True)(inputs)
    lstm_out = keras.layers.Bidirectional(keras.layers.LSTM(64, return_sequences=True))(
        x
    )
    context, attn_weights = BahdanauAttention(units=32)(lstm_out)
    output = keras.layers.Dense(1, activation="sigmoid")(context)
    model = keras.Model(inputs, output)
    attention_model = keras.Model(
        inputs=model.inputs, outputs=[model.output, attn_weights]
    )
    prediction, weights = attention_model.predict(IDS, verbose=0)
    assert context.shape == (None, 128) and attn_weights.shape == (None, None, 1)
    assert prediction.shape == (2, 1) and weights.shape == (2, 5, 1)
