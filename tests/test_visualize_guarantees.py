"""What holds for every picture of attention maps: labels, sizes, files, refusals."""

import inspect
import threading
import warnings

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from keras_attention import visualize
from keras_attention.visualize._colors import DARK, LIGHT, contrast
from tests import drawings
from tests.drawings import (
    HEATMAPS,
    VIEWS,
    all_texts,
    boxes,
    column_labels,
    image_boxes,
    lines,
    names,
    one_map,
    overlapping,
    row_labels,
    strings,
)

T, S = 3, 5
ODD = ["$$", "Ba$$in", "$_$", "$^$", "a_b", "\\", "", "$x^2$", "</s>", "a", "a"]
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(params=VIEWS, ids=lambda view: view.__name__)
def draw(request):
    return request.param


@pytest.fixture
def weights():
    return np.random.default_rng(7).dirichlet(np.ones(S), T)


def even(labels):
    return np.full((len(labels), len(labels)), 1 / len(labels))


def assert_labels(figure, rows, columns):
    for shown in row_labels(figure):
        assert strings(shown) == rows
    for shown in column_labels(figure):
        assert strings(shown) == columns


# Labels: matplotlib/matplotlib#20266, #15062, #28909


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_labels_read_exactly_as_given(draw, tmp_path, suffix):
    path = tmp_path / f"map.{suffix}"
    figure = draw(even(ODD), ODD, ODD, title="$$ costs $_$", path=path)
    assert_labels(figure, ODD, ODD)
    assert "$$ costs $_$" in all_texts(figure)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


def test_a_global_setting_does_not_change_how_labels_are_read(draw, weights):
    settings = {"text.usetex": True, "axes.grid": True, "figure.autolayout": True}
    with matplotlib.rc_context(settings):
        figure = draw(weights, ["$$", "a_b", "\\"], names("c", S), title="$$")
        figure.canvas.draw()
    assert_labels(figure, ["$$", "a_b", "\\"], names("c", S))
    axes = figure.axes[0]
    grid = [*axes.get_xgridlines(), *axes.get_ygridlines()]
    assert not axes.axison or not [line for line in grid if line.get_visible()]


@pytest.mark.parametrize(
    "settings",
    [
        {"image.origin": "lower", "image.interpolation": "bilinear"},
        {"xtick.labelbottom": False, "ytick.labelleft": False},
        {"ytick.labelright": True, "ytick.right": True, "ytick.left": False},
        {"xtick.alignment": "left", "ytick.alignment": "top"},
        {"axes.spines.left": False, "axes.spines.top": False},
    ],
    ids=str,
)
def test_no_setting_moves_cells_or_labels_or_hides_them(draw, weights, settings):
    def drawn():
        return draw(weights, names("row", T), names("column", S))._repr_png_()

    expected = drawn()
    with matplotlib.rc_context(settings):
        assert drawn() == expected


@pytest.mark.parametrize("draw", HEATMAPS)
def test_label_i_stands_at_cell_i(draw, weights):
    figure = draw(weights, names("row", T), names("column", S))
    places = image_boxes(figure)
    left, top = places[:, 0].min(), places[:, 3].max()
    first_column = np.unique(places[places[:, 0] < left + 1], axis=0)[::-1]
    first_row = np.unique(places[places[:, 3] > top - 1], axis=0)
    assert len(row_labels(figure)) == len(first_column)
    assert len(column_labels(figure)) == len(first_row)
    for shown, place in zip(row_labels(figure), first_column, strict=True):
        found = boxes(figure, shown)[:, [1, 3]].mean(axis=1)
        height = (place[3] - place[1]) / T
        middles = place[3] - height * (np.arange(T) + 0.5)
        np.testing.assert_allclose(found, middles, atol=5)
    for shown, place in zip(column_labels(figure), first_row, strict=True):
        found = boxes(figure, shown)[:, [0, 2]].mean(axis=1)
        width = (place[2] - place[0]) / S
        middles = place[0] + width * (np.arange(S) + 0.5)
        np.testing.assert_allclose(found, middles, atol=3)


def test_characters_without_a_font_give_one_warning_and_their_codes(draw, tmp_path):
    # Unassigned for ever (a noncharacter), so no font can have a glyph for it.
    labels = ["ab\U0001fffe", "\U0001ffff\U0001fffe", "plain"]
    path = tmp_path / "map.png"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = draw(np.eye(3), labels, labels, title="\U0001ffff", path=path)
    assert [each.category for each in caught] == [UserWarning]
    assert "U+1FFFE" in str(caught[0].message)
    assert "U+1FFFF" in str(caught[0].message)
    assert caught[0].filename == drawings.__file__
    shown = ["ab<U+1FFFE>", "<U+1FFFF U+1FFFE>", "plain"]
    assert_labels(figure, shown, shown)
    assert path.stat().st_size > 0


