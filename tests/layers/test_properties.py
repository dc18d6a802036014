"""Laws 1-6 where nobody chose the shapes, masks, types and scales (hypothesis)."""

import keras
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from keras import ops

from tests.layers.contract import CASES, VARIANTS, to_numpy

ROWS = [pytest.param(case, id=case.name) for case in CASES] + [
    pytest.param(case, id=case.name, marks=pytest.mark.slow) for case in VARIANTS
]
# Every new shape compiles anew on JAX.
EXAMPLES = 4 if keras.backend.backend() == "jax" else 12
TOLERANCE = {"float32": 1e-5, "float16": 4e-3, "bfloat16": 4e-2}


@st.composite
def situations(draw):
    """Sizes, a number type, a scale, and masks with rows and queries of nothing."""
    batch, steps, length = (draw(st.integers(1, n)) for n in (3, 4, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**16)))
    density = draw(st.sampled_from([0.0, 0.3, 0.7, 1.0]))
    return {
        "batch": batch,
        "steps": steps,
        "length": length,
        "dtype": draw(st.sampled_from(list(TOLERANCE))),
        "scale": draw(st.sampled_from([1e-3, 1.0, 30.0])),
        "padding": rng.random((batch, length)) < density,
        "seed": draw(st.integers(0, 2**16)),
        "filler": draw(st.sampled_from([np.nan, np.inf, -np.inf, 5.0])),
    }


def attend(case, layer, form, inputs, padding, **kwargs):
    results = layer(*inputs, **case.padding(form, padding), **kwargs)
    results = results if isinstance(results, tuple) else (results,)
    return [to_numpy(ops.cast(r, "float32")) for r in results]


@pytest.mark.parametrize("case", ROWS)
@settings(
    max_examples=EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(situations())
def test_the_laws_hold_in_any_situation(case, given):
    keras.utils.set_random_seed(0)
    form, padding = case.main, given["padding"]
    sizes = {k: given[k] for k in ("length", "scale", "seed", "batch", "steps")}
    inputs, layer = case.inputs(form, **sizes), case.make(dtype=given["dtype"])
    context, weights = attend(case, layer, form, inputs, padding)
    allowed = case.over_heads(case.allowed(form, padding, given["steps"]))
    tolerance = TOLERANCE[given["dtype"]] * max(1.0, given["scale"])

    # 1, 2, 6: what weights are, and zeros where there is nothing to attend to
    assert np.isfinite(context).all() and np.isfinite(weights).all()
    assert (weights >= 0).all() and (weights[~allowed] == 0).all()
    sums, live = weights.sum(-1), allowed.any(-1)
    assert (sums <= 1 + 1e-5).all() and (sums[~live] == 0).all()
    if case.sums_to_one:
        full = live if case.everywhere or "sparsemax" in case.name else sums > 0
        np.testing.assert_allclose(sums[full], 1, atol=1e-5)
    dead = ~(live if case.heads is None else live[:, 0])
    assert (context[dead] == 0).all()

    # 3: what is in padded slots does not matter
    filled = list(inputs)
    for i in range(0 if form == "self" else 1, len(inputs)):
        filled[i] = np.where(padding[..., None], inputs[i], given["filler"])
    again = attend(case, layer, form, filled, padding)
    np.testing.assert_allclose(again[0], context, atol=tolerance)
    np.testing.assert_allclose(again[1], weights, atol=1e-5)

    # 4: nor do the other rows
    row = slice(given["batch"] - 1, given["batch"])
    alone = attend(case, layer, form, [x[row] for x in inputs], padding[row])
    np.testing.assert_allclose(alone[0], context[row], atol=tolerance)
    np.testing.assert_allclose(alone[1], weights[row], atol=tolerance)

    # 5: nor does asking for the weights
    (silent,) = attend(
        case, layer, form, inputs, padding, return_attention_scores=False
    )
    np.testing.assert_allclose(silent, context, atol=tolerance)
