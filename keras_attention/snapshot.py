"""AttentionSnapshot: a Keras callback that draws how attention comes about."""

import pathlib
from io import BytesIO
from numbers import Integral, Real

import keras
import numpy as np
from keras import ops

from keras_attention import visualize
from keras_attention.submodel import attention_submodel
from keras_attention.visualize._checks import check_labels, check_titles
from keras_attention.visualize._paths import write_whole

ANIMATED = (".gif", ".webp", ".png")


class AttentionSnapshot(keras.callbacks.Callback):
    """Writes the attention map of one example before training and after each epoch.

    The pictures are `epoch-000.png` (before), `epoch-001.png` and so on, all in one
    scale, and at the end of training they are joined into one animated picture. A
    training that goes on, with `initial_epoch`, adds to those of the epochs before.

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
        seconds: How long the animation shows each picture, over 0.
        title: What stands above, before the epoch's number, or None.
        dark: True for light text on a dark ground.

    Raises:
        ValueError: for an `animation` of another kind, `seconds` that are not over 0,
            or `rows` in one string; at the beginning of training, if the model has no
            such layer or head, `inputs` are not one example, or its map does not fit
            the labels.
        TypeError: if a label is neither a string nor a number, or `title` no string.

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
        check_titles(title=title)
        self.inputs = inputs if _is_several(inputs) else np.asarray(inputs)
        self.rows = check_labels(rows, "rows")
        columns = self.rows if columns is None else columns
        self.columns = check_labels(columns, "columns")
        self.folder = pathlib.Path(folder).expanduser()
        self.layer, self.head = layer, head
        self.animation, self.seconds = _checked_animation(animation, seconds)
        self.title, self.dark = title, dark
        self.pictures = []

    def on_train_begin(self, logs=None):
        self._both = attention_submodel(self.model)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.pictures = None

    def on_epoch_begin(self, epoch, logs=None):
        if self.pictures is None:
            before = [self._path(each) for each in range(epoch)]
            self.pictures = [path for path in before if path.exists()]
            self._write(epoch)

    def on_epoch_end(self, epoch, logs=None):
        self._write(epoch + 1)

    def on_train_end(self, logs=None):
        if self.animation is not None and self.pictures:
            join(self.pictures, self.folder / self.animation, self.seconds)

    def weights(self):
        """The map as it is now: an array (T, S)."""
        _, maps = self._both(self.inputs, training=False)
        weights = ops.convert_to_numpy(self._chosen(maps)).astype("float32")
        if len(weights) != 1:
            raise ValueError(
                f"`inputs` must be a single example. Received: {len(weights)}. Take "
                "one and keep its axis: inputs[:1]."
            )
        weights = self._of_head(weights[0])
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

    def _of_head(self, weights):
        heads = len(weights) if weights.ndim == 3 else 0
        if self.head is None:
            return weights.mean(axis=0) if heads else weights
        if not isinstance(self.head, Integral) or not 0 <= self.head < heads:
            there = f"0 to {heads - 1}, or None for their mean" if heads else "None"
            raise ValueError(
                f"`head` must be a head of the layer, which is {there}. Received: "
                f"{self.head!r}."
            )
        return weights[self.head]

    def _path(self, epoch):
        return self.folder / f"epoch-{epoch:03d}.png"

    def _write(self, epoch):
        path = self._path(epoch)
        visualize.heatmap(
            self.weights(),
            self.rows,
            self.columns,
            title=f"{self.title}, epoch {epoch}" if self.title else f"Epoch {epoch}",
            path=path,
            dark=self.dark,
            largest=1.0,
        )
        self.pictures.append(path)


def _is_several(inputs):
    """Whether a model's inputs are several arrays, and not one or a nested list."""
    if isinstance(inputs, list | tuple):
        return any(hasattr(each, "shape") for each in inputs)
    return isinstance(inputs, dict)


def _checked_animation(animation, seconds):
    """Refuses before training what could only fail after it."""
    if animation is not None:
        path = pathlib.Path(animation)
        taken = path.name.lower().startswith("epoch-")
        if path.suffix.lower() not in ANIMATED or str(path) != path.name or taken:
            raise ValueError(
                "`animation` must be a name that ends in .gif, .webp or .png, without "
                f"a folder and unlike those of the pictures. Received: {animation!r}. "
                "`folder` says where it goes."
            )
    if not isinstance(seconds, Real) or not 0 < seconds < float("inf"):
        raise ValueError(
            f"`seconds` must be a number over 0. Received: {seconds!r}. It is how long "
            "the animation shows each picture."
        )
    return animation, seconds


def join(pictures, path, seconds):
    """Joins pictures into an animated one that plays without end.

    Args:
        pictures: Paths of the pictures, in order.
        path: Where to write it: a .gif, .webp or .png.
        seconds: How long each is shown; the last is shown four times as long.
    """
    from PIL import Image

    frames = [Image.open(picture).convert("RGB") for picture in pictures]
    size = tuple(max(sides) for sides in zip(*(f.size for f in frames), strict=True))
    frames = [_enlarged(frame, size) for frame in frames]
    milliseconds = round(1000 * seconds)
    stream = BytesIO()
    frames[0].save(
        stream,
        format=path.suffix[1:],
        save_all=True,
        append_images=frames[1:],
        duration=[milliseconds] * (len(frames) - 1) + [4 * milliseconds],
        loop=0,
    )
    write_whole(path, stream.getvalue())


def _enlarged(frame, size):
    """Returns a picture on a ground of `size`, of the colour of its corner."""
    from PIL import Image

    ground = Image.new(frame.mode, size, frame.getpixel((0, 0)))
    ground.paste(frame)
    return ground
