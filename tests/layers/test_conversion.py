"""Weights that are copied: the same outputs in Keras, PyTorch and here."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import MultiHeadAttention, copy_weights
from keras_attention.positional import RotaryEmbedding
from tests.layers.contract import DK, DQ, DV, B, S, T, normal, to_numpy

H, D, V, OUT = 4, 3, 5, 17  # heads, widths of a head's keys and values, of the output
KerasAttention = keras.layers.MultiHeadAttention


def fill(layer):
    """Other weights in every call, none of them zero, biases included."""
    layer.set_weights([np.random.normal(0, 0.5, w.shape) for w in layer.get_weights()])
    return layer


def built(layer, *shapes):
    layer.build(*shapes)
    return fill(layer)


def self_pair(**kwargs):
    """Ours and Keras's, both built for self-attention, with other weights."""
    shape = (B, T, DQ)
    theirs = KerasAttention(H, D, **kwargs)
    return built(MultiHeadAttention(H, D, **kwargs), shape), built(theirs, shape, shape)


def cross_pair():
    """Ours and Keras's for a query, a value and a key of three widths."""
    shapes = (B, T, DQ), (B, S, DV), (B, S, DK)
    ours = MultiHeadAttention(H, D, V, output_dim=OUT)
    return built(ours, *shapes), built(
        KerasAttention(H, D, V, output_shape=OUT), *shapes
    )


def torch_pair(heads=H, width=12, **kwargs):
    torch = pytest.importorskip("torch")
    torch.manual_seed(3)
    theirs = torch.nn.MultiheadAttention(
        width, heads, **{"batch_first": True, **kwargs}
    )
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    shapes = [(B, T, width), (B, S, theirs.vdim), (B, S, theirs.kdim)]
    ours = MultiHeadAttention(heads, width // heads, use_bias=kwargs.get("bias", True))
    return built(ours, *shapes), theirs


def torch_call(theirs, query, value, key, **kwargs):
    """Output (B, T, E) and weights (B, H, T, S) of a module of either axis order."""
    import torch

    args = [torch.tensor(a) for a in (query, key, value)]
    if not theirs.batch_first:
        args = [a.transpose(0, 1) for a in args]
    with torch.no_grad():
        output, weights = theirs(*args, average_attn_weights=False, **kwargs)
    if not theirs.batch_first:
        output = output.transpose(0, 1)
    return output.numpy(), weights.numpy()


def assert_equal(got, want, atol=1e-5):
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=atol)


DIRECTIONS = pytest.mark.parametrize("direction", ["to ours", "from ours"])


def copy(ours, theirs, direction):
    """Copies, and says whether the source stayed as it was."""
    source, target = (theirs, ours) if direction == "to ours" else (ours, theirs)
    before = values_of(source)
    copy_weights(source, target)
    for now, then in zip(values_of(source), before, strict=True):
        np.testing.assert_array_equal(now, then)


def values_of(module):
    if isinstance(module, keras.layers.Layer):
        return [w.copy() for w in module.get_weights()]
    return [p.detach().numpy().copy() for p in module.parameters()]


# ---- what agrees


@DIRECTIONS
@pytest.mark.parametrize("use_bias", [True, False])
def test_keras_self_attention_agrees(direction, use_bias):
    ours, theirs = self_pair(use_bias=use_bias)
    copy(ours, theirs, direction)
    tokens = normal(B, T, DQ)
    want = to_numpy(theirs(tokens, tokens, return_attention_scores=True))
    assert_equal(to_numpy(ours(tokens)), want)


@DIRECTIONS
def test_keras_cross_attention_agrees(direction):
    ours, theirs = cross_pair()
    copy(ours, theirs, direction)
    args = normal(B, T, DQ), normal(B, S, DV), normal(B, S, DK)
    want = to_numpy(theirs(*args, return_attention_scores=True))
    assert want[0].shape == (B, T, OUT)
    assert_equal(to_numpy(ours(*args)), want)


@DIRECTIONS
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_keras_grouped_queries_agree(direction, groups):
    shapes = (B, T, DQ), (B, S, DV)
    ours = built(MultiHeadAttention(H, D, num_key_value_heads=groups), *shapes)
    theirs = built(keras.layers.GroupQueryAttention(D, H, groups), *shapes)
    copy(ours, theirs, direction)
    args = normal(B, T, DQ), normal(B, S, DV)
    want = to_numpy(theirs(*args, return_attention_scores=True))
    assert_equal(to_numpy(ours(*args)), want)


@DIRECTIONS
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("widths", [{}, {"kdim": DK, "vdim": DV}])
def test_torch_agrees(direction, bias, batch_first, widths):
    ours, theirs = torch_pair(bias=bias, batch_first=batch_first, **widths)
    copy(ours, theirs, direction)
    args = normal(B, T, 12), normal(B, S, theirs.vdim), normal(B, S, theirs.kdim)
    assert_equal(to_numpy(ours(*args)), torch_call(theirs, *args))


