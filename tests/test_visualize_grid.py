"""The heat map of many maps: which map stands where, names, one scale, labels."""

import itertools

import numpy as np
import pytest

from keras_attention.visualize import heatmap
from tests.drawings import (
    all_texts,
    boxes,
    column_labels,
    image_boxes,
    marked,
    names,
    overlapping,
    row_labels,
    strings,
)

L, H, T, S = 2, 7, 3, 5
ROWS, COLUMNS = names("row", T), names("column", S)
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def maps():
    return np.random.default_rng(7).dirichlet(np.ones(S), (L, H, T))


def random_maps(*shape):
    return np.random.default_rng(5).dirichlet(np.ones(shape[-1]), shape[:-1])


def test_each_map_has_its_own_weights_and_its_name_under_it(maps):
    figure = heatmap(maps, ROWS, COLUMNS)
    images = figure.axes[0].images
    drawn = [image.get_array() for image in images]
    np.testing.assert_allclose(drawn, maps.reshape(-1, T, S))
    counted = [(layer, head) for layer in (0, 1) for head in range(H)]
    written = marked(figure, "map")
    assert strings(written) == [f"layer {at} head {head}" for at, head in counted]
    for name, image in zip(boxes(figure, written), image_boxes(figure), strict=True):
        assert name[3] < image[1]
        assert name[3] > image[1] - 15
        assert abs(name[[0, 2]].mean() - image[[0, 2]].mean()) < 3


def test_a_layer_is_a_row_and_a_head_a_column(maps):
    places = image_boxes(heatmap(maps, ROWS, COLUMNS)).reshape(L, H, 4)
    for side in (0, 2):
        np.testing.assert_allclose(places[0, :, side], places[1, :, side])
    for side in (1, 3):
        np.testing.assert_allclose(places[:, :1, side], places[:, 1:2, side])
    assert (np.diff(places[0, :, 0]) > 0).all()
    assert places[0, 0, 1] > places[1, 0, 3]


def test_few_heads_stand_in_one_row_and_many_in_several(maps):
    figure = heatmap(maps[0], ROWS, COLUMNS)
    assert strings(marked(figure, "map")) == [f"head {at}" for at in range(H)]
    assert len(row_labels(figure)) == 1
    figure = heatmap(random_maps(31, 12, 13), names("row", 12), names("column", 13))
    assert len(marked(figure, "map")) == 31
    places = image_boxes(figure)
    assert len(row_labels(figure)) == len(np.unique(places[:, 3].round())) > 1
    assert len(column_labels(figure)) == len(np.unique(places[:, 0].round())) > 1
    assert overlapping(places) == []
    reading = sorted(range(31), key=lambda at: (-places[at, 3].round(), places[at, 0]))
    assert reading == list(range(31))
    width, height = figure.get_size_inches()
    assert 0.4 < width / height < 2.5


@pytest.mark.parametrize("shape", [(2, 3, 1, 1), (2, 1, 2), (12, 1, 1)])
def test_names_wider_than_their_maps_have_room(shape):
    figure = heatmap(np.ones(shape), [""] * shape[-2], [""] * shape[-1])
    written = boxes(figure, marked(figure, "map"))
    bar = figure.axes[1].get_window_extent().extents
    assert overlapping(np.array([*written, *image_boxes(figure), bar])) == []
    assert written.min() > 0


def test_a_grid_has_one_scale_and_one_colour_bar():
    maps = np.zeros((3, 2, 2))
    maps[1] = [[0.5, 0.25], [0.0, 0.125]]
    figure = heatmap(maps, ["a", "b"], ["c", "d"])
    figure.canvas.draw()
    assert [image.get_clim() for image in figure.axes[0].images] == [(0.0, 0.5)] * 3
    assert len(figure.axes) == 2
    assert strings(figure.axes[1].get_yticklabels()) == ["0", "0.25", "0.5"]


