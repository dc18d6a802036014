"""The command line: thin shells, plain errors, quick help, JSON for programs."""

import io
import json
import os
import pathlib
import subprocess
import sys

import pytest

import zoo
from training.command import main
from training.datasets import load_task

GOOD = "A superb film, I loved it."
BAD = "Dull, stupid, a waste of time."


def run(capsys, *words):
    status = main(list(words))
    out, err = capsys.readouterr()
    return status, out, err


def fresh(*words, **options):
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, **options
    )


@pytest.mark.parametrize("words", [["--help"], ["train", "--help"], ["demo", "-h"]])
def test_help_imports_nothing_heavy(words):
    code = (
        "import sys\nfrom training.command import main\n"
        f"try: main({words!r})\nexcept SystemExit: pass\n"
        "heavy = {'tensorflow', 'keras', 'matplotlib', 'numpy', 'tokenizers'}\n"
        "print('heavy:', sorted(heavy & set(sys.modules)))"
    )
    result = fresh("-c", code)
    assert "usage: attention-zoo" in result.stdout
    assert "heavy: []" in result.stdout


def test_help_says_what_an_option_means_to_the_command(capsys):
    def text(*words):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        return " ".join(capsys.readouterr().out.split())

    epoch = "chooses the best epoch"
    assert epoch in text("train", "seq2seq") and epoch not in text("evaluate")
    assert "g2p and en-fr: folder or file" in text("evaluate")


def test_list(capsys):
    status, out, _ = run(capsys, "list", "--json")
    assert status == 0 and json.loads(out) == list(zoo.list_models())
    status, out, _ = run(capsys, "list")
    assert status == 0 and "imdb_bilstm" in out


def test_predict_from_the_line(capsys):
    status, out, _ = run(capsys, "predict", GOOD, BAD)
    assert status == 0
    assert [line.split("\t")[0] for line in out.splitlines()] == [
        "positive",
        "negative",
    ]


