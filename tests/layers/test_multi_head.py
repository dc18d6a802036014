"""Multi-head attention: its equation, Keras and PyTorch, its kernel and its caches."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import MultiHeadAttention, copy_weights, functional, heads
from keras_attention.masking import masked_softmax
from keras_attention.positional import RotaryEmbedding
from tests.layers.contract import DK, DQ, DV, B, S, T, normal, to_numpy
from tests.layers.gradients import gradients

H, D, V, OUT = 4, 6, 3, 17  # heads, widths of a head's keys and values, of the output
RIGHT = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], bool)
LEFT = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]], bool)
EMPTY = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 0, 1]], bool)
QUERIES = np.array([[1, 1, 0], [0, 1, 1]], bool)
RNG = np.random.default_rng(5)
PAIRS = RNG.random((B, T, S)) > 0.5
PAIRS[:, :, 0] = True  # something to attend to
BY_HEADS = RNG.random((B, H, T, S)) > 0.5
BY_HEADS[0, 1, 2] = False  # nothing, in one head alone

MASKS = {
    "none": {},
    "right padding": {"value_mask": RIGHT},
    "left padding": {"value_mask": LEFT},
    "an empty row": {"value_mask": EMPTY},
    "padded queries": {"query_mask": QUERIES},
    "two key masks": {"value_mask": RIGHT, "key_mask": LEFT},
    "pairs": {"attention_mask": PAIRS},
    "pairs by heads": {"attention_mask": BY_HEADS},
    "one for all rows": {"attention_mask": PAIRS[:1]},
    "one for all queries": {"attention_mask": EMPTY[:, None]},
    "one for all keys": {"attention_mask": QUERIES[:, :, None]},
    "one for all heads": {"attention_mask": PAIRS[:, None]},
    "heads alone": {
        "attention_mask": np.array([1, 0, 1, 1], bool)[None, :, None, None]
    },
    "causal": {"use_causal_mask": True},
    "all": {
        "query_mask": QUERIES,
        "value_mask": LEFT,
        "key_mask": RIGHT,
        "attention_mask": BY_HEADS,
        "use_causal_mask": True,
    },
}
KINDS = pytest.mark.parametrize("kind", MASKS)
GROUPED = {"num_key_value_heads": 2, "value_dim": V}
WIDTHS = pytest.mark.parametrize(  # JAX's kernel takes values as wide as keys only
    "extra",
    [{}, {"num_key_value_heads": 2}, GROUPED],
    ids=["full", "grouped", "narrow"],
)


def may_attend(query_mask=None, attention_mask=None, use_causal_mask=False, **masks):
    """The masks of a call as one array (B, H, T, S), by broadcasting alone."""
    allowed = np.ones((B, H, T, S), bool)
    if query_mask is not None:
        allowed &= query_mask[:, None, :, None]
    for mask in masks.values():
        allowed &= mask[:, None, None, :]
    if use_causal_mask:
        allowed &= np.tri(T, S, dtype=bool)
    if attention_mask is not None:
        by_heads = attention_mask.ndim == 4
        allowed &= attention_mask if by_heads else attention_mask[:, None]
    return allowed


def fill(layer):
    """Other weights in every call, none of them zero, biases included."""
    layer.set_weights([np.random.normal(0, 0.3, w.shape) for w in layer.get_weights()])
    return layer


def built(*shapes, **kwargs):
    """Our layer with H heads, built for the shapes of a query, a value and a key."""
    layer = MultiHeadAttention(**{"num_heads": H, "key_dim": D, **kwargs})
    layer.build(*shapes)
    return fill(layer)


def cross(**kwargs):
    return built((B, T, DQ), (B, S, DV), (B, S, DK), **kwargs)


def inputs():
    """Query, value and key, all of other widths."""
    return normal(B, T, DQ), normal(B, S, DV), normal(B, S, DK)


def assert_close(got, want, atol=1e-6):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)


# ---- the equation


def projected(layer, row, name):
    """One row times a kernel, plus the bias, a number at a time."""
    kernel = to_numpy(getattr(layer, f"{name}_kernel")).astype("float64")
    bias = getattr(layer, f"{name}_bias")
    bias = np.zeros(kernel.shape[1]) if bias is None else to_numpy(bias)
    return [
        float(bias[j]) + sum(float(row[i]) * kernel[i, j] for i in range(len(row)))
        for j in range(kernel.shape[1])
    ]


def by_loops(layer, query, value, key, allowed):
    """Vaswani et al. (2017), section 3.2.2; Ainslie et al. (2023), section 2.2."""
    d, v, groups = layer.key_dim, layer.value_dim or layer.key_dim, layer.groups
    output, weights = [], np.zeros(allowed.shape)
    for b in range(len(query)):
        keys = [projected(layer, row, "key") for row in key[b]]
        values = [projected(layer, row, "value") for row in value[b]]
        for t, row in enumerate(query[b]):
            asked, mixed = projected(layer, row, "query"), []
            for h in range(H):
                g = h // (H // groups)
                energy = {
                    s: np.exp(
                        sum(asked[h * d + i] * keys[s][g * d + i] for i in range(d))
                        / d**0.5
                    )
                    for s in np.flatnonzero(allowed[b, h, t])
                }
                for s in energy:
                    weights[b, h, t, s] = energy[s] / sum(energy.values())
                mixed += [
                    sum(weights[b, h, t, s] * values[s][g * v + i] for s in energy)
                    for i in range(v)
                ]
            live = allowed[b, :, t].any()
            out = projected(layer, mixed, "output")
            output.append(out if live else [0.0] * len(out))
    return np.reshape(output, (*query.shape[:2], -1)), weights


@pytest.mark.parametrize("extra", [{"output_dim": OUT, "value_dim": V}, GROUPED])
@pytest.mark.parametrize("kind", ["none", "pairs by heads", "an empty row", "all"])
def test_the_equation_in_loops(kind, extra):
    layer, args = cross(**extra), inputs()
    want = by_loops(layer, *args, may_attend(**MASKS[kind]))
    assert_close(to_numpy(layer(*args, **MASKS[kind])), want, atol=1e-5)


def test_the_equation_without_biases():
    layer, args = cross(use_bias=False, num_key_value_heads=1), inputs()
    assert len(layer.weights) == 4
    want = by_loops(layer, *args, may_attend(**MASKS["pairs"]))
    assert_close(to_numpy(layer(*args, **MASKS["pairs"])), want, atol=1e-5)


def test_a_group_shares_what_full_heads_would_repeat():
    few, args = cross(**GROUPED), inputs()
    many = cross(value_dim=V)
    for name in ("query", "output"):
        for kind in ("kernel", "bias"):
            getattr(many, f"{name}_{kind}").assign(getattr(few, f"{name}_{kind}"))
    for name, width in (("key", D), ("value", V)):
        for kind in ("kernel", "bias"):
            shared = to_numpy(getattr(few, f"{name}_{kind}"))
            groups = shared.reshape(*shared.shape[:-1], 2, width)
            repeated = np.repeat(groups, 2, axis=-2).reshape(*shared.shape[:-1], -1)
            getattr(many, f"{name}_{kind}").assign(repeated)
    for masks in MASKS.values():
        assert_close(to_numpy(few(*args, **masks)), to_numpy(many(*args, **masks)))


def test_causal_with_other_numbers_of_queries_and_keys():
    layer = cross()
    for steps, length in ((T, S), (S, T)):
        args = (normal(B, n, w) for n, w in ((steps, DQ), (length, DV), (length, DK)))
        weights = to_numpy(layer(*args, use_causal_mask=True)[1])
        seen = np.broadcast_to(np.tri(steps, length, dtype=bool), weights.shape)
        assert (weights[seen] > 0).all() and (weights[~seen] == 0).all()


# ---- Keras and PyTorch


@pytest.mark.parametrize(
    "kind", ["none", "right padding", "left padding", "pairs", "causal"]
)
@pytest.mark.parametrize("direction", ["to ours", "from ours"])
def test_keras_agrees(kind, direction):
    ours, args = cross(value_dim=V, output_dim=OUT), inputs()
    theirs = keras.layers.MultiHeadAttention(H, D, V, output_shape=OUT)
    theirs.build(*(a.shape for a in args))
    fill(theirs)
    pair = (theirs, ours) if direction == "to ours" else (ours, theirs)
    copy_weights(*pair)
    want = theirs(*args, **MASKS[kind], return_attention_scores=True)
    assert_close(to_numpy(ours(*args, **MASKS[kind])), to_numpy(want), atol=1e-5)
    # Theirs cannot give the output alone on JAX if value_dim is not key_dim.
    alone = ours(*args, **MASKS[kind], return_attention_scores=False)
    np.testing.assert_allclose(to_numpy(alone), to_numpy(want[0]), atol=1e-5)


def test_keras_agrees_on_masks_that_inputs_carry():
    ids = np.array([[5, 7, 9, 0, 0], [3, 2, 8, 1, 0]])
    embedding = keras.layers.Embedding(31, DQ, mask_zero=True)
    shape = (B, S, DQ)
    ours, theirs = built(shape), keras.layers.MultiHeadAttention(H, D)
    theirs.build(shape, shape)
    copy_weights(ours, theirs)
    got, weights = to_numpy(ours(embedding(ids), use_causal_mask=True))
    tokens = embedding(ids)
    want, scores = theirs(
        tokens, tokens, use_causal_mask=True, return_attention_scores=True
    )
    np.testing.assert_allclose(got[ids != 0], to_numpy(want)[ids != 0], atol=1e-5)
    real = np.broadcast_to((ids != 0)[:, None, :, None], weights.shape)
    np.testing.assert_allclose(weights[real], to_numpy(scores)[real], atol=1e-6)


@pytest.mark.parametrize("kind", ["right padding", "pairs", "both"])
def test_torch_agrees(kind):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.MultiheadAttention(
        H * D, H, kdim=DK, vdim=DV, batch_first=True
    ).eval()
    ours = built((B, T, H * D), (B, S, DV), (B, S, DK))
    copy_weights(ours, theirs)
    args = normal(B, T, H * D), normal(B, S, DV), normal(B, S, DK)
    our_masks, their_masks = {}, {}
    if kind != "pairs":
        our_masks["value_mask"] = RIGHT
        their_masks["key_padding_mask"] = torch.tensor(~RIGHT)
    if kind != "right padding":
        our_masks["attention_mask"] = PAIRS
        their_masks["attn_mask"] = torch.tensor(np.repeat(~PAIRS, H, axis=0))
    query, value, key = map(torch.tensor, args)
    with torch.no_grad():
        want = theirs(query, key, value, average_attn_weights=False, **their_masks)
    want = [t.numpy() for t in want]
    assert_close(to_numpy(ours(*args, **our_masks)), want, atol=1e-5)
    alone = to_numpy(ours(*args, **our_masks, return_attention_scores=False))
    np.testing.assert_allclose(alone, want[0], atol=1e-5)


@pytest.mark.parametrize("mask", [None, PAIRS[:, None], RIGHT[:, None, None], "heads"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_the_function_agrees_with_torchs(mask, scale):
    torch = pytest.importorskip("torch")
    mask = PAIRS[:, None] | BY_HEADS if isinstance(mask, str) else mask
    query, key, value = normal(B, H, T, D), normal(B, H, S, D), normal(B, H, S, V)
    want = torch.nn.functional.scaled_dot_product_attention(
        *map(torch.tensor, (query, key, value)),
        attn_mask=None if mask is None else torch.tensor(mask),
        scale=scale,
    )
    got, weights = to_numpy(
        functional.scaled_dot_product_attention(
            *map(ops.convert_to_tensor, (query, key, value)), mask, scale
        )
    )
    np.testing.assert_allclose(got, want.numpy(), atol=1e-6)
    np.testing.assert_allclose(weights @ value, want.numpy(), atol=1e-6)


@pytest.mark.parametrize("groups", [1, 2, H])
def test_grouped_heads_agree_with_kerass_function(groups):
    query, key, value = arrays = [
        normal(B, n, length, D, seed=i)
        for i, (n, length) in enumerate(((H, T), (groups, S), (groups, S)))
    ]
    mask, tensors = PAIRS[:, None], [ops.convert_to_tensor(a) for a in arrays]
    weights = masked_softmax(heads.grouped_scores(*tensors[:2]), mask)
    got = to_numpy(heads.grouped_sum(weights, tensors[2]))
    rows = [np.swapaxes(x, 1, 2) for x in (query, key, value)]
    rows[1:] = [np.repeat(x, H // groups, axis=2) for x in rows[1:]]
    mask = np.broadcast_to(mask, (B, H, T, S))
    want = ops.dot_product_attention(*map(ops.convert_to_tensor, rows), mask=mask)
    np.testing.assert_allclose(got, np.swapaxes(to_numpy(want), 1, 2), atol=1e-6)


# ---- the fused kernel


@WIDTHS
@KINDS
def test_the_context_alone_is_the_context_with_weights(kind, extra):
    layer, args, masks = cross(**extra), inputs(), MASKS[kind]
    want = to_numpy(layer(*args, **masks)[0])
    got = to_numpy(layer(*args, **masks, return_attention_scores=False))
    np.testing.assert_allclose(got, want, atol=1e-6)
    nothing = ~may_attend(**masks).any(axis=(1, 3))
    assert (got[nothing] == 0).all() and np.isfinite(got).all()


@WIDTHS
@KINDS
def test_its_gradients_are_those_with_weights(kind, extra):
    layer, args, masks = cross(**extra), inputs(), MASKS[kind]
    target = ops.convert_to_tensor(normal(B, T, DQ, seed=9))

    def loss(*args, scores):
        output = layer(*args, **masks, return_attention_scores=scores)
        return ops.mean((output[0] if scores else output) * target)

    with_weights, alone = (
        gradients(lambda *a, n=n: loss(*a, scores=n), args, layer)
        for n in (True, False)
    )
    assert len(alone) == 3 + 8
    for got, want in zip(alone, with_weights, strict=True):
        assert np.isfinite(got).all() and np.abs(got).max() < 1e3
        np.testing.assert_allclose(got, want, atol=1e-5)
    assert np.abs(alone[0]).max() > 1e-4


def test_the_kernel_runs_where_there_is_one_and_weights_are_not_asked_for(monkeypatch):
    calls, original = [], ops.dot_product_attention
    monkeypatch.setattr(
        ops,
        "dot_product_attention",
        lambda *a, **k: calls.append(1) or original(*a, **k),
    )
    args, alone = inputs(), {"return_attention_scores": False}
    kernel = int(keras.backend.backend() in ("torch", "jax"))
    layer = cross(dropout=0.5)
    layer(*args, **alone)
    assert len(calls) == kernel
    layer(*args)
    layer(*args, **alone, training=True)  # the kernel's dropout is not ours
    cross(activation="sparsemax")(*args, **alone)
    assert len(calls) == kernel


def test_sparse_weights_are_the_same_asked_for_or_not():
    layer, args = cross(activation="sparsemax"), inputs()
    output, weights = to_numpy(layer(*args, **MASKS["all"]))
    alone = to_numpy(layer(*args, **MASKS["all"], return_attention_scores=False))
    np.testing.assert_array_equal(alone, output)
    assert (weights == 0).any()


@pytest.mark.parametrize("filler", [np.nan, np.inf])
def test_what_is_in_padding_does_not_reach_the_kernel(filler):
    layer, (query, value, key) = cross(), inputs()
    want = to_numpy(layer(query, value, key, value_mask=RIGHT))[0]
    value, key = (np.where(RIGHT[..., None], x, filler) for x in (value, key))
    got = layer(
        query,
        value.astype("float32"),
        key.astype("float32"),
        value_mask=RIGHT,
        return_attention_scores=False,
    )
    np.testing.assert_allclose(to_numpy(got), want, atol=1e-6)


# ---- caches

N = 7  # tokens


def decoder(**kwargs):
    return built((B, N, DQ), **kwargs)


def decode(layer, tokens, chunks, **masks):
    """Outputs and weights of tokens that come in chunks, through a cache."""
    batch, length = tokens.shape[:2]
    cache, start, outputs, rows = layer.empty_cache(batch, length), 0, [], []
    for steps in chunks:
        part = tokens[:, start : start + steps]
        output, weights, cache = layer(part, cache=cache, position=start, **masks)
        outputs.append(to_numpy(output))
        rows.append(to_numpy(weights))
        start += steps
    assert start == length
    return np.concatenate(outputs, 1), np.concatenate(rows, 2)


DECODERS = {
    "plain": {},
    "grouped": GROUPED,
    "one group": {"num_key_value_heads": 1, "use_bias": False, "output_dim": OUT},
    "rotary": {"rotary_embedding": RotaryEmbedding()},
    "rotary grouped": {**GROUPED, "rotary_embedding": RotaryEmbedding()},
    "sparse": {"activation": "sparsemax"},
}


@pytest.mark.parametrize("chunks", [[1] * N, [N], [3, 1, 2, 1]], ids=str)
@pytest.mark.parametrize("kind", DECODERS)
def test_step_by_step_is_the_whole(kind, chunks):
    layer, tokens = decoder(**DECODERS[kind]), normal(B, N, DQ)
    want = to_numpy(layer(tokens, use_causal_mask=True))
    assert_close(decode(layer, tokens, chunks), want, atol=1e-5)


@pytest.mark.parametrize("kind", ["plain", "grouped", "rotary"])
@pytest.mark.parametrize(
    "padding", [RIGHT, LEFT, EMPTY], ids=["right", "left", "empty"]
)
def test_padded_prompts(kind, padding):
    """A prompt of 5 slots, some of them padding, then two more tokens."""
    layer, tokens = decoder(**DECODERS[kind]), normal(B, N, DQ)
    real = np.concatenate([padding, np.ones((B, N - S), bool)], 1)
    masks = {"query_mask": real, "value_mask": real, "use_causal_mask": True}
    want, wanted_weights = to_numpy(layer(tokens, **masks))
    got, weights = decode(layer, tokens, [S, 1, 1], value_mask=real)
    np.testing.assert_allclose(got[real], want[real], atol=1e-5)
    rows = np.broadcast_to(real[:, None, :, None], weights.shape)
    np.testing.assert_allclose(weights[rows], wanted_weights[rows], atol=1e-5)
    assert (weights[np.broadcast_to(~real[:, None, None], weights.shape)] == 0).all()
    for row in range(B):  # and without its padding
        left = real[row]
        alone = layer(tokens[row : row + 1, left], use_causal_mask=True)[0]
        if left[:S].tolist() == sorted(left[:S]) or kind != "rotary":
            np.testing.assert_allclose(got[row, left], to_numpy(alone)[0], atol=1e-5)


def test_a_cache_longer_than_what_is_written_changes_nothing():
    layer, tokens = decoder(), normal(B, N, DQ)
    want, short = to_numpy(layer(tokens, use_causal_mask=True))
    longer = layer.empty_cache(B, N + 4)
    got, weights, _ = layer(tokens, cache=longer, position=0)
    np.testing.assert_allclose(to_numpy(got), want, atol=1e-6)
    np.testing.assert_allclose(to_numpy(weights)[..., :N], short, atol=1e-6)
    assert (to_numpy(weights)[..., N:] == 0).all()


@pytest.mark.parametrize("scores", [True, False])
def test_a_step_returns_the_cache_last_with_or_without_weights(scores):
    layer, tokens = decoder(), normal(B, N, DQ)
    cache = layer.empty_cache(B, N)
    results = layer(
        tokens[:, :1], cache=cache, position=0, return_attention_scores=scores
    )
    assert len(results) == 2 + scores
    want = to_numpy(layer(tokens[:, :1])[0])
    np.testing.assert_allclose(to_numpy(results[0]), want, atol=1e-6)
    assert [tuple(c.shape) for c in results[-1]] == [tuple(c.shape) for c in cache]


def test_the_old_cache_is_as_it_was():
    layer, tokens = decoder(**GROUPED), normal(B, N, DQ)
    old = layer(tokens[:, :3], cache=layer.empty_cache(B, N), position=0)[-1]
    before = [x.copy() for x in to_numpy(old)]
    assert [x.shape for x in before] == [(B, 2, N, D), (B, 2, N, V)]
    first = layer(tokens[:, 3:4], cache=old, position=3)
    again = layer(tokens[:, 3:4], cache=old, position=3)
    assert_close(to_numpy(old), before, atol=0)
    assert_close(to_numpy(first[0]), to_numpy(again[0]), atol=0)
    assert_close(to_numpy(first[-1]), to_numpy(again[-1]), atol=0)
    assert np.abs(to_numpy(first[-1][0])[:, :, 3]).min() > 0


def test_branches_of_one_cache_do_not_meet():
    """As in beam search: two next tokens after one prompt."""
    layer, prompt = decoder(), normal(B, 4, DQ)
    cache = layer(prompt, cache=layer.empty_cache(B, 5), position=0)[-1]
    for seed in (1, 2):
        token = normal(B, 1, DQ, seed=seed)
        got = layer(token, cache=cache, position=4)[0]
        whole = np.concatenate([prompt, token], 1)
        want = layer(whole, use_causal_mask=True)[0][:, -1:]
        np.testing.assert_allclose(to_numpy(got), to_numpy(want), atol=1e-5)


@pytest.mark.parametrize("kind", ["none", "right padding", "an empty row", "pairs"])
@pytest.mark.parametrize("extra", [{}, GROUPED], ids=["full", "grouped"])
def test_projected_memory_is_the_value_and_the_key(kind, extra):
    layer, (query, value, key) = cross(**extra), inputs()
    want = to_numpy(layer(query, value, key, **MASKS[kind]))
    padding = MASKS[kind].get("value_mask")
    memory = layer.project_memory(value, key, value_mask=padding)
    assert_close(to_numpy(layer(query, cache=memory, **MASKS[kind])), want)
    for t in range(T):  # a step at a time
        step = layer(query[:, t : t + 1], cache=memory, value_mask=padding)
        if kind != "pairs":
            np.testing.assert_allclose(
                to_numpy(step[0]), want[0][:, t : t + 1], atol=1e-6
            )


@pytest.mark.parametrize("filler", [np.nan, np.inf])
def test_padding_of_a_projected_memory_is_not_read(filler):
    layer, query, value = built((B, T, DQ), (B, S, DV)), *inputs()[:2]
    want = to_numpy(layer(query, value, value_mask=RIGHT))
    value = np.where(RIGHT[..., None], value, filler).astype("float32")
    memory = layer.project_memory(value, value_mask=RIGHT)
    assert_close(to_numpy(layer(query, cache=memory, value_mask=RIGHT)), want)


def compiled(step):
    """The step compiled by the backend (torch: as it is), and a list of its traces."""
    traces, backend = [], keras.backend.backend()

    def traced(*args):
        traces.append(1)
        return step(*args)

    if backend == "tensorflow":
        import tensorflow as tf

        return tf.function(traced), traces
    if backend == "jax":
        import jax

        return jax.jit(traced), traces
    return traced, []


@pytest.mark.parametrize("scores", [True, False])
@pytest.mark.parametrize("kind", ["plain", "rotary grouped"])
def test_one_trace_serves_every_position(kind, scores):
    layer = decoder(**DECODERS[kind], return_attention_scores=scores)
    tokens = normal(B, N, DQ)
    real = ops.convert_to_tensor(np.ones((B, N), bool))

    def step(token, key, value, position):
        return layer(token, cache=(key, value), position=position, value_mask=real)

    run, traces = compiled(step)
    cache, outputs = layer.empty_cache(B, N), []
    for t in range(N):
        token = ops.convert_to_tensor(tokens[:, t : t + 1])
        position = ops.convert_to_tensor(t, dtype="int32")
        output, *_, cache = run(token, *cache, position)
        outputs.append(to_numpy(output))
    assert len(traces) <= 1
    want = layer(tokens, use_causal_mask=True, return_attention_scores=True)[0]
    np.testing.assert_allclose(np.concatenate(outputs, 1), to_numpy(want), atol=1e-5)


@pytest.mark.parametrize("as_position", [int, np.int32, ops.convert_to_tensor])
def test_a_position_may_be_a_number_or_a_tensor(as_position):
    layer, tokens = decoder(**DECODERS["rotary"]), normal(B, N, DQ)
    cache = layer(tokens[:, :4], cache=layer.empty_cache(B, N), position=0)[-1]
    got = layer(tokens[:, 4:6], cache=cache, position=as_position(4))[0]
    want = layer(tokens[:, :6], use_causal_mask=True)[0][:, 4:]
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), atol=1e-5)


def test_a_decoding_step_in_a_functional_model():
    layer, tokens = decoder(**GROUPED), normal(B, N, DQ)
    token = keras.Input(batch_shape=(B, 1, DQ))
    cache = [keras.Input(batch_shape=c.shape) for c in layer.empty_cache(B, N)]
    position = keras.Input(batch_shape=(), dtype="int32")
    results = layer(token, cache=tuple(cache), position=position)
    model = keras.Model([token, *cache, position], results)
    state, outputs = layer.empty_cache(B, N), []
    for t in range(N):
        output, weights, state = model(
            [
                ops.convert_to_tensor(tokens[:, t : t + 1]),
                *state,
                ops.convert_to_tensor(t, "int32"),
            ]
        )
        assert weights.shape == results[1].shape == (B, H, 1, N)
        outputs.append(to_numpy(output))
    want = to_numpy(layer(tokens, use_causal_mask=True)[0])
    np.testing.assert_allclose(np.concatenate(outputs, 1), want, atol=1e-5)


# ---- what is refused


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_heads": 0}, "`num_heads` must be an integer of at least 1. Received: 0"),
        ({"num_heads": 2.0}, "`num_heads` must be an integer .*Received: 2.0"),
        ({"key_dim": -1}, "`key_dim` must be .*Received: -1"),
        ({"key_dim": True}, "`key_dim` must be .*Received: True"),
        ({"value_dim": 0}, "`value_dim` must be .*Received: 0. None takes"),
        ({"output_dim": 0}, "`output_dim` must be .*Received: 0. None takes"),
        (
            {"num_key_value_heads": 3},
            "must divide `num_heads`. Received: num_heads=4, n",
        ),
        ({"num_key_value_heads": 8}, "must divide `num_heads`. Received: .*heads=8"),
        ({"num_key_value_heads": -2}, "`num_key_value_heads` must be .*Received: -2"),
        ({"dropout": 1}, "`dropout` must be at least 0 and less than 1. Received: 1"),
        ({"activation": "relu"}, "`activation` must be"),
    ],
)
def test_arguments_of_the_constructor(arguments, match):
    with pytest.raises(ValueError, match=match):
        MultiHeadAttention(**{"num_heads": H, "key_dim": D, **arguments})


@pytest.mark.parametrize("symbolic", [False, True])
def test_inputs_that_are_no_sequences_are_refused(symbolic):
    query, value, key = inputs()

    def as_symbol(array):
        return keras.Input(batch_shape=array.shape)

    def refused(match, *args, **kwargs):
        if symbolic:
            args, kwargs = keras.tree.map_structure(as_symbol, [list(args), kwargs])
        with pytest.raises(ValueError, match=match):
            MultiHeadAttention(H, D)(*args, **kwargs)

    refused(r"Received: query \(2, 7\).*query\[:, None\]", query[:, 0], value)
    refused(r"as separate arguments\. Received: ", [query, value])
    refused(r"Received: .*value \(2, 13\)", query, value[:, 0])
    refused(r"takes a query .*Received: .*value None, key", query, key=key)
    refused(r"one batch.*Received: query \(1, 3, 7\)", query[:1], value, key)
    refused(r"as many keys as values.*Received: ", query, value, key[:, :4])


def test_the_width_must_be_known():
    with pytest.raises(ValueError, match="must be known to build MultiHeadAttention"):
        MultiHeadAttention(H, D)(keras.Input((None, None)))


def test_calls_with_half_a_cache_are_refused():
    layer, query = decoder(), normal(B, 1, DQ)
    cache = layer.empty_cache(B, N)
    with pytest.raises(
        ValueError, match=r"`position` .*Received: no cache.*empty_cache"
    ):
        layer(query, position=0)
    for beside in ({"value": query}, {"use_causal_mask": True}):
        with pytest.raises(
            ValueError, match=r"`cache` takes the place .*Received: .*out"
        ):
            layer(query, cache=cache, position=0, **beside)


def test_masks_of_a_cache_have_its_length():
    layer, query = decoder(), normal(B, 1, DQ)
    cache = layer.empty_cache(B, N)
    for name, shape in (("value_mask", (B, S)), ("attention_mask", (B, 1, S))):
        with pytest.raises(ValueError, match=rf"`{name}` must have.*Received: \(2, "):
            layer(query, cache=cache, position=0, **{name: np.ones(shape, bool)})


def test_a_padding_mask_is_never_taken_for_a_mask_of_pairs():
    """(batch, keys) where batch, queries and keys are equally many."""
    layer, tokens = built((H, H, DQ)), normal(H, H, DQ)
    padding = np.tri(H, dtype=bool)
    for mask in (padding, np.ones((H, H), bool)):
        with pytest.raises(
            ValueError, match=r"`attention_mask` must have .*`value_mask`"
        ):
            layer(tokens, attention_mask=mask)
    for name in ("query_mask", "value_mask"):
        with pytest.raises(ValueError, match=f"`{name}` must have the shape"):
            layer(tokens, **{name: np.ones((H, H, H), bool)})
    weights = to_numpy(layer(tokens, value_mask=padding)[1])
    seen = np.broadcast_to(padding[:, None, None], weights.shape)
    assert (weights[seen] > 0).all() and (weights[~seen] == 0).all()
    pairs = np.broadcast_to(padding, (H, H, H))  # and (B, T, S) is never by heads
    weights = to_numpy(layer(tokens, attention_mask=pairs)[1])
    seen = np.broadcast_to(padding, weights.shape)
    assert (weights[seen] > 0).all() and (weights[~seen] == 0).all()


@pytest.mark.parametrize(
    "shape", [(B, H, T, S + 1), (B, 3, T, S), (S,), (B, T, S, 1, 1)]
)
def test_attention_masks_of_other_shapes_are_refused(shape):
    with pytest.raises(
        ValueError, match=r"`attention_mask` must have the shape .*Received"
    ):
        cross()(*inputs(), attention_mask=np.ones(shape, bool))


def test_additive_masks_are_refused():
    additive = np.where(PAIRS, 0.0, -1e9).astype("float32")
    with pytest.raises(ValueError, match=r"`attention_mask` must hold booleans"):
        cross()(*inputs(), attention_mask=additive)


# ---- masks of the inputs


@pytest.mark.parametrize("functional_model", [False, True])
def test_the_inputs_own_mask_is_there_for_the_next_layer(functional_model):
    ids = np.array([[5, 7, 9, 0, 0], [3, 0, 0, 0, 0]])
    embedding = keras.layers.Embedding(31, DQ, mask_zero=True)
    layer, pool = MultiHeadAttention(H, D), keras.layers.GlobalAveragePooling1D()

    def both(ids):
        tokens = embedding(ids)
        output, _ = layer(tokens)
        return pool(tokens), pool(output), layer(tokens, tokens)[1]

    if functional_model:
        inputs = keras.Input((None,), dtype="int32")
        mean, mean_output, weights = to_numpy(keras.Model(inputs, both(inputs))(ids))
    else:
        mean, mean_output, weights = to_numpy(both(ids))
    table, real = to_numpy(embedding.embeddings), ids != 0
    want = [table[row[row != 0]].mean(0) for row in ids]
    np.testing.assert_allclose(mean, want, atol=1e-6)
    output = to_numpy(layer(table[ids], query_mask=real)[0])
    want = [output[i, real[i]].mean(0) for i in range(B)]
    np.testing.assert_allclose(mean_output, want, atol=1e-6)
    assert (weights[np.broadcast_to(~real[:, None, None], weights.shape)] == 0).all()


def padded(tokens, side, filler=7.0):
    """Tokens with three more slots on a side, and their padding mask."""
    extra = np.full((B, 3, tokens.shape[-1]), filler, "float32")
    parts = (tokens, extra) if side == "right" else (extra, tokens)
    mask = np.arange(tokens.shape[1] + 3) < tokens.shape[1]
    mask = np.broadcast_to(mask if side == "right" else mask[::-1], (B, len(mask)))
    return np.concatenate(parts, 1), mask


def places(side):
    """Where the tokens are in what `padded` returns."""
    return slice(None, N) if side == "right" else slice(3, None)


@pytest.mark.parametrize("rotary", [None, RotaryEmbedding()], ids=["plain", "rotary"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("names", ["query_mask value_mask", "query_mask", "value_mask"])
def test_padding_on_either_side_changes_nothing(side, rotary, names):
    layer, tokens = decoder(rotary_embedding=rotary), normal(B, N, DQ)
    want = to_numpy(layer(tokens)[0])
    longer, mask = padded(tokens, side)
    got = to_numpy(layer(longer, **dict.fromkeys(names.split(), mask))[0])
    np.testing.assert_allclose(got[:, places(side)], want, atol=1e-5)


def test_left_padding_of_a_rotated_prompt_with_its_query_mask():
    layer, tokens = decoder(**DECODERS["rotary"]), normal(B, N, DQ)
    want = to_numpy(layer(tokens, use_causal_mask=True)[0])
    longer, mask = padded(tokens, "left")
    masks = {"query_mask": mask, "value_mask": mask}
    cache = layer.empty_cache(B, N + 3)
    got = to_numpy(layer(longer, cache=cache, position=0, **masks)[0])
    np.testing.assert_allclose(got[:, places("left")], want, atol=1e-5)


@pytest.mark.parametrize("dtype", ["mixed_float16", "mixed_bfloat16"])
def test_a_cache_keeps_its_type(dtype):
    layer, tokens = decoder(dtype=dtype), normal(B, N, DQ)
    old = layer.empty_cache(B, N)
    new = layer(tokens, cache=old, position=0)[-1]
    assert [c.dtype for c in new] == [c.dtype for c in old]


def test_large_inputs_stay_finite_in_a_cache():
    layer, tokens = decoder(dtype="mixed_float16"), normal(B, N, DQ)
    tokens = np.clip(tokens * 5e4, -6e4, 6e4)
    output = layer(tokens, cache=layer.empty_cache(B, N), position=0)[0]
    assert np.isfinite(to_numpy(ops.cast(output, "float32"))).all()


@pytest.mark.parametrize("filler", [np.nan, np.inf])
@pytest.mark.parametrize("side", ["right", "left"])
def test_what_is_in_the_padding_of_a_cached_prompt_does_not_matter(side, filler):
    layer, tokens = decoder(), normal(B, N, DQ)
    want = to_numpy(layer(tokens, use_causal_mask=True)[0])
    longer, mask = padded(tokens, side, filler)
    masks = {"query_mask": mask, "value_mask": mask}
    cache = layer.empty_cache(B, N + 3)
    got = to_numpy(layer(longer, cache=cache, position=0, **masks)[0])
    np.testing.assert_allclose(got[:, places(side)], want, atol=1e-5)


@pytest.mark.parametrize("position", [N, N - 1, -1])
def test_positions_outside_the_cache_are_refused(position):
    layer, tokens = decoder(), normal(B, 2, DQ)
    with pytest.raises(ValueError, match="`position`"):
        layer(tokens, cache=layer.empty_cache(B, N), position=position)


@pytest.mark.parametrize("as_position", [np.int64, np.array])
def test_a_position_may_be_of_numpy(as_position):
    layer, tokens = decoder(), normal(B, N, DQ)
    got = layer(tokens, cache=layer.empty_cache(B, N), position=as_position(0))[0]
    want = layer(tokens, use_causal_mask=True)[0]
    np.testing.assert_allclose(to_numpy(got), to_numpy(want), atol=1e-5)


def test_no_heads_of_keys_are_refused():
    with pytest.raises(ValueError, match=r"`num_key_value_heads` must .*Received: 0"):
        MultiHeadAttention(H, D, num_key_value_heads=0)


@pytest.mark.parametrize("wrong", ["rank", "list", "batch", "lengths", "cache"])
def test_a_layer_that_is_built_refuses_the_same(wrong):
    layer, other = decoder(), decoder(num_key_value_heads=2)
    tokens = normal(B, N, DQ)
    args = {
        "rank": (tokens[:, 0], tokens),
        "list": ([tokens, tokens],),
        "batch": (tokens[:1], tokens),
        "lengths": (tokens, tokens, tokens[:, :1]),
        "cache": (tokens,),
    }[wrong]
    cache = other.project_memory(tokens) if wrong == "cache" else None
    with pytest.raises(ValueError, match="Received: "):
        layer(*args, cache=cache)