def test_only_the_outer_maps_have_labels(maps):
    figure = heatmap(maps, ROWS, COLUMNS)
    assert [strings(labels) for labels in row_labels(figure)] == [ROWS] * L
    assert [strings(labels) for labels in column_labels(figure)] == [COLUMNS] * H
    places = image_boxes(figure)
    for labels in row_labels(figure):
        assert (boxes(figure, labels)[:, 2] < places[:, 0].min()).all()
    for labels in column_labels(figure):
        assert (boxes(figure, labels)[:, 1] > places[:, 3].max()).all()


def test_an_axis_of_one_is_drawn_as_if_it_was_not_there(maps, tmp_path):
    for name, given in (
        ("map", maps[0, 0]),
        ("one", maps[:1, 0]),
        ("one of one", maps[:1, :1]),
    ):
        heatmap(given, ROWS, COLUMNS, path=tmp_path / f"{name}.png")
    drawn = [path.read_bytes() for path in tmp_path.iterdir()]
    assert drawn == drawn[:1] * 3
    figure = heatmap(maps[:1], ROWS, COLUMNS)
    assert strings(marked(figure, "map"))[:2] == ["head 0", "head 1"]
    figure = heatmap(maps[:, :1], ROWS, COLUMNS)
    assert strings(marked(figure, "map")) == ["layer 0", "layer 1"]


def test_twelve_layers_of_twelve_heads_of_forty_tokens_are_a_useful_picture():
    labels = names("token", 40)
    figure = heatmap(random_maps(12, 12, 40, 40), labels, labels)
    places = image_boxes(figure)
    assert overlapping(places) == []
    sides = places[:, 2:] - places[:, :2]
    assert (sides >= 4 * 40).all()  # at least four pixels a cell
    assert max(figure.get_size_inches()) < 27
    (said,) = [text for text in all_texts(figure) if "label" in text]
    step = int(said.split(" of ")[1].split()[0])
    assert said == (
        f"1 row label of {step} is shown. 1 column label of {step} is shown."
    )
    shown = [*row_labels(figure), *column_labels(figure)]
    assert [strings(texts) for texts in shown] == [labels[::step]] * 24
    texts = [*itertools.chain(*shown), *marked(figure, "map")]
    assert overlapping(boxes(figure, texts)) == []


def test_labels_are_left_out_where_under_three_would_show():
    figure = heatmap(random_maps(40, 2, 7, 7), names("row", 7), names("column", 7))
    assert marked(figure, "row") == []
    assert strings(column_labels(figure)[0]) == names("column", 7)
    assert "The row labels are left out: there is no room." in all_texts(figure)


def test_cells_under_a_pixel_are_joined_by_their_largest():
    maps = np.zeros((12, 2, 1, 300))
    maps[:, 1, 0, 299] = 0.5
    maps = np.repeat(maps, 300, axis=2)
    labels = names("token", 300)
    figure = heatmap(maps.swapaxes(0, 1), labels, labels)
    first, last = figure.axes[0].images[0], figure.axes[0].images[-1]
    width = image_boxes(figure)[-1, 2] - image_boxes(figure)[-1, 0]
    assert last.get_array().shape[1] <= width
    assert not first.get_array().any()
    np.testing.assert_array_equal(last.get_array()[:, -1], 0.5)
    assert not last.get_array()[:, :-1].any()
    assert any("A cell is the largest of" in text for text in all_texts(figure))


@pytest.mark.parametrize("shape", [(41, 2), (2, 41), (1601,), (1601, 1)])
def test_more_maps_than_have_room_are_refused(shape):
    with pytest.raises(
        ValueError, match=r"room for 40 layers of 40 heads.*Draw a part"
    ):
        heatmap(np.zeros((*shape, 1, 1)), ["a"], ["b"])


def test_a_batch_that_was_left_in_is_named(maps):
    batch = np.stack([maps, maps])
    with pytest.raises(ValueError, match=r"Of a batch take one example: weights\[0\]"):
        heatmap(batch, ROWS, COLUMNS)
