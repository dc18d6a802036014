"""AttentionDecoder: an RNN cell and an attention layer that feed each other."""

import keras
from keras import ops

from keras_attention import mechanisms
from keras_attention.arguments import static_shape
from keras_attention.cells import check_states, dropout_masks, first_states, run_cell
from keras_attention.recurrent_steps import RecurrentSteps, silenced
from keras_attention.steps import over_sequence


@keras.saving.register_keras_serializable(package="keras_attention")
class AttentionDecoder(RecurrentSteps):
    """A recurrent decoder that attends to a memory, such as an encoder's states.

    In the order "luong" a step runs the cell, then attends with its new output h:

        h[t], state[t] = cell([x[t]; o[t-1]], state[t-1])
        c[t] = attention(h[t], memory)
        o[t] = tanh(W_c [h[t]; c[t]])    (the attentional vector, the output)

    where `o[t-1]`, at first 0, is there with `input_feeding` alone. In the order
    "bahdanau" it attends with the state before it, and the cell sees the context:

        c[t] = attention(h[t-1], memory)
        h[t], state[t] = cell([x[t]; c[t]], state[t-1])
        o[t] = [h[t]; c[t]]              (with `attention_units` tanh(W_c [h[t]; c[t]]))

    `keras.layers.RNN` has no memory (its `constants` are gone). Unlike
    `tfa.seq2seq.AttentionWrapper`, which is a cell, this is the whole layer: the memory
    is an argument of the call, so that the model saves and loads and two batches do not
    meet; weights are returned, not kept as a history in the state; padding is masked on
    both sides; and the first order here is the wrapper's with `attention_layer_size`,
    the second, which it has not, the paper's.

    Without input feeding the cell runs over all steps first and the attention is one
    call for all of them, which is faster. Decode with `prepare_memory`,
    `initial_state` and `step`, whose numbers are those of a call.

    Padding: what is in masked slots of the memory does not matter. A masked step has
    the output and the weights 0 and leaves all states as they were, on either side. A
    row whose memory is all padding has weights and contexts 0.

    Args:
        cell: An RNN cell of Keras, such as `keras.layers.LSTMCell(256)`, or a list of
            them, one on the other. It computes in its own number type.
        attention: A layer that attends to a memory, such as `BahdanauAttention(256)`,
            or a list of them, whose contexts are put side by side.
        order: "luong" or "bahdanau".
        input_feeding: Whether the attentional vector goes into the next step. Of
            "luong" alone; the other always feeds the context.
        attention_units: Width of the attentional vector. In the order "luong" by
            default the cell's; in the order "bahdanau" None leaves W_c out.
        activation: Activation of the attentional vector.
        use_bias: Whether W_c has a bias. The paper has none.
        kernel_initializer: Initializer of W_c.
        kernel_regularizer: Regularizer of W_c.
        **kwargs: `dropout` (of [h; c], before W_c), `return_attention_scores` and
            `seed` of `PreciseLayer`; `name`, `dtype`, `trainable` of
            `keras.layers.Layer`.

    Call arguments:
        inputs: Tokens (B, T, E), as an `Embedding` makes them.
        memory: What is attended to, (B, S, F).
        initial_state: The cell's first states, a list of (B, width): [h, c] of an LSTM,
            [h] of a GRU, those of stacked cells in turn. 0 by default.
        inputs_mask: Padding mask (B, T) of the inputs. Keras fills it.
        memory_mask: Padding mask (B, S) of the memory. Keras fills it.
        return_attention_scores: Overrides the constructor's.
        training: Whether to apply dropout, the cell's and the attention's included:
            the cell's is one mask for all steps of a call.

    Returns:
        `(outputs, weights)`: (B, T, attention_units), or (B, T, H + F) without W_c, and
        (B, T, S); for a list of attentions a list of weights. Those of a
        `MultiHeadAttention` are the mean over its heads.

    Raises:
        ValueError: for an unknown order, a cell or an attention that is none, options
            without effect, inputs of other ranks, states of other widths, masks of
            another shape or with values other than 0 and 1.

    Example:

    >>> cell, attention = keras.layers.GRUCell(8), BahdanauAttention(4)
    >>> decoder = AttentionDecoder(cell, attention)
    >>> tokens, memory = np.ones((2, 3, 5), "float32"), np.ones((2, 7, 6), "float32")
    >>> outputs, weights = decoder(tokens, memory)
    >>> tuple(outputs.shape), tuple(weights.shape)
    ((2, 3, 8), (2, 3, 7))
    >>> prepared = decoder.prepare_memory(memory)
    >>> state = decoder.initial_state(prepared)
    >>> for t in range(3):
    ...     output, weights, state = decoder.step(tokens[:, t], state, prepared)
    >>> output, outputs = map(keras.ops.convert_to_numpy, (output, outputs))
    >>> bool(np.allclose(output, outputs[:, 2], atol=1e-5))
    True

    Reference: Luong, Pham & Manning (2015), "Effective Approaches to Attention-based
    Neural Machine Translation", arXiv:1508.04025, section 3, equation 5, and section
    3.3. Bahdanau, Cho & Bengio (2015), "Neural Machine Translation by Jointly Learning
    to Align and Translate", arXiv:1409.0473, sections 3.1 and A.2.2.
    """

    # ---- the whole sequence

    def call(
        self,
        inputs,
        memory,
        *,
        initial_state=None,
        inputs_mask=None,
        memory_mask=None,
        return_attention_scores=None,
        training=None,
    ):
        self.check_shapes(static_shape(inputs), static_shape(memory))
        inputs, mask = silenced(inputs, inputs_mask, "inputs_mask")
        memory, memory_mask = silenced(memory, memory_mask, "memory_mask")
        start = first_states(self.cell, ops.shape(inputs)[0], initial_state)
        at_once = self.order == "luong" and not self.input_feeding
        run = self._at_once if at_once else self._stepwise
        output, weights = run(inputs, mask, memory, memory_mask, start, training)
        if not self._feeds:
            output = self._readout(output, training)
        output = self.lower(output)
        if mask is not None:
            output = ops.where(mask[..., None], output, 0)
            weights = [ops.where(mask[..., None], w, 0) for w in weights]
            output = self._carry_mask(output, mask=mask)
        if self.wants_scores(return_attention_scores):
            return output, self._as_given(weights)
        return output

    def _stepwise(self, inputs, mask, memory, memory_mask, start, training):
        """Attention in every step: outputs (B, T, .) and [weights (B, T, S)]."""
        memories = [
            attention.project_memory(memory, value_mask=memory_mask)
            for attention in self.attentions
        ]

        def step(state, x, extras):
            output, weights, following = self._advance(
                x, state, memories, training, extras["drawn"]
            )
            return _unless_padding(extras["real"], following, state), [output, *weights]

        batch, steps = ops.shape(inputs)[:2]
        drawn = self._draw_nothing()
        if training:
            drawn = self._draw(batch, steps, ops.shape(memory)[1])
        state = self.initial_state(memories, start)
        extras = {"drawn": drawn, "real": _by_step(mask)}
        with dropout_masks(self.cell, batch, self.cell_width, training):
            output, *weights = over_sequence(step, state, inputs, extras)
        return output, weights

    def _at_once(self, inputs, mask, memory, memory_mask, start, training):
        """`_stepwise` with the attention of all steps in one call, after the cell's."""

        def step(state, x, real):
            h, following = run_cell(self.cell, x, state, training)
            return _unless_padding(real, following, state), [h]

        batch = ops.shape(inputs)[0]
        with dropout_masks(self.cell, batch, self.cell_width, training):
            (h,) = over_sequence(step, start, inputs, _by_step(mask))  # (B, T, H)
        contexts, weights = mechanisms.look_at_once(
            self.attentions, h, mask, memory, memory_mask, training
        )
        return self._beside(h, *contexts), weights

    # ---- what Keras asks

    def compute_output_shape(self, inputs_shape, memory_shape):
        output, weights = self._output_shapes(inputs_shape, memory_shape)
        if not self.return_attention_scores:
            return output
        return output, self._as_given([weights] * len(self.attentions))

    def compute_output_spec(
        self,
        inputs,
        memory,
        initial_state=None,
        return_attention_scores=None,
        **kwargs,
    ):
        shapes = static_shape(inputs), static_shape(memory)
        self.check_shapes(*shapes)
        if initial_state is not None:
            check_states(self.cell, initial_state)
        output, weights = self._output_shapes(*shapes)
        output = keras.KerasTensor(output, dtype=self.compute_dtype)
        if not self.wants_scores(return_attention_scores):
            return output
        maps = [keras.KerasTensor(weights, a.score_dtype) for a in self.attentions]
        return output, self._as_given(maps)


def _by_step(mask):
    """A mask (B, T) as what each step gets: [(T, B)]; [] for none."""
    return [] if mask is None else [ops.swapaxes(mask, 0, 1)]


def _unless_padding(real, following, state):
    """The next state where a step is real, [(B,)], else the one before it."""
    if not real:
        return following

    def choose(new, old):
        mask = ops.reshape(real[0], (-1,) + (1,) * (len(new.shape) - 1))
        return ops.where(mask, new, old)

    return keras.tree.map_structure(choose, following, state)