def test_ours_agrees_with_ours_rotated_and_sparse():
    shape = (B, T, DQ)
    source, target = (
        built(
            MultiHeadAttention(
                H,
                6,
                activation="sparsemax",
                rotary_embedding=RotaryEmbedding(name=name),
            ),
            shape,
        )
        for name in ("one", "another")
    )
    copy_weights(source, target)
    tokens = normal(B, T, DQ)
    assert_equal(to_numpy(target(tokens)), to_numpy(source(tokens)), atol=0)


def test_through_one_of_ours_torch_becomes_keras():
    ours, theirs = torch_pair()
    shape = (B, T, 12)
    keras_layer = built(KerasAttention(H, 3), shape, shape)
    copy_weights(theirs, ours)
    copy_weights(ours, keras_layer)
    tokens = normal(B, T, 12)
    want, _ = torch_call(theirs, tokens, tokens, tokens)
    np.testing.assert_allclose(to_numpy(keras_layer(tokens, tokens)), want, atol=1e-5)


def test_there_and_back_is_exact():
    ours, theirs = cross_pair()
    before = ours.get_weights()
    copy_weights(ours, theirs)
    fill(ours)
    copy_weights(theirs, ours)
    assert_equal(ours.get_weights(), before, atol=0)
    ours, theirs = torch_pair(kdim=DK)
    before = ours.get_weights()
    copy_weights(ours, theirs)
    fill(ours)
    copy_weights(theirs, ours)
    assert_equal(ours.get_weights(), before, atol=0)


@pytest.mark.parametrize("dtype", ["mixed_bfloat16", "bfloat16", "float16", "float64"])
@pytest.mark.filterwarnings("ignore:Explicitly requested dtype float64")  # on JAX
def test_number_types_are_those_of_the_target(dtype):
    shape = (B, T, DQ)
    ours, _ = self_pair()
    other = built(KerasAttention(H, D, dtype=dtype), shape, shape)
    before = [weight.dtype for weight in other.weights]
    copy_weights(ours, other)
    copy_weights(other, ours)
    assert [weight.dtype for weight in other.weights] == before
    tokens = normal(B, T, DQ)
    got = to_numpy(ops.cast(other(tokens, tokens), "float32"))
    tolerance = 1e-4 if dtype == "float64" else 0.1
    np.testing.assert_allclose(got, to_numpy(ours(tokens)[0]), atol=tolerance)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float64"])
def test_torch_number_types(dtype):
    torch = pytest.importorskip("torch")
    ours, theirs = torch_pair()
    theirs = theirs.to(getattr(torch, dtype))
    copy_weights(theirs, ours)
    want = theirs.out_proj.weight.detach().double().numpy().T
    np.testing.assert_array_equal(to_numpy(ours.output_kernel), want.astype("float32"))
    copy_weights(ours, theirs)
    assert theirs.out_proj.weight.dtype == getattr(torch, dtype)
    assert theirs.in_proj_weight.requires_grad


def test_weights_are_found_in_a_model_of_any_name():
    """Keras's paths begin with the names of whatever holds the layer."""
    inputs = keras.Input((T, DQ))
    layer = KerasAttention(H, D, name="query")
    inner = keras.Model(inputs, layer(inputs, inputs), name="value")
    keras.Sequential([keras.Input((T, DQ)), inner], name="key")
    ours, _ = self_pair()
    copy_weights(fill(layer), ours)
    tokens = normal(B, T, DQ)
    np.testing.assert_allclose(
        to_numpy(ours(tokens)[0]), to_numpy(layer(tokens, tokens)), atol=1e-5
    )


# ---- what is refused, before anything is written


def assert_refused(source, target, match, error=ValueError):
    before = values_of(target)
    with pytest.raises(error, match=match) as caught:
        copy_weights(source, target)
    assert "Received: " in str(caught.value)
    for now, then in zip(values_of(target), before, strict=True):
        np.testing.assert_array_equal(now, then)


