"""AttentionDecoder: the papers' equations in loops, steps against calls, padding."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_attention import (
    AttentionDecoder,
    BahdanauAttention,
    LuongAttention,
    MultiHeadAttention,
    RotaryEmbedding,
    SelfAttention,
)
from keras_attention.steps import over_sequence
from tests.layers.contract import normal, to_numpy
from tests.layers.decoders import (
    ATTENTIONS,
    CELLS,
    KEYS,
    MASKS,
    SETTINGS,
    STEPS,
    UNITS,
    B,
    E,
    F,
    H,
    S,
    T,
    decode_by_hand,
    inputs_of,
    make,
    width_of_memory,
)
from tests.layers.gradients import gradients

# Of sums in another order, which seven steps with weights of this size make larger.
ROUNDING = 5e-6
every_setting = pytest.mark.parametrize("setting", SETTINGS)
# The three ways a decoder runs.
every_way = pytest.mark.parametrize(
    "setting", ["luong, fed", "luong, not fed", "bahdanau"]
)
every_attention = pytest.mark.parametrize("attention", ATTENTIONS)
# Those that differ in what a step hands on; the rest takes its time.
HANDING_ON = ("bahdanau", "local-m", "monotonic", "location", "several")
attentions = pytest.mark.parametrize(
    "attention",
    [
        pytest.param(name, marks=() if name in HANDING_ON else pytest.mark.slow)
        for name in ATTENTIONS
    ],
)


def maps_of(weights):
    """The weights of a call as a list of NumPy arrays."""
    return to_numpy(weights) if isinstance(weights, list) else [to_numpy(weights)]


def decode(decoder, inputs, memory, memory_mask=None, cell_state=None):
    """Outputs and weights of a decoder that is stepped by hand."""
    prepared = decoder.prepare_memory(memory, memory_mask)
    state = decoder.initial_state(prepared, cell_state)
    outputs, maps = [], []
    for t in range(inputs.shape[1]):
        output, weights, state = decoder.step(inputs[:, t], state, prepared)
        outputs.append(to_numpy(output))
        maps.append(maps_of(weights))
    return np.stack(outputs, 1), [np.stack(m, 1) for m in zip(*maps, strict=True)]


# ---- the equations


@every_setting
@pytest.mark.parametrize("attention", ["bahdanau", "general"])
@pytest.mark.parametrize("cell", CELLS)
def test_it_equals_the_equations_in_loops(cell, attention, setting):
    decoder, inputs = make(cell, attention, setting), inputs_of()
    outputs, weights = to_numpy(decoder(*inputs, **MASKS))
    want = decode_by_hand(decoder, cell, *inputs, STEPS, KEYS)
    np.testing.assert_allclose(outputs, want[0], atol=1e-5)
    np.testing.assert_allclose(weights, want[1], atol=1e-5)


@every_setting
@pytest.mark.parametrize("cell", CELLS)
def test_it_begins_with_the_given_states(cell, setting):
    decoder, inputs = make(cell, "bahdanau", setting), inputs_of()
    sizes = {"lstm": [H, H], "stacked": [23, H, H]}.get(cell, [H])
    start = [normal(B, size, seed=i) for i, size in enumerate(sizes)]
    outputs, weights = to_numpy(decoder(*inputs, initial_state=start, **MASKS))
    rows = [[state[row] for state in start] for row in range(B)]
    want = decode_by_hand(decoder, cell, *inputs, STEPS, KEYS, rows)
    np.testing.assert_allclose(outputs, want[0], atol=1e-5)
    np.testing.assert_allclose(weights, want[1], atol=1e-5)


def test_states_may_be_nested_as_the_cells_or_a_tensor():
    stacked, inputs = make("stacked"), inputs_of()
    flat = [normal(B, size) for size in (23, H, H)]
    want = to_numpy(stacked(*inputs, initial_state=flat)[0])
    got = stacked(*inputs, initial_state=[flat[:1], flat[1:]])[0]
    np.testing.assert_array_equal(to_numpy(got), want)
    gru = make("gru")
    want = to_numpy(gru(*inputs, initial_state=[flat[1]])[0])
    got = gru(*inputs, initial_state=ops.convert_to_tensor(flat[1]))[0]
    np.testing.assert_array_equal(to_numpy(got), want)


def test_the_cell_decides_how_it_begins():
    class Ones(keras.layers.GRUCell):
        def get_initial_state(self, batch_size=None):
            return [ops.ones((batch_size, H))]

    inputs, plain = inputs_of(), make("gru")
    decoder = AttentionDecoder(Ones(H), BahdanauAttention(UNITS))
    decoder.build((None, None, E), (None, None, F))
    decoder.set_weights(plain.get_weights())
    want = plain(*inputs, initial_state=[np.ones((B, H), "float32")])[0]
    np.testing.assert_allclose(
        to_numpy(decoder(*inputs)[0]), to_numpy(want), rtol=1e-5, atol=1e-6
    )


def test_the_defaults_are_luongs():
    decoder = AttentionDecoder(keras.layers.GRUCell(H), BahdanauAttention(UNITS))
    decoder.build((None, None, E), (None, None, F))
    assert decoder.order == "luong" and decoder.attention_units == H
    assert tuple(decoder.cell.kernel.shape) == (E + H, 3 * H)
    assert tuple(decoder.output_kernel.shape) == (H + F, H)


@pytest.mark.parametrize("setting", ["luong, not fed", "bahdanau"])
def test_without_w_c_there_are_no_weights_beside_the_parts(setting):
    options = {"luong, not fed": {"attention_units": 1}, "bahdanau": {}}[setting]
    decoder = make(setting=setting, **options)
    own = decoder.count_params() - (
        decoder.cell.count_params() + decoder.attention.count_params()
    )
    assert own == (H + F) * options.get("attention_units", 0)


def test_several_attentions_stand_side_by_side():
    """Two of them with the first's half of W_c and of the kernel are the first."""
    inputs = inputs_of()
    one = make(setting="bahdanau")
    pair = AttentionDecoder(
        CELLS["lstm"](),
        [BahdanauAttention(UNITS), LuongAttention("general")],
        order="bahdanau",
    )
    pair.build((None, None, E), (None, None, F))
    pair.attention[0].set_weights(one.attention.get_weights())
    kernel, recurrent, bias = (to_numpy(w) for w in one.cell.weights[:3])
    wider = np.concatenate([kernel, np.zeros((F, 4 * H))])
    for weight, value in zip(
        pair.cell.weights[:3], (wider, recurrent, bias), strict=True
    ):
        weight.assign(value)
    want, weights = to_numpy(one(*inputs, **MASKS))
    got, maps = pair(*inputs, **MASKS)
    np.testing.assert_allclose(to_numpy(got)[..., : H + F], want, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(to_numpy(maps[0]), weights, rtol=1e-5, atol=1e-6)
    assert got.shape == (B, T, H + 2 * F) and len(maps) == 2


# ---- step by step


@every_setting
@every_attention
def test_steps_equal_the_call(attention, setting):
    decoder, (inputs, memory) = make("lstm", attention, setting), inputs_of(attention)
    outputs, weights = decoder(inputs, memory, memory_mask=KEYS)
    got, maps = decode(decoder, inputs, memory, KEYS)
    np.testing.assert_allclose(got, to_numpy(outputs), atol=1e-5)
    assert len(maps) == (3 if attention == "several" else 1)
    for one, other in zip(maps, maps_of(weights), strict=True):
        assert one.shape == (B, T, S)
        np.testing.assert_allclose(one, other, atol=1e-5)


@every_way
@pytest.mark.parametrize("cell", CELLS)
def test_steps_of_every_cell_equal_the_call(cell, setting):
    decoder, (inputs, memory) = make(cell, "location", setting), inputs_of()
    sizes = {"lstm": [H, H], "stacked": [23, H, H]}.get(cell, [H])
    start = [normal(B, size, seed=i) for i, size in enumerate(sizes)]
    outputs, weights = decoder(inputs, memory, initial_state=start)
    got, (maps,) = decode(decoder, inputs, memory, cell_state=start)
    np.testing.assert_allclose(got, to_numpy(outputs), atol=1e-5)
    np.testing.assert_allclose(maps, to_numpy(weights), atol=1e-5)


@every_way
@attentions
def test_rows_of_all_parts_can_be_reordered_on_the_way(attention, setting):
    """What a beam search does: later steps of a row are those of the row it was."""
    decoder, (inputs, memory) = make("gru", attention, setting), inputs_of(attention)
    want = to_numpy(decoder(inputs, memory, memory_mask=KEYS)[0])
    prepared = decoder.prepare_memory(memory, KEYS)
    state = decoder.initial_state(prepared)
    for t in range(3):
        _, _, state = decoder.step(inputs[:, t], state, prepared)
    order = np.array([1, 0, 1])

    def reorder(tree):
        for tensor in keras.tree.flatten(tree):
            assert tensor.shape[0] == B
        return keras.tree.map_structure(lambda x: ops.take(x, order, axis=0), tree)

    state, prepared = reorder(state), reorder(prepared)
    for t in range(3, T):
        output, _, state = decoder.step(inputs[order, t], state, prepared)
        np.testing.assert_allclose(to_numpy(output), want[order, t], atol=1e-5)


def test_a_step_leaves_the_old_state_as_it_was():
    decoder, (inputs, memory) = make(attention="several"), inputs_of("several")
    prepared = decoder.prepare_memory(memory)
    state = decoder.initial_state(prepared)
    before = [to_numpy(x).copy() for x in keras.tree.flatten((state, prepared))]
    first = decoder.step(inputs[:, 0], state, prepared)
    again = decoder.step(inputs[:, 0], state, prepared)
    for old, new in zip(before, keras.tree.flatten((state, prepared)), strict=True):
        np.testing.assert_array_equal(to_numpy(new), old)
    np.testing.assert_array_equal(to_numpy(first[0]), to_numpy(again[0]))


@pytest.mark.parametrize("setting", ["luong, fed", "bahdanau"])
@pytest.mark.parametrize("attention", ["bahdanau", "location", "monotonic"])
def test_keys_are_projected_once(attention, setting, monkeypatch):
    decoder, (inputs, memory) = make("lstm", attention, setting), inputs_of()
    calls, project = [], type(decoder.attention).project_key

    def counted(layer, key):
        calls.append(layer)
        return project(layer, key)

    monkeypatch.setattr(type(decoder.attention), "project_key", counted)
    decoder(inputs, memory)
    assert len(calls) == 1
    decode(decoder, inputs, memory)
    assert len(calls) == 2


@every_way
def test_short_sequences_which_are_unrolled_equal_the_beginning_of_long_ones(setting):
    decoder, (inputs, memory) = make(setting=setting), inputs_of()
    outputs, weights = to_numpy(decoder(inputs, memory))
    for steps in (1, 2, 4, 5):
        got = to_numpy(decoder(inputs[:, :steps], memory))
        np.testing.assert_allclose(got[0], outputs[:, :steps], rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(got[1], weights[:, :steps], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("length", [1, 4, 5, 9])
@pytest.mark.parametrize("masked", [False, True])
def test_over_sequence_hands_states_and_extras_on(length, masked):
    sequence, factors = normal(B, length, 3), normal(length, B, 1)

    def step(state, x, extras):
        total = state["a"] + x
        if extras:
            total = total * extras[0]
        return {"a": total, "n": state["n"] + 1}, [total, 2 * state["n"]]

    state = {"a": np.ones((B, 3), "float32"), "n": np.zeros((B, 1), "int32")}
    extras = [ops.convert_to_tensor(factors)] if masked else []
    got = to_numpy(over_sequence(step, state, sequence, extras))
    total = np.ones((B, 3))
    for t in range(length):
        total = total + sequence[:, t]
        total = total * factors[t] if masked else total
        np.testing.assert_allclose(got[0][:, t], total, atol=1e-5)
        assert (got[1][:, t] == 2 * t).all()


# ---- what weights are


@every_way
@attentions
def test_weights_sum_to_one_over_real_keys_at_real_steps(attention, setting):
    decoder, inputs = make("gru", attention, setting), inputs_of(attention)
    outputs, weights = decoder(*inputs, **MASKS)
    assert (to_numpy(outputs)[~STEPS] == 0).all()
    for maps in maps_of(weights):
        assert (maps >= 0).all() and (maps[STEPS] > 0).any()
        assert (maps[~STEPS] == 0).all()
        assert (np.moveaxis(maps, 1, 2)[~KEYS] == 0).all()
        sums = maps.sum(-1)[STEPS]
        assert (sums <= 1 + 1e-6).all()
        if attention not in ("local-m", "local-p", "monotonic", "recursive", "hard"):
            np.testing.assert_allclose(sums, 1, atol=1e-6)


@every_way
@attentions
def test_a_memory_of_padding_alone_gives_zeros(attention, setting):
    decoder, (inputs, memory) = make("gru", attention, setting), inputs_of(attention)
    mask = np.array([[0] * S, [1] * S], bool)
    memory[0] = np.nan
    outputs, weights = decoder(inputs, memory, memory_mask=mask)
    outputs = to_numpy(outputs)
    assert np.isfinite(outputs).all() and (outputs != 0).any()
    assert all((maps[0] == 0).all() for maps in maps_of(weights))
    if setting == "bahdanau":
        assert (outputs[0, :, H:] == 0).all() and (outputs[0, :, :H] != 0).any()
    alone = to_numpy(decoder(inputs[1:], memory[1:])[0])
    np.testing.assert_allclose(outputs[1:], alone, atol=ROUNDING)


@every_way
def test_asking_for_the_weights_does_not_change_the_output(setting):
    decoder, inputs = make(setting=setting, return_attention_scores=False), inputs_of()
    output = to_numpy(decoder(*inputs, **MASKS))
    asked, weights = decoder(*inputs, **MASKS, return_attention_scores=True)
    np.testing.assert_array_equal(to_numpy(asked), output)
    assert tuple(weights.shape) == (B, T, S)


def test_the_map_of_heads_is_their_mean():
    decoder, (inputs, memory) = make("lstm", "heads", "bahdanau"), inputs_of()
    weights = to_numpy(decoder(inputs, memory)[1])
    zeros = np.zeros((B, 1, H), "float32")  # the query of the first step
    by_heads = to_numpy(decoder.attention(zeros, memory)[1])
    assert by_heads.shape == (B, 2, 1, S)
    np.testing.assert_allclose(
        weights[:, 0], by_heads.mean(1)[:, 0], rtol=1e-5, atol=1e-6
    )


# ---- padding and neighbours


@every_way
@attentions
def test_padding_on_any_side_changes_nothing(attention, setting):
    decoder, (inputs, memory) = make("lstm", attention, setting), inputs_of(attention)
    outputs, weights = decoder(inputs, memory)
    steps, keys = [1, 2, 3, 4, 5, 7, 9], [2, 3, 4, 5, 6]
    longer, masks = [], []
    for x, slots, length in ((inputs, steps, 11), (memory, keys, 8)):
        padded = np.full((B, length, x.shape[2]), np.nan, "float32")
        padded[:, slots] = x
        mask = np.zeros((B, length), bool)
        mask[:, slots] = True
        longer.append(padded)
        masks.append(mask)
    got, maps = decoder(*longer, inputs_mask=masks[0], memory_mask=masks[1])
    np.testing.assert_allclose(
        to_numpy(got)[:, steps], to_numpy(outputs), atol=ROUNDING
    )
    assert (to_numpy(got)[~masks[0]] == 0).all()
    for one, other in zip(maps_of(maps), maps_of(weights), strict=True):
        np.testing.assert_allclose(one[:, steps][..., keys], other, atol=ROUNDING)
        assert (one[..., ~masks[1][0]] == 0).all()


@every_way
@pytest.mark.parametrize("attention", ["bahdanau", "location", "several"])
@pytest.mark.parametrize(
    "filler", [np.inf, pytest.param(np.nan, marks=pytest.mark.slow)]
)
def test_padding_changes_nothing_backward(attention, setting, filler):
    decoder, inputs = make("lstm", attention, setting), inputs_of(attention)

    def loss(inputs, memory, **masks):
        return ops.sum(decoder(inputs, memory, **masks)[0] ** 2)

    plain = gradients(loss, inputs, decoder)
    longer = [
        np.concatenate([x, np.full((B, 3, x.shape[2]), filler, "float32")], 1)
        for x in inputs
    ]
    masks = {
        "inputs_mask": np.array([[1] * T + [0] * 3] * B, bool),
        "memory_mask": np.array([[1] * S + [0] * 3] * B, bool),
    }
    got = gradients(lambda *x: loss(*x, **masks), longer, decoder)
    for one, other, size in zip(got[:2], plain[:2], (T, S), strict=True):
        np.testing.assert_allclose(one[:, :size], other, atol=1e-4, rtol=1e-4)
        assert (one[:, size:] == 0).all()
    for one, other in zip(got[2:], plain[2:], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-4, rtol=1e-4)


@every_way
@attentions
def test_a_row_does_not_depend_on_the_others(attention, setting):
    decoder, inputs = make("lstm", attention, setting), inputs_of(attention)
    together = to_numpy(decoder(*inputs, **MASKS)[0])
    for row in range(B):
        alone = decoder(
            inputs[0][row : row + 1, STEPS[row]], inputs[1][row : row + 1, KEYS[row]]
        )
        np.testing.assert_allclose(
            together[row, STEPS[row]], to_numpy(alone[0])[0], atol=ROUNDING
        )


@every_way
def test_masks_of_every_kind_mean_the_same_and_others_are_refused(setting):
    decoder, inputs = make(setting=setting), inputs_of()
    want = to_numpy(decoder(*inputs, **MASKS))
    for kind in ("int32", "float32"):
        got = decoder(*inputs, **{k: m.astype(kind) for k, m in MASKS.items()})
        for one, other in zip(to_numpy(got), want, strict=True):
            np.testing.assert_array_equal(one, other)
    for name in MASKS:
        with pytest.raises(ValueError, match=rf"`{name}` must have the shape"):
            decoder(*inputs, **{name: np.ones((B, 2), bool)})
        with pytest.raises(ValueError, match=rf"`{name}`.*may attend.*additive"):
            decoder(*inputs, **{name: np.where(MASKS[name], 0.0, -1e9)})


# ---- refusals


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"order": "none"}, "`order` must be 'luong'.*'none'.*Choose"),
        (
            {"order": "bahdanau", "input_feeding": False},
            "`input_feeding=False` belongs to order='luong'.*Leave it out",
        ),
        ({"order": "bahdanau", "activation": "relu"}, "`activation`.*W_c.*'relu'"),
        ({"order": "bahdanau", "use_bias": True}, "`use_bias`.*W_c.*True"),
        (
            {"order": "bahdanau", "kernel_regularizer": "l2"},
            "no kernels with order='bahdanau' and no `attention_units`",
        ),
        ({"attention_units": 0}, "`attention_units`.*integer of at least 1"),
        ({"cell": keras.layers.Dense(3)}, "`cell` must be an RNN cell.*Dense"),
        ({"cell": []}, "`cell` must be an RNN cell.*empty"),
        ({"cell": [3]}, "`cell` must be an RNN cell.*Received: 3"),
        ({"cell": keras.layers.LSTM(3)}, "`cell` must be an RNN cell.*LSTM.*a loop"),
        ({"attention": []}, "`attention` must be.*empty"),
        ({"attention": SelfAttention(3)}, "`attention` must be.*SelfAttention"),
        ({"attention": keras.layers.Attention()}, "`attention` must be.*Attention"),
        (
            {"attention": [BahdanauAttention(3)] * 2},
            "different layers.*two places.*Make a second",
        ),
        (
            {"attention": MultiHeadAttention(2, 4, rotary_embedding=RotaryEmbedding())},
            "`rotary_embedding`.*Leave it out",
        ),
        ({"dropout": 1}, "`dropout` must be"),
        ({"cell": [keras.layers.GRUCell(H)] * 2}, "`cell` must hold different cells"),
    ],
)
def test_parts_and_options_that_do_not_fit_are_refused(arguments, message):
    parts = {"cell": keras.layers.GRUCell(H), "attention": BahdanauAttention(UNITS)}
    with pytest.raises(ValueError, match=message):
        AttentionDecoder(**{**parts, **arguments})


