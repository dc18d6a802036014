"""The Transformer's blocks: the equations, masks, caches, files, number types."""

import inspect
import json

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import TransformerDecoderBlock, TransformerEncoderBlock
from keras_attention.positional import RotaryEmbedding
from tests.layers.contract import normal, to_numpy
from tests.layers.gradients import gradients

B, T, S, D, DS, HEADS, KEY, HIDDEN = 2, 5, 7, 11, 13, 3, 2, 17
BLOCKS = {"encoder": TransformerEncoderBlock, "decoder": TransformerDecoderBlock}
# Padded on the right and on the left; three real tokens in every row of the target.
TARGET = np.array([[1, 1, 1, 0, 0], [0, 0, 1, 1, 1]], bool)
SOURCE = np.array([[1, 1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 1, 1, 1]], bool)

kinds = pytest.mark.parametrize("kind", BLOCKS)
orders = pytest.mark.parametrize("normalization", ["pre", "post"])


def make(kind, **options):
    options = {"key_dim": KEY, **options}
    return BLOCKS[kind](HEADS, HIDDEN, **options)


def inputs_of(kind, scale=1.0, seed=0):
    target = normal(B, T, D, seed=seed, scale=scale)
    source = normal(B, S, DS, seed=seed + 1, scale=scale)
    return (target, source) if kind == "decoder" else (target,)


def masks_of(kind, given=True):
    if not given:
        return {}
    if kind == "encoder":
        return {"mask": TARGET}
    return {"target_mask": TARGET, "source_mask": SOURCE}


def random_weights(block, *args):
    """Gives a block weights that are all of one size, biases and norms included."""
    if not block.built:
        block.build(*(a.shape for a in args))
    rng = np.random.default_rng(7)
    block.set_weights([0.4 * rng.normal(size=w.shape) for w in block.get_weights()])
    return block


# ---- the equation


def norm_by_hand(layer, x):
    gamma, beta = (to_numpy(w).astype("float64") for w in (layer.gamma, layer.beta))
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred**2).mean(-1, keepdims=True)
    return gamma * centred / np.sqrt(variance + layer.epsilon) + beta


def attention_by_loops(layer, query, value, may_attend):
    """Vaswani et al. (2017), equations 1 and section 3.2.2, a query at a time."""
    weights = {w.name: to_numpy(w).astype("float64") for w in layer.weights}

    def heads(x, name):
        rows = x @ weights[f"{name}_kernel"] + weights[f"{name}_bias"]
        return rows.reshape(*x.shape[:2], HEADS, KEY)

    q, k, v = heads(query, "query"), heads(value, "key"), heads(value, "value")
    maps = np.zeros((len(query), HEADS, query.shape[1], value.shape[1]))
    context = np.zeros(q.shape)
    for b, h, t in np.ndindex(len(query), HEADS, query.shape[1]):
        seen = may_attend[b, t]
        if seen.any():
            scores = np.exp(k[b, seen, h] @ q[b, t, h] / np.sqrt(KEY))
            maps[b, h, t, seen] = scores / scores.sum()
            context[b, t, h] = maps[b, h, t] @ v[b, :, h]
    rows = context.reshape(*query.shape[:2], HEADS * KEY)
    output = rows @ weights["output_kernel"] + weights["output_bias"]
    return np.where(may_attend.any(-1)[..., None], output, 0), maps


def feed_forward_by_hand(block, x):
    first, second = (
        [to_numpy(w).astype("float64") for w in (dense.kernel, dense.bias)]
        for dense in (block.hidden, block.output_dense)
    )
    return np.maximum(x @ first[0] + first[1], 0) @ second[0] + second[1]


def block_by_hand(block, target, source, own, cross):
    """Xiong et al. (2020), table 1. `own`, `cross`: what may be attended, or None."""
    maps = {}

    def residual(x, norm, sublayer):
        if block.normalization == "pre":
            return x + sublayer(norm_by_hand(norm, x))
        return norm_by_hand(norm, x + sublayer(x))

    def attend(name, value, pairs):
        def sublayer(x):
            layer = getattr(block, name)
            memory = x if value is None else value
            output, maps[name] = attention_by_loops(layer, x, memory, pairs)
            return output

        return sublayer

    x = target.astype("float64")
    x = residual(x, block.self_attention_norm, attend("self_attention", None, own))
    if source is not None:
        look = attend("cross_attention", source.astype("float64"), cross)
        x = residual(x, block.cross_attention_norm, look)
    feed = lambda x: feed_forward_by_hand(block, x)  # noqa: E731
    return residual(x, block.feed_forward_norm, feed), maps


