"""Attention layers side by side, as a decoder sees them: contexts, weights, states."""

from keras import ops

from keras_attention.base import AttentionLayer


def check_attentions(attentions):
    """Refuses what cannot attend step by step.

    Example:

    >>> check_attentions([BahdanauAttention(4), LocalAttention(2)])
    """
    if not attentions:
        raise ValueError(
            "`attention` must be an attention layer, or a list of at least one. "
            "Received: an empty list. A decoder without one is keras.layers.RNN."
        )
    for attention in attentions:
        if not isinstance(attention, AttentionLayer) or not hasattr(
            attention, "attend"
        ):
            raise ValueError(
                "`attention` must be a layer of this package that attends to a memory, "
                f"such as BahdanauAttention(256), or a list of them. Received: "
                f"{attention!r}."
            )
        if getattr(attention, "rotary_embedding", None) is not None:
            raise ValueError(
                "In a recurrent decoder every query is its layer's first: a "
                f"`rotary_embedding` would not turn it. Received: '{attention.name}' "
                "with one. Leave it out; TransformerDecoderBlock has positions."
            )
    if len({id(attention) for attention in attentions}) < len(attentions):
        raise ValueError(
            "A list of `attention` must hold different layers: one layer twice gives "
            "one context twice. Received: the same layer in two places. Make a second."
        )


def context_width(attentions, query, memory):
    """The width of all contexts side by side, for widths of query and memory.

    Example:

    >>> context_width([BahdanauAttention(4), LuongAttention("general")], 8, 6)
    12
    """
    shapes = (None, None, query), (None, None, memory)
    return sum(a.output_shapes(*shapes)[0][-1] for a in attentions)


def first_alignments(attentions, memories):
    """The states of those that have one, before the first step."""
    return [
        attention.initial_state(memory["value"], memory.get("mask"))
        for attention, memory in zip(attentions, memories, strict=True)
        if has_state(attention)
    ]


def has_state(attention):
    """Whether a step depends on the steps before it."""
    return getattr(attention, "has_state", False)


def look(attentions, query, memories, alignments, training, drawn):
    """One step of all: query (B, D) -> [context (B, F)], [weights (B, S)], states.

    Args:
        attentions: The layers.
        query: Queries (B, D).
        memories: What each one's `project_memory` returned.
        alignments: The states of those that have one.
        training: Whether to apply dropout.
        drawn: One step of what each one's `draw` returned.
    """
    contexts, weights, following = [], [], []
    alignments = iter(alignments)
    for attention, memory, noise in zip(attentions, memories, drawn, strict=True):
        state = next(alignments) if has_state(attention) else None
        context, map_ = attention.attend(query, memory, state, training, noise)
        contexts.append(context)
        weights.append(map_[..., 0])
        if state is not None:
            following.append(attention.next_state(state, map_))
    return contexts, weights, following


def look_at_once(attentions, queries, mask, memory, memory_mask, training):
    """All steps of all: queries (B, T, D) -> [contexts (B, T, F)], [weights (B, T, S)].

    Args:
        attentions: The layers.
        queries: Queries (B, T, D).
        mask: Padding mask (B, T) of the queries, or None.
        memory: Values (B, S, F).
        memory_mask: Padding mask (B, S), or None.
        training: Whether to apply dropout.
    """
    contexts, weights = [], []
    for attention in attentions:
        context, map_ = attention(
            queries,
            memory,
            query_mask=mask,
            value_mask=memory_mask,
            return_attention_scores=True,
            training=training,
        )
        contexts.append(context)
        heads = len(map_.shape) == 4
        weights.append(ops.mean(map_, axis=1) if heads else map_)
    return contexts, weights
