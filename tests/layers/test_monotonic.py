"""MonotonicAttention against the paper's equations in loops, in its three modes."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import BahdanauAttention
from keras_attention.monotonic import (
    MODES,
    MonotonicAttention,
    monotonic_alignment,
    monotonic_alignments,
)
from tests.layers.contract import (
    DK,
    DQ,
    DV,
    UNITS,
    B,
    S,
    T,
    check_padding_does_nothing,
    normal,
    to_numpy,
)

REAL = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], bool)  # padded right, padded left
modes = pytest.mark.parametrize("mode", MODES)
hardness = pytest.mark.parametrize("hard", [False, True])


def make(bias=0.3, **kwargs):
    layer = MonotonicAttention("general", **{"hard": False, **kwargs})
    layer.build((B, T, DQ), (B, S, DV))
    layer.set_weights([np.array(bias), normal(DQ, DV, seed=3, scale=0.3)])
    return layer


def soft_by_loops(p, previous):
    """Raffel et al. (2017), equation 9: a sum over every key k to come from."""
    weights = np.zeros(len(p))
    for j in range(len(p)):
        for k in range(j + 1):
            chance = previous[k]
            for passed in range(k, j):
                chance *= 1 - p[passed]
            weights[j] += p[j] * chance
    return weights


def hard_by_loops(p, previous):
    """Raffel et al. (2017), section 2.2: read on from the last key to the next stop."""
    weights = np.zeros(len(p))
    if previous.any():
        for j in range(int(previous.argmax()), len(p)):
            if p[j] >= 0.5:
                weights[j] = 1.0
                break
    return weights


def monotonic_by_loops(energies, may_attend, hard):
    """All steps, over the keys of each step that are there, the others left out."""
    p = np.where(may_attend, 1 / (1 + np.exp(-energies.astype("float64"))), 0.0)
    weights = np.zeros(p.shape)
    for i in range(len(p)):
        previous = np.eye(p.shape[2])[0]
        for t in range(p.shape[1]):
            if may_attend[i, t].any():
                step = hard_by_loops if hard else soft_by_loops
                previous = weights[i, t] = step(p[i, t], previous)
    return weights


def chances(*shape, seed=0):
    """Probabilities of which many are 0 and 1."""
    rng = np.random.default_rng([seed, *shape])
    return np.clip(rng.uniform(-0.6, 1.6, size=shape), 0, 1).astype("float32")


# ---- one step, as a function


@modes
@pytest.mark.parametrize("length", [1, 2, 5, 8, 37])
def test_a_step_is_equation_9(mode, length):
    p, previous = chances(B, length), np.abs(normal(B, length))
    previous /= previous.sum(-1, keepdims=True)
    got = to_numpy(monotonic_alignment(p, previous, mode))
    for i in range(B):
        np.testing.assert_allclose(
            got[i], soft_by_loops(p[i], previous[i]), rtol=1e-5, atol=1e-6
        )


@modes
def test_a_step_is_equation_10_where_that_can_be_divided(mode):
    p = np.random.default_rng(1).uniform(0.1, 0.9, size=(B, S)).astype("float32")
    previous = np.abs(normal(B, S))
    got = to_numpy(monotonic_alignment(p, previous, mode))
    for i in range(B):
        before = 0.0
        for j in range(S):
            came = (1 - p[i, j - 1]) * before / p[i, j - 1] if j else 0.0
            before = p[i, j] * (came + previous[i, j])
            np.testing.assert_allclose(got[i, j], before, rtol=1e-5)


@modes
@pytest.mark.parametrize("scale", [1.0, 50.0, 1e4])
def test_saturated_chances_lose_no_accuracy(mode, scale):
    """Energies of +-50, where the paper's cumulative product ends at 0."""
    length = 200
    energies = scale * np.sign(normal(B, length))
    energies[0, :-1] = -scale  # one long way to the last key
    p = 1 / (1 + np.exp(-np.clip(energies, -700, 700).astype("float64")))
    start = np.eye(length)[[0] * B]
    got = to_numpy(
        monotonic_alignment(p.astype("float32"), start.astype("float32"), mode)
    )
    for i in range(B):
        np.testing.assert_allclose(
            got[i], soft_by_loops(p[i], start[i]), rtol=1e-5, atol=1e-6
        )
    if scale > 1:
        np.testing.assert_allclose(
            got[0, -1], float(energies[0, -1] > 0), rtol=1e-5, atol=1e-6
        )


def test_a_hard_step_reads_on_to_the_next_stop():
    p = chances(7, S, seed=4)
    for position in range(S):
        previous = np.eye(S, dtype="float32")[[position] * 7]
        got = to_numpy(monotonic_alignment(p, previous, "hard"))
        for i in range(7):
            np.testing.assert_array_equal(got[i], hard_by_loops(p[i], previous[i]))


def test_a_hard_step_from_nowhere_stays_nowhere():
    zeros = np.zeros((B, S), "float32")
    assert (to_numpy(monotonic_alignment(chances(B, S), zeros, "hard")) == 0).all()


