"""Optimizers and schedules, against their equations."""

import keras
import numpy as np
import pytest

from training.optimization import MUON_WEIGHT_DECAY, OPTIMIZERS, WarmUp, muon
from training.seq2seq_config import OPTIMIZERS as NAMES
from zoo.seq2seq import FACTORIES

RATE = 0.01


def test_the_rate_rises_to_its_peak_and_falls_by_the_square_root():
    """Vaswani et al. (2017), equation 3: d^-0.5 min(n^-0.5, n w^-1.5)."""
    width, first = 512, 40
    rate = WarmUp((width * first) ** -0.5, first, 0.5)
    for step in (1, 10, 40, 41, 1000):
        expected = width**-0.5 * min(step**-0.5, step * first**-1.5)
        assert float(rate(step - 1)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("warm_up", [0.0, 0.5])
@pytest.mark.parametrize("schedule", ["cosine", "inverse_sqrt", "constant"])
def test_no_step_is_without_a_rate(name, schedule, warm_up):
    optimizer = OPTIMIZERS[name](0.1, steps=10, schedule=schedule, warm_up=warm_up)
    rate = optimizer._learning_rate
    rates = [float(rate(step)) for step in range(10)]
    assert min(rates[:9]) > 0 and max(rates) == pytest.approx(0.1, rel=0.05)


@pytest.mark.parametrize("shape", [(6, 4), (4, 6), (5, 5)], ids=str)
def test_muon_moves_a_matrix_by_the_singular_vectors_of_its_gradient(shape):
    """Liu et al. (2025), equation 4: W -= rate (0.2 sqrt(max(m, n)) U V^T + decay W).

    The Newton-Schulz iteration leaves singular values that are near 1, not 1.
    """
    rng = np.random.default_rng(0)
    gradient, before = rng.normal(size=(2, *shape)).astype("float32")
    kernel = keras.Variable(before, name="kernel")
    optimizer = muon(RATE, steps=10, schedule="constant", warm_up=0, clip_norm=0)
    optimizer.apply([keras.ops.convert_to_tensor(gradient)], [kernel])
    moved = before * (1 - RATE * MUON_WEIGHT_DECAY) - np.array(kernel)
    u, _, vt = np.linalg.svd(gradient, full_matrices=False)
    turned = u.T @ moved @ vt.T / (RATE * 0.2 * np.sqrt(max(shape)))
    np.testing.assert_allclose(turned, np.diag(np.diag(turned)), atol=0.02)
    assert np.diag(turned).min() > 0.6 and np.diag(turned).max() < 1.3
    np.testing.assert_allclose(moved, u @ u.T @ moved @ vt.T @ vt, atol=1e-5)


@pytest.mark.parametrize("factory", FACTORIES)
def test_muon_leaves_embeddings_biases_and_norms_to_adam(factory):
    sizes = {"num_heads": 2, "intermediate_dim": 16} if "former" in factory else {}
    model = FACTORIES[factory](
        weights=None,
        source_vocabulary_size=9,
        target_vocabulary_size=9,
        embedding_dim=8,
        num_layers=1,
        **(sizes or {"units": 8, "cell": "gru"}),
    )
    optimizer = muon(RATE, steps=10)
    optimizer.build(model.trainable_variables)
    by_muon = {
        variable.path
        for variable, velocity in zip(
            model.trainable_variables, optimizer.adam_velocities, strict=True
        )
        if velocity is None
    }
    assert by_muon == {
        variable.path
        for variable in model.trainable_variables
        if variable.path.endswith("kernel") and len(variable.shape) == 2
    }
    assert 0 < len(by_muon) < len(model.trainable_variables)


def test_every_name_of_an_optimizer_has_one():
    assert set(NAMES) == set(OPTIMIZERS)
