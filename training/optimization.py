"""How every run of the package learns: optimizer, schedule, one epoch of fit, seeds."""

import contextlib

import keras
import numpy as np
from keras import ops

from training.progress import EpochBar

WARM_UP = 0.05  # fraction of the steps
MUON_WEIGHT_DECAY = 0.1  # times the learning rate, a step


def adam(learning_rate, steps, **options):
    """Adam: Kingma & Ba (2015), arXiv:1412.6980.

    Args:
        learning_rate: The peak.
        steps: Number of steps of the whole run.
        **options: Of `_common`.
    """
    return keras.optimizers.Adam(**_common(learning_rate, steps, **options))


def muon(learning_rate, steps, **options):
    """Muon for the matrices of dense and attention layers, Adam for all else.

    A matrix takes steps in the direction of the nearest orthogonal matrix of its
    momentum, scaled to the size that Adam's steps have, and decays: Jordan et al.
    (2024), "Muon"; Liu et al. (2025), arXiv:2502.16982, equation 4. A step takes a
    fifth more time than Adam's, and fewer are needed.

    Args:
        learning_rate: The peak.
        steps: Number of steps of the whole run.
        **options: Of `_common`.
    """
    return keras.optimizers.Muon(
        **_common(learning_rate, steps, **options),
        weight_decay=MUON_WEIGHT_DECAY,
        adam_weight_decay=None,
        adam_beta_2=0.98,
        exclude_layers=["bias$"],  # a GRU's has two rows, and is no matrix
    )


OPTIMIZERS = {"adam": adam, "muon": muon}


def _common(
    learning_rate,
    steps,
    average_over=0,
    schedule="cosine",
    warm_up=WARM_UP,
    clip_norm=1.0,
):
    """A rate that rises, then falls; clipped gradients; averaged weights.

    Args:
        learning_rate: The peak.
        steps: Number of steps of the whole run.
        average_over: Number of steps that a moving average of the weights reaches back
            over; Keras puts it in the weights' place when `fit` ends. 0 for none.
        schedule: What follows the warm-up: "cosine" to 0 at the last step,
            "inverse_sqrt" of the step, or "constant".
        warm_up: Fraction of the steps in which the rate rises, in a line.
        clip_norm: The greatest norm of all gradients together; 0 clips nothing.

    Returns:
        Arguments of a Keras optimizer, by name.
    """
    first = max(1, int(warm_up * steps))
    if schedule == "cosine":
        rate = keras.optimizers.schedules.CosineDecay(
            learning_rate / first,
            decay_steps=max(1, steps - first),
            warmup_target=learning_rate,
            warmup_steps=first,
        )
    else:
        power = {"inverse_sqrt": 0.5, "constant": 0.0}[schedule]
        rate = WarmUp(learning_rate, first, power)
    averages = average_over > 1
    return {
        "learning_rate": rate,
        "global_clipnorm": clip_norm or None,
        "use_ema": averages,
        "ema_momentum": 1 - 1 / average_over if averages else 0.99,
    }


@keras.saving.register_keras_serializable(package="keras_attention_training")
class WarmUp(keras.optimizers.schedules.LearningRateSchedule):
    """peak x min(n / warm_up_steps, (warm_up_steps / n)^power) in the n-th step.

    With power 1/2: Vaswani et al. (2017), equation 3, with its peak named. Keras counts
    steps from 0, so n is one more.

    Args:
        peak: The greatest rate, reached at `warm_up_steps`.
        warm_up_steps: Number of steps of the rise.
        power: How fast it falls: 0 stays at the peak.

    Example:

    >>> rate = WarmUp(0.1, 100, 0.5)
    >>> [round(float(rate(n - 1)), 3) for n in (50, 100, 400)]
    [0.05, 0.1, 0.05]
    """

    def __init__(self, peak, warm_up_steps, power):
        self.peak, self.warm_up_steps, self.power = peak, warm_up_steps, power

    def __call__(self, step):
        share = (ops.cast(step, "float32") + 1) / self.warm_up_steps
        fall = ops.power(ops.maximum(share, 1.0), -self.power)
        return self.peak * ops.minimum(share, fall)

    def get_config(self):
        return {
            "peak": self.peak,
            "warm_up_steps": self.warm_up_steps,
            "power": self.power,
        }


def fit_epoch(model, data, title, progress=True):
    """One pass of `fit` over a tf.data.Dataset that is shuffled already.

    The model is left with the average of its weights, if its optimizer keeps one.

    Returns:
        `(measured, last_weights)`: a dictionary of numbers, and the weights after the
        last step, from which the next epoch goes on.
    """
    last, bar = LastWeights(), EpochBar(title, len(data))
    callbacks = [last, bar] if progress else [last]
    try:
        history = model.fit(data, shuffle=False, verbose=0, callbacks=callbacks).history
    finally:
        bar.close()
    measured = {name: float(values[-1]) for name, values in history.items()}
    return measured, last.weights


class LastWeights(keras.callbacks.Callback):
    """Remembers the weights after the last step, before `fit` averages them."""

    def on_epoch_end(self, epoch, logs=None):
        self.weights = self.model.get_weights()


def check_tensorflow(option):
    """Refuses an option that only TensorFlow has.

    Raises:
        ValueError: if Keras runs on another backend.
    """
    if keras.backend.backend() != "tensorflow":
        raise ValueError(
            f"`{option}` needs Keras on TensorFlow. Received: Keras on "
            f"{keras.backend.backend()}. Leave it out."
        )


@contextlib.contextmanager
def bfloat16_products(wanted=True):
    """Within it, TensorFlow multiplies matrices in bfloat16 on a CPU that can.

    The weights, the loss and everything added up stay float32 (TensorFlow's own rewrite
    of the graph, for oneDNN). On a processor with AVX512-BF16 or AMX a step of a
    Transformer takes about a quarter less time; on others nothing changes, or it slows.

    Raises:
        ValueError: if Keras runs on another backend.
    """
    if not wanted:
        yield
        return
    check_tensorflow("bfloat16")
    import tensorflow as tf

    name = "auto_mixed_precision_onednn_bfloat16"
    before = tf.config.optimizer.get_experimental_options().get(name, False)
    tf.config.optimizer.set_experimental_options({name: True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({name: before})


def reseed(model, seed, epoch):
    """Sets the model's random states by the epoch, so that a resume finds the same."""
    states = [v for v in model.non_trainable_variables if "seed_generator" in v.path]
    for place, state in enumerate(states):
        numbers = np.random.default_rng([seed, epoch, place]).integers(2**31, size=2)
        state.assign(numbers.astype(state.dtype))
