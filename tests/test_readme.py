"""The README is true: its Python runs, its commands parse, its table is right."""

import re
import shlex

import pytest

import zoo
from tests.markdown import ROOT, blocks, broken_links, run_python
from training.command import build_parser

README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_python_blocks_run_in_order(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names = run_python(ROOT / "README.md")
    assert names["context"].shape == (None, 128)
    assert names["attn_weights"].shape == (None, None, 1)
    assert (tmp_path / "where.png").exists()
    assert names["explanation"].top(1)[0][0] == "superb"


def test_the_commands_parse():
    lines = [
        line for _, code in blocks(README, "console") for line in code.splitlines()
    ]
    lines += re.findall(r"`((?:attention-zoo|python -m training) [^`]+)`", README)
    parsed = 0
    for line in lines:
        words = shlex.split(line.removeprefix("$ "), comments=True)
        if words[0] == "attention-zoo":
            words = words[1:]
        elif words[:3] == ["python", "-m", "training"]:
            words = words[3:]
            words = words if words[0] == "compare" else ["train", *words]
        else:
            assert words[0] == "make"
            continue
        if {"NAME", "--help"} & set(words) or len(words) == 1:
            continue
        build_parser().parse_args(words)
        parsed += 1
    assert parsed >= 4


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
