"""BorrowsScore: the layers that change what any other layer's score leads to."""

import keras

from keras_attention.multiplicative import SCORES, LuongAttention
from keras_attention.scored import ScoredAttention


class BorrowsScore(ScoredAttention):
    """Base of layers that take the score of another attention layer (abstract).

    Args:
        score: The score: a name of `LuongAttention`'s ("dot", "scaled_dot", "general",
            "concat"), or a layer that scores, such as `BahdanauAttention(32)`.
        **kwargs: Those of `ScoredAttention`.
    """

    def __init__(self, score="dot", **kwargs):
        super().__init__(**kwargs)
        if isinstance(score, str) and score in SCORES:
            score = LuongAttention(
                score, dtype=self.dtype_policy, name=f"{score}_score"
            )
        elif not isinstance(score, ScoredAttention):
            raise ValueError(
                f"`score` must be one of {', '.join(map(repr, SCORES))}, or an "
                f"attention layer whose score to take. Received: {score!r}. The "
                "additive score is score=BahdanauAttention(32)."
            )
        self.scorer = score
        self._check_scorer()
        self._borrowed = False

    def _check_scorer(self):
        """Refuses a layer whose own settings would be without effect."""
        scorer = self.scorer
        if scorer.dropout > 0 or scorer.activation != "softmax" or scorer.has_state:
            raise ValueError(
                "`score` lends its score alone: `dropout`, `activation` and a state of "
                f"its own would do nothing. Received: {type(scorer).__name__} with "
                f"dropout={scorer.dropout}, activation={scorer.activation!r}. Give "
                f"them to {type(self).__name__}."
            )
        self._check_not_lent()
        if scorer.score_dtype != self.score_dtype:
            raise ValueError(
                f"`score` must compute in the type of the layer, {self.score_dtype}. "
                f"Received: a layer of {scorer.score_dtype}. Give both one `dtype`."
            )

    def borrow(self):
        """Makes the score this layer's alone: the end of a constructor none refused."""
        if not self._borrowed:
            self._check_not_lent()
            self.scorer.lent = self._borrowed = True

    def _check_not_lent(self):
        if getattr(self.scorer, "lent", False):
            raise ValueError(
                "`score` belongs to one layer: files do not keep what two share. "
                f"Received: '{self.scorer.name}', which another layer has. Make a "
                f"second {type(self.scorer).__name__}."
            )

    def build(self, query_shape, value_shape=None, key_shape=None):
        self.borrow()
        super().build(query_shape, value_shape, key_shape)
        if not self.scorer.built:  # one that comes from a file, or is shared, is
            self.scorer.build(query_shape, value_shape, key_shape)

    def check_shapes(self, query_shape, value_shape, key_shape):
        form = super().check_shapes(query_shape, value_shape, key_shape)
        self.scorer.check_shapes(query_shape, value_shape, key_shape)
        return form

    def project_query(self, query):
        return self.scorer.project_query(query)

    def project_key(self, key):
        return self.scorer.project_key(key)

    def score(self, query, key):
        return self.scorer.score(query, key)

    def get_config(self):
        score = keras.saving.serialize_keras_object(self.scorer)
        return {**super().get_config(), "score": score}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        if isinstance(config["score"], dict):
            config["score"] = keras.saving.deserialize_keras_object(config["score"])
        return cls(**config)
