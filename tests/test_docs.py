"""The pages in docs/ are true: their Python runs, their links lead somewhere.

So are the commands of every text: of the README, the pages, the cards, the notebooks.
"""

import inspect
import re

import keras
import nbformat
import pytest

import keras_attention
from tests.markdown import (
    ROOT,
    blocks,
    broken_links,
    commands,
    headings,
    run_python,
)
from training.command import build_parser

PAGES = sorted((ROOT / "docs").glob("*.md"))
CARDS = sorted((ROOT / "zoo" / "cards").glob("*.md"))
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
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


OF_TFA = """AttentionMechanism AttentionWrapper AttentionWrapperState BahdanauAttention
BahdanauMonotonicAttention LuongAttention LuongMonotonicAttention hardmax
monotonic_attention safe_cumprod BasicDecoder BasicDecoderOutput BeamSearchDecoder
BeamSearchDecoderOutput BeamSearchDecoderState FinalBeamSearchDecoderOutput gather_tree
gather_tree_from_array tile_batch BaseDecoder Decoder dynamic_decode SequenceLoss
sequence_loss CustomSampler GreedyEmbeddingSampler InferenceSampler Sampler
SampleEmbeddingSampler ScheduledEmbeddingTrainingSampler ScheduledOutputTrainingSampler
TrainingSampler"""


def test_every_name_of_tfa_seq2seq_has_a_row():
    """All that tensorflow_addons 0.23.0 imports in seq2seq/__init__.py."""
    page = (ROOT / "docs" / "migration.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    there = set(re.findall(r"[A-Za-z_]+", " ".join(row.split("|")[1] for row in rows)))
    assert [name for name in OF_TFA.split() if name not in there] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    assert broken_links(page) == []


def text_of(path):
    if path.suffix == ".md":
        return path.read_text(encoding="utf-8")
    cells = nbformat.read(path, as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


@pytest.mark.parametrize(
    "path", [ROOT / "README.md", *PAGES, *CARDS, *NOTEBOOKS], ids=lambda path: path.name
)
def test_the_commands_parse(path):
    for words in commands(text_of(path)):
        build_parser().parse_args(words)


def test_commands_are_found_where_they_stand():
    counts = {
        path.name: len(commands(text_of(path)))
        for path in (ROOT / "README.md", ROOT / "docs" / "seq2seq.md", *CARDS)
    }
    assert min(counts.values()) >= 2, counts
    assert sum(len(commands(text_of(path))) for path in NOTEBOOKS) >= 2


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


def test_what_counts_as_a_command():
    text = (
        "$ attention-zoo train a --out b  # why\n$ make demo\n"
        "    python -m training c \\\n        --out d\n"
        "Or `python -m training compare\n--seeds 3`, not `attention-zoo list`,\n"
        "`attention-zoo train a --help` or `python -m training NAME --out b`.\n"
    )
    assert commands(text) == [
        ["train", "a", "--out", "b"],
        ["train", "c", "--out", "d"],
        ["compare", "--seeds", "3"],
    ]


def test_an_error_names_the_line_of_the_page(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("text\n\n```python\nx = 1\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as error:
        run_python(page)
    assert (error.traceback[-1].path, error.traceback[-1].lineno) == (page, 4)
