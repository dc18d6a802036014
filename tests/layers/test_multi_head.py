"""Multi-head attention: its equation, Keras and PyTorch, and its fused kernel."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import MultiHeadAttention, copy_weights, functional, heads
from keras_attention.masking import masked_softmax
from keras_attention.positional import RotaryEmbedding, SinusoidalPositionEncoding
from tests.layers.contract import DK, DQ, DV, B, S, T, normal, to_numpy
from tests.layers.gradients import gradients
from tests.layers.multi_head_inputs import (
    BY_HEADS,
    GROUPED,
    MASKS,
    OUT,
    PAIRS,
    RIGHT,
    D,
    H,
    N,
    V,
    assert_close,
    built,
    cross,
    decoder,
    fill,
    inputs,
    padded,
    places,
)

KINDS = pytest.mark.parametrize("kind", MASKS)
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
    np.testing.assert_allclose(
        weights[real], to_numpy(scores)[real], rtol=1e-5, atol=1e-6
    )


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
    np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(weights @ value, want.numpy(), rtol=1e-5, atol=1e-6)


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
    np.testing.assert_allclose(
        got, np.swapaxes(to_numpy(want), 1, 2), rtol=1e-5, atol=1e-6
    )


# ---- the fused kernel


@WIDTHS
@KINDS
def test_the_context_alone_is_the_context_with_weights(kind, extra):
    layer, args, masks = cross(**extra), inputs(), MASKS[kind]
    want = to_numpy(layer(*args, **masks)[0])
    got = to_numpy(layer(*args, **masks, return_attention_scores=False))
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
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
    np.testing.assert_allclose(to_numpy(got), want, rtol=1e-5, atol=1e-6)


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
    np.testing.assert_allclose(mean, want, rtol=1e-5, atol=1e-6)
    output = to_numpy(layer(table[ids], query_mask=real)[0])
    want = [output[i, real[i]].mean(0) for i in range(B)]
    np.testing.assert_allclose(mean_output, want, rtol=1e-5, atol=1e-6)
    assert (weights[np.broadcast_to(~real[:, None, None], weights.shape)] == 0).all()


@pytest.mark.parametrize("rotary", [None, RotaryEmbedding()], ids=["plain", "rotary"])
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("names", ["query_mask value_mask", "query_mask", "value_mask"])
def test_padding_on_either_side_changes_nothing(side, rotary, names):
    layer, tokens = decoder(rotary_embedding=rotary), normal(B, N, DQ)
    want = to_numpy(layer(tokens)[0])
    longer, mask = padded(tokens, side)
    got = to_numpy(layer(longer, **dict.fromkeys(names.split(), mask))[0])
    np.testing.assert_allclose(got[:, places(side)], want, atol=1e-5)


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


def test_only_rotary_embeddings_turn_heads_and_only_even_ones():
    for wrong in (SinusoidalPositionEncoding(), True):
        with pytest.raises(ValueError, match="must be a RotaryEmbedding"):
            MultiHeadAttention(2, 4, rotary_embedding=wrong)
    with pytest.raises(ValueError, match="`key_dim` even"):
        MultiHeadAttention(2, 3, rotary_embedding=RotaryEmbedding())


@pytest.mark.parametrize("side", ["query", "value"])
def test_left_padding_of_one_side_does_not_turn_the_other(side):
    query, value, key = inputs()
    layer = cross(rotary_embedding=RotaryEmbedding())
    want = to_numpy(layer(query, value, key)[0])
    pad = ((0, 0), (2, 0), (0, 0))
    if side == "query":
        mask = np.arange(T + 2)[None].repeat(B, 0) >= 2
        got = layer(np.pad(query, pad), value, key, query_mask=mask)[0][:, 2:]
    else:
        mask = np.arange(S + 2)[None].repeat(B, 0) >= 2
        longer = np.pad(value, pad), np.pad(key, pad)
        got = layer(query, *longer, value_mask=mask)[0]
    np.testing.assert_allclose(to_numpy(got), want, atol=1e-5)


@pytest.mark.filterwarnings("ignore:Layer .* does not have a `quantize`")
def test_a_model_with_rotary_heads_quantizes():
    tokens = keras.Input((None, DQ))
    layer = MultiHeadAttention(2, 4, rotary_embedding=RotaryEmbedding())
    model = keras.Model(tokens, keras.layers.Dense(3)(layer(tokens)[0]))
    model.quantize("int8")
    assert np.isfinite(to_numpy(model(normal(B, T, DQ)))).all()