def test_predict_from_a_file_as_json(capsys, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_bytes(f"\ufeff{GOOD}\r\n\r\n{BAD}\n".encode())
    status, out, _ = run(capsys, "predict", "--file", str(path), "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 0 and len(rows) == 3, "an empty line is an empty text"
    assert rows[0]["label"] == "positive" and rows[2]["label"] == "negative"
    assert rows[0]["score"] == pytest.approx(zoo.load(
        "imdb_bilstm_attention").predict([GOOD])[0].score, abs=1e-6)  # fmt: skip


def test_predict_from_standard_input(capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{GOOD}\n{BAD}\n"))
    status, out, _ = run(capsys, "predict", "--model", "imdb_bilstm")
    assert status == 0 and len(out.splitlines()) == 2


def test_explain_shows_and_writes(capsys, tmp_path):
    png, html = tmp_path / "a.png", tmp_path / "a.html"
    words = ["explain", GOOD, "--png", str(png), "--html", str(html), "--top", "2"]
    status, out, _ = run(capsys, *words)
    assert status == 0 and "positive" in out and "looked most at" in out
    assert out.split("looked most at: ")[1].count(",") == 1
    assert png.stat().st_size > 1000 and "superb" in html.read_text(encoding="utf-8")
    status, out, _ = run(capsys, "explain", GOOD, "--json")
    told = json.loads(out)
    assert sum(told["weights"]) == pytest.approx(1, abs=1e-4)
    assert told["tokens"][1] == "superb"


def test_evaluate(capsys, tmp_path):
    path = tmp_path / "reviews.tsv"
    path.write_text(f"1\t{GOOD}\n0\t{BAD}\n1\t{BAD}\n0\t{GOOD}\n", encoding="utf-8")
    words = ["evaluate", "--data", str(path), "--text-column", "2"]
    words += ["--label-column", "1"]
    status, out, _ = run(capsys, *words)
    assert status == 0 and "accuracy: 50.00% on 4 texts" in out
    status, out, _ = run(capsys, *words, "--json")
    assert json.loads(out)["accuracy"] == 0.5


def test_train_and_use_a_model_of_ones_own(capsys, tmp_path):
    path = tmp_path / "mine.csv"
    rows = [("yes", "fine warm day"), ("no", "cold wet night")] * 12
    lines = [f"{label},{text} {i}" for i, (label, text) in enumerate(rows)]
    path.write_text("label,text\n" + "\n".join(lines), encoding="utf-8")
    out = str(tmp_path / "run")
    words = ["train", "imdb_bilstm_attention", "--data", str(path), "--out", out]
    words += ["--epochs", "1", "--embedding-dim", "4", "--lstm-units", "3"]
    status, printed, err = run(capsys, *words)
    assert status == 0 and f"zoo.load({out!r})" in printed
    assert "epoch 1/1" in err and "epoch" not in printed, "results alone go to stdout"
    status, printed, _ = run(capsys, "predict", "--model", out, "fine day")
    assert status == 0 and printed.split("\t")[0] in ("yes", "no")
    status, _, err = run(capsys, *words)
    assert status == 2 and "Add --resume" in err
    status, printed, _ = run(capsys, *words, "--resume", "--json")
    assert status == 0 and json.loads(printed)["out"] == out


def test_compare_prints_json_alone_where_a_program_reads(capsys, tmp_path):
    path = tmp_path / "mine.csv"
    rows = [("[/yes]", "fine warm day"), ("no", "cold wet night")] * 12
    lines = [f"{label},{text} {i}" for i, (label, text) in enumerate(rows)]
    path.write_text("label,text\n" + "\n".join(lines), encoding="utf-8")
    words = ["compare", "--seeds", "1", "--data", str(path), "--epochs", "1"]
    words += ["--out", str(tmp_path / "runs"), "--json", "--embedding-dim", "4"]
    status, out, _ = run(capsys, *words, "--lstm-units", "3")
    assert status == 0 and [row["runs"] for row in json.loads(out)] == [1, 1]
    mine = str(tmp_path / "runs" / "imdb_bilstm_attention-0")
    status, out, _ = run(capsys, "explain", "--model", mine, "fine [b]warm[/b] day")
    assert status == 0 and "fine [b]warm[/b] day" in out, "nothing is read as markup"


def test_lines_end_at_line_feeds_alone(capsys, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("one\u2028still one\x85and on\ntwo\n", encoding="utf-8")
    status, out, _ = run(capsys, "predict", "--file", str(path))
    assert status == 0 and len(out.splitlines()) == 2


def test_demo_writes_a_picture_and_a_page(capsys, tmp_path):
    status, out, _ = run(capsys, "demo", "--out", str(tmp_path / "demo"))
    assert status == 0 and "not why it decided" in out
    for name in ("attention.png", "attention.html"):
        assert (tmp_path / "demo" / name).stat().st_size > 1000
        assert name in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["predict", "--model", "imdb_lstm", "x"], "Did you mean 'imdb_bilstm'"),
        (["predict", "x", "--file", "y"], "not both"),
        (["predict", "--file", "nothing.txt"], "nothing.txt"),
        (["explain", "a", "b", "--png", "x.png"], "take one text. Received: 2"),
        (["train", "imdb_bilstm", "--out", "x", "--epochs", "0"], "`epochs` must be"),
        (["train", "imdb_bilstm", "--out", "x", "--data", "no.csv"], "no.csv"),
        (["explain", "--model", "imdb_bilstm", "x"], "no attention layer"),
    ],
)
def test_errors_are_one_sentence_on_standard_error(
    capsys, tmp_path, monkeypatch, words, message
):
    monkeypatch.chdir(tmp_path)
    status, out, err = run(capsys, *words)
    assert status == 2 and out == ""
    assert err.startswith("attention-zoo: ") and message in err
    assert "Traceback" not in err


def test_a_file_that_is_not_text_is_refused(capsys, tmp_path):
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00bad")
    status, _, err = run(capsys, "predict", "--file", str(tmp_path / "b.txt"))
    assert status == 2 and "UTF-16" in err


def test_python_m_training_is_the_train_command():
    result = fresh("-m", "training", "--help")
    assert "usage: attention-zoo train" in result.stdout
    result = fresh("-m", "training", "compare", "--help")
    assert "--seeds" in result.stdout


def test_a_reader_that_stops_early_is_no_error():
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = f"{sys.executable} -m training.command list | head -1"
    result = subprocess.run(
        command, shell=True, capture_output=True, text=True, env=environment
    )
    assert "Traceback" not in result.stderr and "BrokenPipe" not in result.stderr


def test_imports_are_light():
    """zoo brings neither tensorflow_datasets nor matplotlib, beyond what Keras does."""
    code = (
        "import sys, keras\nbefore = set(sys.modules)\nimport keras_attention, zoo\n"
        "new = {m.split('.')[0] for m in set(sys.modules) - before}\n"
        "print(sorted(new & {'tensorflow_datasets', 'matplotlib', 'rich'}))"
    )
    result = fresh("-c", code)
    assert result.stdout.startswith("[]"), result.stderr


def test_another_package_of_the_same_import_name_is_reported(tmp_path):
    (tmp_path / "keras_attention").mkdir()
    (tmp_path / "keras_attention" / "__init__.py").write_text("SelfAttention = 1\n")
    root = os.path.dirname(os.path.dirname(zoo.__file__))
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(tmp_path), root]),
    }
    result = fresh("-c", "import zoo", env=environment, cwd=tmp_path)
    assert "pip uninstall keras-attention" in result.stderr.replace("\n", " ")


# ---- models that write


