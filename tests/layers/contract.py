"""The contract table: every public attention layer, how to make it, what it must equal.

A new layer joins by one row; test_laws_numbers.py and test_laws_keras.py then hold it
to the twelve laws.
"""

import dataclasses
import functools
from collections.abc import Callable

import keras
import numpy as np

import keras_attention
from tests.layers import references
from tests.layers.references import to_numpy

__all__ = [
    "CASES",
    "VARIANTS",
    "Case",
    "check_padding_does_nothing",
    "normal",
    "to_numpy",
]

# Distinct primes, so that no swapped axis goes unnoticed.
B, T, S, DQ, DK, DV, UNITS = 2, 3, 5, 7, 11, 13, 17
HEADS, GROUPS = 6, 2
QUERY_FORMS = ("step", "full", "full with key")


@dataclasses.dataclass(frozen=True)
class Case:
    """One layer of the table.

    Attributes:
        layer: Its class.
        make: (**constructor arguments) -> layer.
        reference: (layer, query, value, key, may_attend) -> context, weights.
        others: A value other than the default for every argument, or a function that
            makes one.
        forms: The forms of a call it has, of "pooling", "self" and `QUERY_FORMS`.
        one_width: Whether query and key must be of one width, as a dot product needs.
        sums_to_one: False where the paper's weights may sum to less.
        everywhere: Whether every key that may be attended gets a weight over 0.
        heads: Number of heads in the weights (B, H, T, S), or None.
        refuses: Arguments of the base class that the layer refuses.
        names: What the arguments for padding of the one input are called.
        variant: What is special about the row, for its name.
    """

    layer: type
    make: Callable
    reference: Callable
    others: dict
    forms: tuple = QUERY_FORMS
    one_width: bool = False
    sums_to_one: bool = True
    everywhere: bool = True
    heads: int | None = None
    refuses: tuple = ()
    names: tuple = ("mask", "query_mask", "value_mask", "key_mask")
    variant: str = ""

    @property
    def name(self):
        return " ".join([self.layer.__name__, self.variant]).strip()

    @property
    def other_config(self):
        """A value other than the default for every argument."""
        return {k: v() if v is a_score else v for k, v in self.others.items()}

    @property
    def main(self):
        """The form for tests that need only one."""
        return "full" if "full" in self.forms else self.forms[0]

    @property
    def learns(self):
        """Whether it makes kernels of its own."""
        return "kernel_initializer" in self.make().get_config()

    def inputs(self, form, length=S, scale=1.0, seed=0, batch=B, steps=T):
        """The positional arguments of a call in one of the forms."""
        value = normal(batch, length, DV, seed=seed, scale=scale)
        key = normal(batch, length, DK, seed=seed + 1, scale=scale)
        width = {True: DK if form == "full with key" else DV, False: DQ}[self.one_width]
        query = normal(batch, steps, width, seed=seed + 2, scale=scale)
        return {
            "pooling": (value,),
            "self": (value,),
            "step": (query[:, 0], value),
            "full": (query, value),
            "full with key": (query, value, key),
        }[form]

    def padding(self, form, mask):
        """The keyword that says which keys are padding."""
        one = form in ("self", "pooling")
        return {self.names[0] if one else "value_mask": mask}

    def allowed(self, form, mask, steps=T):
        """What may be attended under a padding mask of the keys: (B, T or 1, S)."""
        mask = np.asarray(mask, bool)
        if form == "self":
            return mask[:, None] & mask[:, :, None]
        steps = steps if form.startswith("full") else 1
        return np.repeat(mask[:, None], steps, axis=1)

    def by_key(self, weights, form):
        """Weights with the keys on the last axis: (B, T or 1, S) or (B, H, T, S)."""
        return np.swapaxes(weights, 1, 2) if form in ("pooling", "step") else weights

    def over_heads(self, pairs):
        """Pairs (B, T, S) with an axis for the heads, where there are some."""
        if self.heads is None:
            return pairs
        return np.repeat(pairs[:, None], self.heads, axis=1)


def normal(*shape, seed=0, scale=1.0):
    rng = np.random.default_rng([seed, *shape])
    return (scale * rng.normal(size=shape)).astype("float32")


def check_padding_does_nothing(layer, query, value, steps, keys, filler):
    """Moves queries to `steps` of 6 and values to `keys` of 9 slots, among fillers."""
    context, weights = to_numpy(layer(query, value))
    longer, masks = [], []
    for x, slots, length in ((query, steps, 6), (value, keys, 9)):
        long = np.full((B, length, x.shape[2]), filler, "float32")
        long[:, slots] = x
        mask = np.zeros((B, length), bool)
        mask[:, slots] = True
        longer.append(long)
        masks.append(mask)
    got = to_numpy(layer(*longer, query_mask=masks[0], value_mask=masks[1]))
    np.testing.assert_allclose(got[0][:, steps], context, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        got[1][:, steps][..., keys], weights, rtol=1e-5, atol=1e-6
    )
    assert (got[1][~masks[0]] == 0).all()
    assert (got[1][..., ~masks[1][0]] == 0).all()


def with_defaults(layer, **defaults):
    """(**arguments) -> layer, with arguments that the call may replace."""
    return lambda **kwargs: layer(**{**defaults, **kwargs})


