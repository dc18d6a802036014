"""The page of attention maps in a real browser: pointer, keyboard, themes, paper."""

import itertools
import os
import re
import shutil
import time

import numpy as np
import pytest

from keras_attention.visualize import page
from keras_attention.visualize._colors import DARK, LIGHT, shade

T, S = 3, 5
ROWS, COLUMNS = ["le", "chat", "dort"], ["the", "cat", "is", "asleep", "now"]
PAIR = np.array(
    [
        [0.50, 0.30, 0.11, 0.05, 0.04],
        [0.07, 0.80, 0.13, 0.00, 0.00],
        [0.00, 0.00, 0.24, 0.41, 0.35],
    ]
)
WORDS = ["the", "cat", "and", "the", "dog"]
LAYERS, HEADS = 2, 3
BIG = 512
KINDS = {"uniform": 0.0, "random": 1.0, "peaked": 12.0}
pytestmark = pytest.mark.filterwarnings("error")


def softmax(shape, sharpness=1.0, seed=3):
    generator = np.random.default_rng(seed)
    logits = np.float32(sharpness) * generator.normal(size=shape).astype("float32")
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def browser():
    api = pytest.importorskip(
        "playwright.sync_api",
        reason="these tests need the package playwright: pip install playwright",
    )
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    program = next(filter(None, map(shutil.which, names)), None)
    if program is None:
        pytest.skip("these tests need Chromium: apt-get install chromium")
    # The sandbox refuses to start for root.
    root = getattr(os, "geteuid", lambda: 1)() == 0
    options = {"executable_path": program, "args": ["--no-sandbox"] if root else []}
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(**options)
        yield opened
        opened.close()


@pytest.fixture
def show(browser, tmp_path):
    """Opens pages; at the end no error, dialog or request of theirs may be left."""
    seen, contexts = [], []

    def show(html, script=None, **options):
        path = tmp_path / f"{len(contexts)}.html"
        path.write_text(html, encoding="utf-8")
        contexts.append(browser.new_context(**options))
        contexts[-1].set_default_timeout(10_000)
        view = contexts[-1].new_page()
        if script:
            view.add_init_script(script)
        view.on("console", lambda message: seen.append(message.text))
        view.on("pageerror", lambda error: seen.append(str(error)))
        view.on("dialog", lambda dialog: seen.append(dialog.message))
        own = path.as_uri()
        view.on("request", lambda each: each.url == own or seen.append(each.url))
        view.goto(own)
        view.locator("#status:not(:empty)").wait_for()
        return view

    yield show
    for context in contexts:
        context.close()
    assert seen == []


def status(view):
    return view.get_by_role("status").inner_text()


def words(view, side="rows"):
    return view.locator(f"#{side}").get_by_role("option")


def shades(view, side):
    """The ground of each word, as #rrggbb."""
    colors = words(view, side).evaluate_all(
        "all => all.map(each => getComputedStyle(each).backgroundColor)"
    )
    return [hex_color(color) for color in colors]


def hex_color(color):
    return "#" + "".join(f"{int(value):02x}" for value in re.findall(r"\d+", color)[:3])


def pixel(view, selector, row, column):
    color = view.locator(selector).first.evaluate(
        """(canvas, place) => {
            const copy = new OffscreenCanvas(canvas.width, canvas.height);
            const context = copy.getContext("2d");
            context.drawImage(canvas, 0, 0);
            return [...context.getImageData(...place, 1, 1).data];
        }""",
        [column, row],
    )
    return hex_color(str(color))