def test_the_hard_step_is_the_soft_one_of_certain_choices():
    p, start = np.round(chances(B, T, S)), np.eye(S, dtype="float32")[[0] * B]
    soft = to_numpy(monotonic_alignments(p, start))
    np.testing.assert_array_equal(
        to_numpy(monotonic_alignments(p, start, "hard")), soft
    )


@pytest.mark.parametrize("mode", ["soft", None])
def test_unknown_modes_are_refused(mode):
    for call in (
        lambda: MonotonicAttention(mode=mode),
        lambda: monotonic_alignment(chances(B, S), chances(B, S), mode),
    ):
        with pytest.raises(ValueError, match=r"`mode` must be one of 'parallel'"):
            call()


# ---- the layer


@modes
@hardness
@pytest.mark.parametrize("masked", [False, True])
def test_the_layer_equals_the_equations_in_loops(mode, hard, masked):
    layer = make(mode=mode, hard=hard)
    query, value = normal(B, 4, DQ), normal(B, S, DV)
    may_attend, masks = np.ones((B, 4, S), bool), {}
    if masked:
        pairs = np.random.default_rng(7).random((B, 4, S)) > 0.4
        pairs[0, 1] = False
        masks = {"value_mask": REAL, "attention_mask": pairs}
        may_attend = pairs & REAL[:, None]
    context, weights = to_numpy(layer(query, value, **masks))
    bias, kernel = layer.get_weights()
    energies = query @ kernel @ np.swapaxes(value, 1, 2) + bias
    want = monotonic_by_loops(energies, may_attend, hard)
    np.testing.assert_allclose(weights, want, atol=1e-5)
    np.testing.assert_allclose(context, want @ value, atol=1e-5)
    assert (weights.sum(-1) <= 1 + 1e-6).all() and weights.sum() > 1


def test_hard_is_for_inference_unless_it_is_said():
    args = normal(B, T, DQ), normal(B, S, DV)
    soft, hard = (to_numpy(make(hard=h)(*args)[1]) for h in (False, True))
    assert set(np.unique(hard)) <= {0.0, 1.0} and np.abs(soft - hard).max() > 0.1
    for chosen, training, want in [
        (None, True, soft),
        (None, False, hard),
        (None, None, hard),
        (False, False, soft),
        (True, True, hard),
    ]:
        weights = to_numpy(make(hard=chosen)(*args, training=training)[1])
        np.testing.assert_array_equal(weights, want)


@hardness
@pytest.mark.parametrize("given", [False, True])
def test_steps_with_the_state_by_hand_equal_the_full_form(hard, given):
    layer = make(hard=hard)
    query, value = normal(B, T, DQ), normal(B, S, DV)
    context, weights = to_numpy(layer(query, value, value_mask=REAL))
    state = layer.initial_state(value, REAL) if given else None
    for t in range(T):
        one = layer(query[:, t], value, value_mask=REAL, state=state)
        state = layer.next_state(state, one[1])
        np.testing.assert_allclose(
            to_numpy(one[0]), context[:, t], rtol=1e-5, atol=1e-6
        )
        np.testing.assert_allclose(
            to_numpy(one[1])[..., 0], weights[:, t], rtol=1e-5, atol=1e-6
        )
    assert state.shape == (B, S, 1)


def test_the_first_state_is_on_the_first_real_key():
    layer = make()
    state = to_numpy(layer.initial_state(normal(B, S, DV), REAL))[..., 0]
    np.testing.assert_array_equal(state, [[1, 0, 0, 0, 0], [0, 1, 0, 0, 0]])
    state = to_numpy(layer.initial_state(normal(B, S, DV)))[..., 0]
    np.testing.assert_array_equal(state, [[1, 0, 0, 0, 0]] * B)


@hardness
@pytest.mark.parametrize("filler", [7.0, np.nan])
def test_padding_anywhere_among_keys_and_queries_changes_nothing(hard, filler):
    layer = make(hard=hard)
    query, value = normal(B, T, DQ), normal(B, S, DV)
    check_padding_does_nothing(layer, query, value, [1, 2, 4], [1, 2, 4, 6, 7], filler)


def test_hard_stops_never_go_back():
    layer = make(hard=True, bias=-1.0)
    weights = to_numpy(layer(normal(B, 11, DQ), normal(B, 23, DV))[1])
    for row in weights:
        stops = row.argmax(-1)[row.any(-1)]
        assert len(set(stops)) > 2 and (np.diff(stops) >= 0).all()


def test_any_layer_lends_its_score():
    scorer = BahdanauAttention(UNITS, normalize=True)
    layer = MonotonicAttention(scorer, hard=False, score_bias_init=-1.5)
    query, value, key = normal(B, T, DQ), normal(B, S, DV), normal(B, S, DK)
    weights = to_numpy(layer(query, value, key)[1])
    energies = to_numpy(
        scorer.score(scorer.project_query(query), scorer.project_key(key))
    )
    want = monotonic_by_loops(energies - 1.5, np.ones((B, T, S), bool), False)
    np.testing.assert_allclose(weights, want, rtol=1e-5, atol=1e-6)


