"""The heat map: what is drawn where, what is refused, what is warned of."""

import itertools
import subprocess
import sys
import types
import warnings
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.text import Text

from keras_attention import visualize
from keras_attention.visualize import heatmap
from keras_attention.visualize._canvas import Ruler
from keras_attention.visualize._colors import (
    DARK,
    LIGHT,
    contrast,
    luminance,
    readable_ink,
    shade,
)
from keras_attention.visualize._fonts import fonts_for

T, S = 3, 5
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def weights():
    return np.random.default_rng(7).dirichlet(np.ones(S), T)


def names(prefix, count):
    return [f"{prefix}{number}" for number in range(count)]


def all_texts(figure):
    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


def tick_texts(ticks):
    return [label.get_text() for label in ticks]


def overlaps(figure, labels):
    renderer = figure.canvas.get_renderer()
    boxes = [label.get_window_extent(renderer) for label in labels]
    return [
        (first, second)
        for first, second in itertools.pairwise(boxes)
        if first.overlaps(second)
    ]


def test_a_cell_shows_its_own_weight_and_label_i_stands_at_i(weights):
    rows, columns = names("row", T), names("column", S)
    figure = heatmap(weights, rows, columns)
    figure.canvas.draw()
    axes = figure.axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), weights)
    assert tick_texts(axes.get_xticklabels()) == columns
    assert tick_texts(axes.get_yticklabels()) == rows
    np.testing.assert_array_equal(axes.get_xticks(), np.arange(S))
    np.testing.assert_array_equal(axes.get_yticks(), np.arange(T))
    renderer = figure.canvas.get_renderer()
    for column, label in enumerate(axes.get_xticklabels()):
        box = label.get_window_extent(renderer)
        middle, _ = axes.transData.transform((column, 0))
        assert abs((box.x0 + box.x1) / 2 - middle) < 3
    for row, label in enumerate(axes.get_yticklabels()):
        box = label.get_window_extent(renderer)
        _, middle = axes.transData.transform((0, row))
        assert abs((box.y0 + box.y1) / 2 - middle) < 5


def test_the_first_row_is_at_the_top(weights):
    axes = heatmap(weights, names("row", T), names("column", S)).axes[0]
    (_, top), (_, bottom) = axes.transData.transform([(0, 0), (0, T - 1)])
    assert top > bottom


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_labels_read_exactly_as_given(tmp_path, suffix):
    labels = ["$$", "Ba$$in", "$_$", "$^$", "a_b", "\\", "", "$x^2$", "</s>", "a", "a"]
    path = tmp_path / f"map.{suffix}"
    weights = np.full((len(labels), len(labels)), 1 / len(labels))
    figure = heatmap(weights, labels, labels, title="$$ costs $_$", path=path)
    assert tick_texts(figure.axes[0].get_xticklabels()) == labels
    assert tick_texts(figure.axes[0].get_yticklabels()) == labels
    assert "$$ costs $_$" in all_texts(figure)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


def test_a_global_setting_does_not_change_how_labels_are_read(weights):
    settings = {"text.usetex": True, "axes.grid": True, "figure.autolayout": True}
    with matplotlib.rc_context(settings):
        figure = heatmap(weights, ["$$", "a_b", "\\"], names("c", S), title="$$")
        figure.canvas.draw()
    axes = figure.axes[0]
    assert tick_texts(axes.get_yticklabels()) == ["$$", "a_b", "\\"]
    lines = [*axes.get_xgridlines(), *axes.get_ygridlines()]
    assert not [line for line in lines if line.get_visible()]


def test_a_title_keeps_its_lines(weights):
    figure = heatmap(weights, names("r", T), names("c", S), title="one two\nthree")
    assert [text.get_text() for text in figure.texts] == ["one two", "three"]


def test_characters_without_a_font_give_one_warning_and_their_codes(tmp_path):
    # Unassigned for ever (a noncharacter), so no font can have a glyph for it.
    labels = ["ab\U0001fffe", "\U0001ffff\U0001fffe", "plain"]
    path = tmp_path / "map.png"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = heatmap(np.eye(3), labels, labels, title="\U0001ffff", path=path)
    assert len(caught) == 1
    assert caught[0].category is UserWarning
    assert "U+1FFFE" in str(caught[0].message)
    assert "U+1FFFF" in str(caught[0].message)
    assert caught[0].filename == __file__
    shown = ["ab<U+1FFFE>", "<U+1FFFF U+1FFFE>", "plain"]
    assert tick_texts(figure.axes[0].get_xticklabels()) == shown
    assert path.stat().st_size > 0


