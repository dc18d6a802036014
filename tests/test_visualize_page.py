"""The page of attention maps: what it embeds, what it refuses, what it lets in."""

import base64
import configparser
import fnmatch
import hashlib
import json
import os
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import keras
import numpy as np
import pytest

import zoo
from keras_attention import MultiHeadAttention, attention_submodel, visualize
from keras_attention.visualize import _page, page
from keras_attention.visualize._packing import STEPS, pack, spread, thumbnail
from keras_attention.visualize._spans import NOTE

LAYERS, HEADS, T, S = 2, 3, 5, 7
ROWS, COLUMNS = list("abcde"), list("tuvwxyz")
HOSTILE = [
    "<script>alert(1)</script>",
    "</script>",
    "<!--",
    "-->",
    "]]>",
    "&lt;b&gt;",
    "\"'\\",
    "$title",
    "a\u2028b",
]
pytestmark = pytest.mark.filterwarnings("error")


def softmax(shape, sharpness=1.0, seed=3):
    logits = sharpness * np.random.default_rng(seed).normal(size=shape)
    powers = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


class Document(HTMLParser):
    """The scripts, the style and the texts of a page, read by Python's own parser."""

    def __init__(self, html):
        super().__init__()
        self.scripts, self.style, self.text = {}, "", ""
        self.policy, self._tag, self._script = "", "", None
        self.feed(html)
        self.close()
        self.data = json.loads(self.scripts["data"])

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self._tag = tag
        if tag == "script":
            self._script = attributes.get("id", "module")
            self.scripts[self._script] = ""
        elif attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"]

    def handle_endtag(self, tag):
        self._tag = ""

    def handle_data(self, data):
        if self._tag == "script":
            self.scripts[self._script] += data
        elif self._tag == "style":
            self.style += data
        else:
            self.text += data

    def weights(self, number):
        """The weights of a map: what the page says of their format, in other words."""
        tokens = self.data["rows"], self.data["columns"] or self.data["rows"]
        shape = [len(side["tokens"]) for side in tokens]
        raw = zlib.decompress(base64.b64decode(self.scripts[f"map-{number}"]))
        planes = np.frombuffer(raw, "u1").reshape(-1, *shape).astype(int)
        return sum(256**at * plane for at, plane in enumerate(planes)) * self.step

    @property
    def step(self):
        return self.data["step"]

    @property
    def maps(self):
        return sum(name.startswith("map-") for name in self.scripts)


# What is embedded


@pytest.mark.parametrize("sharpness", [0.0, 1.0, 30.0])
@pytest.mark.parametrize("lead", [(), (HEADS,), (LAYERS, HEADS)])
def test_the_weights_are_those_given_to_half_a_step(lead, sharpness):
    weights = softmax((*lead, T, S), sharpness)
    document = Document(page(weights, ROWS, COLUMNS))
    assert document.maps == np.prod(lead, dtype=int)
    assert document.step == 0.0001
    for number, expected in enumerate(weights.reshape(-1, T, S)):
        error = np.abs(document.weights(number) - expected)
        assert error.max() <= 0.00005 + 1e-12
    heads = [len(layer["spreads"]) for layer in document.data["layers"]]
    assert heads == [HEADS] * LAYERS if len(lead) == 2 else [document.maps]
    assert "Weights are rounded to 0.0001." in document.text


def test_layers_of_a_dict_keep_their_names_and_their_numbers_of_heads():
    weights = {"first": softmax((2, T, S)), "second": softmax((T, S), seed=5)}
    document = Document(page(weights, ROWS, COLUMNS))
    named = {layer["name"]: len(layer["spreads"]) for layer in document.data["layers"]}
    assert named == {"first": 2, "second": 1}
    for number, expected in enumerate([*weights["first"], weights["second"]]):
        np.testing.assert_allclose(document.weights(number), expected, atol=0.00005)


def test_one_example_of_an_attention_submodel_is_taken_as_it_is():
    inputs = keras.Input((None, 8))
    layer = MultiHeadAttention(num_heads=2, key_dim=3, name="look")
    context, _ = layer(inputs, inputs)
    both = attention_submodel(keras.Model(inputs, context))
    _, maps = both.predict(np.ones((3, 5, 8), "float32"), verbose=0)
    with pytest.raises(ValueError, match=r"\(3, 2, 5, 5\).*maps\[0\] for name, maps"):
        page(maps, ROWS)
    document = Document(page({name: each[0] for name, each in maps.items()}, ROWS))
    assert document.data["columns"] is None
    np.testing.assert_allclose(document.weights(1), maps["look"][0, 1], atol=0.00005)


