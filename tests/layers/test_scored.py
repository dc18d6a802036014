"""What some scoring layers have: Luong's scores, windows, borrowed scores, steps."""

import keras
import numpy as np
import pytest

from keras_attention import (
    BahdanauAttention,
    LocalAttention,
    LocationSensitiveAttention,
    LuongAttention,
    MonotonicAttention,
    ScaledDotProductAttention,
    SelfAttention,
)
from tests.layers.contract import normal, to_numpy

B, T, S, DQ, DV = 2, 4, 7, 5, 3


# ---- what constructors refuse


def test_a_refused_layer_leaves_its_score_to_the_next():
    score = BahdanauAttention(3)
    with pytest.raises(ValueError, match="`window` must"):
        LocalAttention(0, score=score)
    layer = LocalAttention(2, score=score)
    with pytest.raises(ValueError, match="`mode`"):
        MonotonicAttention(BahdanauAttention(3), mode="typo")
    layer(normal(B, T, DQ), normal(B, S, DV))
    with pytest.raises(ValueError, match="`score` belongs to one layer"):
        MonotonicAttention(score)


def test_an_initializer_without_a_config_is_used_as_it_is():
    class Mine(keras.initializers.Initializer):
        def __init__(self, value):
            self.value = value

        def __call__(self, shape, dtype=None, **kwargs):
            return keras.ops.full(shape, self.value, dtype)

    layer = BahdanauAttention(3, kernel_initializer=Mine(0.25))
    layer(normal(B, T, DQ), normal(B, S, DV))
    assert {float(x) for x in to_numpy(layer.key_kernel).ravel()} == {0.25}


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: LuongAttention("cosine"), r"`score` must be.*'cosine'.*Bahdanau"),
        (lambda: LuongAttention("dot", units=3), r"`units`.*concat.*units=3"),
        (lambda: LuongAttention(16), r'Received: 16.*tfa.seq2seq is score="general"'),
        (lambda: LuongAttention(units=16), r'tfa.seq2seq is score="general"'),
        (lambda: LuongAttention("concat", units=0), r"`units` must.*at least 1"),
        (lambda: LocalAttention(0), r"`window` must.*at least 1.*Received: 0"),
        (lambda: LocalAttention(1.5), r"`window` must be an integer"),
        (lambda: LocalAttention(2, "global"), r"`mode` must.*'global'"),
        (lambda: LocalAttention(2, units=3), r"belong to mode='predictive'"),
        (lambda: LocalAttention(2, renormalize=True), "belong to mode='predictive'"),
        (lambda: LocalAttention(2, score="add"), r"`score`.*'add'.*Bahdanau"),
        (lambda: ScaledDotProductAttention(scale=0.5), r"`scale` is True.*0\.5"),
        (lambda: SelfAttention(8, scale=None), r"`scale` is True.*None"),
        (lambda: SelfAttention(0), r"`d_model` must"),
        (lambda: SelfAttention(8, d_k=-1), r"`d_k` must"),
    ],
)
def test_arguments_without_meaning_are_refused(make, match):
    with pytest.raises(ValueError, match=match):
        make()


@pytest.mark.parametrize(
    "holder", [lambda s: LocalAttention(2, score=s), MonotonicAttention]
)
def test_a_borrowed_score_must_have_no_settings_of_its_own(holder):
    for scorer in (
        BahdanauAttention(3, dropout=0.1),
        LuongAttention(activation="sparsemax"),
        LocalAttention(2),
    ):
        with pytest.raises(ValueError, match="lends its score alone"):
            holder(scorer)
    with pytest.raises(ValueError, match="type of the layer, float32"):
        holder(LuongAttention(dtype="float64"))


def test_a_dot_product_names_both_widths_and_the_way_out():
    query, value = normal(B, T, DQ), normal(B, S, DV)
    for layer in (
        LuongAttention(),
        ScaledDotProductAttention(),
        LocalAttention(2),
        MonotonicAttention(),
    ):
        with pytest.raises(ValueError, match=r"query 5, key 3.*general"):
            layer.build(query.shape, value.shape)
        with pytest.raises(ValueError, match=r"query 5, key 3"):
            layer(keras.Input((T, DQ)), keras.Input((S, DV)))


# ---- local attention


@pytest.mark.parametrize("window", [1, 2, 9])
def test_a_window_of_local_m_moves_with_the_query(window):
    x = normal(B, S, DV)
    weights = to_numpy(LocalAttention(window)(x, x)[1])
    distance = np.abs(np.arange(S)[:, None] - np.arange(S)[None])
    assert ((weights > 0) == (distance <= window)[None]).all()


def test_steps_of_local_m_with_its_state_are_the_whole():
    query, value = normal(B, T, DV, seed=1), normal(B, S, DV)
    layer = LocalAttention(1)
    whole = to_numpy(layer(query, value)[1])
    state = layer.initial_state(value)
    for t in range(T):
        _, weights = layer(query[:, t], value, state=state)
        np.testing.assert_allclose(
            to_numpy(weights)[..., 0], whole[:, t], rtol=1e-5, atol=1e-6
        )
        state = layer.next_state(state, weights)
    rest = to_numpy(layer(query[:, 2:], value, state=2)[1])
    np.testing.assert_allclose(rest, whole[:, 2:], rtol=1e-5, atol=1e-6)


