"""The README is true: its Python runs, its table is right, its links lead somewhere."""

import re

import pytest

import zoo
from tests.markdown import ROOT, blocks, broken_links, run_python

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_blocks_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_python(ROOT / "README.md")
    assert names["context"].shape == (None, 128)
    assert names["attn_weights"].shape == (None, None, 1)
    assert (tmp_path / "where.png").exists()
    assert names["explanation"].top(1)[0][0] == "superb"


def test_a_reader_types_commands_of_this_project_alone():
    lines = [
        line for _, code in blocks(README, "console") for line in code.splitlines()
    ]
    assert {line.split()[1] for line in lines} == {"make", "attention-zoo"}


@pytest.mark.parametrize("target", ["demo", "test"])
def test_the_two_commands_are_in_the_makefile(target):
    assert f"\n{target}:" in (ROOT / "Makefile").read_text()


def test_the_table_is_the_registrys():
    for row in zoo.list_models():
        line = next(
            x for x in README.splitlines() if x.startswith(f"| `{row['name']}` ")
        )
        assert re.match(r"[\d.]+%?", row["metric"]).group() in line
        assert f"{row['parameters']:,}" in line


def test_links_to_files_lead_somewhere():
    assert broken_links(ROOT / "README.md") == []