def test_scripts_are_drawn_by_a_font_that_has_them_or_as_codes(draw):
    labels = ["日本", "العربية", "कंगना", "🙂", "Ωж"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = draw(np.eye(5), labels, labels)
        figure.canvas.draw()
    assert not [each for each in caught if "Glyph" in str(each.message)]
    shown = strings(column_labels(figure)[0])
    for label, drawn in zip(labels, shown, strict=True):
        assert drawn == label or "<U+" in drawn
    assert "Ωж" in shown


def test_line_breaks_and_control_characters_get_a_visible_mark(draw):
    labels = ["\n", "a\tb", "\x07"]
    shown = ["↵", "a→b", "<U+0007>"]
    assert_labels(draw(np.eye(3), labels, labels), shown, shown)


# Sizes: jessevig/bertviz#82


@pytest.mark.parametrize(
    ("height", "width"), [(1, 1), (1, 40), (40, 1), (3, 5), (20, 90)]
)
def test_texts_never_overlap_and_lie_in_the_figure(draw, height, width):
    weights = np.full((height, width), 1 / width)
    rows, columns = names("row", height), names("column", width)
    figure = draw(weights, rows, columns, title="All of it " * 9)
    texts = [text for text in figure.findobj(Text) if text.get_text()]
    found = boxes(figure, [text for text in texts if text.get_visible()])
    assert overlapping(found) == []
    assert (found[:, :2] >= 0).all()
    assert (found[:, 2:] <= figure.bbox.size).all()


@pytest.mark.parametrize("draw", HEATMAPS)
def test_labels_that_have_no_room_are_thinned_and_the_title_says_so(draw):
    rows, columns = names("row", 20), names("column", 400)
    figure = draw(np.full((20, 400), 1 / 400), rows, columns)
    shown = column_labels(figure)[0]
    step = round(400 / len(shown))
    assert 1 < step < 40
    for labels in column_labels(figure):
        assert strings(labels) == columns[::step]
        assert overlapping(boxes(figure, labels)) == []
    assert any(f"1 column label of {step} " in text for text in all_texts(figure))
    assert max(figure.get_size_inches()) < 40


def test_more_words_than_have_room_are_refused_where_none_can_be_left_out():
    expected = r"room for 100 tokens.*`source` of length 400 and `target` of length 20"
    with pytest.raises(ValueError, match=expected):
        lines(np.full((20, 400), 1 / 400), names("r", 20), names("c", 400))


def test_long_labels_are_cut_in_the_middle_and_the_title_says_so(draw):
    label = "begin" + "x" * 400 + "end"
    figure = draw([[1.0]], [label], ["a" * 32], title="T")
    for (shown,) in row_labels(figure):
        shown = shown.get_text()
        assert shown.startswith("begin")
        assert shown.endswith("end")
        assert "…" in shown
        assert len(shown) == 32
    for shown in column_labels(figure):
        assert strings(shown) == ["a" * 32]
    assert any("cut in the middle: 1" in text for text in all_texts(figure))


def test_nothing_is_said_of_cutting_where_nothing_is_cut(draw):
    figure = draw(even("abc"), names("r", 3), names("c", 3), title="T")
    assert strings(figure.texts) == ["T"]


# Figures


def test_a_title_keeps_its_lines(draw):
    figure = draw(even("abc"), names("r", 3), names("c", 3), title="one two\nthree")
    assert strings(figure.texts) == ["one two", "three"]


def test_dark_figures_are_dark_with_readable_labels(draw, weights):
    to_hex = matplotlib.colors.to_hex
    for dark, theme in ((False, LIGHT), (True, DARK)):
        figure = draw(weights, names("r", T), names("c", S), title="T", dark=dark)
        assert to_hex(figure.get_facecolor()) == theme.paper
        for labels in [*row_labels(figure), *column_labels(figure)]:
            for label in labels:
                assert contrast(to_hex(label.get_color()), theme.paper) > 7


def test_figures_are_unknown_to_pyplot_and_show_themselves(draw, weights):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    figure = draw(weights, names("r", T), names("c", S))
    assert plt.get_fignums() == before
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_same_call_writes_the_same_png(draw, tmp_path, weights):
    for name in ("a.png", "b.png"):
        draw(weights, names("r", T), names("c", S), path=tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


def test_zero_weights_are_drawn(draw):
    figure = draw(np.zeros((2, 3)), ["a", "b"], ["c", "d", "e"])
    figure.canvas.draw()
    assert_labels(figure, ["a", "b"], ["c", "d", "e"])


# Refusals


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.01, -0.01, -1e9])
def test_values_that_are_no_weights_are_refused(draw, weights, bad):
    weights[1, 3] = bad
    with pytest.raises(ValueError, match=r"from 0 to 1.*weights\[.*1, 3\] = "):
        draw(weights, names("r", T), names("c", S))


@pytest.mark.parametrize(("rows", "columns"), [(T + 1, S), (T, S - 1), (S, T)])
def test_labels_of_another_number_are_refused(draw, weights, rows, columns):
    with pytest.raises(ValueError, match=rf"{T}, {S}\), ") as error:
        draw(weights, names("r", rows), names("c", columns))
    assert f"of length {rows} and `" in str(error.value)
    assert f"of length {columns}. " in str(error.value)
    transposed = "fit transposed: np.swapaxes" in str(error.value)
    assert transposed == ((rows, columns) == (S, T))