@orders
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_the_encoder_block_equals_its_equation(normalization, masked, causal):
    block = make("encoder", normalization=normalization)
    (x,) = inputs_of("encoder")
    random_weights(block, x)
    real = TARGET if masked else np.ones((B, T), bool)
    pairs = real[:, :, None] & real[:, None]
    options = masks_of("encoder", masked)
    if causal:
        pairs, options["use_causal_mask"] = pairs & np.tri(T, dtype=bool), True
    output, weights = to_numpy(block(x, return_attention_scores=True, **options))
    want, maps = block_by_hand(block, x, None, pairs, None)
    np.testing.assert_allclose(output[real], want[real], atol=1e-5)
    np.testing.assert_allclose(weights, maps["self_attention"], atol=1e-5)
    assert not output[~real].any()
    np.testing.assert_allclose(to_numpy(block(x, **options)), output, atol=1e-5)


@orders
@pytest.mark.parametrize("masked", [False, True])
def test_the_decoder_block_equals_its_equation(normalization, masked):
    block = make("decoder", normalization=normalization)
    target, source = inputs_of("decoder")
    random_weights(block, target, source)
    real = TARGET if masked else np.ones((B, T), bool)
    memory = SOURCE if masked else np.ones((B, S), bool)
    own = real[:, :, None] & real[:, None] & np.tri(T, dtype=bool)
    cross = real[:, :, None] & memory[:, None]
    options = masks_of("decoder", masked)
    output, weights = block(target, source, return_attention_scores=True, **options)
    want, maps = block_by_hand(block, target, source, own, cross)
    output = to_numpy(output)
    np.testing.assert_allclose(output[real], want[real], atol=1e-5)
    assert list(weights) == ["self_attention", "cross_attention"]
    for name, expected in maps.items():
        np.testing.assert_allclose(to_numpy(weights[name]), expected, atol=1e-5)
    assert not output[~real].any()
    np.testing.assert_allclose(
        to_numpy(block(target, source, **options)), output, atol=1e-5
    )


def test_the_decoder_block_equals_pytorchs():
    torch = pytest.importorskip("torch")
    theirs = torch.nn.TransformerDecoderLayer(
        HEADS * KEY, HEADS, HIDDEN, dropout=0.0, batch_first=True, norm_first=True
    ).eval()
    target, source = normal(B, T, HEADS * KEY), normal(B, S, HEADS * KEY, seed=1)
    block = make("decoder", key_dim=None, layer_norm_epsilon=1e-5)
    block.build(target.shape, source.shape)
    state = {k: v.detach().numpy() for k, v in theirs.state_dict().items()}
    for ours, name in (
        (block.self_attention, "self_attn"),
        (block.cross_attention, "multihead_attn"),
    ):
        kernels = np.split(state[f"{name}.in_proj_weight"], 3)
        biases = np.split(state[f"{name}.in_proj_bias"], 3)
        kernels.append(state[f"{name}.out_proj.weight"])
        biases.append(state[f"{name}.out_proj.bias"])
        for role, kernel, bias in zip(
            ("query", "key", "value", "output"), kernels, biases, strict=True
        ):
            getattr(ours, f"{role}_kernel").assign(kernel.T)
            getattr(ours, f"{role}_bias").assign(bias)
    for ours, name in ((block.hidden, "linear1"), (block.output_dense, "linear2")):
        ours.set_weights([state[f"{name}.weight"].T, state[f"{name}.bias"]])
    causal = torch.triu(torch.ones(T, T, dtype=torch.bool), 1)
    with torch.no_grad():
        want = theirs(
            torch.tensor(target),
            torch.tensor(source),
            tgt_mask=causal,
            memory_key_padding_mask=torch.tensor(~SOURCE),
        ).numpy()
    got = to_numpy(block(target, source, source_mask=SOURCE))
    np.testing.assert_allclose(got, want, atol=1e-5)


# ---- masks