def test_scripts_are_drawn_by_a_font_that_has_them_or_as_codes():
    labels = ["日本", "العربية", "कंगना", "🙂", "Ωж"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = heatmap(np.eye(5), labels, labels)
        figure.canvas.draw()
    assert not [each for each in caught if "Glyph" in str(each.message)]
    for label, shown in zip(
        labels, tick_texts(figure.axes[0].get_xticklabels()), strict=True
    ):
        assert shown == label or "<U+" in shown
    assert "Ωж" in tick_texts(figure.axes[0].get_xticklabels())


def test_a_second_font_is_used_for_what_the_first_lacks():
    # matplotlib brings both fonts: of this letter only STIX has a glyph.
    fonts = fonts_for(["a", "\N{HIRAGANA LETTER NO}"])
    assert fonts.missing == frozenset()
    assert len(fonts.families) >= 2
    assert Ruler(fonts).width("\N{HIRAGANA LETTER NO}", 9) > 0


def test_line_breaks_and_control_characters_get_a_visible_mark():
    labels = ["\n", "a\tb", "\x07"]
    figure = heatmap(np.eye(3), labels, labels)
    assert tick_texts(figure.axes[0].get_xticklabels()) == ["↵", "a→b", "<U+0007>"]


@pytest.mark.parametrize(("height", "width"), [(1, 1), (1, 40), (40, 1), (20, 400)])
def test_labels_never_overlap_and_lie_in_the_figure(height, width):
    weights = np.full((height, width), 1 / width)
    rows, columns = names("row", height), names("column", width)
    figure = heatmap(weights, rows, columns, title="All of it " * 9)
    figure.canvas.draw()
    axes = figure.axes[0]
    assert not overlaps(figure, axes.get_xticklabels())
    assert not overlaps(figure, axes.get_yticklabels())
    renderer = figure.canvas.get_renderer()
    for text in figure.findobj(Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent(renderer)
            assert figure.bbox.x0 <= box.x0
            assert box.x1 <= figure.bbox.x1
            assert figure.bbox.y0 <= box.y0
            assert box.y1 <= figure.bbox.y1


def test_large_maps_thin_their_labels_and_say_so():
    rows, columns = names("row", 200), names("column", 400)
    figure = heatmap(np.full((200, 400), 1 / 400), rows, columns)
    axes = figure.axes[0]
    shown, places = tick_texts(axes.get_xticklabels()), axes.get_xticks()
    step = int(places[1])
    assert 1 < step < 10
    assert shown == columns[::step]
    np.testing.assert_array_equal(places, np.arange(0, 400, step))
    assert any(f"1 column label of {step}" in text for text in all_texts(figure))
    assert max(figure.get_size_inches()) < 40


def test_long_labels_are_cut_in_the_middle_and_the_title_says_so():
    label = "begin" + "x" * 400 + "end"
    figure = heatmap([[1.0]], [label], ["a" * 32], title="T")
    (shown,) = tick_texts(figure.axes[0].get_yticklabels())
    assert shown.startswith("begin")
    assert shown.endswith("end")
    assert "…" in shown
    assert len(shown) == 32
    assert tick_texts(figure.axes[0].get_xticklabels()) == ["a" * 32]
    assert any("cut in the middle: 1" in text for text in all_texts(figure))


def test_nothing_is_said_of_cutting_where_nothing_is_cut(weights):
    texts = all_texts(heatmap(weights, names("r", T), names("c", S), title="T"))
    assert not [text for text in texts if "label" in text]


def test_the_colour_bar_is_named_and_ends_at_the_largest_weight():
    figure = heatmap([[0.125, 0.5], [0.0, 0.25]], ["a", "b"], ["c", "d"])
    figure.canvas.draw()
    bar = figure.axes[1]
    assert bar.get_ylabel() == "attention weight"
    assert tick_texts(bar.get_yticklabels()) == ["0", "0.25", "0.5"]
    assert figure.axes[0].images[0].get_clim() == (0.0, 0.5)


def test_zero_weights_are_drawn_as_zero():
    figure = heatmap(np.zeros((2, 3)), ["a", "b"], ["c", "d", "e"])
    figure.canvas.draw()
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.cmap(image.norm(0.0))[:3], (1.0, 1.0, 1.0))


def test_dark_figures_are_dark_with_readable_labels(weights):
    for dark, theme in ((False, LIGHT), (True, DARK)):
        figure = heatmap(weights, names("r", T), names("c", S), title="T", dark=dark)
        paper = matplotlib.colors.to_hex(figure.get_facecolor())
        assert paper == theme.paper
        for label in figure.axes[0].get_xticklabels():
            assert contrast(matplotlib.colors.to_hex(label.get_color()), paper) > 7


def test_figures_are_unknown_to_pyplot_and_show_themselves(weights):
    import matplotlib.pyplot as plt

    before = plt.get_fignums()
    figure = heatmap(weights, names("r", T), names("c", S))
    assert plt.get_fignums() == before
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_the_same_call_writes_the_same_png(tmp_path, weights):
    for name in ("a.png", "b.png"):
        heatmap(weights, names("r", T), names("c", S), path=tmp_path / name)
    assert (tmp_path / "a.png").read_bytes() == (tmp_path / "b.png").read_bytes()


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_shades_differ_by_luminance_alone_and_text_on_them_is_readable(theme):
    shades = [shade(share, theme) for share in np.linspace(0, 1, 101)]
    steps = np.diff([luminance(color) for color in shades])
    assert (steps < 1e-4).all() or (steps > -1e-4).all()
    assert contrast(shades[0], shades[-1]) > 8
    assert min(contrast(readable_ink(color), color) for color in shades) >= 4.5
    assert contrast(theme.faint, theme.paper) >= 4.5


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.01, -0.01, -1e9])
def test_values_that_are_no_weights_are_refused(weights, bad):
    weights[1, 3] = bad
    with pytest.raises(ValueError, match=r"from 0 to 1.*weights\[1, 3\] = "):
        heatmap(weights, names("r", T), names("c", S))