def test_what_is_not_built_is_refused():
    ours, theirs = self_pair()
    assert_refused(MultiHeadAttention(H, D), theirs, "`source` must be built.*`build`")
    assert_refused(theirs, MultiHeadAttention(H, D), "`target` must be built")
    assert_refused(KerasAttention(H, D), ours, "`source` must be built")
    assert_refused(
        ours, keras.layers.GroupQueryAttention(D, H, H), "`target` must be built"
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"num_heads": 2, "key_dim": 6}, "num_heads 2 in the source, 4 in the target"),
        ({"key_dim": 6}, r"query_kernel \(7, 24\) in the source, \(7, 12\)"),
        ({"value_dim": V}, r"value_kernel \(7, 20\) in the source"),
        ({"output_dim": OUT}, r"output_kernel \(12, 17\) in the source"),
        ({"use_bias": False}, r"query_bias None in the source, \(12,\) in the target"),
        ({"num_key_value_heads": 2}, "num_key_value_heads 2 in the source, 4 in"),
        ({"activation": "sparsemax"}, "activation sparsemax in the source, softmax"),
        ({"rotary_embedding": RotaryEmbedding()}, "rotary_embedding .*in the source"),
    ],
)
def test_other_forms_are_refused_both_ways(arguments, match):
    arguments = {"num_heads": H, "key_dim": D, **arguments}
    if "rotary_embedding" in arguments:
        arguments["key_dim"] = 6
    ours = built(MultiHeadAttention(**arguments), (B, T, DQ))
    _, theirs = self_pair()
    assert_refused(ours, theirs, f"{match}.*Make the target")
    assert_refused(theirs, ours, "Received: .*Make the target")


def test_other_widths_of_the_inputs_are_refused():
    ours = built(MultiHeadAttention(H, D), (B, T, DQ), (B, S, DV))
    _, theirs = self_pair()
    assert_refused(ours, theirs, r"value_kernel \(13, 12\) in the source, \(7, 12\) in")


def test_two_rotations_of_other_wavelengths_are_refused():
    slow, fast = (
        built(
            MultiHeadAttention(
                H, 6, rotary_embedding=RotaryEmbedding(max_wavelength=longest)
            ),
            (B, T, DQ),
        )
        for longest in (10000, 500)
    )
    assert_refused(slow, fast, "rotary_embedding .*10000.*500")


def test_keras_layers_that_do_something_else_are_refused():
    ours, _ = self_pair()
    flat, deep = (B, T, DQ), (B, T, S, DQ)
    for arguments, shape in (
        ({"attention_axes": (1,)}, deep),
        ({"attention_axes": (2,)}, deep),
        ({}, deep),
        ({"use_gate": True}, flat),
        ({"sliding_window": 2}, flat),
        ({"output_shape": (2, 5)}, flat),
    ):
        theirs = built(KerasAttention(H, D, **arguments), shape, shape)
        name = next(iter(arguments), "attention_axes")
        assert_refused(theirs, ours, f"`source` must be plain.*with {name}=.*without")
        assert_refused(ours, theirs, f"`target` must be plain.*with {name}=.*without")
    theirs = keras.layers.GroupQueryAttention(D, H, 2, use_gate=True)
    assert_refused(
        built(theirs, flat, flat), ours, "GroupedQueryAttention with use_gate="
    )


def test_a_keras_layer_with_adapters_is_refused():
    ours, theirs = self_pair()
    theirs.query_dense.enable_lora(2)
    assert_refused(theirs, ours, "with weights=.*query_lora_kernel_a")


def test_torch_modules_that_do_something_else_are_refused():
    ours, theirs = torch_pair(add_bias_kv=True)
    assert_refused(theirs, ours, "`source` must be plain.*with add_bias_kv=True")
    assert_refused(ours, theirs, "`target` must be plain.*with add_bias_kv=True")
    ours, theirs = torch_pair(add_zero_attn=True)
    assert_refused(theirs, ours, "`source` must be plain.*with add_zero_attn=True")
    ours, theirs = torch_pair()
    theirs.register_parameter("gate", theirs.in_proj_bias)
    theirs.in_proj_bias = None
    assert_refused(theirs, ours, "with parameters=.*gate")


def test_torch_of_another_form_is_refused():
    _, theirs = torch_pair()
    wide = built(MultiHeadAttention(H, 5), (B, T, 12))
    assert_refused(wide, theirs, r"query_kernel \(12, 20\) in the source, \(12, 12\)")
    assert_refused(theirs, wide, r"query_kernel \(12, 12\) in the source, \(12, 20\)")
    grouped = built(MultiHeadAttention(H, 3, num_key_value_heads=2), (B, T, 12))
    assert_refused(theirs, grouped, "num_key_value_heads 4 in the source, 2 in")
    plain = built(MultiHeadAttention(H, 3, use_bias=False), (B, T, 12))
    assert_refused(plain, theirs, r"output_bias None in the source, \(12,\) in")
    assert_refused(theirs, plain, r"output_bias \(12,\) in the source, None in")


def test_what_is_no_multi_head_attention_is_refused():
    ours, theirs = self_pair()
    dense = built(keras.layers.Dense(3), (B, DQ))
    assert_refused(ours, dense, "`target` must be .*Received: Dense", TypeError)
    with pytest.raises(TypeError, match=r"`source` must be .*Received: list"):
        copy_weights(ours.get_weights(), theirs)


def test_one_of_the_two_must_be_ours():
    _, one = self_pair()
    _, other = self_pair()
    assert_refused(one, other, "Received: keras's MultiHeadAttention and", TypeError)
