"""Attention rollout against arithmetic by hand, a loop of its own, and its laws."""

import numpy as np
import pytest

from keras_attention.visualize import rollout

L, H, T = 3, 2, 5


@pytest.fixture
def maps():
    return np.random.default_rng(7).dirichlet(np.ones(T), (L, H, T))


def looped(maps, residual):
    """What reaches output t from token s, summed over every path, layer by layer."""
    shares = [[float(s == t) for s in range(T)] for t in range(T)]
    for layer in maps:
        above = [[0.0] * T for _ in range(T)]
        for t in range(T):
            for k in range(T):
                weight = (1 - residual) * sum(head[t][k] for head in layer) / len(layer)
                weight += residual if t == k else 0.0
                for s in range(T):
                    above[t][s] += weight * shares[k][s]
        shares = above
    return shares


def test_two_layers_worked_out_by_hand():
    # Two tokens, one head. A = (W + I) / 2:
    # W1 = | 1    0   |   A1 = | 1    0   |     W2 = | 0.6  0.4 |   A2 = | 0.8  0.2 |
    #      | 0.5  0.5 |        | 0.25 0.75|          | 1    0   |        | 0.5  0.5 |
    first, second = [[1, 0], [0.5, 0.5]], [[0.6, 0.4], [1, 0]]
    # A2 A1 = | 0.8 * 1 + 0.2 * 0.25    0.8 * 0 + 0.2 * 0.75 | = | 0.85   0.15  |
    #         | 0.5 * 1 + 0.5 * 0.25    0.5 * 0 + 0.5 * 0.75 |   | 0.625  0.375 |
    expected = [[0.85, 0.15], [0.625, 0.375]]
    np.testing.assert_allclose(rollout([first, second]), expected)


def test_heads_are_averaged_by_hand():
    # The mean of the heads is | 0.5 0.5 | and I is left out: W itself.
    #                          | 0.25 0.75 |
    heads = [[[1, 0], [0.5, 0.5]], [[0, 1], [0, 1]]]
    expected = [[0.5, 0.5], [0.25, 0.75]]
    np.testing.assert_allclose(rollout([heads], residual=0), expected)


@pytest.mark.parametrize("residual", [0, 0.3, 0.5, 1])
def test_it_equals_a_loop_over_all_paths(maps, residual):
    found = rollout(maps, residual=residual)
    np.testing.assert_allclose(found, looped(maps.tolist(), residual), atol=1e-12)


@pytest.mark.parametrize("residual", [0, 0.3, 1])
def test_rows_sum_to_one(maps, residual):
    found = rollout(maps, residual=residual)
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    assert (found >= 0).all()


def test_identity_maps_give_identity():
    for residual in (0, 0.3, 0.5, 1):
        found = rollout(np.broadcast_to(np.eye(T), (L, H, T, T)), residual=residual)
        np.testing.assert_allclose(found, np.eye(T))


def test_with_nothing_but_the_residual_every_token_stays_itself(maps):
    np.testing.assert_array_equal(rollout(maps, residual=1), np.eye(T))


def test_permuted_tokens_permute_the_result(maps):
    order = np.random.default_rng(3).permutation(T)
    permuted = maps[:, :, order][:, :, :, order]
    assert (order != np.arange(T)).any()
    np.testing.assert_allclose(rollout(permuted), rollout(maps)[order][:, order])


def test_the_order_of_the_layers_matters(maps):
    assert abs(rollout(maps) - rollout(maps[::-1])).max() > 0.01


def test_a_causal_model_has_a_causal_rollout(maps):
    causal = np.tril(maps)
    found = rollout(causal / causal.sum(axis=-1, keepdims=True))
    np.testing.assert_array_equal(np.triu(found, k=1), 0)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_arrays_lists_and_dicts_are_read_alike(maps):
    expected = rollout(maps)
    for given in (
        list(maps),
        tuple(maps.tolist()),
        {f"encoder_{at}/self_attention": each for at, each in enumerate(maps, 1)},
        maps.mean(axis=1),
        [maps[0], maps[1].mean(axis=0), np.repeat(maps[2], 3, axis=0)],
    ):
        np.testing.assert_allclose(rollout(given), expected, atol=1e-12)


