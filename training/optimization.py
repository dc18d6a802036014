"""How every run of the package learns: optimizer, schedule, one epoch of fit, seeds."""

import keras
import numpy as np

from training.progress import EpochBar

WARM_UP = 0.05  # fraction of the steps


def adam(learning_rate, steps, average_over=0):
    """Adam with gradients clipped at norm 1, warmed up, then along a cosine to 0.

    Args:
        learning_rate: The peak.
        steps: Number of steps of the whole run.
        average_over: Number of steps that a moving average of the weights reaches back
            over; Keras puts it in the weights' place when `fit` ends. 0 for none.
    """
    warm_up = max(1, int(WARM_UP * steps))
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0,
        decay_steps=max(1, steps - warm_up),
        warmup_target=learning_rate,
        warmup_steps=warm_up,
    )
    averages = average_over > 1
    return keras.optimizers.Adam(
        schedule,
        global_clipnorm=1.0,
        use_ema=averages,
        ema_momentum=1 - 1 / average_over if averages else 0.99,
    )


def fit_epoch(model, data, title, progress=True):
    """One pass of `fit` over a tf.data.Dataset that is shuffled already.

    The model is left with the average of its weights, if its optimizer keeps one.

    Returns:
        `(measured, last_weights)`: a dictionary of numbers, and the weights after the
        last step, from which the next epoch goes on.
    """
    last = LastWeights()
    callbacks = [last, EpochBar(title, len(data))] if progress else [last]
    history = model.fit(data, shuffle=False, verbose=0, callbacks=callbacks).history
    measured = {name: float(values[-1]) for name, values in history.items()}
    return measured, last.weights


class LastWeights(keras.callbacks.Callback):
    """Remembers the weights after the last step, before `fit` averages them."""

    def on_epoch_end(self, epoch, logs=None):
        self.weights = self.model.get_weights()


def reseed(model, seed, epoch):
    """Sets the model's random states by the epoch, so that a resume finds the same."""
    states = [v for v in model.non_trainable_variables if "seed_generator" in v.path]
    for place, state in enumerate(states):
        numbers = np.random.default_rng([seed, epoch, place]).integers(2**31, size=2)
        state.assign(numbers.astype(state.dtype))