@orders
@kinds
@pytest.mark.parametrize("filler", [np.nan, np.inf, 7.0])
def test_what_is_in_padded_slots_does_not_matter(kind, normalization, filler):
    block = make(kind, normalization=normalization)
    args = inputs_of(kind)
    random_weights(block, *args)
    filled = [a.copy() for a in args]
    for array, mask in zip(filled, (TARGET, SOURCE), strict=False):
        array[~mask] = filler

    def loss(*tensors):
        output = block(*tensors, **masks_of(kind))
        return ops.sum(ops.multiply(output, normal(B, T, D, seed=9)))

    output = to_numpy(block(*filled, **masks_of(kind)))
    np.testing.assert_allclose(
        output, to_numpy(block(*args, **masks_of(kind))), atol=1e-6
    )
    plain = gradients(loss, list(args), block)
    found = gradients(loss, filled, block)
    for got, want in zip(found, plain, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    for got, mask in zip(found[: len(args)], (TARGET, SOURCE), strict=False):
        assert not got[~mask].any() and got[mask].any()


@orders
@kinds
def test_more_padding_changes_nothing(kind, normalization):
    block = make(kind, normalization=normalization, rotary_embedding=RotaryEmbedding())
    args = inputs_of(kind)
    random_weights(block, *args)
    names = [n for n in ("mask", "target_mask", "source_mask") if n in masks_of(kind)]
    whole = {n: np.ones(a.shape[:2], bool) for n, a in zip(names, args, strict=True)}
    output = to_numpy(block(*args, **whole))
    for left, right in ((0, 3), (3, 0), (2, 1)):
        pad = ((0, 0), (left, right))
        longer = [np.pad(a, (*pad, (0, 0)), constant_values=np.nan) for a in args]
        masks = {name: np.pad(mask, pad) for name, mask in whole.items()}
        got = to_numpy(block(*longer, **masks))
        np.testing.assert_allclose(got[:, left : left + T], output, atol=1e-5)


@kinds
def test_a_row_of_padding_gives_zeros_and_its_neighbour_does_not_see_it(kind):
    block = make(kind)
    args = inputs_of(kind)
    random_weights(block, *args)
    masks = {name: mask.copy() for name, mask in masks_of(kind).items()}
    for mask in masks.values():
        mask[0] = False
    output, maps = block(*args, return_attention_scores=True, **masks)
    output = to_numpy(output)
    assert not output[0].any() and np.isfinite(output).all()
    for weights in maps.values() if kind == "decoder" else [maps]:
        assert not to_numpy(weights)[0].any()
    alone = block(
        *(a[1:] for a in args), **{name: mask[1:] for name, mask in masks.items()}
    )
    np.testing.assert_allclose(to_numpy(alone)[0], output[1], rtol=1e-5, atol=1e-6)


def test_a_source_of_padding_leaves_the_target_to_itself():
    block = make("decoder")
    target, source = inputs_of("decoder")
    random_weights(block, target, source)
    mask = np.array([[0] * S, [1] * S], bool)
    output, maps = block(target, source, source_mask=mask, return_attention_scores=True)
    assert np.isfinite(to_numpy(output)).all()
    assert not to_numpy(maps["cross_attention"])[0].any()
    other = to_numpy(block(target, source + 5, source_mask=mask))
    np.testing.assert_allclose(other[0], to_numpy(output)[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("lengths", "real"), [((7, 5), (4, 3)), ((6, 6), (4, 3)), ((6, 6), (2, 5))]
)
def test_the_cross_attention_has_the_sources_mask(lengths, real):
    (steps, length), (target_real, source_real) = lengths, real
    target, source = normal(B, steps, D), normal(B, length, DS)
    block = random_weights(make("decoder"), target, source)
    masks = {
        "target_mask": np.arange(steps)[None].repeat(B, 0) < target_real,
        "source_mask": np.arange(length)[None].repeat(B, 0) < source_real,
    }
    output, maps = block(target, source, return_attention_scores=True, **masks)
    cross = to_numpy(maps["cross_attention"])
    assert cross.shape == (B, HEADS, steps, length)
    assert (cross[:, :, :target_real, :source_real] > 0).all()
    assert not cross[..., source_real:].any() and not cross[:, :, target_real:].any()
    own = to_numpy(maps["self_attention"])
    assert (own[:, :, :target_real] > 0).sum() == B * HEADS * sum(
        range(1, target_real + 1)
    )
    source[:, source_real:] = 9.0
    again = to_numpy(block(target, source, **masks))
    np.testing.assert_allclose(again, to_numpy(output), rtol=1e-5, atol=1e-6)


@kinds
def test_later_tokens_change_nothing_before_them(kind):
    block = make(kind)
    args = inputs_of(kind)
    random_weights(block, *args)
    options = {"use_causal_mask": True} if kind == "encoder" else {}
    output = to_numpy(block(*args, **options))
    for step in range(1, T):
        changed = args[0].copy()
        changed[:, step:] = normal(B, T - step, D, seed=9)
        got = to_numpy(block(changed, *args[1:], **options))
        np.testing.assert_allclose(
            got[:, :step], output[:, :step], rtol=1e-5, atol=1e-6
        )
        assert np.abs(got[:, step] - output[:, step]).max() > 1e-2


class SeeMask(keras.layers.Layer):
    supports_masking = True

    def call(self, inputs, mask=None):
        return ops.zeros(inputs.shape[:2], bool) if mask is None else mask


@kinds
@pytest.mark.parametrize("scores", [False, True])
@pytest.mark.parametrize("pairs", [False, True])
def test_masks_keras_carries_are_used_and_go_on(kind, scores, pairs):
    ids = np.where(TARGET, [[3, 5, 7, 9, 11]], 0), np.where(SOURCE, 13, 0)
    embed = keras.layers.Embedding(31, D, mask_zero=True)
    carried = [embed(i) for i in ids[: 2 if kind == "decoder" else 1]]
    by_hand = [to_numpy(c) for c in carried]
    block = random_weights(make(kind), *by_hand)
    options = {"return_attention_scores": scores}
    if pairs:
        options["attention_mask"] = np.tri(T, dtype=bool)[None]
    output = block(*carried, **options)
    want = block(*by_hand, **masks_of(kind), **options)
    output, want = (output[0], want[0]) if scores else (output, want)
    np.testing.assert_allclose(to_numpy(output), to_numpy(want), rtol=1e-5, atol=1e-6)
    for one in (output, want):
        np.testing.assert_array_equal(to_numpy(SeeMask()(one)), TARGET)


@kinds
def test_masks_of_every_kind_mean_the_same(kind):
    block = make(kind)
    args = inputs_of(kind)
    random_weights(block, *args)
    want = to_numpy(block(*args, **masks_of(kind)))
    for turn in (lambda m: m.astype("int32"), lambda m: m * 1.0, np.ndarray.tolist):
        masks = {name: turn(mask) for name, mask in masks_of(kind).items()}
        np.testing.assert_array_equal(to_numpy(block(*args, **masks)), want)


# ---- caches


@orders
@kinds
@pytest.mark.parametrize("chunks", [(1, 1, 1, 1, 1), (2, 3), (3, 1, 1)])
def test_steps_with_a_cache_equal_the_whole_call(kind, normalization, chunks):
    block = make(kind, normalization=normalization, rotary_embedding=RotaryEmbedding())
    args = inputs_of(kind)
    random_weights(block, *args)
    if kind == "encoder":
        whole, beside, options = block(args[0], use_causal_mask=True), (), {}
    else:
        options = {"source_mask": SOURCE}
        whole, beside = block(*args, **options), (args[1], SOURCE)
    cache = block.empty_cache(B, T, *beside)
    position = 0
    for length in chunks:
        tokens = args[0][:, position : position + length]
        step, maps, cache = block(
            tokens,
            cache=cache,
            position=position,
            return_attention_scores=True,
            **options,
        )
        expected = to_numpy(whole)[:, position : position + length]
        np.testing.assert_allclose(to_numpy(step), expected, atol=1e-5)
        own = maps if kind == "encoder" else maps["self_attention"]
        assert own.shape == (B, HEADS, length, T)
        position += length


def test_padding_of_a_prompt_is_kept_out_by_an_attention_mask():
    block = make("encoder")
    (x,) = inputs_of("encoder")
    random_weights(block, x)
    x[~TARGET] = np.nan
    whole = to_numpy(block(x, mask=TARGET, use_causal_mask=True))
    cache = block.empty_cache(B, T)
    for t in range(T):
        step, cache = block(
            x[:, t : t + 1],
            mask=TARGET[:, t : t + 1],
            attention_mask=TARGET[:, None],
            cache=cache,
            position=t,
        )
        np.testing.assert_allclose(to_numpy(step)[:, 0], whole[:, t], atol=1e-5)


@kinds
def test_a_step_is_a_functional_model_too(kind):
    block = make(kind)
    args = inputs_of(kind)
    random_weights(block, *args)
    beside = args[1:]
    cache = block.empty_cache(B, T, *beside)
    specs = keras.tree.map_structure(lambda c: keras.Input(c.shape[1:]), cache)
    token, position = keras.Input((1, D)), keras.Input(batch_shape=(), dtype="int32")
    results = block(token, cache=specs, position=position)
    real = block(args[0][:, :1], cache=cache, position=0)
    for one, other in zip(
        keras.tree.flatten(results), keras.tree.flatten(real), strict=True
    ):
        assert tuple(one.shape)[1:] == tuple(other.shape)[1:]
    model = keras.Model([token, specs, position], results)
    got = model(
        [ops.convert_to_tensor(args[0][:, :1]), cache, ops.convert_to_tensor(0)]
    )
    np.testing.assert_allclose(
        to_numpy(got[0]), to_numpy(real[0]), rtol=1e-5, atol=1e-6
    )


# ---- scores, dropout


@orders
@kinds
def test_dropout_rests_at_inference_and_never_shows_in_the_weights(kind, normalization):
    args = inputs_of(kind)
    plain = random_weights(make(kind, normalization=normalization), *args)
    options = {"normalization": normalization, "dropout": 0.5}
    block = random_weights(make(kind, seed=3, **options), *args)
    want = to_numpy(plain(*args))
    np.testing.assert_allclose(to_numpy(block(*args)), want, rtol=1e-5, atol=1e-6)
    trained, maps = block(*args, training=True, return_attention_scores=True)
    assert np.abs(to_numpy(trained) - want).max() > 1e-2
    first = maps if kind == "encoder" else maps["self_attention"]
    np.testing.assert_allclose(to_numpy(first).sum(-1), 1, atol=1e-6)
    same = random_weights(make(kind, seed=3, **options), *args)
    np.testing.assert_array_equal(
        to_numpy(same(*args, training=True)), to_numpy(trained)
    )
    other = random_weights(make(kind, seed=4, **options), *args)
    assert np.abs(to_numpy(other(*args, training=True) - trained)).max() > 1e-2


def test_each_sub_layer_drops_its_own():
    block = make("decoder", dropout=0.5, seed=3)
    block.build((B, T, D), (B, T, D))
    seeds = {block.seed_of(n) for n in range(3)}
    assert len(seeds) == 3 and make("decoder", seed=4).seed_of(0) not in seeds
    x = ops.ones((B, 64, D))
    first, second = (
        to_numpy(block.residual(ops.zeros_like, block.feed_forward_norm, x, False)[0])
        for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)
    drop = lambda: to_numpy(  # noqa: E731
        block.residual(ops.ones_like, block.feed_forward_norm, x, True)[0]
    )
    assert (drop() != drop()).mean() > 0.3


# ---- number types


@orders
@kinds
@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "mixed_float16", "mixed_bfloat16"]
)
def test_sixteen_bits_stay_finite(kind, normalization, scale, dtype):
    block = make(kind, normalization=normalization, dtype=dtype)
    args = [np.clip(a, -6e4, 6e4) for a in inputs_of(kind, scale=scale)]
    output, maps = block(*args, return_attention_scores=True, **masks_of(kind))
    assert keras.backend.standardize_dtype(output.dtype) == block.compute_dtype
    output = to_numpy(ops.cast(output, "float32"))
    assert np.isfinite(output).all() and output.any()
    for weights in keras.tree.flatten(maps):
        assert keras.backend.standardize_dtype(weights.dtype) == "float32"
        assert np.isfinite(to_numpy(weights)).all()


