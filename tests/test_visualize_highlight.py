"""Highlighted text: the figure, the page, the fragment and the terminal."""

import itertools
import re
import warnings
from html.parser import HTMLParser

import matplotlib
import numpy as np
import pytest

from keras_attention.visualize import (
    highlight,
    highlight_fragment,
    highlight_html,
    highlight_terminal,
)
from keras_attention.visualize._colors import DARK, LIGHT, contrast, shade
from keras_attention.visualize._layout import break_lines, strongest_window
from keras_attention.visualize._spans import NOT_READ, NOTE, split_text

pytestmark = pytest.mark.filterwarnings("error")

DRAW = [highlight, highlight_html, highlight_fragment, highlight_terminal]
PAGES = [highlight_html, highlight_fragment]
TEXT = (
    "A slow start,\nbut <b>the ending</b> is superb & costs $$5_000 \\ \"well\" 'done'!"
)


def words(text):
    return [match.span() for match in re.finditer(r"\w+", text)]


def random_weights(count, seed=11):
    return np.random.default_rng(seed).dirichlet(np.ones(count))


class Spans(HTMLParser):
    """Collects the elements of a page, and the text of each."""

    VOID = ("meta", "br", "hr", "link", "img")

    def __init__(self, page):
        super().__init__()
        self.open, self.elements, self.declaration = [], [], None
        self.feed(page)
        self.close()

    def handle_decl(self, declaration):
        self.declaration = declaration

    def handle_starttag(self, tag, attributes):
        element = {"tag": tag, "text": "", **dict(attributes)}
        self.elements.append(element)
        if tag not in self.VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def words(self):
        return [each for each in self.elements if "weight" in each.get("title", "")]

    def body(self):
        (element,) = [each for each in self.elements if each.get("dir") == "auto"]
        return element["text"]


def pieces(figure, kind):
    return [text for text in figure.axes[0].texts if text.get_gid() == kind]


def body_texts(figure):
    return [text for text in figure.axes[0].texts if text.get_gid()]


def boxes(figure):
    return [patch for patch in figure.axes[0].patches if patch.get_gid() == "token"]


def all_text(figure):
    texts = [text.get_text() for text in [*figure.texts, *figure.axes[0].texts]]
    return " ".join(texts)


# The text and its spans


def test_spans_join_to_the_text_and_tokens_are_their_characters():
    offsets, cut = words(TEXT)[:-1], [(len(TEXT) - 5, len(TEXT))]
    passage = split_text(TEXT, offsets, random_weights(len(offsets)), cut)
    assert "".join(span.text for span in passage.spans) == TEXT
    tokens = [span.text for span in passage.spans if span.kind == "token"]
    assert tokens == [TEXT[start:end] for start, end in offsets]
    assert [span.text for span in passage.spans if span.kind == "cut"] == ["done'!"[1:]]


def test_shares_are_weights_over_the_largest_weight():
    passage = split_text("a b c", [(0, 1), (2, 3), (4, 5)], [0.2, 0.5, 0.3])
    shares = [span.share for span in passage.spans if span.kind == "token"]
    np.testing.assert_allclose(shares, [0.4, 1.0, 0.6])
    assert (passage.largest, passage.largest_text) == (0.5, "b")


def test_tokens_without_characters_draw_nothing_and_set_no_scale():
    offsets, weights = [(0, 0), (0, 1), (2, 3), (0, 0)], [0.6, 0.1, 0.2, 0.1]
    passage = split_text("a b", offsets, weights)
    assert [span.text for span in passage.spans] == ["a", " ", "b"]
    assert passage.largest == 0.2