def a_score():
    """A new scorer: no two layers may share one."""
    return keras_attention.BahdanauAttention(UNITS, dtype="mixed_bfloat16")


SHARED = {
    "activation": "sparsemax",
    "dropout": 0.25,
    "return_attention_scores": False,
    "seed": 23,
    "name": "another",
    "dtype": "mixed_bfloat16",
}
LEARNED = {
    **SHARED,
    "kernel_initializer": "he_normal",
    "kernel_regularizer": keras.regularizers.L2(0.01),
}

CASES = [
    Case(
        layer=keras_attention.BahdanauAttention,
        make=with_defaults(keras_attention.BahdanauAttention, units=UNITS),
        reference=references.additive,
        others={**LEARNED, "units": 19, "normalize": True, "use_bias": True},
        forms=("pooling", *QUERY_FORMS),
    ),
    Case(
        layer=keras_attention.LuongAttention,
        make=with_defaults(keras_attention.LuongAttention, score="general"),
        reference=references.luong,
        others={**LEARNED, "score": "concat", "units": 19},
    ),
    Case(
        layer=keras_attention.LocalAttention,
        make=with_defaults(
            keras_attention.LocalAttention, window=2, mode="predictive", score="general"
        ),
        reference=references.local,
        others={
            **LEARNED,
            "window": 3,
            "mode": "predictive",
            "score": a_score,
            "units": 19,
            "renormalize": True,
        },
        sums_to_one=False,
        everywhere=False,
    ),
    Case(
        layer=keras_attention.MonotonicAttention,
        make=with_defaults(
            keras_attention.MonotonicAttention, score="general", hard=False
        ),
        reference=references.monotonic,
        others={
            **{k: v for k, v in SHARED.items() if k != "activation"},
            "score": a_score,
            "sigmoid_noise": 1.0,
            "score_bias_init": -4.0,
            "mode": "recursive",
            "hard": True,
        },
        sums_to_one=False,
        everywhere=False,
        refuses=("activation",),
    ),
    Case(
        layer=keras_attention.LocationSensitiveAttention,
        make=with_defaults(
            keras_attention.LocationSensitiveAttention,
            units=UNITS,
            filters=19,
            kernel_size=3,
        ),
        reference=references.location,
        others={
            **LEARNED,
            "units": 19,
            "filters": 23,
            "kernel_size": 4,
            "accumulate": True,
        },
    ),
    Case(
        layer=keras_attention.ScaledDotProductAttention,
        make=keras_attention.ScaledDotProductAttention,
        reference=references.scaled_dot_product,
        others={**SHARED, "scale": False},
        one_width=True,
    ),
    Case(
        layer=keras_attention.SelfAttention,
        make=with_defaults(keras_attention.SelfAttention, d_model=DV, d_k=UNITS),
        reference=references.self_attention,
        others={**LEARNED, "d_model": 19, "d_k": 23, "scale": False},
        forms=("self",),
        names=("mask", "query_mask"),
    ),
    Case(
        layer=keras_attention.MultiHeadAttention,
        make=with_defaults(
            keras_attention.MultiHeadAttention, num_heads=HEADS, key_dim=3, value_dim=5
        ),
        reference=references.multi_head,
        others={
            **LEARNED,
            "num_heads": 4,
            "key_dim": 22,
            "value_dim": 23,
            "num_key_value_heads": 2,
            "output_dim": 29,
            "use_bias": False,
            "rotary_embedding": keras_attention.RotaryEmbedding(),
        },
        forms=("self", "full", "full with key"),
        heads=HEADS,
    ),
]


def variant(case, name, **changes):
    """A row like another with other constructor arguments; fields by their names."""
    fields = {f.name for f in dataclasses.fields(Case)}
    arguments = {k: v for k, v in changes.items() if k not in fields}
    return dataclasses.replace(
        case,
        variant=name,
        make=functools.partial(case.make, **arguments),
        **{k: v for k, v in changes.items() if k in fields},
    )


def variants(cases):
    """The rows for the laws about numbers alone: other scores, modes, activations."""
    bahdanau, luong, local, monotonic, location, dot, self_attention, multi_head = cases
    yield variant(bahdanau, "normalize", normalize=True)
    yield variant(bahdanau, "use_bias", use_bias=True)
    for score in ("dot", "scaled_dot", "concat"):
        yield variant(luong, score, score=score, one_width="dot" in score)
    yield variant(local, "monotonic", mode="monotonic", sums_to_one=True)
    yield variant(local, "renormalize", renormalize=True, sums_to_one=True)
    yield variant(local, "dot", score="dot", one_width=True)
    yield variant(monotonic, "hard", hard=True)
    yield variant(monotonic, "recursive", mode="recursive")
    yield variant(location, "accumulate", accumulate=True)
    yield variant(location, "even", kernel_size=4)
    yield variant(dot, "scale=False", scale=False)
    yield variant(self_attention, "scale=False", scale=False)
    yield variant(multi_head, "grouped", num_key_value_heads=GROUPS)
    yield variant(multi_head, "no bias", use_bias=False, value_dim=None)
    for case in cases:
        if "activation" in case.other_config:
            yield variant(case, "sparsemax", activation="sparsemax", everywhere=False)


VARIANTS = list(variants(CASES))