def test_noise_is_for_training_and_comes_from_the_seed():
    args = normal(B, T, DQ), normal(B, S, DV)
    plain = to_numpy(make()(*args)[1])
    one, same, other = (make(sigmoid_noise=2.0, seed=n) for n in (3, 3, 4))
    np.testing.assert_array_equal(to_numpy(one(*args)[1]), plain)
    noisy = to_numpy(one(*args, training=True)[1])
    assert np.abs(noisy - plain).max() > 0.05
    np.testing.assert_array_equal(to_numpy(same(*args, training=True)[1]), noisy)
    assert np.abs(to_numpy(other(*args, training=True)[1]) - noisy).max() > 0.05
    assert np.abs(to_numpy(one(*args, training=True)[1]) - noisy).max() > 0.05


def test_the_noise_has_the_standard_deviation_it_is_given():
    layer = MonotonicAttention(sigmoid_noise=2.0, seed=5, hard=False)
    query, value = np.zeros((4000, 1, 1), "float32"), np.ones((4000, 1, 1), "float32")
    p = to_numpy(layer(query, value, training=True)[1])
    np.testing.assert_allclose(np.log(p / (1 - p)).std(), 2.0, rtol=0.05)


# ---- training


@modes
@pytest.mark.parametrize("jit", [False, True])
@pytest.mark.parametrize("length", [T, None])
def test_it_trains(mode, jit, length):
    if jit and keras.backend.backend() == "torch":
        pytest.skip("torch.compile takes long")
    query, value = keras.Input((length, DQ)), keras.Input((length and S, DV))
    layer = MonotonicAttention("general", mode=mode, sigmoid_noise=1.0, seed=2)
    context, _ = layer(query, value, value_mask=ops.convert_to_tensor(REAL))
    model = keras.Model([query, value], context)
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=jit)
    before = layer.get_weights()
    inputs = [normal(B, T, DQ), normal(B, S, DV)]
    assert np.isfinite(model.train_on_batch(inputs, normal(B, T, DV, seed=9)))
    for old, new in zip(before, layer.get_weights(), strict=True):
        assert np.isfinite(new).all() and np.abs(new - old).max() > 0


@pytest.mark.parametrize("bias", [-50.0, 0.0, 50.0])
def test_saturation_leaves_training_finite(bias):
    layer = MonotonicAttention("general", score_bias_init=bias)
    query, value = keras.Input((T, DQ)), keras.Input((S, DV))
    model = keras.Model([query, value], layer(query, value)[0])
    model.compile(keras.optimizers.SGD(1.0), "mse", jit_compile=False)
    inputs = [normal(B, T, DQ, scale=30), normal(B, S, DV)]
    for _ in range(2):
        assert np.isfinite(model.train_on_batch(inputs, normal(B, T, DV, seed=9)))
    assert all(np.isfinite(w).all() for w in layer.get_weights())


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="input_signature")
@modes
@pytest.mark.parametrize("jit", [False, True])
def test_lengths_that_are_not_known_give_the_same_gradients(mode, jit):
    import tensorflow as tf

    layer, inputs = make(), (normal(B, T, DQ), normal(B, S, DV))

    def gradients(query, value, mask):
        with tf.GradientTape() as tape:
            tape.watch([query, value])
            context, weights = layer(query, value, value_mask=mask, training=True)
            loss = tf.reduce_sum(context**2) + tf.reduce_sum(weights**2)
        return tape.gradient(loss, [query, value, *layer.trainable_variables])

    arguments = [tf.constant(x) for x in (*inputs, REAL)]
    want = gradients(*arguments)
    layer.mode = mode
    unknown = [
        tf.TensorSpec([None] * 2 + list(x.shape[2:]), x.dtype) for x in arguments
    ]
    compiled = tf.function(gradients, input_signature=unknown, jit_compile=jit)
    for one, other in zip(compiled(*arguments), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-4)


# ---- what is refused


def test_an_activation_is_refused():
    with pytest.raises(ValueError, match="sigmoid in place of an `activation`"):
        MonotonicAttention(activation="sparsemax")


@pytest.mark.parametrize("noise", [-1.0, float("nan")])
def test_a_noise_that_is_no_deviation_is_refused(noise):
    with pytest.raises(ValueError, match="`sigmoid_noise` must be"):
        MonotonicAttention(sigmoid_noise=noise)


def test_a_hard_that_is_no_choice_is_refused():
    with pytest.raises(ValueError, match="`hard` must be None"):
        MonotonicAttention(hard="always")


def test_states_without_a_query_are_refused():
    with pytest.raises(ValueError, match="compares queries with keys"):
        make()(normal(B, S, DV))