def test_left_padding_of_queries_and_keys_does_not_move_the_window():
    query, value = normal(B, T, DV, seed=1), normal(B, S, DV)
    for mode in ("monotonic", "predictive"):
        layer = LocalAttention(1, mode)
        whole = to_numpy(layer(query, value)[1])
        longer = [
            np.pad(x, ((0, 0), (n, 0), (0, 0))) for x, n in ((query, 2), (value, 3))
        ]
        masks = {
            "query_mask": np.arange(T + 2)[None].repeat(B, 0) >= 2,
            "value_mask": np.arange(S + 3)[None].repeat(B, 0) >= 3,
        }
        weights = to_numpy(layer(*longer, **masks)[1])
        np.testing.assert_allclose(weights[:, 2:, 3:], whole, rtol=1e-5, atol=1e-6)


def test_local_p_looks_within_each_rows_own_length():
    """p = S sigmoid(0) = S / 2 for a zero query, S the row's number of real keys."""
    value = np.ones((B, 8, DV), "float32")
    mask = np.arange(8)[None] < np.array([[8], [4]])
    layer = LocalAttention(1, "predictive", score="general")
    weights = to_numpy(layer(np.zeros((B, DQ), "float32"), value, value_mask=mask)[1])
    for row, centre in enumerate((4, 2)):
        seen = np.flatnonzero(weights[row, :, 0])
        assert seen.tolist() == [centre - 1, centre, centre + 1]
        np.testing.assert_allclose(weights[row, centre, 0], 1 / 3, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(
            weights[row, centre + 1, 0], np.exp(-2) / 3, atol=1e-6
        )


# ---- normalised additive scores


def test_the_gain_alone_decides_the_length_of_the_normalised_vector():
    layer, states = BahdanauAttention(4, normalize=True), normal(B, S, DV)
    layer(states)
    gain = next(w for w in layer.weights if w.name == "gain")
    np.testing.assert_allclose(to_numpy(gain), 0.5)  # 1 / sqrt(units)
    before = to_numpy(layer(states)[1])
    layer.score_vector.assign(7.0 * layer.score_vector)
    np.testing.assert_allclose(to_numpy(layer(states)[1]), before, rtol=1e-5, atol=1e-6)
    gain.assign(0.0 * gain)
    np.testing.assert_allclose(to_numpy(layer(states)[1]), 1 / S, rtol=1e-5, atol=1e-6)


# ---- steps


@pytest.mark.parametrize("masked", ["value_mask", "attention_mask", "causal"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: LocalAttention(2),
        lambda: LocalAttention(2, "predictive"),
        lambda: MonotonicAttention(hard=False),
        lambda: LocationSensitiveAttention(5, kernel_size=3),
    ],
    ids=["local-m", "local-p", "monotonic", "location"],
)
def test_steps_equal_the_whole_under_every_mask(make, masked):
    query, value = normal(B, T, DV, seed=1), normal(B, S, DV)
    pairs = np.random.default_rng(3).random((B, T, S)) > 0.4
    pairs[0, 1, :4], pairs[:, :, 2] = False, False
    whole_masks, step_masks = {
        "value_mask": ({"value_mask": pairs[:, 0]}, {"value_mask": pairs[:, 0]}),
        "attention_mask": ({"attention_mask": pairs}, {}),
        "causal": ({"use_causal_mask": True}, {}),
    }[masked]
    if masked == "causal":
        pairs = np.tri(T, S, dtype=bool)[None].repeat(B, 0)
    layer = make()
    whole = to_numpy(layer(query, value, **whole_masks)[1])
    state = layer.initial_state(value, whole_masks.get("value_mask"))
    for t in range(T):
        if masked != "value_mask":
            step_masks = {"attention_mask": pairs[:, t : t + 1]}
        _, weights = layer(query[:, t], value, state=state, **step_masks)
        np.testing.assert_allclose(
            to_numpy(weights)[..., 0], whole[:, t], rtol=1e-5, atol=1e-6
        )
        state = layer.next_state(state, weights)


@pytest.mark.parametrize("shape", [(B, S), (B, S, 2), (B, S + 1, 1), (1, S, 1)])
@pytest.mark.parametrize(
    "make", [MonotonicAttention, lambda: LocationSensitiveAttention(5)]
)
def test_a_state_of_another_shape_is_refused(make, shape):
    with pytest.raises(ValueError, match=r"`state` must be.*\(2, 7, 1\).*Received"):
        make()(normal(B, DV), normal(B, S, DV), state=np.ones(shape, "float32"))


def test_kernel_options_without_a_kernel_are_refused():
    for make in (
        lambda **options: LuongAttention("dot", **options),
        lambda **options: LocalAttention(2, score="general", **options),
    ):
        with pytest.raises(ValueError, match=r"has no kernels.*Received"):
            make(kernel_regularizer="l2")
        with pytest.raises(ValueError, match=r"has no kernels.*Received"):
            make(kernel_initializer="ones")


def test_a_score_that_two_layers_would_share_is_refused():
    score = BahdanauAttention(3)
    LocalAttention(2, score=score)
    with pytest.raises(ValueError, match=r"files do not keep.*Make a second Bahdanau"):
        MonotonicAttention(score)


@pytest.mark.parametrize(
    "make", [MonotonicAttention, lambda: LocationSensitiveAttention(5)]
)
def test_no_queries_give_no_contexts(make):
    context, weights = make()(np.zeros((B, 0, DV)), normal(B, S, DV))
    assert context.shape == (B, 0, DV) and weights.shape == (B, 0, S)
