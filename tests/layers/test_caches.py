"""Caches of multi-head attention: steps equal the whole, whatever is padded."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention.positional import RotaryEmbedding
from tests.layers.contract import DQ, DV, B, S, T, normal, to_numpy
from tests.layers.multi_head_inputs import (
    EMPTY,
    GROUPED,
    LEFT,
    MASKS,
    OUT,
    RIGHT,
    D,
    H,
    N,
    V,
    assert_close,
    built,
    cross,
    decoder,
    inputs,
    padded,
    places,
)


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
    np.testing.assert_allclose(to_numpy(got), want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_numpy(weights)[..., :N], short, rtol=1e-5, atol=1e-6)
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
    np.testing.assert_allclose(to_numpy(results[0]), want, rtol=1e-5, atol=1e-6)
    assert [tuple(c.shape) for c in results[-1]] == [tuple(c.shape) for c in cache]


def test_the_old_cache_is_as_it_was():
    layer, tokens = decoder(**GROUPED), normal(B, N, DQ)
    old = layer(tokens[:, :3], cache=layer.empty_cache(B, N), position=0)[-1]
    before = [x.copy() for x in to_numpy(old)]
    assert [x.shape for x in before] == [(B, 2, N, D), (B, 2, N, V), (B, N)]
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

    def step(token, key, value, real, position):
        return layer(token, cache=(key, value, real), position=position)

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


@pytest.mark.parametrize("as_position", [np.int64, np.array])
def test_a_position_may_be_of_numpy(as_position):
    layer, tokens = decoder(), normal(B, N, DQ)
    got = layer(tokens, cache=layer.empty_cache(B, N), position=as_position(0))[0]
    want = layer(tokens, use_causal_mask=True)[0]
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


# ---- padded prompts


def test_left_padding_of_a_rotated_prompt_with_its_query_mask():
    layer, tokens = decoder(**DECODERS["rotary"]), normal(B, N, DQ)
    want = to_numpy(layer(tokens, use_causal_mask=True)[0])
    longer, mask = padded(tokens, "left")
    masks = {"query_mask": mask, "value_mask": mask}
    cache = layer.empty_cache(B, N + 3)
    got = to_numpy(layer(longer, cache=cache, position=0, **masks)[0])
    np.testing.assert_allclose(got[:, places("left")], want, atol=1e-5)


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


# ---- 16 bits


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


# ---- what is refused


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


@pytest.mark.parametrize("position", [N, N - 1, -1])
def test_positions_outside_the_cache_are_refused(position):
    layer, tokens = decoder(), normal(B, 2, DQ)
    with pytest.raises(ValueError, match="`position`"):
        layer(tokens, cache=layer.empty_cache(B, N), position=position)


# ---- a cache knows its padding


@pytest.mark.parametrize("kind", DECODERS)
@pytest.mark.parametrize("side", ["right", "left"])
def test_the_padding_of_a_prompt_is_not_attended_then_or_later(side, kind):
    layer, tokens = decoder(**DECODERS[kind]), normal(B, N, DQ)
    want, _ = to_numpy(layer(tokens, use_causal_mask=True))
    longer, mask = padded(tokens[:, : N - 1], side, np.nan)
    cache = layer.empty_cache(B, longer.shape[1] + 1)
    prompt, first, cache = layer(longer, cache=cache, position=0, query_mask=mask)
    last, then, _ = layer(tokens[:, N - 1 :], cache=cache, position=longer.shape[1])
    real = np.flatnonzero(mask[0])
    assert_close(to_numpy(prompt)[:, real], want[:, : N - 1], atol=1e-5)
    if "rotary" not in kind or side == "left":  # the gap is a distance for rotary
        assert_close(to_numpy(last), want[:, N - 1 :], atol=1e-5)
    pads = np.flatnonzero(~mask[0])
    assert not to_numpy(first)[..., pads].any() and not to_numpy(then)[..., pads].any()


def test_the_embeddings_mask_reaches_the_cache():
    embedding = keras.layers.Embedding(31, DQ, mask_zero=True)
    layer, ids = decoder(), np.array([[0, 0, 5, 7], [0, 3, 11, 2]])
    want = to_numpy(layer(embedding(ids), use_causal_mask=True)[0])
    cache = layer.empty_cache(2, 4)
    got = to_numpy(layer(embedding(ids), cache=cache, position=0)[0])
    np.testing.assert_allclose(got[ids != 0], want[ids != 0], atol=1e-5)


def test_an_empty_cache_without_a_position_is_attended_by_nobody():
    layer, tokens = decoder(), normal(B, N, DQ)
    output, weights = to_numpy(layer(tokens, cache=layer.empty_cache(B, N)))
    assert not output.any() and not weights.any()


@pytest.mark.parametrize("as_position", [int, np.int64, ops.convert_to_tensor])
def test_a_position_whose_value_is_known_must_be_in_the_cache(as_position):
    layer, tokens = decoder(), normal(B, 2, DQ)
    for position in (N - 1, N, -1):
        with pytest.raises(ValueError, match=r"`position` must.*Received"):
            layer(tokens, cache=layer.empty_cache(B, N), position=as_position(position))


@pytest.mark.parametrize("position", [1.0, True, "1"])
def test_a_position_that_is_no_integer_is_refused(position):
    layer, tokens = decoder(), normal(B, 2, DQ)
    with pytest.raises(ValueError, match=r"`position` must be an integer"):
        layer(tokens, cache=layer.empty_cache(B, N), position=position)