def test_any_array_of_one_weight_a_token_is_read_alike():
    offsets = words("one two three")
    given = [0.5, 0.2, 0.3]
    page = highlight_html("one two three", offsets, given)
    column = np.array(given)[:, None]
    for weights in (tuple(given), np.array(given), column):
        assert highlight_html("one two three", np.array(offsets), weights) == page


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize(
    ("offsets", "weights", "options", "message"),
    [
        (
            [(0, 1), (4, 9)],
            [0.5, 0.5],
            {},
            r"`offsets\[1\]`.*inside the text.*\(4, 9\)",
        ),
        ([(-1, 1)], [0.5], {}, r"inside the text.*\(-1, 1\)"),
        ([(3, 1)], [0.5], {}, r"inside the text.*\(3, 1\)"),
        ([(0, 3), (2, 5)], [0.5, 0.5], {}, r"not overlap.*\(2, 5\) after \(0, 3\)"),
        ([(4, 5), (0, 3)], [0.5, 0.5], {}, r"sorted.*\(0, 3\) after \(4, 5\)"),
        ([(0, 1)], [0.5, 0.5], {}, r"each of the 1 offsets.*shape \(2,\)"),
        ([(0, 1), (2, 3)], [[0.5, 0.5]], {}, r"each of the 2 offsets.*shape \(1, 2\)"),
        ([(0, 1)], [np.nan], {}, r"finite and not negative.*weights\[0\] = nan"),
        ([(0, 1), (2, 3)], [0.5, -0.5], {}, r"weights\[1\] = -0.5"),
        ([(0, 1.5)], [0.5], {}, r"pairs of integers"),
        ([3], [0.5], {}, r"pairs of integers"),
        ([(0, 1)], [0.5], {"cut": [(3, 9)]}, r"`cut\[0\]`.*inside the text"),
        ([(2, 4)], [0.5], {"cut": [(3, 5)]}, r"not read.*0\.5 at \(2, 4\)"),
    ],
)
def test_what_does_not_fit_the_text_is_refused(
    draw, offsets, weights, options, message
):
    with pytest.raises(ValueError, match=message):
        draw("ab cd", offsets, weights, **options)


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("weights", [["a"], [0.5j], [[0.1], [0.1, 0.2]], None])
def test_what_is_no_number_is_refused(draw, weights):
    with pytest.raises(ValueError, match="`weights` must "):
        draw("ab cd", [(0, 2)], weights)


@pytest.mark.parametrize("draw", DRAW)
@pytest.mark.parametrize("text", [None, b"ab cd", ["ab", "cd"]])
def test_a_text_is_a_string(draw, text):
    with pytest.raises(TypeError, match=r"`text` must be a string\. Received: "):
        draw(text, [(0, 2)], [0.5])


@pytest.mark.parametrize(
    ("draw", "name"),
    [
        (highlight, "title"),
        (highlight, "legend"),
        (highlight_html, "title"),
        (highlight_html, "subtitle"),
        (highlight_html, "note"),
        (highlight_fragment, "title"),
        (highlight_fragment, "note"),
    ],
)
def test_titles_and_notes_are_strings(draw, name):
    with pytest.raises(TypeError, match=rf"`{name}` must be a string\. Received: int"):
        draw("ab cd", [(0, 2)], [0.5], **{name: 3})


@pytest.mark.parametrize("draw", DRAW)
def test_nothing_to_show_is_drawn_plainly(draw):
    assert draw("", [], []) is not draw("ab cd", [], [])
    zero = draw("ab cd", [(0, 2), (3, 5)], [0.0, 0.0])
    if draw is highlight:
        assert "all weights are 0" in all_text(zero)
        colors = {matplotlib.colors.to_hex(box.get_facecolor()) for box in boxes(zero)}
        assert colors == {LIGHT.paper}
    elif draw is highlight_terminal:
        assert (zero.plain, zero.spans) == ("ab cd", [])
    else:
        assert "all weights are 0" in zero


# Lines


def line_texts(lines):
    return [[piece.text for piece in line] for line in lines]


def lay_out(text, width, offsets=()):
    weights = random_weights(len(offsets)) if len(offsets) else []
    return break_lines(split_text(text, offsets, weights).spans, width, len)