def test_tokens_are_as_given_and_room_is_made_visible():
    rows = ["a", "", " ", "a\nb", "\t", "日本", "x\0y", "\ud800", " the", "the "]
    document = Document(page(np.eye(10), rows))
    assert document.data["rows"]["tokens"] == [
        *("a", "∅", "␣", "a↵b", "→", "日本", "x\ufffdy", "\ufffd", " the", "the ")
    ]


def test_words_against_the_line_are_named_as_runs():
    hebrew = ["שלום", "big", "cat", "!", "2", "עולם"]
    english = ["go", "שלום", "2", "עולם", "home", "日本"]
    document = Document(page(np.eye(6), hebrew, english))
    assert document.data["rows"]["direction"] == "rtl"
    assert document.data["rows"]["runs"] == [[1, 3]]
    assert document.data["columns"]["direction"] == "ltr"
    assert document.data["columns"]["runs"] == [[1, 4]]


def test_title_subtitle_and_note_are_shown_and_can_be_left_out():
    html = page(np.eye(5), ROWS, title="One & two", subtitle="<i>", note="Mind this.")
    text = Document(html).text
    assert "One & two" in text and "<i>" in text and "Mind this." in text
    assert NOTE in Document(page(np.eye(5), ROWS)).text
    assert NOTE not in Document(page(np.eye(5), ROWS, note=None)).text


def test_the_same_call_makes_the_same_page():
    assert page(softmax((T, S)), ROWS, COLUMNS) == page(softmax((T, S)), ROWS, COLUMNS)


# How it is packed


@pytest.mark.parametrize("sharpness", [0.5, 3.0])
def test_the_finest_step_that_fits_is_taken(sharpness):
    maps = list(softmax((HEADS, 61, 67), sharpness))
    steps, limit = [], 10**9
    while packed := pack(maps, limit):
        steps.append(packed.step)
        for text, expected in zip(packed.texts, maps, strict=True):
            raw = zlib.decompress(base64.b64decode(text))
            planes = np.frombuffer(raw, "u1").reshape(-1, 61, 67)
            codes = sum(256**at * plane.astype(int) for at, plane in enumerate(planes))
            assert np.abs(codes * packed.step - expected).max() <= packed.step / 2
        size = sum(map(len, packed.texts))
        assert size <= limit
        limit = size - 1
    assert steps == list(STEPS[: len(steps)])
    # The next would round to 0 what is under half of it: most of the weights.
    assert steps[-1] <= np.max(maps) / 2 < STEPS[len(steps)]


def test_a_page_says_how_coarse_it_is_and_refuses_what_cannot_fit(monkeypatch):
    weights = softmax((HEADS, 61, 67))
    rows, columns = [f"r{n}" for n in range(61)], [f"c{n}" for n in range(67)]
    monkeypatch.setattr(_page, "LIMIT", 14_000)
    document = Document(page(weights, rows, columns))
    assert document.step > 0.0001
    assert f"rounded to steps of {document.step:g}," in document.text
    assert f"under {document.step / 2:g} show as 0." in document.text
    monkeypatch.setattr(_page, "LIMIT", 50)
    with pytest.raises(ValueError, match=r"15 MB.*3 maps of shape \(61, 67\).*fewer"):
        page(weights, rows, columns)


def test_tokens_and_thumbnails_count_too(monkeypatch):
    weights = softmax((7, 61, 67))
    rows, columns = [f"r{n}" for n in range(61)], [f"c{n}" for n in range(67)]
    bare = len(page([[1.0]], ["a"]))
    for long in (rows, [row * 500 for row in rows]):
        monkeypatch.setattr(_page, "LIMIT", sum(map(len, long)) + 30_000)
        assert len(page(weights, long, columns)) < bare + _page.LIMIT
    with pytest.raises(ValueError, match="15 MB"):
        page(weights, [row * 1000 for row in rows], columns)


@pytest.mark.parametrize("given", [{"title": 3}, {"subtitle": b"a"}, {"note": 3}])
def test_titles_and_notes_are_strings(given):
    (name,) = given
    with pytest.raises(TypeError, match=f"`{name}` must be a string. Received: "):
        page([[1.0]], ["a"], **given)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (32, 32), (33, 64), (5, 101)])
