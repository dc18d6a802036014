"""What the tests of pictures share: views to draw, and what is read off a figure."""

import numpy as np
from matplotlib.text import Text

from keras_attention.visualize import alignment, heatmap


def one_map(weights, rows, columns, **options):
    return heatmap(weights, rows, columns, **options)


def heads(weights, rows, columns, **options):
    return heatmap([weights] * 7, rows, columns, **options)


def layers(weights, rows, columns, **options):
    return heatmap([[weights] * 3] * 2, rows, columns, **options)


def lines(weights, rows, columns, **options):
    return alignment(columns, rows, weights, **options)


HEATMAPS = [one_map, heads, layers]
VIEWS = [*HEATMAPS, lines]


def names(prefix, count):
    return [f"{prefix}{number}" for number in range(count)]


def all_texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def strings(texts):
    return [text.get_text() for text in texts]


def marked(figure, *marks):
    """The texts of the first axes that are marked as of one kind."""
    return [text for text in figure.axes[0].texts if text.get_gid() in marks]


def row_labels(figure):
    """The labels of the rows, or words below: a list for each map that has them."""
    maps = {text.get_position()[1] for text in marked(figure, "map")}
    texts = marked(figure, "row", "target") or figure.axes[0].get_yticklabels()
    return _parts(texts, max(1, len(maps)))


def column_labels(figure):
    """The labels of the columns, or words above: a list for each map that has them."""
    maps = {text.get_position()[0] for text in marked(figure, "map")}
    texts = marked(figure, "column", "source") or figure.axes[0].get_xticklabels()
    return _parts(texts, max(1, len(maps)))


def _parts(texts, count):
    size, rest = divmod(len(texts), count)
    assert not rest
    return [texts[at * size : (at + 1) * size] for at in range(count)]


def boxes(figure, texts):
    """The boxes (x0, y0, x1, y1) of texts in pixels: an array with a row for each."""
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    return np.array([text.get_window_extent(renderer).extents for text in texts])


def overlapping(boxes):
    """The pairs of boxes that share more than their edges."""
    low = np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:])
    shared = (high - low > 0).all(axis=-1)
    return np.argwhere(np.triu(shared, k=1)).tolist()


def in_pixels(axes, points):
    return axes.transData.transform(points)


def image_boxes(figure):
    """The boxes (x0, y0, x1, y1) of the maps in pixels, y upwards."""
    axes, found = figure.axes[0], []
    for image in axes.images:
        left, right, bottom, top = image.get_extent()
        found.append(in_pixels(axes, [(left, bottom), (right, top)]).ravel())
    return np.array(found)
