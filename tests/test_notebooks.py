"""The notebooks run from top to bottom, and are kept with small, clean outputs."""

import csv
import pathlib
import re
import tempfile

import nbformat
import numpy as np
import pytest

from notebooks.refresh import FOLDER, run

REVIEWS = "reviews.csv"
SMALL = {
    "01_attention_from_scratch": {"TRIALS": 20},
    "02_self_attention": {"EPOCHS": 1, "EXAMPLES": 200},
    "03_imdb_sentiment": {
        "DATA": REVIEWS,
        "REVIEWS": 80,
        "EPOCHS": 1,
        "REVIEWS_TO_TEST": 2,
    },
    "04_seq2seq_alignment": {"STRINGS": 1500, "EPOCHS": 2},
    "05_plug_into_your_model": {"EPOCHS": 1, "ROWS": 200},
}
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def write_reviews(path, count=120):
    """A table of made-up reviews that are as long as real ones."""
    random = np.random.default_rng(0)
    words = np.array(["the", "a", "film", "story", "actor", "scene", "with", "one"])
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["label", "text"])
        for number in range(count):
            label, verdict = [("neg", "dull"), ("pos", "superb")][number % 2]
            rows.writerow([label, " ".join([*random.choice(words, 110), verdict])])


def code_cells(path):
    cells = nbformat.read(path, as_version=4).cells
    return [cell for cell in cells if cell.cell_type == "code"]


def test_every_notebook_has_small_settings():
    assert {path.stem for path in NOTEBOOKS} == set(SMALL)


@every_notebook
@pytest.mark.filterwarnings("ignore")  # of the kernel's client; cells have their own
def test_it_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    here = str(pathlib.Path(__file__).parents[1])
    monkeypatch.setenv("PYTHONPATH", here)
    write_reviews(tmp_path / REVIEWS)
    notebook = nbformat.read(path, as_version=4)
    run(notebook, tmp_path, SMALL[path.stem])
    warned = [
        output.text
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if output.get("name") == "stderr" and "Warning" in output.text
    ]
    assert not warned


def test_a_parameter_that_no_cell_sets_is_refused(tmp_path):
    cell = nbformat.v4.new_code_cell("MY_EPOCHS = 1", metadata={"tags": ["parameters"]})
    for cells in ([cell], []):
        notebook = nbformat.v4.new_notebook(cells=cells)
        with pytest.raises(ValueError, match=r"Received: \['EPOCHS'\]"):
            run(notebook, tmp_path, {"EPOCHS": 1})


@every_notebook
def test_its_outputs_are_there_clean_and_small(path):
    assert path.stat().st_size < 800_000
    cells = code_cells(path)
    numbers = [cell.execution_count for cell in cells]
    assert numbers == list(range(1, len(cells) + 1)), "run it from top to bottom"
    kinds = {output.output_type for cell in cells for output in cell.outputs}
    assert kinds and "error" not in kinds
    text = path.read_text(encoding="utf-8")
    assert '"name": "stderr"' not in text
    places = tempfile.gettempdir(), FOLDER.parent
    assert not [place for place in places if f"{place}/" in text]


@every_notebook
def test_its_links_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (path.parent / target).exists(), target
