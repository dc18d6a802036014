"""A run that learns what a trained model wrote."""

import dataclasses
import json

import numpy as np
import pytest

import zoo
from training import distillation, seq2seq
from training.datasets import Pairs
from training.distillation import distilled
from training.seq2seq_config import Seq2SeqConfig
from training.seq2seq_evaluate import evaluate_task

PAIRS = Pairs(["abc", "xyz", "abc"], ["one", "two", "three"], "a table")


def write(path, targets, teacher="reverse_luong"):
    """A file as `distilled` leaves it."""
    path.write_text(json.dumps({"teacher": teacher, "targets": targets}))
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """The file of what the zoo's reversing model writes for the sources."""
    path = tmp_path_factory.mktemp("teacher") / "teacher.json"
    distilled(PAIRS, "reverse_luong", path, progress=False)
    return path


def test_each_source_stands_once_with_what_the_teacher_writes(path):
    pairs = distilled(PAIRS, "reverse_luong", path, progress=False)
    assert pairs.sources == ["abc", "xyz"]
    assert pairs.targets == ["cba", "zyx"]
    assert pairs.source == "a table, targets by reverse_luong"


def test_the_teacher_writes_once(path, monkeypatch):
    monkeypatch.setattr(zoo, "load", None)
    pairs = distilled(PAIRS, "reverse_luong", path, progress=False)
    assert pairs.targets == ["cba", "zyx"]


def test_a_teacher_that_was_stopped_goes_on(tmp_path, monkeypatch):
    path = tmp_path / "run" / "teacher.json"
    pairs = Pairs([*"abcdef"], [*"uvwxyz"], "a table")
    monkeypatch.setattr(distillation, "AT_ONCE", 2)
    teacher = zoo.load("reverse_luong")
    translate, asked = teacher.translate, []

    def until(texts, **options):
        if len(asked) == 4:
            raise KeyboardInterrupt
        asked.extend(texts)
        return translate(texts, **options)

    monkeypatch.setattr(zoo, "load", lambda name: teacher)
    monkeypatch.setattr(teacher, "translate", until)
    with pytest.raises(KeyboardInterrupt):
        distilled(pairs, "reverse_luong", path, progress=False)
    assert asked == [*"abcd"]
    with pytest.raises(ValueError, match=r"holds 4 of them: go on with the run first"):
        distillation.taught(pairs, "reverse_luong", path)
    asked.clear()
    found = distilled(pairs, "reverse_luong", path, progress=False)
    assert asked == ["e", "f"] and found.targets == [*"abcdef"]


def test_a_run_learns_from_the_teacher_and_is_measured_by_the_data(
    tmp_path, monkeypatch
):
    class Begun(Exception):
        pass

    def begin(config, folder, translator, parts, progress):
        raise Begun(parts, folder)

    monkeypatch.setattr(seq2seq, "Seq2SeqRun", begin)
    table = tmp_path / "pairs.tsv"
    strings = [a + b for a in "abcdefgh" for b in "ijklmnop"]
    table.write_text("".join(f"{text}\tdata\n" for text in strings))
    config = Seq2SeqConfig(
        task=str(table),
        model="luong",
        out=str(tmp_path / "run"),
        teacher="reverse_luong",
    )
    with pytest.raises(Begun) as raised:
        seq2seq.train(config, progress=False)
    parts, folder = raised.value.args
    assert parts.train.targets == [source[::-1] for source in parts.train.sources]
    assert set(parts.validation.targets) == set(parts.test.targets) == {"data"}
    written = json.loads((folder / "teacher.json").read_text())
    assert written["teacher"] == "reverse_luong"
    assert written["targets"].keys() == set(parts.train.sources)
    monkeypatch.setattr(zoo, "load", None)  # a second try needs the teacher no more
    with pytest.raises(Begun):
        seq2seq.train(config, progress=False)


def test_a_source_for_which_it_writes_nothing_is_left_out(tmp_path):
    path = write(tmp_path / "teacher.json", {"abc": "", "xyz": "zyx"})
    pairs = distilled(PAIRS, "reverse_luong", path)
    assert (pairs.sources, pairs.targets) == (["xyz"], ["zyx"])


