"""The alignment: which words are joined, how strongly, and what is said of the rest."""

import itertools

import matplotlib
import numpy as np
import pytest

from keras_attention.visualize import alignment
from keras_attention.visualize._colors import DARK, LIGHT, contrast, luminance
from keras_attention.visualize._spans import NOTE
from tests.drawings import all_texts, boxes, in_pixels, marked, names, strings

S, T = 7, 5
SOURCE, TARGET = names("source", S), names("target", T)
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def weights():
    return np.random.default_rng(7).dirichlet(np.full(S, 0.5), T)


def collections(figure, mark):
    return [each for each in figure.axes[0].collections if each.get_gid() == mark]


def drawn_lines(figure):
    """The lines in pixels (N, 2, 2), from above to below, and the widths (N,)."""
    (found,) = collections(figure, "alignment")
    segments = np.array(found.get_segments()).reshape(-1, 2)
    ends = in_pixels(figure.axes[0], segments).reshape(-1, 2, 2)
    return ends, np.array(found.get_linewidths())


def joined(figure):
    """The (target, source) places of the words whose middles the lines join."""
    ends, _ = drawn_lines(figure)
    above, below = (
        boxes(figure, marked(figure, name))[:, [0, 2]].mean(axis=1)
        for name in ("source", "target")
    )
    columns = [int(abs(above - x).argmin()) for x in ends[:, 0, 0]]
    rows = [int(abs(below - x).argmin()) for x in ends[:, 1, 0]]
    assert abs(above[columns] - ends[:, 0, 0]).max(initial=0) < 3
    assert abs(below[rows] - ends[:, 1, 0]).max(initial=0) < 3
    return list(zip(rows, columns, strict=True))


def test_words_are_joined_by_lines_as_wide_as_their_weight(weights):
    figure = alignment(SOURCE, TARGET, weights, threshold=0.2)
    places = joined(figure)
    assert set(places) == set(zip(*np.nonzero(weights >= 0.2), strict=True))
    assert len(places) == len(set(places)) > T
    drawn = np.array([weights[place] for place in places])
    _, widths = drawn_lines(figure)
    np.testing.assert_allclose(widths / widths.max(), drawn / weights.max())
    assert (np.diff(drawn) >= 0).all()  # the strongest lie on top


def test_the_words_read_stand_above_in_order(weights):
    figure = alignment(SOURCE, TARGET, weights)
    above, below = marked(figure, "source"), marked(figure, "target")
    assert (strings(above), strings(below)) == (SOURCE, TARGET)
    above, below = boxes(figure, above), boxes(figure, below)
    assert (np.diff(above[:, 0]) > 0).all()
    assert (np.diff(below[:, 0]) > 0).all()
    assert above[:, 1].min() > below[:, 3].max()


@pytest.mark.parametrize("count", [1, 2, 30, 100])
def test_no_line_crosses_a_word(count):
    weights = np.full((count, count), 1 / count)
    words = ["Ågjpq", *names("word", count - 1)]
    figure = alignment(words, words, weights, threshold=0)
    ends, _ = drawn_lines(figure)
    assert len(ends) == count * count
    above = boxes(figure, marked(figure, "source"))
    below = boxes(figure, marked(figure, "target"))
    assert ends[:, :, 1].max() < above[:, 1].min()
    assert ends[:, :, 1].min() > below[:, 3].max()


def test_the_title_says_what_has_no_line():
    weights = [[0.92, 0.08, 0.0], [0.0, 0.04, 0.96]]
    figure = alignment(["a", "b", "c"], ["d", "e"], weights, title="T")
    # 0.08 and 0.04 are 0.12 of 2, which is 6 %; zeros are not counted.
    said = "2 weights under 0.1 have no line: 6% of the attention."
    assert strings(figure.texts) == ["T", said]
    figure = alignment(["a", "b", "c"], ["d", "e"], weights, threshold=0.05)
    said = "1 weight under 0.05 has no line: 2% of the attention."
    assert strings(figure.texts) == [said]
    figure = alignment(["a", "b", "c"], ["d", "e"], weights, threshold=0.04)
    assert strings(figure.texts) == []
    figure = alignment(["a", "b"], ["d"], [[0.996, 0.004]])
    said = "1 weight under 0.1 has no line: under 1% of the attention."
    assert strings(figure.texts) == [said]


def test_weights_of_zero_never_have_a_line():
    figure = alignment(["a", "b"], ["c"], [[1.0, 0.0]], threshold=0)
    assert joined(figure) == [(0, 0)]