@orders
@kinds
def test_the_end_of_the_range_stays_finite(kind, normalization):
    block = make(kind, normalization=normalization, dtype="bfloat16", dropout=0.5)
    args = [np.full(a.shape, 1e38, "float32") for a in inputs_of(kind)]
    args[0][:, 0] *= -1
    for training in (False, True):
        output, maps = block(*args, return_attention_scores=True, training=training)
        for tensor in (output, *keras.tree.flatten(maps)):
            assert np.isfinite(to_numpy(ops.cast(tensor, "float32"))).all()


@kinds
@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_training_step_in_sixteen_bits_stays_finite(kind, dtype):
    args = inputs_of(kind, scale=100)
    specs = [keras.Input(a.shape[1:]) for a in args]
    model = keras.Model(specs, make(kind, dtype=dtype)(*specs))
    model.compile(keras.optimizers.SGD(1e-3), "mse", jit_compile=False)
    assert np.isfinite(model.train_on_batch(list(args), np.zeros((B, T, D))))
    assert all(np.isfinite(w).all() for w in model.get_weights())


# ---- building, configuration and files


@kinds
def test_every_weight_gets_a_gradient(kind):
    args = inputs_of(kind)
    specs = [keras.Input((None, a.shape[2])) for a in args]
    block = make(kind)
    model = keras.Model(specs, block(*specs))
    random_weights(block, *args)
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
    before = block.get_weights()
    model.train_on_batch(list(args), normal(B, T, D, seed=9))
    names = [w.path for w in block.weights]
    for name, old, new in zip(names, before, block.get_weights(), strict=True):
        # The softmax does not see what a bias of the keys adds to all scores.
        assert np.abs(new - old).max() > 0 or name.endswith("key_bias"), name
    assert len(set(names)) == len(names) == (26 if kind == "decoder" else 16)