def test_inputs_of_another_form_are_refused():
    decoder, (inputs, memory) = make(), inputs_of()
    message = r"inputs \(batch, T, width\) and a memory.*Embedding"
    for one, other in (
        (inputs[:, 0], memory),
        (inputs, memory[..., 0]),
        (inputs[:1], memory),
    ):
        with pytest.raises(ValueError, match=message):
            decoder(one, other)
    with pytest.raises(ValueError, match="at least one step"):
        decoder(inputs[:, :0], memory)
    with pytest.raises(ValueError, match="was built for inputs of the width"):
        decoder(inputs, np.ones((B, 5, F + 1), "float32"))
    fresh = make(built=False)
    with pytest.raises(ValueError, match="known width"):
        fresh(keras.Input((None, None)), keras.Input((None, F)))
    with pytest.raises(ValueError, match=r"`step` takes.*Received: \(2, 7, 3\)"):
        prepared = decoder.prepare_memory(memory)
        decoder.step(inputs, decoder.initial_state(prepared), prepared)
    state = decoder.initial_state(prepared)
    with pytest.raises(ValueError, match="tokens of a step must have the width"):
        decoder.step(inputs[:, 0, 1:], state, prepared)
    with pytest.raises(ValueError, match="`step` takes what `prepare_memory"):
        decoder.step(inputs[:, 0], state, memory)
    with pytest.raises(ValueError, match="`initial_state` takes what `prepare_memory"):
        decoder.initial_state(memory)


