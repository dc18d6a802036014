"""The pages in docs/ are true: their Python runs, their links lead somewhere."""

import inspect

import keras
import pytest

import keras_attention
from tests.markdown import ROOT, blocks, broken_links, headings, run_python

PAGES = sorted((ROOT / "docs").glob("*.md"))
LAYERS = [
    name
    for name in keras_attention.__all__
    if inspect.isclass(thing := getattr(keras_attention, name))
    and issubclass(thing, keras.layers.Layer)
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_python_blocks_run_in_order(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run_python(page)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


@pytest.mark.parametrize("name", LAYERS)
def test_every_public_layer_is_on_the_page_of_layers(name):
    assert f"`{name}" in (ROOT / "docs" / "layers.md").read_text(encoding="utf-8")


def test_what_the_checks_see(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# A `b`, c\n\n```python\nx = 1\n```\n[here](#a-b-c) [file](page.md#a-b-c)\n"
        "[lost](#d) [absent](no.md) [web](https://example.org)\n\n"
        "```text\n# no heading\n```\n```python\ny = x + 1\n```\n"
    )
    assert blocks(page.read_text(), "python") == [(3, "x = 1\n"), (12, "y = x + 1\n")]
    assert run_python(page)["y"] == 2
    assert headings(page) == {"a-b-c"}
    assert broken_links(page) == ["#d", "no.md"]


def test_an_error_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nx = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_python(page)
    assert (error.traceback[-1].path, error.traceback[-1].lineno) == (page, 4)
