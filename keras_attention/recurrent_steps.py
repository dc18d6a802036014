"""RecurrentSteps: one step of an attention decoder, in training and in decoding."""

import keras
from keras import ops

from keras_attention import mechanisms
from keras_attention.cells import first_states, run_cell, top_index
from keras_attention.functional import project
from keras_attention.masking import as_boolean_mask
from keras_attention.recurrent_base import RecurrentBase


class RecurrentSteps(RecurrentBase):
    """Base of `AttentionDecoder` (abstract): the equations, and a step at a time.

    Args:
        **kwargs: Those of `RecurrentBase`.
    """

    # ---- the equations

    def _advance(self, x, state, memories, training=None, drawn=None):
        """One step: x (B, E) -> output (B, .), [weights (B, S)], state.

        The output is the attentional vector if it is fed to the next step, else [h; c].
        """
        drawn = drawn or self._draw_nothing()
        cells = state["cell"]
        look = memories, state["attention"], training, drawn["attention"]
        if self.order == "bahdanau":
            query = cells[top_index(self.cell)]
            contexts, weights, following = mechanisms.look(
                self.attentions, query, *look
            )
            h, cells = run_cell(self.cell, self._beside(x, *contexts), cells, training)
        else:
            if self._feeds:
                x = self._beside(x, state["fed"])
            h, cells = run_cell(self.cell, x, cells, training)
            contexts, weights, following = mechanisms.look(self.attentions, h, *look)
        output = self._beside(h, *contexts)  # (B, H + F)
        state = {"cell": cells, "attention": following}
        if self._feeds:
            output = self._readout(output, training, drawn["output"])
            state["fed"] = output
        return output, weights, state

    def _beside(self, *parts):
        """Tensors side by side, in the type of the sums."""
        return ops.concatenate([ops.cast(x, self.score_dtype) for x in parts], axis=-1)

    def _readout(self, joined, training, kept=()):
        """Luong et al. (2015), equation 5: tanh(W_c [h; c]); or [h; c] as it is."""
        if self.dropout > 0 and training:
            kept = kept[0] if kept else self.drawn_to_keep(ops.shape(joined))
            joined = self.keep(joined, kept)
        if self.attention_units is None:
            return joined
        bias = None if self.output_bias is None else self.read(self.output_bias)
        return self.activation(project(joined, self.read(self.output_kernel), bias))

    def _draw(self, batch, steps, keys):
        """All that is random in the steps but the cell's part: tensors (T, B, ...)."""
        output = []
        if self._feeds and self.dropout > 0:
            output.append(self.drawn_to_keep((steps, batch, self.joined_width)))
        drawn = [a.draw(batch, steps, keys) for a in self.attentions]
        return {"output": output, "attention": drawn}

    def _draw_nothing(self):
        return {"output": [], "attention": [{} for _ in self.attentions]}

    # ---- step by step

    def prepare_memory(self, memory, memory_mask=None):
        """A memory for `step`: its keys are projected once.

        Args:
            memory: What is attended to, (B, S, F). The layer must be built.
            memory_mask: Padding mask (B, S). A mask that Keras carries is not seen.

        Returns:
            A tree of tensors whose first axis is B, the same for all steps.
        """
        self.check_built("prepare_memory")
        memory, mask = silenced(memory, memory_mask, "memory_mask")
        return [a.project_memory(memory, value_mask=mask) for a in self.attentions]

    def initial_state(self, prepared, cell_state=None):
        """The state before the first step.

        Args:
            prepared: What `prepare_memory` returned.
            cell_state: The `initial_state` of a call.

        Returns:
            A tree of tensors whose first axis is B: the cell's states, those of
            attentions that have one, the attentional vector that is fed. To reorder a
            beam, take from every part.
        """
        self.check_built("initial_state")
        _check_prepared("initial_state", prepared)
        batch = ops.shape(keras.tree.flatten(prepared)[0])[0]
        state = {
            "cell": first_states(self.cell, batch, cell_state),
            "attention": mechanisms.first_alignments(self.attentions, prepared),
        }
        if self._feeds:
            state["fed"] = ops.zeros((batch, self.attention_units), self.score_dtype)
        return state

    def step(self, inputs, state, prepared):
        """One step of a call without dropout.

        Args:
            inputs: The tokens of one step, (B, E).
            state: What `initial_state` or the step before returned.
            prepared: What `prepare_memory` returned.

        Returns:
            `(output, weights, state)`: (B, attention_units), or (B, H + F), and (B, S),
            or a list of those. The old state is as it was.
        """
        self.check_built("step")
        inputs = ops.convert_to_tensor(inputs)
        if len(inputs.shape) != 2:
            raise ValueError(
                "`step` takes the tokens of one step (batch, width). Received: "
                f"{tuple(inputs.shape)}. Call the layer for a whole sequence."
            )
        if inputs.shape[1] != self.input_width:
            raise ValueError(
                f"The tokens of a step must have the width {self.input_width}, for "
                f"which the layer was built. Received: {tuple(inputs.shape)}."
            )
        _check_prepared("step", prepared)
        # The mask of an embedding, of which a stack of cells warns, stays behind.
        inputs = ops.copy(inputs)
        output, weights, state = self._advance(inputs, state, prepared)
        if not self._feeds:
            output = self._readout(output, training=False)
        return self.lower(output), self._as_given(weights), state


def _check_prepared(method, prepared):
    """Refuses a memory that is not prepared: a tensor, not a list of trees."""
    if not isinstance(prepared, list | tuple):
        raise ValueError(
            f"`{method}` takes what `prepare_memory(memory, memory_mask)` returned. "
            f"Received: {type(prepared).__name__}. Prepare the memory once, before "
            "the first step."
        )


def silenced(x, mask, name):
    """Tensor (B, T, D) with 0 where it is padding, and its mask (B, T) or None."""
    x = ops.convert_to_tensor(x)
    if mask is None:
        return x, None
    real = as_boolean_mask(mask, name)
    expected, shape = tuple(x.shape[:2]), tuple(real.shape)
    pairs = zip(shape, expected, strict=False)
    if len(shape) != 2 or any(None not in pair and len({*pair}) > 1 for pair in pairs):
        raise ValueError(
            f"`{name}` must have the shape {expected}, (batch, steps), True where a "
            f"step is real. Received: {shape}."
        )
    return ops.where(real[..., None], x, 0), real