@pytest.mark.parametrize(
    "states",
    [[], [(B, H)], [(B, H), (B, 5)], [(H,), (H,)]],
)
def test_states_that_do_not_fit_are_refused_symbols_too(states):
    decoder, inputs = make(), inputs_of()
    message = rf"states are 2 tensors.*widths \[{H}, {H}\]"
    with pytest.raises(ValueError, match=message):
        decoder(*inputs, initial_state=[np.zeros(s, "float32") for s in states])
    with pytest.raises(ValueError, match="the inputs' batch"):
        other = [np.zeros((B + 1, H), "float32")] * 2
        decoder(*inputs, initial_state=other)
    symbols = [keras.Input((None, E)), keras.Input((None, F))]
    with pytest.raises(ValueError, match=message):
        decoder(*symbols, initial_state=[keras.Input(s[1:]) for s in states])


@pytest.mark.parametrize("method", ["prepare_memory", "initial_state", "step"])
def test_steps_of_a_layer_without_weights_are_refused(method):
    decoder, (inputs, memory) = make(built=False), inputs_of()
    arguments = {
        "prepare_memory": [memory],
        "initial_state": [[]],
        "step": [inputs[:, 0], {}, []],
    }[method]
    with pytest.raises(ValueError, match=rf"not built.*`{method}`.*Call the layer"):
        getattr(decoder, method)(*arguments)
    layer = BahdanauAttention(UNITS)
    with pytest.raises(ValueError, match=r"not built.*`project_memory`"):
        layer.project_memory(memory)