def test_words_and_their_punctuation_stay_together():
    offsets = [(3, 7)]
    wide = lay_out("ab cdef, gh", 21, offsets)
    assert line_texts(wide) == [["ab", "cdef", ","], ["gh"]]
    narrow = lay_out("ab cdef, gh", 15.5, offsets)  # "cdef" would fit, the comma not
    assert line_texts(narrow) == [["ab"], ["cdef", ","], ["gh"]]


def test_line_breaks_are_kept_and_blank_lines_do_not_pile_up():
    lines = lay_out("\n\na b\r\nc\n\n\n\nd\n", 99)
    assert line_texts(lines) == [["a", "b"], ["c"], [], ["d"]]


@pytest.mark.parametrize(
    "text", ["x" * 5003, "字" * 1009, "a " * 2003, "ab" * 7 + " c"]
)
def test_pieces_lie_side_by_side_within_the_width_and_none_is_lost(text):
    width = 37.0
    lines = lay_out(text, width, [(0, 1), (3, 4)])
    assert "".join("".join(line) for line in line_texts(lines)) == text.replace(" ", "")
    for line in lines:
        for left, right in itertools.pairwise(line):
            assert left.x + left.width < right.x
        assert line[0].x == 0
        assert line[-1].x + line[-1].width <= width


def test_a_paragraph_from_right_to_left_begins_at_the_right():
    lines = lay_out("שלום abc עולם\nabc", 40.0)
    first, middle, last = (piece.x for piece in lines[0])
    assert first > middle > last
    assert lines[0][0].x + lines[0][0].width == 40.0
    assert lines[1][0].x == 0


@pytest.mark.parametrize(
    ("text", "from_left_to_right"),
    [
        ("ab שלום, עולם! cd", "ab עולם , שלום ! cd"),
        ("שלום ab - cd! עולם", "עולם ! ab - cd שלום"),
        ("שלום 12 עולם", "עולם 12 שלום"),
    ],
)
def test_words_of_the_other_direction_run_their_own_way(text, from_left_to_right):
    offsets = words(text)
    (line,) = lay_out(text, 99.0, offsets)
    placed = sorted(line, key=lambda piece: piece.x)
    assert " ".join(piece.text for piece in placed) == from_left_to_right
    for left, right in itertools.pairwise(placed):
        assert left.x + left.width < right.x


def test_a_token_in_two_pieces_counts_once():
    lines = break_lines(split_text("New York", [(0, 8)], [0.7]).spans, 99, len)
    assert line_texts(lines) == [["New", "York"]]
    assert sum(piece.weight for piece in lines[0]) == pytest.approx(0.7)
    assert [piece.share for piece in lines[0]] == [1.0, 1.0]


def test_a_token_wider_than_a_line_counts_once():
    lines = break_lines(split_text("x" * 41, [(0, 41)], [0.7]).spans, 12, len)
    assert len(lines) > 3
    pieces = [piece for line in lines for piece in line]
    assert sum(piece.weight for piece in pieces) == pytest.approx(0.7)


def test_the_window_holds_the_most_attention_and_is_the_earliest_of_equals():
    text = "\n".join("abcdefg")
    offsets = [(2 * index, 2 * index + 1) for index in range(7)]

    def window(weights):
        spans = split_text(text, offsets, weights).spans
        return strongest_window(break_lines(spans, 99, len), 3)

    assert window([0.1, 0.0, 0.1, 0.0, 0.3, 0.3, 0.2]) == (4, 7)
    assert window([0.0] * 7) == (0, 3)
    assert window([0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]) == (1, 4)


# The figure


@pytest.fixture(scope="module")
def long_text():
    generator = np.random.default_rng(5)
    stems = ["film", "a", "unforgettable", "$$", "is", "of_the", "x" * 150, "scene,"]
    text = " ".join(stems[index] for index in generator.integers(0, 8, 1000))
    return text.replace("scene, is", "scene,\n\nis")