@pytest.mark.parametrize(
    ("weights", "largest"), [([[0.25, 0.125]], "0.25"), ([[0.0, 0.0]], "0")]
)
def test_where_nothing_has_a_line_the_largest_weight_is_told(weights, largest):
    figure = alignment(["a", "b"], ["c"], weights, threshold=0.5)
    assert joined(figure) == []
    assert not collections(figure, "legend")
    assert f"The largest weight is {largest}." in all_texts(figure)


def test_the_legend_has_three_strengths_of_the_same_measure(weights):
    figure = alignment(SOURCE, TARGET, weights, threshold=0.125)
    largest = weights.max()
    values = [0.125, (0.125 + largest) / 2, largest]
    assert {f"{value:.3g}" for value in values} < set(all_texts(figure))
    samples = collections(figure, "legend")
    widths = [sample.get_linewidths()[0] for sample in samples]
    np.testing.assert_allclose(np.array(widths) / widths[-1], values / largest)
    _, drawn = drawn_lines(figure)
    assert widths[-1] == drawn.max()
    assert NOTE in all_texts(figure)


@pytest.mark.parametrize(("dark", "theme"), [(False, LIGHT), (True, DARK)])
def test_lines_stand_out_and_stronger_ones_more_so_also_in_grey(dark, theme):
    weights = np.linspace(0.001, 1.0, 100)[None, :]
    figure = alignment(names("w", 100), ["t"], weights, threshold=0, dark=dark)
    (found,) = collections(figure, "alignment")
    colors = [matplotlib.colors.to_hex(color) for color in found.get_colors()]
    assert min(contrast(color, theme.paper) for color in colors) >= 3
    steps = np.diff([luminance(color) for color in colors])
    assert (steps >= 0).all() if dark else (steps <= 0).all()
    assert contrast(colors[0], colors[-1]) > 1.7


def test_a_language_written_from_right_to_left_begins_at_the_right():
    hebrew = ["שלום", "עולם", "!"]
    figure = alignment(hebrew, ["hello", "world"], [[0.9, 0.1, 0], [0, 0.8, 0.2]])
    assert strings(marked(figure, "source")) == hebrew
    first, second, last = boxes(figure, marked(figure, "source"))
    assert first[0] > second[2]
    assert second[0] > last[2]
    left, right = boxes(figure, marked(figure, "target"))
    assert left[2] < right[0]
    assert set(joined(figure)) == {(0, 0), (0, 1), (1, 1), (1, 2)}


def test_words_of_one_place_in_both_texts_stand_near_each_other():
    figure = alignment(names("a", 6), names("long word ", 6), np.eye(6))
    ends, _ = drawn_lines(figure)
    assert abs(ends[:, 0, 0] - ends[:, 1, 0]).max() < 0.15 * figure.bbox.width


def test_rows_of_many_words_are_turned_and_still_joined():
    weights = np.eye(60, 90)
    figure = alignment(names("source", 90), names("target", 60), weights)
    words = [*marked(figure, "source"), *marked(figure, "target")]
    assert {word.get_rotation() for word in words} == {90.0}
    assert joined(figure) == [(at, at) for at in range(60)]
    assert max(figure.get_size_inches()) < 26


@pytest.mark.parametrize("sizes", [(101, 1), (1, 101)])
def test_more_words_than_have_room_are_refused(sizes):
    source, target = (names("w", size) for size in sizes)
    weights = np.zeros((len(target), len(source)))
    expected = (
        rf"room for 100 tokens.*of length {sizes[0]} and `target` of length {sizes[1]}"
        r".*heatmap\(weights, target, source\)"
    )
    with pytest.raises(ValueError, match=expected):
        alignment(source, target, weights)


@pytest.mark.parametrize("threshold", [-0.1, 1.1, np.nan, "0.1", None])
def test_a_threshold_that_is_no_weight_is_refused(threshold):
    with pytest.raises(ValueError, match="`threshold` must be a number from 0 to 1"):
        alignment(["a"], ["b"], [[1.0]], threshold=threshold)


def test_a_batch_or_heads_that_were_left_in_are_named(weights):
    for shape in ((3, T, S), (2, 3, T, S)):
        given = np.broadcast_to(weights, shape)
        with pytest.raises(ValueError, match=r"weights\[0\].mean\(axis=0\)"):
            alignment(SOURCE, TARGET, given)


def test_lines_of_equal_weight_are_all_drawn():
    figure = alignment(["a", "b"], ["c", "d"], np.full((2, 2), 0.5))
    assert set(joined(figure)) == set(itertools.product(range(2), range(2)))