def test_a_dot_product_of_two_widths_is_refused_in_build():
    decoder = AttentionDecoder(keras.layers.GRUCell(H), LuongAttention("dot"))
    with pytest.raises(ValueError, match=rf"query {H}, key {F}.*general"):
        decoder.build((B, T, E), (B, S, F))


# ---- the attention's own steps, which the decoder takes


@pytest.mark.parametrize("attention", [a for a in ATTENTIONS if a != "several"])
@pytest.mark.parametrize("masked", [False, True])
def test_attend_over_a_projected_memory_equals_the_layer(attention, masked):
    layer, memory = ATTENTIONS[attention](), normal(B, S, width_of_memory(attention))
    query, mask = normal(B, H), KEYS if masked else None
    context, weights = to_numpy(layer(query[:, None], memory, value_mask=mask))
    prepared = layer.project_memory(memory, value_mask=mask)
    state = None
    if getattr(layer, "has_state", False):
        state = layer.initial_state(memory, mask)
    got = to_numpy(layer.attend(query, prepared, state))
    if weights.ndim == 4:
        weights = weights.mean(1)
    np.testing.assert_allclose(got[0], context[:, 0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(got[1][..., 0], weights[:, 0], rtol=1e-5, atol=1e-6)


def test_a_separate_key_is_projected():
    layer, memory, key = BahdanauAttention(UNITS), normal(B, S, F), normal(B, S, 23)
    query = normal(B, H)
    want = to_numpy(layer(query, memory, key, value_mask=KEYS))
    got = layer.attend(query, layer.project_memory(memory, key, KEYS))
    for one, other in zip(to_numpy(got), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_a_state_of_a_layer_that_has_none_is_refused():
    layer, memory = BahdanauAttention(UNITS), normal(B, S, F)
    layer(normal(B, H), memory)
    with pytest.raises(ValueError, match="has no state"):
        layer.attend(normal(B, H), layer.project_memory(memory), state=1)