@kinds
def test_config_holds_every_argument(kind):
    options = {
        "num_heads": 4,
        "intermediate_dim": 19,
        "key_dim": 6,
        "num_key_value_heads": 2,
        "rotary_embedding": RotaryEmbedding(max_wavelength=100),
        "feed_forward_activation": "gelu",
        "normalization": "post",
        "layer_norm_epsilon": 1e-3,
        "dropout": 0.25,
        "return_attention_scores": True,
        "seed": 23,
        "name": "another",
        "dtype": "mixed_bfloat16",
    }
    arguments = {
        name
        for base in BLOCKS[kind].__mro__
        if base.__module__.startswith("keras_attention")
        for name in inspect.signature(base.__init__).parameters
    }
    assert arguments - {"self", "args", "kwargs"} == set(options) - {"name", "dtype"}
    block = BLOCKS[kind](**options)
    config = json.loads(json.dumps(block.get_config()))
    again = BLOCKS[kind].from_config(config)
    assert again.get_config() == block.get_config()
    assert again.rotary_embedding.max_wavelength == 100
    for name in options.keys() - {"rotary_embedding", "dtype"}:
        assert config[name] == options[name]


def stack(kind, number, **options):
    """A functional model of some blocks, the last of them with its scores."""
    specs = [keras.Input((None, width)) for width in (D, DS)][: len(inputs_of(kind))]
    x = specs[0]
    for i in range(number):
        last = i == number - 1
        x = make(kind, name=f"block_{i}", **options)(
            x, *specs[1:], return_attention_scores=last
        )
    return keras.Model(specs, x)