def test_rounding_beyond_0_and_1_is_let_through():
    figure = heatmap([[1.0005, -0.0005]], ["a"], ["b", "c"])
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), [[1.0, 0.0]])


@pytest.mark.parametrize(("rows", "columns"), [(T + 1, S), (T, S - 1), (S, T)])
def test_labels_of_another_number_are_refused(weights, rows, columns):
    expected = rf"\({T}, {S}\), {rows} rows and {columns} columns"
    with pytest.raises(ValueError, match=expected):
        heatmap(weights, names("r", rows), names("c", columns))


@pytest.mark.parametrize("shape", [(S,), (2, T, S), (0, S), (T, 0)])
def test_weights_that_are_no_grid_are_refused(shape):
    with pytest.raises(ValueError, match=r"shape \(T, S\).*weights\[0\]"):
        heatmap(np.zeros(shape), names("r", T), names("c", S))


def test_one_string_is_no_list_of_labels():
    with pytest.raises(ValueError, match=r"`rows` must be a list.*'ab'"):
        heatmap(np.eye(2), "ab", ["a", "b"])


def test_an_unknown_kind_of_file_is_refused_before_drawing(tmp_path):
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf.*map\.bmp"):
        heatmap(np.eye(2), ["a", "b"], ["a", "b"], path=tmp_path / "map.bmp")
    assert not list(tmp_path.iterdir())


def test_importing_the_package_imports_no_drawing_library():
    # A parent without Keras, which may import such libraries for itself.
    folder = Path(visualize.__file__).parent.parent
    code = (
        "import sys, types\n"
        "parent = types.ModuleType('keras_attention')\n"
        f"parent.__path__ = [{str(folder)!r}]\n"
        "sys.modules['keras_attention'] = parent\n"
        "import keras_attention.visualize as visualize\n"
        "assert not {'matplotlib', 'rich', 'keras'} & set(sys.modules)\n"
        "visualize.highlight_html('a', [(0, 1)], [1.0])\n"
        "visualize.page([[1.0]], ['a'])\n"
        "assert not {'matplotlib', 'rich', 'keras'} & set(sys.modules)\n"
        "visualize.highlight_terminal('a', [(0, 1)], [1.0])\n"
        "assert not {'matplotlib', 'keras'} & set(sys.modules)\n"
        "visualize.heatmap([[1.0]], ['a'], ['b'])\n"
        "assert not {'keras', 'matplotlib.pyplot'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_is_a_function_also_after_its_first_use():
    for _ in range(2):
        for name in visualize.__all__:
            function = getattr(visualize, name)
            assert isinstance(function, types.FunctionType)
            assert "Example:" in function.__doc__
            assert "Raises:" in function.__doc__
            assert name in dir(visualize)
    with pytest.raises(AttributeError, match="no attribute 'heat_map'"):
        visualize.heat_map


def test_a_picture_needs_a_folder_that_exists(tmp_path):
    path = tmp_path / "absent" / "map.png"
    with pytest.raises(FileNotFoundError, match=r"Make the folder .*absent' first"):
        heatmap(np.eye(2), "ab", "ab", path=path)