@pytest.mark.parametrize("dark", [False, True])
def test_nothing_overlaps_and_nothing_leaves_the_figure(long_text, dark):
    offsets = words(long_text)
    weights = random_weights(len(offsets))
    figure = highlight(
        long_text,
        offsets,
        weights,
        title="A long title " * 20,
        dark=dark,
        legend="a legend " * 30,
    )
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    lines = {}
    for text in [*figure.axes[0].texts, *figure.texts]:
        box = text.get_window_extent(renderer)
        assert figure.bbox.x0 <= box.x0
        assert box.x1 <= figure.bbox.x1
        assert figure.bbox.y0 <= box.y0
        assert box.y1 <= figure.bbox.y1
        lines.setdefault(round(text.get_position()[1], 3), []).append(box)
    body = [text.get_position()[1] for text in body_texts(figure)]
    heading = min(text.get_window_extent(renderer).y0 for text in figure.texts)
    first = figure.axes[0].transData.transform((0, min(body)))[1]
    assert first + 20 < heading
    for line in lines.values():
        line.sort(key=lambda box: box.x0)
        for left, right in itertools.pairwise(line):
            assert left.x1 <= right.x0 + 1
    heights = np.diff(sorted(set(body)))
    assert heights.min() > 20


def test_a_long_text_is_drawn_in_part_and_the_title_says_so(long_text):
    offsets = words(long_text)
    weights = np.zeros(len(offsets))
    weights[-3:] = (0.5, 0.3, 0.2)
    figure = highlight(long_text, offsets, weights)
    said = " ".join(text.get_text() for text in figure.texts)
    assert re.search(
        r"[1-9]\d* lines before it and 0 lines after it are left out", said
    )
    assert "100% of the attention" in said
    strongest = long_text[slice(*offsets[-3])]
    dark_words = [
        text.get_text()
        for text in pieces(figure, "token")
        if text.get_color() == "#ffffff"
    ]
    assert dark_words == [strongest]
    assert figure.get_size_inches()[1] < 20


def test_a_short_text_is_drawn_whole_and_nothing_is_said_of_parts():
    offsets = words(TEXT)
    figure = highlight(TEXT, offsets, random_weights(len(offsets)), title="T")
    assert [text.get_text() for text in figure.texts] == ["T"]
    drawn = "".join(text.get_text() for text in body_texts(figure))
    assert drawn == re.sub(r"\s", "", TEXT)


def test_each_word_lies_on_the_shade_of_its_weight():
    offsets = words(TEXT)
    weights = random_weights(len(offsets))
    for dark, theme in ((False, LIGHT), (True, DARK)):
        figure = highlight(TEXT, offsets, weights, dark=dark)
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        texts, grounds = pieces(figure, "token"), boxes(figure)
        assert [text.get_text() for text in texts] == [TEXT[a:b] for a, b in offsets]
        for text, ground, weight in zip(texts, grounds, weights, strict=True):
            color = matplotlib.colors.to_hex(ground.get_facecolor())
            assert color == shade(weight / weights.max(), theme)
            assert contrast(matplotlib.colors.to_hex(text.get_color()), color) >= 4.5
            inner, outer = text.get_window_extent(renderer), ground.get_window_extent()
            assert outer.x0 <= inner.x0
            assert inner.x1 <= outer.x1 + 1


def test_the_legend_says_the_largest_weight_and_can_be_left_out():
    offsets, weights = [(0, 1), (2, 3)], [0.125, 0.25]
    figure = highlight("a b", offsets, weights, legend="of the words")
    assert "0.25 of the words" in all_text(figure)
    figure = highlight("a b", offsets, weights, legend=None)
    assert [text.get_text() for text in figure.axes[0].texts] == ["a", "b"]
    assert not figure.axes[0].images