def listed(view):
    """The table: [(word, place, weight), ...]."""
    rows = view.locator("#list tr").evaluate_all(
        "all => all.map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return [(word, int(place), float(weight)) for word, place, weight in rows]


def expected_shades(weights, theme=LIGHT, full=None):
    shares = np.asarray(weights) / (full or max(weights))
    return [shade(np.round(20 * share) / 20, theme) for share in shares]


# Two texts


def test_pointing_at_a_word_shows_where_it_looks(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    assert status(view).startswith("No word is chosen; on average the words look most")
    words(view).nth(1).hover()
    assert (
        status(view) == "“chat” looks most at “cat” 0.8000, “is” 0.1300, “the” 0.0700."
    )
    assert shades(view, "columns") == expected_shades(PAIR[1])
    assert set(shades(view, "rows")) == {LIGHT.paper}
    assert listed(view) == [("cat", 2, 0.8), ("is", 3, 0.13), ("the", 1, 0.07)]
    assert view.locator("#list-caption").inner_text() == "Where “chat” looks"
    assert view.locator("[aria-selected=true]").all_inner_texts() == ["chat"]


def test_pointing_at_a_word_that_is_looked_at_shows_what_looks_at_it(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    words(view, "columns").nth(2).hover()
    expected = "“is” is looked at most by “dort” 0.2400, “chat” 0.1300, “le” 0.1100."
    assert status(view) == expected
    assert shades(view, "rows") == expected_shades(PAIR[:, 2])
    assert view.locator("#list-caption").inner_text() == "What looks at “is”"


def test_without_a_word_the_shades_are_means(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    means = PAIR.mean(axis=0)
    assert shades(view, "columns") == expected_shades(means)
    order = np.argsort(-means, kind="stable")
    expected = [(COLUMNS[at], at + 1, round(means[at], 4)) for at in order]
    assert listed(view) == expected
    words(view).nth(0).hover()
    view.mouse.move(1, 1)
    assert listed(view) == expected


def test_a_click_keeps_a_word_and_a_second_one_or_escape_lets_it_go(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    words(view).nth(2).click()
    view.mouse.move(1, 1)
    assert status(view).startswith("“dort” looks most at “asleep” 0.4100")
    words(view).nth(2).click()
    view.mouse.move(1, 1)
    assert status(view).startswith("No word is chosen")
    words(view, "columns").nth(0).click()
    view.mouse.move(1, 1)
    assert status(view).startswith("“the” is looked at")
    view.keyboard.press("Escape")
    assert status(view).startswith("No word is chosen")


def test_nothing_moves_while_the_pointer_goes_over_the_words(show):
    long = [word * 9 for word in COLUMNS]
    for size in ({"width": 1280, "height": 800}, {"width": 360, "height": 800}):
        view = show(page(PAIR, ROWS, long), viewport=size)
        before = [each.bounding_box() for each in words(view, "columns").all()]
        for place in (0, 2, 1):
            words(view).nth(place).hover()
            after = [each.bounding_box() for each in words(view, "columns").all()]
            assert after == before


def test_a_single_query_is_chosen_from_the_start(show):
    view = show(page(PAIR[:1], ["the model"], COLUMNS))
    assert status(view).startswith("“the model” looks most at “the” 0.5000")
    assert shades(view, "columns") == expected_shades(PAIR[0])
    for hidden in ("Layer", "Head"):
        assert view.get_by_role("combobox", name=hidden).count() == 0
    assert not view.get_by_role("heading", name="Layers and heads").is_visible()


def test_a_cell_of_the_map_reads_its_weight_and_chooses_its_row(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    box = view.locator("#map").bounding_box()
    x = box["x"] + box["width"] * (1 + 0.5) / S
    y = box["y"] + box["height"] * (1 + 0.5) / T
    view.mouse.move(x, y)
    assert view.locator("#cell").inner_text() == "“chat” looks at “cat”: 0.8000"
    assert status(view).startswith("“chat” looks most at “cat”")
    band = view.locator("#row-band").bounding_box()
    assert band["y"] <= y <= band["y"] + band["height"]
    assert band["height"] == pytest.approx(box["height"] / T, abs=2)
    for row, column in itertools.product(range(T), range(S)):
        found = pixel(view, "#map", row, column)
        near = shade(PAIR[row, column] / 0.8, LIGHT)
        channels = zip(bytes.fromhex(found[1:]), bytes.fromhex(near[1:]), strict=True)
        assert max(abs(one - other) for one, other in channels) <= 2


# One text that looks at itself


def test_one_text_shows_both_directions(show):
    weights = softmax((5, 5), 2.0)
    view = show(page(weights, WORDS))
    assert not view.locator("#columns").is_visible()
    words(view).nth(3).click()
    view.mouse.move(1, 1)
    order = np.argsort(-weights[3])
    assert status(view).startswith("“the” (word 4) looks most at ")
    assert [place - 1 for _, place, _ in listed(view)] == order.tolist()
    assert shades(view, "rows") == expected_shades(weights[3])
    view.get_by_role("radio", name="is looked at by").check()
    order = np.argsort(-weights[:, 3])
    assert status(view).startswith("“the” (word 4) is looked at most by ")
    assert [place - 1 for _, place, _ in listed(view)] == order.tolist()
    assert shades(view, "rows") == expected_shades(weights[:, 3])
    view.get_by_role("radio", name="looks at", exact=True).check()
    assert status(view).startswith("“the” (word 4) looks most at ")


@pytest.mark.parametrize("way", ["picture", "lists", "arrows"])
def test_every_head_can_be_chosen_in_every_way(show, way):
    weights = softmax((LAYERS, HEADS, 5, 5), 2.0)
    view = show(page(weights, WORDS))
    words(view).nth(1).click()
    view.mouse.move(1, 1)
    if way == "arrows":
        view.locator("#grid button[aria-pressed=true]").focus()
    for layer, head in itertools.product(range(LAYERS), range(HEADS)):
        name = f"layer {layer}, head {head}"
        picture = view.get_by_role("button", name=name)
        if way == "picture":
            picture.click()
        elif way == "lists":
            view.get_by_role("combobox", name="Layer").select_option(f"layer {layer}")
            view.get_by_role("combobox", name="Head").select_option(str(head))
        elif (layer, head) != (0, 0):
            keys = ["ArrowRight"] if head else ["ArrowDown", "ArrowLeft", "ArrowLeft"]
            for key in keys:
                view.keyboard.press(key)
            assert picture.evaluate("each => each === document.activeElement")
        view.get_by_role("heading", name=f"Words: {name}").wait_for()
        rounded = np.round(weights[layer, head, 1], 4)
        expected = sorted(rounded[rounded > 0], reverse=True)
        view.locator("#list td", has_text=f"{expected[0]:.4f}").wait_for()
        assert [weight for _, _, weight in listed(view)] == pytest.approx(expected)
        assert picture.get_attribute("aria-pressed") == "true"
        assert view.locator("[aria-pressed=true]").count() == 1
        assert view.get_by_role("combobox", name="Layer").input_value() == str(layer)
        assert view.get_by_role("combobox", name="Head").input_value() == str(head)


def test_the_last_head_wins_however_quickly_they_are_chosen(show):
    weights = softmax((LAYERS, HEADS, 5, 5), 2.0)
    # The first chosen takes longest to unpack, the last is there first.
    script = """
        const unpack = Response.prototype.arrayBuffer;
        let wait = 140;
        Response.prototype.arrayBuffer = async function () {
            await new Promise((resolve) => setTimeout(resolve, (wait -= 20)));
            return unpack.call(this);
        };"""
    view = show(page(weights, WORDS), script)
    view.locator("#grid").evaluate(
        "grid => grid.querySelectorAll('button').forEach(each => each.click())"
    )
    means = weights[-1, -1].mean(axis=0)
    expected = sorted(np.round(means, 4), reverse=True)
    view.wait_for_timeout(200)
    found = [weight for _, _, weight in listed(view)]
    assert found == pytest.approx(expected, abs=0.0001)


def test_layers_may_have_different_numbers_of_heads(show):
    weights = {"one/attention": np.eye(5), "two": softmax((2, 5, 5), 2.0)}
    view = show(page(weights, WORDS))
    view.get_by_role("combobox", name="Layer").select_option("two")
    view.get_by_role("combobox", name="Head").select_option("1")
    view.get_by_role("heading", name="Words: two, head 1").wait_for()
    view.get_by_role("combobox", name="Layer").select_option("one/attention")
    view.get_by_role("heading", name="Words: one/attention").wait_for()
    assert view.get_by_role("combobox", name="Head").input_value() == "0"
    assert status(view).startswith("No word is chosen")


# Controls


def test_the_slider_hides_small_weights_everywhere_and_says_so(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    words(view).nth(0).click()
    view.mouse.move(1, 1)
    slider = view.get_by_role("slider", name="Hide weights under")
    assert slider.get_attribute("aria-valuetext") == "no weight is hidden"
    slider.fill("50")  # a quarter of 0.8, on a scale with more room for small weights
    text = (
        "“le” looks most at “the” 0.5000, “cat” 0.3000 with a weight of 0.2000 or more."
    )
    assert status(view) == text
    assert slider.get_attribute("aria-valuetext") == "weights under 0.2000 are hidden"
    assert len(listed(view)) == 2
    visible = np.where(PAIR[0] >= 0.2, PAIR[0], 0)
    assert shades(view, "columns") == expected_shades(visible)
    assert pixel(view, "#map", 0, 2) == LIGHT.paper
    assert pixel(view, "#map", 0, 1) != LIGHT.paper
    words(view, "columns").nth(0).hover()
    assert status(view).startswith("“the” is looked at most by “le” 0.5000 with")
    slider.fill("100")
    view.mouse.move(1, 1)
    assert status(view) == "“le” looks at nothing with a weight of 0.8000 or more."
    assert listed(view) == []


def test_the_strongest_shade_can_be_that_of_the_map_or_of_1(show):
    view = show(page(PAIR, ROWS, COLUMNS))
    words(view).nth(2).click()
    view.mouse.move(1, 1)
    scale = view.get_by_label("Strongest shade")
    for choice, full, legend in (
        ("largest weight of the word", 0.41, "0.4100, largest of the word"),
        ("largest weight of the map", 0.8, "0.8000, largest of the map"),
        ("weight 1", 1.0, "1.0000"),
    ):
        scale.select_option(choice)
        assert shades(view, "columns") == expected_shades(PAIR[2], full=full)
        assert view.locator("#largest").inner_text() == legend


def test_the_table_lists_all_words_when_asked(show):
    tokens = [f"w{n}" for n in range(23)]
    weights = softmax((1, 23))
    view = show(page(weights, ["x"], tokens))
    assert len(listed(view)) == 10
    view.get_by_role("button", name="All 23").click()
    found = {place - 1: weight for _, place, weight in listed(view)}
    np.testing.assert_allclose([found[n] for n in range(23)], weights[0], atol=0.00006)
    view.get_by_role("button", name="The first 10").click()
    assert len(listed(view)) == 10


# Keyboard and screen reader


def test_the_keyboard_reaches_everything_and_its_place_is_seen(show):
    view = show(page(softmax((LAYERS, HEADS, 11, 11)), [f"w{n}" for n in range(11)]))
    reached = []
    for _ in range(9):
        view.keyboard.press("Tab")
        place = view.locator(":focus")
        style = place.evaluate(
            "each => [each.id || each.value || each.role || each.ariaLabel,"
            " getComputedStyle(each).outlineStyle,"
            " parseFloat(getComputedStyle(each).outlineWidth)]"
        )
        reached.append(style[0])
        assert style[1] == "solid" and style[2] >= 2
    assert reached[:7] == ["theme", "layer", "head", "out", "scale", "floor", "option"]
    assert reached[7].startswith("layer 0, head 0: a word looks at about ")
    assert reached[8] == "more"


def test_arrow_keys_walk_through_the_words(show):
    tokens = [f"word{n}" for n in range(40)]
    view = show(page(np.eye(40), tokens), viewport={"width": 700, "height": 800})
    words(view).first.focus()

    def press(key):
        view.keyboard.press(key)
        name = view.locator(":focus").inner_text()
        assert status(view) == f"“{name}” looks most at “{name}” 1.0000."
        return int(name.removeprefix("word"))

    assert [press("ArrowRight"), press("ArrowRight"), press("ArrowLeft")] == [1, 2, 1]
    lines = [each["y"] for each in (word.bounding_box() for word in words(view).all())]
    width = lines.index(next(y for y in lines if y > lines[0]))
    below = press("ArrowDown")
    assert lines[below] > lines[1] and abs(below - 1 - width) <= 1
    assert press("ArrowUp") == 1
    assert press("ArrowUp") == 1
    assert [press("End"), press("ArrowRight"), press("Home")] == [39, 39, 0]
    view.keyboard.press("Escape")
    assert status(view).startswith("No word is chosen")
    assert press("Enter") == 0
    view.keyboard.press("ArrowRight")
    view.keyboard.press("Shift+Tab")
    view.keyboard.press("Tab")
    assert view.locator(":focus").inner_text() == "word1"


def test_a_screen_reader_finds_names_for_all_there_is(show):
    view = show(page(softmax((LAYERS, HEADS, 5, 5)), WORDS, title="Heads"))
    for role, name in (
        ("heading", "Heads"),
        ("combobox", "Layer"),
        ("combobox", "Head"),
        ("combobox", "Strongest shade"),
        ("group", "The chosen word"),
        ("slider", "Hide weights under"),
        ("listbox", "Words"),
        ("button", "Dark theme"),
        ("table", "What is looked at on average"),
        ("columnheader", "Weight"),
    ):
        assert view.get_by_role(role, name=name, exact=True).count() == 1, name
    assert words(view).count() == len(WORDS)
    assert view.get_by_role("status").get_attribute("aria-live") == "polite"
    label = view.get_by_role("img").get_attribute("aria-label")
    assert label.startswith("Map of 5 words that look by 5 that are looked at, layer 0")
    unnamed = view.locator("button, select, input").evaluate_all(
        "all => all.filter(each => !each.ariaLabel && !each.innerText"
        " && !each.labels?.length).length"
    )
    assert unnamed == 0


# Strings


def test_hostile_tokens_are_shown_as_text(show):
    tokens = [
        *("<script>alert(1)</script>", "</script>", "<img src=x onerror=alert(2)>"),
        *("<!--", "&lt;", "$data", "__proto__", '"', "\u202eabc"),
    ]
    weights = softmax((len(tokens), len(tokens)))
    names = {f"{token}<b>": weights for token in tokens}
    html = page(names, tokens, tokens, title=tokens[0], subtitle=tokens[2])
    view = show(html)
    for side in ("rows", "columns"):
        assert (
            words(view, side).evaluate_all("a => a.map(e => e.textContent)") == tokens
        )
    for word in words(view).all():
        word.hover()
        assert word.inner_text()[:3] in status(view)
    assert view.locator("img:not([role]), b").count() == 0
    assert view.get_by_role("heading", level=1).inner_text() == tokens[0]


def test_the_policy_stops_what_a_page_would_ask_for(browser, tmp_path):
    (tmp_path / "a.html").write_text(page(PAIR, ROWS, COLUMNS), encoding="utf-8")
    (tmp_path / "b.css").write_text("body { color: red; }")
    context = browser.new_context()
    view, messages = context.new_page(), []
    view.on("console", lambda message: messages.append(message.text))
    view.goto((tmp_path / "a.html").as_uri())
    for part in ("fetch('b.css').catch(() => 0)", "new Image().src = 'b.png'"):
        messages.clear()
        view.evaluate(
            f"() => {{ {part}; return new Promise(r => setTimeout(r, 50)); }}"
        )
        assert "violates the following Content Security Policy" in messages[0]
    context.close()


def test_right_to_left_text_and_chinese_run_as_they_are_read(show):
    tokens = ["החתול", "ישן", "big", "cat", "הכיסא", "日本"]
    view = show(page(np.eye(6), tokens), viewport={"width": 1280, "height": 800})
    places = [word.bounding_box()["x"] for word in words(view).all()]
    order = sorted(range(6), key=lambda at: -places[at])
    assert [tokens[at] for at in order] == [
        "החתול",
        "ישן",
        "cat",
        "big",
        "הכיסא",
        "日本",
    ]
    assert words(view).nth(0).evaluate("e => getComputedStyle(e).direction") == "rtl"
    assert words(view).nth(2).evaluate("e => getComputedStyle(e).direction") == "ltr"
    words(view).nth(0).focus()
    view.keyboard.press("ArrowLeft")
    assert view.locator(":focus").inner_text() == "ישן"
    chinese = show(page(np.eye(3), list("猫在椅")))
    assert words(chinese).all_inner_texts() == ["猫", "在", "椅"]


# Themes, paper, small screens


def test_the_theme_is_the_systems_until_it_is_chosen(show):
    for system, first, second in (("dark", DARK, LIGHT), ("light", LIGHT, DARK)):
        view = show(page(PAIR, ROWS, COLUMNS), color_scheme=system)
        words(view).nth(1).click()
        view.mouse.move(1, 1)
        for theme in (first, second):
            body = view.locator("body")
            ground = body.evaluate("e => getComputedStyle(e).backgroundColor")
            assert hex_color(ground) == theme.paper
            assert shades(view, "columns") == expected_shades(PAIR[1], theme)
            assert pixel(view, "#map", 1, 1) == theme.ramp[-1]
            assert pixel(view, "#map", 1, 3) == theme.paper
            view.locator("#theme").click()
            view.mouse.move(1, 1)
    view.emulate_media(color_scheme="dark")  # light was chosen
    view.wait_for_timeout(50)
    assert pixel(view, "#map", 1, 3) == LIGHT.paper


def test_a_change_of_the_systems_theme_is_followed(show):
    weights = softmax((HEADS, T, S))
    view = show(page(weights, ROWS, COLUMNS), color_scheme="light")
    row, column = np.unravel_index(weights[0].argmax(), (T, S))
    place = (int(row), int(column))
    assert pixel(view, "#grid canvas", *place) == LIGHT.ramp[-1]
    view.emulate_media(color_scheme="dark")
    view.get_by_role("button", name="Light theme").wait_for()
    assert pixel(view, "#grid canvas", *place) == DARK.ramp[-1]


def test_paper_is_light_and_has_no_controls(show):
    view = show(page(PAIR, ROWS, COLUMNS, title="On paper"), color_scheme="dark")
    words(view).nth(1).click()
    assert view.pdf()[:5] == b"%PDF-"
    view.wait_for_timeout(50)
    assert pixel(view, "#map", 1, 3) == DARK.paper
    view.emulate_media(media="print")
    ground = view.locator("body").evaluate("e => getComputedStyle(e).backgroundColor")
    assert hex_color(ground) == LIGHT.paper
    view.evaluate("() => dispatchEvent(new Event('beforeprint'))")
    assert pixel(view, "#map", 1, 3) == LIGHT.paper
    assert shades(view, "columns") == expected_shades(PAIR[1])
    for selector in (".controls", "#theme", "#keys"):
        assert not view.locator(selector).is_visible()
    for selector in ("h1", "#status", "#columns", "#list", "#map", ".note"):
        assert view.locator(selector).is_visible()
    view.emulate_media(media="screen")
    view.evaluate("() => dispatchEvent(new Event('afterprint'))")
    view.wait_for_timeout(50)
    assert pixel(view, "#map", 1, 3) == DARK.paper


@pytest.mark.parametrize("width", [320, 700, 1280])
def test_no_page_is_wider_than_its_window(show, width):
    tokens = ["x" * 400, *(f"word{n}" for n in range(30))]
    weights = {"a_layer_with_a_long_name/self_attention": softmax((16, 31, 31))}
    html = page(weights, tokens, title="y" * 200)
    view = show(html, viewport={"width": width, "height": 700})
    words(view).nth(0).click()
    root = view.locator("html")
    assert root.evaluate("e => e.scrollWidth <= e.clientWidth")


def test_a_browser_that_cannot_unpack_says_so(show):
    view = show(page(PAIR, ROWS, COLUMNS), script="delete window.DecompressionStream")
    assert status(view).startswith("The weights cannot be unpacked")
    words(view).nth(0).hover()
    assert status(view).startswith("The weights cannot be unpacked")


# Long texts


@pytest.fixture(scope="module", params=KINDS)
def large(request):
    """Twelve layers of twelve heads over 512 words."""
    shape = (12, 12, BIG, BIG)
    tokens = [f"word{n}" for n in range(BIG)]
    return request.param, page(softmax(shape, KINDS[request.param]), tokens)


@pytest.mark.slow
def test_a_page_of_144_maps_of_512_words_is_under_15_mb(large):
    kind, html = large
    assert len(html.encode("utf-8")) < 15_000_000
    # What docs/visualize.md says of the worst.
    assert ("rounded to steps of 0.002," in html) == (kind == "random")


def opened_in_a_second(view):
    start = time.perf_counter()
    view.reload(wait_until="commit")
    view.locator("#status:not(:empty)").wait_for()
    return time.perf_counter() - start < 1


@pytest.mark.slow
def test_it_opens_in_a_second_and_follows_the_pointer(large, show):
    kind, html = large
    view = show(html, viewport={"width": 1280, "height": 900})
    assert any(opened_in_a_second(view) for _ in range(6))  # others may need the CPU
    if kind == "uniform":
        assert status(view).endswith("and at 509 more.")
    words(view).nth(300).click()
    assert status(view).startswith("“word300” looks most at ")
    assert view.locator("#status").bounding_box()["y"] >= 0  # it stays in sight
    took = view.locator("#rows").evaluate(
        """list => {
            const all = list.querySelectorAll("[role=option]");
            const start = performance.now();
            for (let at = 0; at < 40; at++)
                all[at].dispatchEvent(new PointerEvent("pointerover", {bubbles: true}));
            return (performance.now() - start) / 40;
        }"""
    )
    assert took < 100