@kinds
@pytest.mark.parametrize("number", [1, 2, 3])
def test_files_give_stacks_back(kind, number, tmp_path):
    options = {"rotary_embedding": RotaryEmbedding(), "dropout": 0.1}
    model, args = stack(kind, number, **options), list(inputs_of(kind))
    want = keras.tree.flatten(model(args))
    model.save(tmp_path / "model.keras")
    model.save_weights(tmp_path / "model.weights.h5")
    keras.utils.set_random_seed(99)
    loaded = keras.saving.load_model(tmp_path / "model.keras", safe_mode=True)
    other = stack(kind, number, **options)
    assert np.abs(to_numpy(other(args)[0]) - to_numpy(want[0])).max() > 1e-2
    other.load_weights(tmp_path / "model.weights.h5")
    for again in (loaded, other):
        assert len(again.weights) == len(model.weights)
        for got, expected in zip(keras.tree.flatten(again(args)), want, strict=True):
            np.testing.assert_array_equal(to_numpy(got), to_numpy(expected))


@kinds
@pytest.mark.parametrize("scores", [False, True])
def test_symbolic_shapes_equal_real_shapes(kind, scores):
    block = make(kind, return_attention_scores=scores)
    args = inputs_of(kind)
    specs = [keras.Input(batch_shape=a.shape) for a in args]
    symbolic, real = block(*specs), block(*args)
    keras.tree.assert_same_structure(symbolic, real)
    shapes = block.compute_output_shape(*(a.shape for a in args))
    found = [tuple(x.shape) for x in keras.tree.flatten(real)]
    assert [tuple(x.shape) for x in keras.tree.flatten(symbolic)] == found
    flat = keras.tree.flatten_shape if hasattr(keras.tree, "flatten_shape") else None
    assert flat is None or flat(shapes) == found
    assert (shapes[0] if scores else shapes) == found[0]
    other = block(*specs, return_attention_scores=not scores)
    assert isinstance(other, tuple) != scores