def test_a_file_of_other_sources_is_refused(tmp_path):
    path = write(tmp_path / "teacher.json", {"abc": "cba", "other": "x"})
    with pytest.raises(ValueError, match=r"for the 2 sources.*Remove it"):
        distilled(PAIRS, "reverse_luong", path)


def test_what_another_teacher_wrote_is_refused(path):
    with pytest.raises(
        ValueError, match=r"what 'dates_luong' writes.*of 'reverse_luong'.*Remove it"
    ):
        distilled(PAIRS, "dates_luong", path)


@pytest.mark.parametrize("content", [{"abc": "cba", "xyz": "zyx"}, ["abc", "xyz"]])
def test_texts_of_no_teacher_are_refused(tmp_path, content):
    path = tmp_path / "teacher.json"
    path.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"texts of no teacher.*Remove it"):
        distilled(PAIRS, "reverse_luong", path)


def test_what_is_cut_on_either_side_is_not_learned(tmp_path, monkeypatch):
    teacher = zoo.load("reverse_luong")
    teacher.maxlen = 3
    translate = teacher.translate

    def short(texts, **options):
        return translate(texts, max_length=3, **options)  # two letters and the end

    monkeypatch.setattr(teacher, "translate", short)
    monkeypatch.setattr(zoo, "load", lambda name: teacher)
    pairs = Pairs(["ab", "abc", "abcd"], ["-"] * 3, "a table")
    path = tmp_path / "teacher.json"
    found = distilled(pairs, "reverse_luong", path, progress=False)
    assert (found.sources, found.targets) == (["ab"], ["ba"])


def test_what_a_teacher_could_not_write_is_left_out(tmp_path, monkeypatch):
    """Learned, the student would spell "[UNKNOWN]"."""
    teacher = zoo.load("reverse_luong")
    translate = teacher.translate

    def with_an_unknown(texts, **options):
        return [
            dataclasses.replace(found, text="[UNKNOWN]", target_tokens=["[UNKNOWN]"])
            if found.source == "abc"
            else found
            for found in translate(texts, **options)
        ]

    monkeypatch.setattr(teacher, "translate", with_an_unknown)
    monkeypatch.setattr(zoo, "load", lambda name: teacher)
    pairs = distilled(PAIRS, "reverse_luong", tmp_path / "teacher.json", progress=False)
    assert (pairs.sources, pairs.targets) == (["xyz"], ["zyx"])


def test_a_taught_run_is_measured_on_its_test_part_alone(tmp_path):
    """What it learned is not what stands in the file."""
    table = tmp_path / "pairs.tsv"
    strings = [a + b for a in "abcdefgh" for b in "ijklmnop"]
    table.write_text("".join(f"{text}\tdata\n" for text in strings))
    options = {"embedding_dim": 4, "units": 4, "epochs": 1, "tokens": "characters"}
    folder = tmp_path / "run"
    plan = Seq2SeqConfig(
        task=table,
        model="luong",
        out=folder,
        teacher="reverse_luong",
        seed=np.int64(3),
        **options,
    )
    seq2seq.train(plan, progress=False)
    copied = tmp_path / "copied.tsv"
    copied.write_text(table.read_text())

    def measured(path):
        return evaluate_task(zoo.load(folder), str(path), num_beams=1, run=folder)

    assert measured(table)["part"] == measured(copied)["part"] == "test"
    assert measured(table)["sources"] == measured(copied)["sources"] < 32
    (folder / "teacher.json").unlink()  # then nobody knows what it learned
    assert measured(copied)["part"] == "all"
    assert measured(table)["part"] == "test"  # but of its own file


def test_a_classifier_is_no_teacher(tmp_path):
    with pytest.raises(ValueError, match=r"a model of two texts.*a classifier"):
        distilled(PAIRS, "imdb_bilstm", tmp_path / "teacher.json", progress=False)
    assert not list(tmp_path.iterdir())
