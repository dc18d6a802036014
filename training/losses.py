"""The loss and the measures of sequences of tokens: padding is never counted."""

import keras
from keras import ops

from zoo.tokens import PAD_ID


@keras.saving.register_keras_serializable(package="keras_attention_training")
class TokenCrossentropy(keras.losses.Loss):
    """Cross-entropy of integer labels, a mean over the real tokens of a batch, in nats.

    `loss = (1 - e) (-log p[label]) + e mean_v(-log p[v])` with label smoothing e:
    Szegedy et al. (2016), "Rethinking the Inception Architecture", section 7. Labels of
    0 are padding and count nowhere, whatever masks and sample weights say; sample
    weights (B, T) and masks multiply. A batch of padding alone has the loss 0.

    Args:
        label_smoothing: e, 0 <= e < 1.
        name: Of the loss.

    Call arguments:
        y_true: Labels (B, T), 0 on padding.
        y_pred: Logits (B, T, V).
        sample_weight: Weights (B, T), or None.
    """

    def __init__(self, label_smoothing=0.0, name="token_crossentropy", **kwargs):
        kwargs.setdefault("reduction", "mean_with_sample_weight")
        super().__init__(name=name, **kwargs)
        if not 0 <= label_smoothing < 1:
            raise ValueError(
                "`label_smoothing` must be at least 0 and under 1. Received: "
                f"{label_smoothing!r}. 0.1 is usual."
            )
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        return super().__call__(y_true, y_pred, real_tokens(y_true, sample_weight))

    def call(self, y_true, y_pred):
        """The cross-entropy of each token, (B, T)."""
        logits = ops.cast(y_pred, "float32")
        labels = ops.cast(y_true, "int32")
        if not self.label_smoothing:
            return ops.sparse_categorical_crossentropy(labels, logits, from_logits=True)
        size = logits.shape[-1]
        target = (1 - self.label_smoothing) * ops.one_hot(labels, size)
        target = target + self.label_smoothing / size
        return ops.categorical_crossentropy(target, logits, from_logits=True)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def real_tokens(labels, sample_weight=None):
    """1.0 for a token and 0.0 for padding, (B, T), times the sample weights."""
    real = ops.cast(ops.not_equal(labels, PAD_ID), "float32")
    if sample_weight is None:
        return real
    weight = ops.cast(sample_weight, "float32")
    return real * (weight if len(weight.shape) > 1 else weight[:, None])


@keras.saving.register_keras_serializable(package="keras_attention_training")
class TokenAccuracy(keras.metrics.Mean):
    """The fraction of real tokens whose most probable id is the label.

    Takes labels (B, T), 0 on padding, and logits (B, T, V).
    """

    def __init__(self, name="accuracy", dtype=None):
        super().__init__(name, dtype)

    def update_state(self, y_true, y_pred, sample_weight=None):
        labels = ops.cast(y_true, "int32")
        right = ops.equal(ops.argmax(y_pred, axis=-1), labels)
        super().update_state(right, real_tokens(labels, sample_weight))
