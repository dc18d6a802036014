"""The heat map of one map: what is drawn where. See also the views' guarantees."""

import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest

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
from tests.drawings import all_texts, names, strings

T, S = 3, 5
pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture
def weights():
    return np.random.default_rng(7).dirichlet(np.ones(S), T)


def test_a_cell_shows_its_own_weight_and_ticks_are_at_whole_numbers(weights):
    axes = heatmap(weights, names("row", T), names("column", S)).axes[0]
    np.testing.assert_allclose(axes.images[0].get_array(), weights)
    np.testing.assert_array_equal(axes.get_xticks(), np.arange(S))
    np.testing.assert_array_equal(axes.get_yticks(), np.arange(T))


def test_the_first_row_is_at_the_top(weights):
    axes = heatmap(weights, names("row", T), names("column", S)).axes[0]
    (_, top), (_, bottom) = axes.transData.transform([(0, 0), (0, T - 1)])
    assert top > bottom


def test_a_second_font_is_used_for_what_the_first_lacks():
    # matplotlib brings both fonts: of this letter only STIX has a glyph.
    fonts = fonts_for(["a", "\N{HIRAGANA LETTER NO}"])
    assert fonts.missing == frozenset()
    assert len(fonts.families) >= 2
    assert Ruler(fonts).width("\N{HIRAGANA LETTER NO}", 9) > 0


def test_large_maps_thin_their_labels_and_say_so():
    rows, columns = names("row", 200), names("column", 400)
    figure = heatmap(np.full((200, 400), 1 / 400), rows, columns)
    axes = figure.axes[0]
    shown, places = strings(axes.get_xticklabels()), axes.get_xticks()
    step = int(places[1])
    assert 1 < step < 10
    assert shown == columns[::step]
    np.testing.assert_array_equal(places, np.arange(0, 400, step))
    assert any(f"1 column label of {step}" in text for text in all_texts(figure))
    assert max(figure.get_size_inches()) < 40


def test_cells_under_a_pixel_are_joined_by_their_largest_and_the_title_says_so():
    weights = np.random.default_rng(3).random((2, 5001))
    figure = heatmap(weights, ["a", "b"], names("column", 5001))
    (image,) = figure.axes[0].images
    pairs = [weights[:, at : at + 2].max(axis=1) for at in range(0, 5001, 2)]
    np.testing.assert_array_equal(image.get_array(), np.transpose(pairs))
    assert image.get_extent()[:2] == [-0.5, 5001.5]  # the last block is half outside
    assert figure.axes[0].get_xlim() == (-0.5, 5000.5)
    width = figure.axes[0].get_window_extent().width
    assert width >= image.get_array().shape[1]
    assert any("the largest of 1 x 2 weights" in text for text in all_texts(figure))


def test_the_colour_bar_is_named_and_ends_at_the_largest_weight():
    figure = heatmap([[0.125, 0.5], [0.0, 0.25]], ["a", "b"], ["c", "d"])
    figure.canvas.draw()
    bar = figure.axes[1]
    assert bar.get_ylabel() == "attention weight"
    assert strings(bar.get_yticklabels()) == ["0", "0.25", "0.5"]
    assert figure.axes[0].images[0].get_clim() == (0.0, 0.5)


def test_zero_weights_are_drawn_as_zero():
    figure = heatmap(np.zeros((2, 3)), ["a", "b"], ["c", "d", "e"])
    figure.canvas.draw()
    image = figure.axes[0].images[0]
    np.testing.assert_allclose(image.cmap(image.norm(0.0))[:3], (1.0, 1.0, 1.0))


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_shades_differ_by_luminance_alone_and_text_on_them_is_readable(theme):
    shades = [shade(share, theme) for share in np.linspace(0, 1, 101)]
    steps = np.diff([luminance(color) for color in shades])
    assert (steps < 1e-4).all() or (steps > -1e-4).all()
    assert contrast(shades[0], shades[-1]) > 8
    assert min(contrast(readable_ink(color), color) for color in shades) >= 4.5
    assert contrast(theme.faint, theme.paper) >= 4.5


def test_rounding_beyond_0_and_1_is_let_through():
    figure = heatmap([[1.0005, -0.0005]], ["a"], ["b", "c"])
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), [[1.0, 0.0]])


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
        "visualize.rollout([[[1.0]]])\n"
        "assert not {'matplotlib', 'keras'} & set(sys.modules)\n"
        "visualize.heatmap([[1.0]], ['a'], ['b'])\n"
        "visualize.alignment(['a'], ['b'], [[1.0]])\n"
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


def test_figures_to_be_compared_have_one_scale():
    def shade_of_half(largest):
        figure = heatmap([[0.5, 0.1]], ["a"], ["b", "c"], largest=largest)
        image = figure.axes[0].images[0]
        return image.cmap(image.norm(0.5))

    assert shade_of_half(None) == shade_of_half(0.5) != shade_of_half(1.0)
    for wrong in (0.4, 1.5, float("nan"), "1"):
        with pytest.raises(ValueError, match=r"from the largest weight, 0\.5, to 1"):
            heatmap([[0.5, 0.1]], ["a"], ["b", "c"], largest=wrong)