def test_cut_parts_are_grey_dotted_and_never_shaded():
    text = "read this not that"
    figure = highlight(text, words(text), [0.4, 0.6, 0, 0], cut=[(10, len(text))])
    cut = pieces(figure, "cut")
    assert [piece.get_text() for piece in cut] == ["not", "that"]
    assert {piece.get_color() for piece in cut} == {LIGHT.faint}
    assert len(boxes(figure)) == 2
    assert len(figure.axes[0].lines) == 3  # two words and the legend's sample
    assert NOT_READ in all_text(figure)


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_figure_is_written(tmp_path, suffix):
    path = tmp_path / f"text.{suffix}"
    offsets = words(TEXT)
    highlight(TEXT, offsets, random_weights(len(offsets)), path=path)
    start = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}[suffix]
    assert path.read_bytes().startswith(start)


def test_the_figure_refuses_other_files(tmp_path):
    with pytest.raises(ValueError, match=r"\.png, \.svg or \.pdf.*text\.bmp"):
        highlight("a", [(0, 1)], [1.0], path=tmp_path / "text.bmp")


def test_characters_without_a_font_are_drawn_as_codes_with_one_warning():
    text = "ab \U0001fffe\U0001fffe cd \U0001ffff \x07"
    offsets = [match.span() for match in re.finditer(r"\S+", text)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure = highlight(text, offsets, random_weights(len(offsets)))
        figure.canvas.draw()
    assert [each.category for each in caught] == [UserWarning]
    assert caught[0].filename == __file__
    drawn = " ".join(text.get_text() for text in pieces(figure, "token"))
    assert drawn == "ab <U+1FFFE U+1FFFE> cd <U+1FFFF> <U+0007>"


# The page and the fragment


@pytest.mark.parametrize("draw", PAGES)
def test_each_shaded_span_is_its_token_and_the_text_is_whole(draw):
    offsets = words(TEXT)
    weights = random_weights(len(offsets))
    page = Spans(draw(TEXT, offsets, weights))
    assert page.body() == TEXT
    shaded = page.words()
    assert [each["text"] for each in shaded] == [TEXT[a:b] for a, b in offsets]
    for each, weight in zip(shaded, weights, strict=True):
        assert float(each["title"].removeprefix("weight ")) == pytest.approx(
            weight, rel=5e-3
        )
    assert page.open == []


@pytest.mark.parametrize("draw", PAGES)
def test_markup_in_any_string_is_text(draw):
    evil = "<script>alert('x')</script> & \"</title></style><img src=x onerror=y>"
    options = {"title": evil, "note": evil}
    if draw is highlight_html:
        options["subtitle"] = evil
    start = evil.index("alert")
    offsets = [(0, start), (start, len(evil))]
    page = Spans(draw(evil, offsets, [0.25, 0.75], **options))
    assert not [each for each in page.elements if each["tag"] in ("script", "img")]
    assert page.body() == evil
    assert sum(each["text"] == evil for each in page.elements) >= len(options) + 1


def test_the_page_stands_alone_and_has_the_parts_of_a_page():
    offsets = words(TEXT)
    source = highlight_html(
        TEXT, offsets, random_weights(len(offsets)), title="Title", subtitle="97 %"
    )
    page = Spans(source)
    assert page.declaration == "DOCTYPE html"
    tags = [each["tag"] for each in page.elements]
    for tag in ("html", "head", "title", "style", "body", "main", "h1"):
        assert tags.count(tag) == 1
    assert {"link", "script", "img", "iframe"}.isdisjoint(tags)
    assert not re.search(r"https?:|url\(|@import|src=", source)
    assert [each.get("charset") for each in page.elements].count("utf-8") == 1
    (style,) = [each["text"] for each in page.elements if each["tag"] == "style"]
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    assert style.count("{") == style.count("}")
    used = {name for each in page.words() for name in each["class"].split()}
    assert all(f".{name} {{" in style for name in used)
    assert "97 %" in [each["text"] for each in page.elements]


def test_the_pages_levels_follow_the_weights():
    page = Spans(highlight_html("a b c", words("a b c"), [0.0, 0.3, 0.6]))
    assert [each["class"] for each in page.words()] == ["t w0", "t w10", "t w20"]


@pytest.mark.parametrize("dark", [False, True])
def test_the_fragment_is_one_div_with_its_own_readable_colours(dark):
    offsets = words(TEXT)
    weights = random_weights(len(offsets))
    source = highlight_fragment(TEXT, offsets, weights, title="T", dark=dark)
    page = Spans(source)
    assert source.startswith("<div") and source.endswith("</div>")
    assert {each["tag"] for each in page.elements} == {"div", "span"}
    assert all("class" not in each and "id" not in each for each in page.elements)
    theme = DARK if dark else LIGHT
    for each, weight in zip(page.words(), weights, strict=True):
        ground, ink = re.match(
            r"background:(#\w{6});color:(#\w{6});", each["style"]
        ).groups()
        assert ground == shade(weight / weights.max(), theme)
        assert contrast(ground, ink) >= 4.5


@pytest.mark.parametrize("draw", PAGES)
def test_legend_footnote_and_cut_parts_are_marked(draw):
    text = "read this not that"
    source = draw(
        text, words(text), [0.25, 0.75, 0, 0], cut=[(10, 12), (12, 14), (13, 18)]
    )
    page = Spans(source)
    assert [each["text"] for each in page.words()] == ["read", "this"]
    marked = [each for each in page.elements if each.get("title") == NOT_READ]
    assert [each["text"] for each in marked] == ["not that"]
    assert page.body() == text
    texts = [each["text"] for each in page.elements]
    assert NOTE in texts
    assert NOT_READ in texts
    assert any("largest weight: 0.75 (this)" in each for each in texts)
    plain = draw(text, words(text), [0.25, 0.75, 0, 0], note=None)
    assert NOTE not in plain
    assert NOT_READ not in plain


@pytest.mark.parametrize("draw", PAGES)
def test_what_html_or_utf8_cannot_hold_is_replaced(draw):
    text = "a\x00b\x1f \ud800 c\r\nd"
    page = draw(text, [(0, 3)], [1.0])
    assert Spans(page).body() == "a\ufffdb\ufffd \ufffd c\r\nd"
    assert page.encode("utf-8").decode("utf-8") == page


# The terminal


@pytest.mark.parametrize("dark", [False, True])
def test_the_terminal_shades_words_by_weight(dark):
    offsets = words(TEXT)
    weights = np.linspace(0.05, 1.0, len(offsets))
    line = highlight_terminal(TEXT, offsets, weights, dark=dark)
    assert line.plain == TEXT
    assert len(line.spans) == len(offsets)
    for span, (start, end), weight in zip(line.spans, offsets, weights, strict=True):
        assert (span.start, span.end) == (start, end)
        ground, ink = span.style.bgcolor.name, span.style.color.name
        assert ground == shade(weight, DARK if dark else LIGHT)
        assert contrast(ground, ink) >= 4.5


def test_the_terminal_leaves_faint_words_plain_and_dims_cut_parts():
    line = highlight_terminal(
        "the end, not this", [(0, 3), (4, 7)], [0.01, 0.99], cut=[(9, 17)]
    )
    shaded, cut = line.spans
    assert line.plain[shaded.start : shaded.end] == "end"
    assert line.plain[cut.start : cut.end] == "not this"
    assert cut.style.dim
    assert cut.style.bgcolor is None


def test_square_brackets_are_text_in_the_terminal():
    line = highlight_terminal("[bold]x[/bold]", [(0, 6)], [1.0])
    assert line.plain == "[bold]x[/bold]"


def test_a_terminal_is_sent_no_control_characters():
    line = highlight_terminal("a\x1b[31m b\x07\n", [(0, 1), (6, 7)], [0.5, 0.5])
    assert line.plain == "a\ufffd[31m b\ufffd\n"