@kinds
def test_lengths_are_free_and_compiled_equals_eager(kind):
    model = stack(kind, 2)
    for length in (1, 23):
        args = [normal(B, length, a.shape[2]) for a in inputs_of(kind)]
        eager = keras.tree.flatten(model(args))
        # PyTorch's compiler warns of what Keras does around its fused attention.
        for jit in {False, keras.backend.backend() != "torch"}:
            model.compile("sgd", "mse", jit_compile=jit)
            for got, want in zip(
                keras.tree.flatten(model.predict_on_batch(args)), eager, strict=True
            ):
                np.testing.assert_allclose(got, to_numpy(want), atol=1e-5)
    assert not {1, 23} & {n for w in model.weights for n in w.shape}


@kinds
def test_nothing_of_a_call_is_kept_and_a_frozen_block_stays_frozen(kind):
    args = inputs_of(kind)
    block = make(kind, trainable=False)
    block(*args)
    before = set(vars(block))
    block(*args, return_attention_scores=True, **masks_of(kind))
    assert set(vars(block)) == before
    specs = [keras.Input(a.shape[1:]) for a in args]
    model = keras.Model(specs, block(*specs))
    assert model.trainable_variables == [] and len(model.weights) > 0


# ---- errors


def test_arguments_that_mean_nothing_are_refused():
    with pytest.raises(ValueError, match="`normalization` must be 'pre' or 'post'"):
        TransformerEncoderBlock(2, 8, normalization="middle")
    with pytest.raises(ValueError, match="`dropout` must be at least 0"):
        TransformerEncoderBlock(2, 8, dropout=1.0)
    with pytest.raises(ValueError, match="`num_heads` must be an integer"):
        TransformerEncoderBlock(0, 8)
    with pytest.raises(ValueError, match="`intermediate_dim` must be an integer"):
        TransformerDecoderBlock(2, 8.5)
    with pytest.raises(ValueError, match="`key_dim` must be an integer"):
        TransformerDecoderBlock(2, 8, key_dim=0)
    with pytest.raises(ValueError, match="must divide the inputs' width"):
        TransformerEncoderBlock(HEADS, HIDDEN)(normal(B, T, D))
    with pytest.raises(ValueError, match=r"takes tokens \(batch, length, width\)"):
        TransformerEncoderBlock(1, HIDDEN)(normal(B, T))


def test_masks_of_another_shape_are_refused_by_name():
    (x,) = inputs_of("encoder")
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        make("encoder")(x, mask=np.ones((B, T + 1), bool))
    with pytest.raises(ValueError, match=r"may attend.*additive"):
        make("encoder")(x, mask=np.where(TARGET, 0.0, -1e9))
    with pytest.raises(ValueError, match="`source_mask` must have the shape"):
        make("decoder")(*inputs_of("decoder"), source_mask=TARGET)


def test_a_decoder_block_needs_a_source_or_a_whole_cache():
    block, (target, source) = make("decoder"), inputs_of("decoder")
    with pytest.raises(ValueError, match="is not built"):
        block.empty_cache(B, T, source)
    with pytest.raises(ValueError, match="attends to a `source`"):
        block(target)
    block(target, source)
    with pytest.raises(ValueError, match="attends to a `source`"):
        block(target)
    cache = block.empty_cache(B, T, source)
    with pytest.raises(ValueError, match="`cache` without `position`"):
        block(target, cache=cache)
    with pytest.raises(ValueError, match="`position` without `cache`"):
        block(target, source, position=0)
    with pytest.raises(ValueError, match="holds the source already"):
        block(target, source, cache=cache, position=0)


def test_an_encoder_block_with_a_cache_is_causal_by_itself():
    block, (x,) = make("encoder"), inputs_of("encoder")
    block(x)
    cache = block.empty_cache(B, T)
    with pytest.raises(ValueError, match="`cache` without `position`"):
        block(x, cache=cache)
    with pytest.raises(ValueError, match="is causal by itself"):
        block(x, cache=cache, position=0, use_causal_mask=True)