def test_translate_writes_a_line_a_text_in_order(capsys, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("keras\n\nattention\n")
    words = ["translate", "--model", "reverse_bahdanau", "--file", str(path)]
    status, out, _ = run(capsys, *words)
    assert status == 0 and out.splitlines() == ["sarek", "", "noitnetta"]


def test_translate_shows_alignments_n_best_json_and_a_picture(capsys, tmp_path):
    words = ["translate", "--model", "reverse_bahdanau", "abc"]
    png = tmp_path / "a.png"
    status, out, _ = run(capsys, *words, "--alignment", "--png", str(png))
    assert status == 0 and out == "cba\t2-0 1-1 0-2\n" and png.stat().st_size > 0
    status, out, _ = run(capsys, *words, "--num-return", "2", "--num-beams", "3")
    assert status == 0 and len(out.splitlines()) == 2 and out.startswith("cba\t")
    status, out, _ = run(capsys, *words, "--json")
    found = json.loads(out)
    assert status == 0 and (found["text"], found["source"]) == ("cba", "abc")
    assert len(found["alignment"]) == 3


def test_commands_take_the_models_that_they_are_for(capsys):
    status, _, err = run(capsys, "translate", "--model", "imdb_bilstm", "a")
    assert status == 2 and "takes a Translator" in err and "Traceback" not in err
    status, _, err = run(capsys, "predict", "--model", "reverse_bahdanau", "a")
    assert status == 2 and "Use the command translate" in err
    status, _, err = run(capsys, "evaluate", "--model", "reverse_bahdanau")
    assert status == 2 and "--task" in err
    words = ["evaluate", "--model", "imdb_bilstm", "--task", "reverse"]
    status, _, err = run(capsys, *words)
    assert status == 2 and "--task is for a model of two texts" in err


def test_evaluate_measures_pairs_of_a_file(capsys, tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("abc\tcba\nxy\tyx\nxy\tother\nlong\twrong\n")
    words = ["evaluate", "--model", "reverse_bahdanau", "--task", str(path)]
    status, out, _ = run(capsys, *words, "--metric", "exact", "--json")
    measured = json.loads(out)
    assert status == 0 and measured["sources"] == 3
    assert measured["exact"] == pytest.approx(2 / 3)
    status, out, _ = run(capsys, *words, "--metric", "bleu")
    assert status == 0 and "sacreBLEU" in out and "tok:13a" in out


def test_a_header_row_that_is_read_as_a_pair_is_shown(capsys, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("forth,back\nabc,cba\n")
    words = ["evaluate", "--model", "reverse_bahdanau", "--task", str(path)]
    status, out, err = run(capsys, *words)
    assert status == 0 and "2 sources" in out
    assert "line 1 is a pair: 'forth' -> 'back'" in err
    columns = ["--source-column", "forth", "--target-column", "back"]
    status, out, err = run(capsys, *words, *columns)
    assert status == 0 and "1 sources" in out and not err


def test_evaluate_takes_columns_and_refuses_what_it_would_not_use(capsys, tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("id,back,forth\n1,cba,abc\n2,yx,xy\n3,no,long\n")
    words = ["evaluate", "--model", "reverse_bahdanau", "--task", str(path)]
    columns = ["--source-column", "forth", "--target-column", "back"]
    status, out, _ = run(capsys, *words, *columns, "--metric", "exact", "--json")
    assert status == 0 and json.loads(out)["exact"] == pytest.approx(2 / 3)
    for more, message in (
        (["--data", str(tmp_path)], "`data` is for the tasks g2p and en-fr"),
        (["--text-column", "forth"], "--text-column is for a classifier"),
    ):
        status, out, err = run(capsys, *words, *columns, *more)
        assert status == 2 and not out and message in err
    words = ["evaluate", "--model", "imdb_bilstm", "--num-beams", "2"]
    status, _, err = run(capsys, *words)
    assert status == 2 and "--num-beams is for a model of two texts" in err


def test_translate_draws_samples_by_a_seed(capsys):
    words = ["translate", "--model", "dates_luong", "7 maart 1999"]
    drawn = ["--sample", "3", "--temperature", "3", "--num-return", "4"]
    status, out, _ = run(capsys, *words, *drawn)
    assert status == 0 and len(set(out.splitlines())) > 1
    assert run(capsys, *words, *drawn)[1] == out
    status, bold, _ = run(capsys, *words, *drawn, "--top-k", "1")
    assert [line.split("\t")[0] for line in bold.splitlines()] == ["1999-03-07"] * 4


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--sample", "3", "--num-beams", "2"], "--num-beams is for a search"),
        (["--temperature", "3"], "--temperature is for --sample"),
        (["--min-length", "-1"], "`min_length` must be an integer of at least 0"),
        (["--json", "--alignment"], "--alignment is in what --json prints"),
    ],
)
def test_translate_refuses_what_it_would_not_use(capsys, more, message):
    status, out, err = run(capsys, "translate", "--model", "reverse_luong", "a", *more)
    assert status == 2 and not out and message in err


def test_translate_says_what_was_not_read(capsys):
    words = ["translate", "--model", "reverse_luong", "--num-beams", "1", "a" * 300]
    status, out, err = run(capsys, *words, "--max-length", "2")
    assert status == 0 and "its last 44 tokens were not read" in err
    assert len(out.splitlines()) == 1


def test_too_little_memory_is_one_sentence(capsys, tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("".join(f"{i}\t{i}\n" for i in range(20)))
    words = ["train", "seq2seq", "--model", "luong", "--task", str(path)]
    # The first matrix would have 80 TB: none is made before it.
    words += ["--embedding-dim", "1000000000000", "--out", str(tmp_path / "run")]
    status, out, err = run(capsys, *words)
    assert status == 2 and not out and "Traceback" not in err
    assert "not enough memory" in err and "--units" in err


def test_a_text_may_begin_with_a_dash(capsys):
    words = ["translate", "--model", "reverse_luong", "--num-beams", "1", "--"]
    status, out, _ = run(capsys, *words, "-ab")  # "-" itself is no letter
    assert status == 0 and out == "ba\n"


def test_a_run_called_like_a_model_of_the_zoo_is_told_apart(
    capsys, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    pathlib.Path("p.tsv").write_text("".join(f"{i}\t{i}\n" for i in range(20)))
    sizes = ["--embedding-dim", "4", "--units", "4", "--epochs", "1"]
    words = ["train", "seq2seq", "--model", "luong", "--task", "p.tsv", *sizes]
    status, out, _ = run(capsys, *words, "--out", "reverse_luong")
    assert status == 0 and "zoo.load('./reverse_luong')" in out
    status, _, err = run(capsys, *words, "--out", "x", "--weights", "")
    assert status == 2 and "`weights` is empty" in err
    config = pathlib.Path("reverse_luong", "config.json")
    begun = json.loads(config.read_text())
    begun["training"]["metric"] = "wer"
    config.write_text(json.dumps(begun))
    words = ["evaluate", "--task", "p.tsv", "--num-beams", "1", "--json", "--model"]
    for name, measure in (("./reverse_luong", "wer"), ("reverse_luong", "chrf")):
        status, out, _ = run(capsys, *words, name)
        assert status == 0 and measure in json.loads(out)


def test_translate_keeps_to_lengths(capsys):
    words = ["translate", "--model", "reverse_luong", "abcdef", "--num-beams", "2"]
    status, out, _ = run(capsys, *words, "--max-length", "3")
    assert status == 0 and out == "fed\n"
    status, out, _ = run(capsys, *words, "--min-length", "9")
    assert status == 0 and len(out.strip()) >= 8


def test_a_run_is_measured_on_what_it_was_not_trained_on(capsys, tmp_path):
    path, out = tmp_path / "pairs.tsv", str(tmp_path / "run")
    path.write_text("".join(f"{i}a\ta{i}\n" for i in range(60)))
    sizes = ["--embedding-dim", "4", "--units", "4", "--epochs", "1"]
    words = ["--model", "luong", "--task", str(path), "--tokens", "characters"]
    words += ["--metric", "exact"]
    status, _, err = run(capsys, "train", "seq2seq", *words, *sizes, "--out", out)
    assert status == 0 and "line 1 is a pair: '0a' -> 'a0'" in err
    words = ["evaluate", "--model", out, "--json"]
    status, printed, err = run(capsys, *words, "--task", str(path))
    assert status == 0 and "its test part alone is measured" in err
    measured = json.loads(printed)
    assert measured["sources"] < 30 and measured["part"] == "test"
    assert "exact" in measured  # what the run was chosen by
    other = tmp_path / "others.tsv"
    other.write_text(path.read_text() + "more\tpairs\n")
    status, printed, err = run(capsys, *words, "--task", str(other), "--metric", "wer")
    measured = json.loads(printed)
    assert status == 0 and "wer" in measured and "test part" not in err
    assert measured["sources"] == 61 and measured["part"] == "all"
    with open(path, "a", encoding="utf-8") as file:  # still not what was learned
        file.writelines(f"{i}b\tb{i}\n" for i in range(60))
    status, printed, err = run(capsys, *words, "--task", str(path))
    grown = json.loads(printed)
    assert status == 0 and "its test part alone is measured" in err
    assert grown["part"] == "test" and grown["sources"] < 60
    assert grown["sources"] == len(load_task(str(path)).test)
    status, _, err = run(capsys, *words, "--task", "datse")
    assert status == 2 and "`task` must be one of" in err