def test_a_thumbnail_holds_the_means_of_blocks(shape):
    weights = softmax(shape)
    rows, columns = min(shape[0], 32), min(shape[1], 32)
    means = np.empty((rows, columns))
    for row in range(rows):
        for column in range(columns):
            down = slice(row * shape[0] // rows, (row + 1) * shape[0] // rows)
            along = slice(
                column * shape[1] // columns, (column + 1) * shape[1] // columns
            )
            means[row, column] = weights[down, along].mean()
    assert thumbnail(weights).shape == means.shape
    np.testing.assert_allclose(
        thumbnail(weights), 255 * means / means.max(), atol=0.5 + 1e-9
    )
    assert not thumbnail(np.zeros(shape)).any()


def test_the_spread_is_the_exponential_of_the_mean_entropy():
    weights = softmax((T, S))
    entropies = [-sum(p * np.log(p) for p in row) for row in weights]
    assert spread(weights) == pytest.approx(np.exp(np.mean(entropies)))
    assert spread(np.full((3, 7), 0.05)) == pytest.approx(7)  # sums of 0.35
    assert spread(np.eye(3)) == 1
    assert spread(np.zeros((3, 7))) == 0


# What is let in


def test_hostile_strings_are_text_wherever_they_stand():
    count = len(HOSTILE)
    weights = {name: np.eye(count) for name in HOSTILE}
    html = page(weights, HOSTILE, HOSTILE, title=HOSTILE[0], subtitle=HOSTILE[1])
    document = Document(html)
    expected = {"data", "module", *(f"map-{number}" for number in range(count))}
    assert set(document.scripts) == expected
    assert document.data["rows"]["tokens"] == HOSTILE
    assert [layer["name"] for layer in document.data["layers"]] == HOSTILE
    assert document.text.count(HOSTILE[0]) == 2  # title and heading
    assert "<script>alert" not in html
    html.encode("utf-8")


def test_the_policy_lets_in_nothing_but_the_script_and_the_style():
    document = Document(page(np.eye(5), ROWS))
    rules = dict(rule.split(" ", 1) for rule in document.policy.split("; "))
    assert rules["default-src"] == "'none'"
    for rule, text in (
        ("script-src", document.scripts["module"]),
        ("style-src", document.style),
    ):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert rules[rule] == f"'sha256-{digest}'"
    assert set(rules) == {
        *("default-src", "script-src", "style-src", "img-src", "base-uri"),
        "form-action",
    }
    assert rules["img-src"] == "data:"


def test_the_script_writes_data_as_text_alone_and_asks_for_nothing():
    document = Document(page(np.eye(5), ROWS))
    script = document.scripts["module"]
    for word in ("HTML", "eval(", "document.write", "fetch(", "import", "http"):
        assert word not in script, word
    assert not re.search(r"url\(|@import|http", document.style)


def test_a_page_is_whole_or_absent(tmp_path, monkeypatch):
    path = tmp_path / "a.html"
    html = page(np.eye(5), ROWS, path=path, title="first")
    assert path.read_bytes() == html.encode("utf-8")

    def fail(*_):
        raise OSError("no room")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no room"):
        page(np.eye(5), ROWS, path=path, title="second")
    assert [each.name for each in tmp_path.iterdir()] == ["a.html"]
    assert path.read_bytes() == html.encode("utf-8")


def test_what_the_page_is_made_of_is_in_the_package():
    root = Path(visualize.__file__).parents[2]
    setup = configparser.ConfigParser()
    setup.read(root / "setup.cfg", encoding="utf-8")
    patterns = setup["options.package_data"]["keras_attention"].split()
    folder = root / "keras_attention"
    parts = [
        path.relative_to(folder).as_posix()
        for path in (folder / "visualize").iterdir()
        if path.is_file() and path.suffix != ".py"
    ]
    assert len(parts) == 3
    for part in parts:
        assert any(fnmatch.fnmatch(part, pattern) for pattern in patterns), part


# What is refused


@pytest.mark.parametrize("bad", [np.nan, np.inf, 1.01, -0.01])
def test_values_that_are_no_weights_are_refused_by_their_place(bad, tmp_path):
    weights = softmax((LAYERS, HEADS, T, S))
    weights[1, 2, 3, 4] = bad
    path = tmp_path / "a.html"
    with pytest.raises(ValueError, match=r"from 0 to 1.*weights\[1\]\[2\]\[3, 4\] = "):
        page(weights, ROWS, COLUMNS, path)
    with pytest.raises(ValueError, match=r"weights\['b'\]\[2\]\[3, 4\] = "):
        page({"a": weights[0], "b": weights[1]}, ROWS, COLUMNS, path)
    with pytest.raises(ValueError, match=r"weights\[3, 4\] = "):
        page(weights[1, 2], ROWS, COLUMNS, path)
    assert not list(tmp_path.iterdir())


def test_rounding_beyond_0_and_1_is_let_through():
    document = Document(page([[1.0005, -0.0005]], ["a"], ["b", "c"]))
    np.testing.assert_array_equal(document.weights(0), [[1.0, 0.0]])


@pytest.mark.parametrize(
    ("weights", "rows", "columns", "message"),
    [
        (np.zeros((2, 2, 3, T, S)), ROWS, COLUMNS, r"\(2, 2, 3, 5, 7\).*weights\[:, 0"),
        (np.zeros(T), ROWS, None, r"must have shape.*\(5,\)"),
        ({"a": np.zeros((1, 2, T, S))}, ROWS, COLUMNS, r"\['a'\].*example of the bat"),
        (
            np.zeros((HEADS, T, S)),
            ROWS,
            None,
            r"weights\[0\].*\(5, 7\), `rows` of length 5",
        ),
        (np.zeros((T, S)), COLUMNS, ROWS, r"\(5, 7\), `rows` of length 7"),
        ({}, ROWS, COLUMNS, r"at least one layer.*\{\}"),
        ({"a": np.zeros((0, T, S))}, ROWS, COLUMNS, r"at least one map.*\{'a': 0\}"),
        (np.zeros((2, 0, T, S)), ROWS, COLUMNS, r"at least one map.*'layer 1': 0"),
        (np.zeros((0, S)), [], COLUMNS, r"T and S at least 1"),
        (np.zeros((T, S)), "abcde", COLUMNS, r"`rows` must be a list.*'abcde'"),
        (np.zeros((T, S)), ROWS, "abcdefg", r"`columns` must be a list"),
        (np.zeros((T, S)), None, None, r"`rows` must be a list.*None"),
        ("text", ROWS, COLUMNS, r"must be numbers.*Received: str"),
        ([[1.0], [0.5, 0.5]], ROWS, COLUMNS, r"must be numbers.*list.*differ in shape"),
        ({"a": [["x"]]}, ROWS, COLUMNS, r"`weights\['a'\]` must be numbers"),
    ],
)
def test_what_is_no_map_of_these_tokens_is_refused(weights, rows, columns, message):
    with pytest.raises(ValueError, match=message):
        page(weights, rows, columns)


def test_a_file_of_another_kind_and_an_absent_folder_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must end in \.html\. Received: .*map\.png"):
        page(np.eye(5), ROWS, path=tmp_path / "map.png")
    with pytest.raises(FileNotFoundError, match=r"Make the folder .*absent' first"):
        page(np.eye(5), ROWS, path=tmp_path / "absent" / "map.html")
    assert not list(tmp_path.iterdir())


# Results of the zoo


def translation(alignment):
    return zoo.Translation(
        text="le chat",
        score=-0.1,
        log_probability=-0.2,
        source="the cat !",
        source_tokens=["the", "cat", "!"],
        target_tokens=["le", "chat"],
        alignment=np.array(alignment),
    )


def explanation(text, tokens, weights):
    offsets = [(text.index(token), text.index(token) + 1) for token in tokens]
    return zoo.Explanation(
        text=text,
        label="positive",
        score=0.9,
        probabilities={"negative": 0.1, "positive": 0.9},
        tokens=tokens,
        offsets=offsets,
        weights=weights,
        model_name="mine",
    )


def test_a_translation_is_drawn_with_its_own_tokens(tmp_path):
    result = translation([[0.9, 0.1, 0.0], [0.0, 0.75, 0.25]])
    html = page(result, tmp_path / "a.html")
    assert (tmp_path / "a.html").read_text(encoding="utf-8") == html
    assert page(result, path=tmp_path / "a.html") == html == result.to_page()
    document = Document(html)
    assert document.data["rows"]["tokens"] == ["le", "chat"]
    assert document.data["columns"]["tokens"] == ["the", "cat", "!"]
    np.testing.assert_allclose(document.weights(0), result.alignment, atol=1e-12)
    assert "le chat" in document.text and "the cat !" in document.text
    assert "Mine" in Document(result.to_page(title="Mine")).text


def test_an_explanation_is_one_row_over_its_words(tmp_path):
    result = explanation("a b", ["a", "b"], [0.25, 0.75])
    document = Document(result.to_page(tmp_path / "a.html"))
    assert document.data["columns"]["tokens"] == ["a", "b"]
    assert len(document.data["rows"]["tokens"]) == 1
    np.testing.assert_allclose(document.weights(0), [[0.25, 0.75]], atol=1e-12)
    assert "positive (90.0%)" in document.text and "mine" in document.text
    assert (tmp_path / "a.html").exists()


def test_a_result_without_words_has_no_page(tmp_path):
    with pytest.raises(ValueError, match="at least one token on either side"):
        page(translation(np.zeros((0, 0))), tmp_path / "a.html")
    with pytest.raises(ValueError, match=r"at least one word.*' '"):
        explanation(" ", [], []).to_page(tmp_path / "a.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "more", [(["a"], ["b"]), (["a"], None, "a.html"), ("a.html", None, "b.html")]
)
def test_tokens_beside_a_result_are_refused(more):
    with pytest.raises(ValueError, match=r"brings its own tokens.*page\(result"):
        page(translation([[1.0, 0, 0], [0, 1.0, 0]]), *more)
