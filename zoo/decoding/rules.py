"""What a hypothesis may consist of: its ids and its length."""

import dataclasses
from collections.abc import Iterable

from keras import ops

from zoo.checks import check_integer

PAD_ID = 0


@dataclasses.dataclass(frozen=True)
class Rules:
    """Which ids may be emitted, and when.

    A length is the number of tokens emitted, the end token among them.

    Attributes:
        start_id: The id before the first token; it is never emitted, nor is 0.
        end_id: The id that ends a hypothesis.
        min_length: The least length of a hypothesis that ends.
        max_length: The greatest length. What has not ended then is cut.
        forbidden_ids: More ids never to emit.
    """

    start_id: int
    end_id: int
    min_length: int
    max_length: int
    forbidden_ids: tuple = ()

    def __post_init__(self):
        for name, least, advice in (
            ("start_id", 1, "0 is the padding."),
            ("end_id", 1, "0 is the padding."),
            ("max_length", 1, ""),
            ("min_length", 0, ""),
        ):
            plain = check_integer(name, getattr(self, name), least, advice)
            object.__setattr__(self, name, plain)
        if self.start_id == self.end_id:
            raise ValueError(
                "`start_id` and `end_id` must differ: the one is never emitted, the "
                f"other ends a hypothesis. Received: {self.end_id} for both."
            )
        if self.min_length > self.max_length:
            raise ValueError(
                "`min_length` must be at most `max_length`. Received: min_length="
                f"{self.min_length}, max_length={self.max_length}. Both count the "
                "tokens emitted, the end token among them."
            )
        forbidden = self.forbidden_ids
        if not isinstance(forbidden, Iterable):
            raise ValueError(
                "`forbidden_ids` must be a list of ids. Received: "
                f"{forbidden!r}. Write [{forbidden!r}]."
            )
        forbidden = tuple(check_integer("forbidden_ids", i, 0) for i in forbidden)
        object.__setattr__(self, "forbidden_ids", forbidden)
        if self.end_id in self.forbidden_ids:
            raise ValueError(
                f"`forbidden_ids` holds {self.end_id}, the end token, without which no "
                f"hypothesis ends. Received: {self.forbidden_ids}. For longer ones use "
                "min_length."
            )

    @property
    def never(self):
        """The ids that are never emitted."""
        return {PAD_ID, self.start_id, *self.forbidden_ids}

    def may_emit(self, tokens, length):
        """Whether tokens may be emitted as the token number `length` (from 1).

        Example:

        >>> rules = Rules(start_id=1, end_id=3, min_length=2, max_length=5)
        >>> allowed = rules.may_emit(keras.ops.arange(5), length=1)
        >>> keras.ops.convert_to_numpy(allowed).astype(int).tolist()
        [0, 0, 1, 0, 1]
        """
        allowed = ops.not_equal(tokens, PAD_ID)
        for token in sorted(self.never - {PAD_ID}):
            allowed = ops.logical_and(allowed, ops.not_equal(tokens, token))
        if self.min_length < 2:
            return allowed
        long_enough = ops.greater_equal(length, self.min_length)
        goes_on = ops.not_equal(tokens, self.end_id)
        return ops.logical_and(allowed, ops.logical_or(goes_on, long_enough))

    def check_vocabulary(self, size):
        """Refuses logits in which these rules cannot be kept."""
        if size is None:
            raise ValueError(
                "The logits of `next_token` must have a static last dimension, the "
                "size of the vocabulary. Received: None. Reshape them to it."
            )
        if self.end_id >= size:
            raise ValueError(
                f"`end_id` must be an id of the vocabulary, whose size is {size} by "
                f"the logits. Received: {self.end_id}."
            )
        words = set(range(size)) - self.never - {self.end_id}
        if not words and self.min_length > 1:
            raise ValueError(
                f"No id is left to emit before the end token: of {size} ids "
                f"{sorted(self.never)} are excluded, and `min_length` is "
                f"{self.min_length}. Use min_length=0 or forbid fewer ids."
            )