def test_one_layer_is_the_layer(maps):
    expected = 0.25 * np.eye(T) + 0.75 * maps[0].mean(axis=0)
    np.testing.assert_allclose(rollout(maps[:1], residual=0.25), expected)


# Rows of zeros, and rows under 1


def test_a_fully_masked_query_stays_itself_and_others_are_unchanged(maps):
    """A row of zeros in every layer, as masked_softmax gives for padding."""
    maps[:, :, :, 2] = 0.0
    maps[:, :, 2] = 0.0
    maps /= np.maximum(maps.sum(axis=-1, keepdims=True), 1e-9)
    real = [0, 1, 3, 4]
    alone = rollout(maps[:, :, real][:, :, :, real])
    found = rollout(maps)
    np.testing.assert_array_equal(found[2], np.eye(T)[2])
    np.testing.assert_allclose(found[np.ix_(real, real)], alone)
    np.testing.assert_allclose(found.sum(axis=1), 1)


def test_without_residual_a_row_of_zeros_stays_zero():
    first, second = [[0, 0], [0, 1]], [[1, 0], [0.5, 0.5]]
    found = rollout([first, second], residual=0)
    # Row 0 reads the empty state 0; row 1 reads half of it and half of token 1.
    np.testing.assert_array_equal(found, [[0, 0], [0, 0.5]])


def test_a_row_under_one_is_scaled_beside_the_residual():
    # 0.5 * I + 0.5 * | 0 0.5 | = | 0.5 0.25 |, and 0.5 + 0.25 = 0.75 is one whole.
    found = rollout([[[0, 0.5], [0, 1]]])
    np.testing.assert_allclose(found, [[2 / 3, 1 / 3], [0, 1]])


def test_rounding_of_half_precision_is_let_through(maps):
    found = rollout(maps.astype("float16"))
    np.testing.assert_allclose(found.sum(axis=1), 1, rtol=1e-12)
    np.testing.assert_allclose(found, rollout(maps), atol=1e-3)


# Refusals


@pytest.mark.parametrize("shape", [(L, 2, H, T, T), (L, T), (L, T, T + 1), (L, 0, 0)])
def test_other_shapes_are_refused(shape):
    with pytest.raises(ValueError, match=r"`maps\[0\]`.*shape \(T, T\).*Of a batch"):
        rollout(np.zeros(shape))


def test_a_batch_that_was_left_in_is_named(maps):
    given = {"encoder_1": maps[None, 0]}
    expected = r"maps\['encoder_1'\].*\(1, 2, 5, 5\). Of a batch take one example"
    with pytest.raises(ValueError, match=expected):
        rollout(given)


def test_layers_of_other_sizes_are_refused(maps):
    with pytest.raises(ValueError, match=r"same T tokens.*T = 5, 4"):
        rollout([maps[0], maps[1][:, :4, :4]])


@pytest.mark.parametrize("bad", [np.nan, -0.1, 1.5])
def test_values_that_are_no_weights_are_refused(maps, bad):
    maps[1, 0, 2, 3] = bad
    with pytest.raises(ValueError, match=r"maps\[1\]\[0, 2, 3\] = "):
        rollout(maps)


def test_maps_whose_columns_sum_to_one_are_refused():
    transposed = np.array([[0.9, 0.8], [0.1, 0.2]])
    with pytest.raises(ValueError, match=r"sums to 1\.7.*swap the last two axes"):
        rollout([transposed])


def test_a_dict_out_of_order_is_refused(maps):
    names = sorted(f"encoder_{at}" for at in (2, 9, 10))
    assert names[0] == "encoder_10"
    given = dict(zip(names, maps, strict=True))
    expected = "first layer first. Received: 'encoder_10' before 'encoder_2'"
    with pytest.raises(ValueError, match=expected):
        rollout(given)


@pytest.mark.parametrize("given", [[], {}, 3, np.zeros((0, H, T, T))])
def test_no_layers_are_refused(given):
    with pytest.raises(ValueError, match="attention of at least one layer"):
        rollout(given)


@pytest.mark.parametrize("residual", [-0.1, 1.1, np.nan, "half", None])
def test_a_residual_that_is_no_share_is_refused(maps, residual):
    with pytest.raises(ValueError, match="`residual` must be a number from 0 to 1"):
        rollout(maps, residual=residual)