@pytest.mark.parametrize("draw", [one_map, lines])
@pytest.mark.parametrize("shape", [(), (S,), (0, S), (T, 0), (2, 2, 2, T, S)])
def test_weights_that_are_no_map_are_refused(draw, shape):
    with pytest.raises(ValueError, match=r"shape \(T, S\).*weights\[0\]"):
        draw(np.zeros(shape), names("r", T), names("c", S))


def test_what_is_no_array_of_numbers_is_refused(draw):
    for given in ([[0.5, 0.5], [1.0]], [["a", "b"]]):
        with pytest.raises(ValueError, match=r"array of numbers.*Received: list"):
            draw(given, names("r", 2), names("c", 2))


def test_one_string_is_no_list_of_labels(draw):
    with pytest.raises(ValueError, match=r"`(rows|target)` must be a list.*'ab'"):
        draw(np.eye(2), "ab", ["a", "b"])


@pytest.mark.parametrize(
    "labels",
    [None, 2, b"ab", {"a", "b"}, [b"a", "b"], np.array([b"a", b"b"]), ["a", []]],
    ids=["None", "number", "bytes", "set", "some bytes", "array of bytes", "a list"],
)
def test_labels_that_would_not_read_as_given_are_refused(draw, labels):
    with pytest.raises(TypeError, match=r"`(rows|target)` must .*Received: "):
        draw(np.eye(2), labels, ["a", "b"])


def test_labels_may_be_numbers(draw):
    shown = ["0", "1"]
    assert_labels(draw(np.eye(2), range(2), np.arange(2)), shown, shown)


def test_a_title_is_a_string(draw):
    with pytest.raises(TypeError, match=r"`title` must be a string\. Received: int"):
        draw(np.eye(2), ["a", "b"], ["a", "b"], title=3)


@pytest.mark.parametrize("given", [np.eye(2) * 1j, np.eye(2).astype(str)])
def test_complex_numbers_and_text_are_no_weights(draw, given):
    with pytest.raises(ValueError, match="must be an array of numbers"):
        draw(given, ["a", "b"], ["a", "b"])


def test_tensors_of_pytorch_are_weights_as_they_come(draw):
    torch = pytest.importorskip("torch")
    expected = draw(np.eye(2), ["a", "b"], ["a", "b"])._repr_png_()
    for given in (
        torch.eye(2, dtype=torch.bfloat16),
        torch.eye(2, requires_grad=True),
        list(torch.eye(2, requires_grad=True)),
    ):
        assert draw(given, ["a", "b"], ["a", "b"])._repr_png_() == expected


def test_an_unknown_kind_of_file_is_refused_before_drawing(draw, tmp_path):
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf.*map\.bmp"):
        draw(np.eye(2), ["a", "b"], ["a", "b"], path=tmp_path / "map.bmp")
    assert not list(tmp_path.iterdir())


def test_a_picture_needs_a_folder_that_exists(draw, tmp_path):
    path = tmp_path / "absent" / "map.png"
    with pytest.raises(FileNotFoundError, match=r"Make the folder .*absent' first"):
        draw(np.eye(2), ["a", "b"], ["a", "b"], path=path)


# Files


def test_a_tilde_is_the_home_folder(draw, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    draw(np.eye(2), ["a", "b"], ["a", "b"], path="~/map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_fails_leaves_the_one_before(draw, tmp_path, monkeypatch):
    def fails(figure, target, **options):
        write = getattr(target, "write", None) or target.write_bytes
        write(b"half")
        raise OSError("no space left")

    path = tmp_path / "map.png"
    path.write_bytes(b"before")
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", fails)
    with pytest.raises(OSError, match="no space left"):
        draw(np.eye(2), ["a", "b"], ["a", "b"], path=path)
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]


def test_writing_loses_no_other_file(draw, tmp_path):
    others = [tmp_path / "tmp.map.png", tmp_path / "tmp.map.html"]
    for other in others:
        other.write_bytes(b"mine")
    draw(np.eye(2), ["a", "b"], ["a", "b"], path=tmp_path / "map.png")
    visualize.page(np.eye(2), ["a", "b"], path=tmp_path / "map.html")
    assert [other.read_bytes() for other in others] == [b"mine", b"mine"]
    assert len(list(tmp_path.iterdir())) == 4


def test_threads_may_write_one_file(tmp_path):
    path, failed = tmp_path / "map.html", []

    def write():
        try:
            for _ in range(20):
                visualize.page([[1.0]], ["a"], None, path)
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=write) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert list(tmp_path.iterdir()) == [path]


def test_every_function_that_returns_a_figure_of_maps_is_a_view():
    """So that a new one is held to the same."""
    functions = {name: getattr(visualize, name) for name in visualize.__all__}
    found = {
        name
        for name, function in functions.items()
        if "matplotlib.figure.Figure" in function.__doc__
        and "offsets" not in inspect.signature(function).parameters
    }
    assert found == {"heatmap", "alignment"}
