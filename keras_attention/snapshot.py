"""AttentionSnapshot: a Keras callback that draws how attention comes about."""

import pathlib
from numbers import Integral, Real

import keras
import numpy as np
from keras import ops

from keras_attention import visualize
from keras_attention.submodel import attention_submodel

ANIMATIONS = (".gif", ".webp", ".png")


class AttentionSnapshot(keras.callbacks.Callback):
    """Writes the attention map of one example before training and after each epoch.

    The pictures are `epoch-000.png` (before), `epoch-001.png` and so on, all in one
    scale, and at the end of training they are joined into one animated picture.

    Args:
        inputs: What the model takes, for a single example without padding: an array
            (1, ...), or a list or dict of such.
        rows: T labels, one a query.
        columns: S labels, one a key; by default those of the rows.
        folder: Where to write. It is made if it is not there.
        layer: Name of the attention layer, as `attention_submodel` gives them. None
            will do for a model that has one.
        head: Which head to draw, from 0; None is the mean over the heads.
        animation: Name of the animated picture in the folder, a .gif, .webp or .png;
            None makes none.
        seconds: How long the animation shows each picture.
        title: What stands above, before the epoch's number.
        dark: True for light text on a dark ground.

    Raises:
        ValueError: for an `animation` of another kind, or `seconds` that are not over
            0; at the beginning of training, if the model has no such layer or head, or
            its map does not fit the labels.

    Example:

    >>> import tempfile
    >>> from keras_attention import BahdanauAttention
    >>> folder = tempfile.mkdtemp()
    >>> x = np.random.default_rng(0).normal(size=(1, 3, 4)).astype("float32")
    >>> inputs = keras.Input((3, 4))
    >>> context, _ = BahdanauAttention(5)(inputs)
    >>> model = keras.Model(inputs, keras.layers.Dense(1)(context))
    >>> model.compile("sgd", "mse")
    >>> snapshot = AttentionSnapshot(x, ["pooled"], ["a", "b", "c"], folder)
    >>> _ = model.fit(x, np.ones((1, 1)), epochs=2, callbacks=[snapshot], verbose=0)
    >>> sorted(path.name for path in pathlib.Path(folder).iterdir())
    ['attention.gif', 'epoch-000.png', 'epoch-001.png', 'epoch-002.png']
    """

    def __init__(
        self,
        inputs,
        rows,
        columns=None,
        folder="attention",
        *,
        layer=None,
        head=None,
        animation="attention.gif",
        seconds=0.5,
        title="Attention",
        dark=False,
    ):
        super().__init__()
        several = isinstance(inputs, dict) or hasattr(inputs[0], "shape")
        several = several and not hasattr(inputs, "shape")
        self.inputs = inputs if several else np.asarray(inputs)
        self.rows = list(rows)
        self.columns = self.rows if columns is None else list(columns)
        self.folder = pathlib.Path(folder).expanduser()
        self.layer, self.head = layer, head
        self.animation = _checked_animation(animation)
        self.seconds = _checked_seconds(seconds)
        self.title, self.dark = title, dark
        self.pictures = []

    def on_train_begin(self, logs=None):
        self._both = attention_submodel(self.model)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pictures = []
        self._write(0)

    def on_epoch_end(self, epoch, logs=None):
        self._write(epoch + 1)

    def on_train_end(self, logs=None):
        if self.animation is not None:
            join(self.pictures, self.folder / self.animation, self.seconds)

    def weights(self):
        """The map as it is now: an array (T, S)."""
        _, maps = self._both(self.inputs, training=False)
        weights = ops.convert_to_numpy(self._chosen(maps))[0].astype("float32")
        weights = _of_head(weights, self.head)
        # A pooling layer has one query, and its weights stand in a column.
        pooled = weights.shape == (len(self.columns), 1) and len(self.rows) == 1
        return weights.T if pooled else weights

    def _chosen(self, maps):
        if self.layer is None and len(maps) == 1:
            return next(iter(maps.values()))
        if self.layer not in maps:
            raise ValueError(
                "`layer` must name an attention layer of the model, one of "
                f"{', '.join(maps)}. Received: {self.layer!r}."
            )
        return maps[self.layer]

    def _write(self, epoch):
        path = self.folder / f"epoch-{epoch:03d}.png"
        visualize.heatmap(
            self.weights(),
            self.rows,
            self.columns,
            title=f"{self.title}, epoch {epoch}",
            path=path,
            dark=self.dark,
            largest=1.0,
        )
        self.pictures.append(path)


def _checked_animation(name):
    if name is not None and pathlib.Path(name).suffix.lower() not in ANIMATIONS:
        raise ValueError(
            f"`animation` must end in {', '.join(ANIMATIONS)}. Received: {name!r}. The "
            "suffix says which kind of file is written; None writes none."
        )
    return name


def _checked_seconds(seconds):
    if not isinstance(seconds, Real) or not 0 < seconds < float("inf"):
        raise ValueError(
            f"`seconds` must be a number over 0. Received: {seconds!r}. It is how long "
            "the animation shows each picture."
        )
    return seconds


def _of_head(weights, head):
    """The map of one head, or the mean of them: (T, S) of (H, T, S) or (T, S)."""
    heads = len(weights) if weights.ndim == 3 else 0
    if head is None:
        return weights.mean(axis=0) if heads else weights
    if not heads:
        raise ValueError(
            f"`head` must be None for a layer without heads. Received: {head!r}. Name "
            "another `layer`, or leave it out."
        )
    if not isinstance(head, Integral) or not 0 <= head < heads:
        raise ValueError(
            f"`head` must be an integer from 0 to {heads - 1}. Received: {head!r}. "
            "None is the mean over the heads."
        )
    return weights[head]


def join(pictures, path, seconds):
    """Joins pictures of one size into an animated one that plays without end.

    Args:
        pictures: Paths of the pictures, in order.
        path: Where to write it: a .gif, .webp or .png.
        seconds: How long each is shown; the last is shown four times as long.
    """
    from PIL import Image

    frames = [Image.open(picture).convert("RGB") for picture in pictures]
    size = tuple(max(sides) for sides in zip(*(f.size for f in frames), strict=True))
    frames = [frame.crop((0, 0, *size)) for frame in frames]
    milliseconds = round(1000 * seconds)
    frames[0].save(
        path,
        save_all=True,
        append_images=frames[1:],
        duration=[milliseconds] * (len(frames) - 1) + [4 * milliseconds],
        loop=0,
    )
