"""Kernels: how the attention layers make the matrices they learn."""

import numbers

import keras
from keras import ops


class Kernels:
    """Mixin for attention layers with learned matrices; it goes before the base class.

    Kernels are kept in float32 under mixed policies and are not rounded when they are
    used, and no two of a layer begin with the same numbers, a seeded initializer
    included.

    Args:
        kernel_initializer: Initializer of the kernels.
        kernel_regularizer: Regularizer of the kernels.
        **kwargs: Those of the class beside it.
    """

    def __init__(
        self,
        *,
        kernel_initializer="glorot_uniform",
        kernel_regularizer=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.kernel_initializer = keras.initializers.get(kernel_initializer)
        self.kernel_regularizer = keras.regularizers.get(kernel_regularizer)

    def add_kernel(self, name, shape):
        """A trained matrix or vector; every dimension must be known."""
        if None in shape:
            raise ValueError(
                "The last dimension of the inputs must be known to build "
                f"{type(self).__name__}. Received: None. Give `keras.Input` a width."
            )
        return self.add_weight(
            shape=shape,
            initializer=_fresh(self.kernel_initializer, len(self.weights)),
            regularizer=self.kernel_regularizer,
            name=name,
            autocast=False,
        )

    def add_bias(self, name, shape, initializer="zeros"):
        """A trained bias, without the kernels' regularizer."""
        return self.add_weight(
            shape=shape, initializer=initializer, name=name, autocast=False
        )

    def refuse_kernel_options(self, setting):
        """Refuses an initializer or regularizer where a setting leaves no kernel."""
        usual = isinstance(self.kernel_initializer, keras.initializers.GlorotUniform)
        if not usual or self.kernel_regularizer is not None:
            raise ValueError(
                f"{type(self).__name__} has no kernels with {setting}, for which "
                "`kernel_initializer` or `kernel_regularizer` would be. Received: "
                f"{self.kernel_initializer}, {self.kernel_regularizer}. Leave them "
                "out; a score has its own, as in score=LuongAttention('general', "
                "kernel_regularizer='l2')."
            )

    def read(self, weight):
        """A weight in the type the scores are computed in."""
        return ops.cast(weight, self.score_dtype)

    def get_config(self):
        return {
            **super().get_config(),
            "kernel_initializer": keras.initializers.serialize(self.kernel_initializer),
            "kernel_regularizer": keras.regularizers.serialize(self.kernel_regularizer),
        }


def check_whole(name, number, advice):
    """`number` as an int of at least 1, or an error that ends in `advice`."""
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not whole or number < 1:
        raise ValueError(
            f"`{name}` must be an integer of at least 1. Received: {number!r}. {advice}"
        )
    return int(number)


def _fresh(initializer, offset):
    """A copy for one weight: one with a number as seed gives the same numbers twice.

    Without one it is itself: a `SeedGenerator` goes on, and an initializer without a
    config could not be copied.
    """
    if not isinstance(initializer, keras.initializers.Initializer):
        return initializer
    config = initializer.get_config()
    if not isinstance(config.get("seed"), int):
        return initializer
    return type(initializer).from_config({**config, "seed": config["seed"] + offset})
