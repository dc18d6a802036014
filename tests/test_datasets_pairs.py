"""Pairs: files of one's own, the published splits, and what is made here."""

import collections
import gzip
import hashlib
import os
import pathlib

import pytest

from training import datasets, seq2seq_tasks
from training.datasets import Pairs, PairSplits
from training.datasets.pair_files import load_tatoeba
from zoo.normalization import normalized

# 5 different sources of 7 pairs; "b" stands three times, once twice the same
SOURCES = ["a", "b", "c", "b", "d", "b", "e"]
TARGETS = ["1", "2", "3", "4", "5", "2", "6"]


@pytest.fixture
def save(tmp_path):
    """Writes `content` to a file, packed if its name ends in .gz."""

    def write(name, content):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        raw = content.encode("utf-8")
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def lines(rows, separator="\t"):
    return "".join(separator.join(row) + "\n" for row in rows)


def rows_of(pairs):
    return list(zip(pairs.sources, pairs.targets, strict=True))


def parts(splits):
    return splits.train, splits.validation, splits.test


def numbered(count):
    return [(f"source {i}", f"target {i}") for i in range(count)]


# ---- Pairs


def test_pairs_are_selected_together():
    pairs = Pairs(SOURCES, TARGETS, "-")
    assert rows_of(pairs.select([4, 1])) == [("d", "5"), ("b", "2")]
    chosen = pairs.select([source == "b" for source in SOURCES])
    assert chosen.targets == ["2", "4", "2"] and chosen.source == "-"
    assert len(pairs) == 7 and len(pairs.select([])) == 0


def test_pairs_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="2 sources and 1 targets"):
        Pairs(["a", "b"], ["1"], "-")
    with pytest.raises(TypeError, match=r"`targets` must be strings.*list at index 1"):
        Pairs(["a", "b"], ["1", [4, 5]], "-")
    with pytest.raises(TypeError, match="`indices` must be a list of integers"):
        Pairs(["a"], ["1"], "-").select(["a"])


def test_references_are_grouped_by_source():
    groups = datasets.reference_groups(Pairs(SOURCES, TARGETS, "-"))
    assert groups == (
        ["a", "b", "c", "d", "e"],
        [["1"], ["2", "4"], ["3"], ["5"], ["6"]],
    )


@pytest.mark.parametrize(("fraction", "sources"), [(0.01, 1), (0.4, 2), (0.99, 4)])
def test_all_targets_of_a_source_go_to_one_side(fraction, sources):
    pairs = Pairs(SOURCES, TARGETS, "-")
    rest, part = datasets.split_pairs(pairs, fraction, seed=3)
    assert len(set(part.sources)) == sources
    assert not set(rest.sources) & set(part.sources)
    assert sorted(rows_of(rest) + rows_of(part)) == sorted(rows_of(pairs))
    kept = [row for row in rows_of(pairs) if row[0] in part.sources]
    assert rows_of(part) == kept


def test_a_split_depends_on_the_seed_and_not_on_the_order():
    rows = numbered(101)
    pairs, backwards = (Pairs(*zip(*r, strict=True), "-") for r in (rows, rows[::-1]))
    chosen = [
        set(datasets.split_pairs(p, 0.1, seed)[1].sources)
        for p, seed in ((pairs, 3), (pairs, 3), (backwards, 3), (pairs, 5))
    ]
    assert chosen[0] == chosen[1] == chosen[2] != chosen[3]
    assert all(len(sources) == 10 for sources in chosen)


def test_what_cannot_be_split_is_refused():
    with pytest.raises(ValueError, match=r"too few different sources.*Received: 1"):
        datasets.split_pairs(Pairs(["a", "a"], ["1", "2"], "-"), 0.5, 0)
    with pytest.raises(ValueError, match="`fraction` must be"):
        datasets.split_pairs(Pairs(SOURCES, TARGETS, "-"), 1, 0)
    with pytest.raises(TypeError, match="`seed` must be"):
        datasets.split_pairs(Pairs(SOURCES, TARGETS, "-"), 0.5, None)


def test_parts_share_no_source():
    pairs = Pairs(SOURCES, TARGETS, "-")
    a, b, c = pairs.select([0]), pairs.select([1, 3]), pairs.select([4])
    assert datasets.leave_out_sources(pairs, b).sources == ["a", "c", "d", "e"]
    with pytest.raises(ValueError, match="`train` and `test` share the source 'b'"):
        PairSplits(pairs.select([5]), a, b)
    with pytest.raises(ValueError, match="The validation part of - is empty"):
        PairSplits(a, pairs.select([]), c)


# ---- a file of one's own


@pytest.mark.parametrize("name", ["a.tsv", "a.tsv.gz", "a.txt", "a.csv", "a.csv.gz"])
def test_two_columns_without_a_header_need_no_options(save, name):
    rows = [("Go.", "Va !"), ("Hi.", "Salut !"), ("Hi.", "Salut !"), ("1", "a\u202f!")]
    separator = "," if ".csv" in name else "\t"
    pairs = datasets.load_pairs(save(name, lines(rows, separator)))
    assert rows_of(pairs) == rows
    assert pairs.source.endswith(name)


def test_quotes_are_text_in_tsv_and_quoting_in_csv(save):
    assert datasets.load_pairs(save("a.tsv", '"a\tb"\n')).sources == ['"a']
    assert datasets.load_pairs(save("a.csv", '"a, b",c\n')).sources == ["a, b"]


@pytest.mark.parametrize("header", ["target,n,source", "deutsch,n,english"])
def test_columns_are_found_by_name(save, header):
    path = save("a.csv", f"{header}\nEins,1,One\nZwei,2,Two\n")
    names = {} if "source" in header else dict.fromkeys(["source_column"], "english")
    names |= {"target_column": "deutsch"} if names else {}
    pairs = datasets.load_pairs(path, **names)
    assert rows_of(pairs) == [("One", "Eins"), ("Two", "Zwei")]


def test_columns_are_found_by_position(save):
    path = save("a.tsv", lines([("1", "Eins", "One"), ("2", "Zwei", "Two")]))
    pairs = datasets.load_pairs(path, source_column=3, target_column="2")
    assert rows_of(pairs) == [("One", "Eins"), ("Two", "Zwei")]


REFUSED = {
    "three columns": (
        "a\tb\tc\n",
        {},
        r"a\.tsv, line 1 has 3 fields: 'a', 'b', 'c'\. Expected: two.*"
        r"`source_column`.*source_column=1, target_column=2",
    ),
    "one column": ("a\nb\n", {}, r"line 1 has 1 field: 'a'"),
    "no file of pairs": ("", {}, r"a\.tsv is empty.*a source and a target column"),
    "a field too few": ("a\tb\nc\n", {}, r"a\.tsv, line 2: 1 field\. Expected: 2"),
    "an empty target": (
        "a\tb\nc\t \nd\t\n",
        {},
        r"a\.tsv, line 2 \(and 1 line more\): column 2 is empty.*delete the line",
    ),
    "many empty targets": (
        "a\tb\nc\t \nd\t\ne\t\n",
        {},
        r"line 2 \(and 2 lines more\): column 2 is empty",
    ),
    "an empty source": ("a\tb\n\tb\n", {}, r"line 2: column 1 is empty"),
    "an unknown name": (
        "en\tde\na\tb\n",
        {"source_column": "en", "target_column": "fr"},
        r"line 1: there is no column 'fr' for `target_column`.*'en', 'de'.*"
        r"source_column=1, target_column=2",
    ),
    "one name": ("en\tde\na\tb\n", {"source_column": "en"}, "go together.*Give both"),
    "one column twice": (
        "en\tde\na\tb\n",
        {"source_column": "en", "target_column": "en"},
        r"`source_column` and `target_column` must be two columns.*of the sources and",
    ),
    "a name and a position": (
        "en\tde\na\tb\n",
        {"source_column": "en", "target_column": "2"},
        r"`source_column` and `target_column` must be two header names",
    ),
    "header only": (
        "en\tde\n",
        {"source_column": "en", "target_column": "de"},
        r"header row only.*source_column=1, target_column=2",
    ),
}


@pytest.mark.parametrize(("content", "options", "match"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_holds_no_pairs_is_refused_by_line(save, content, options, match):
    with pytest.raises(ValueError, match=f"(?s){match}"):
        datasets.load_pairs(save("a.tsv", content), **options)


def test_sources_that_are_no_files_of_pairs_are_refused(tmp_path):
    with pytest.raises(TypeError, match="`source` must be a string or a path"):
        datasets.load_pairs(3)
    with pytest.raises(ValueError, match=r"\.tsv, \.csv or \.txt.*a\.json"):
        datasets.load_pairs(tmp_path / "a.json")
    with pytest.raises(FileNotFoundError, match=r"no file .*a\.tsv"):
        datasets.load_pairs(tmp_path / "a.tsv")


def test_a_file_of_ones_own_is_split_by_source(save):
    rows = [*numbered(50), ("source 3", "other"), ("source 7", "other")]
    path = save("own.tsv", lines(rows))
    splits = datasets.load_task(path, test_fraction=0.2, validation_fraction=0.1)
    sizes = [len(set(part.sources)) for part in parts(splits)]
    assert sum(sizes) == 50 and min(sizes) >= 1
    assert sorted(row for part in parts(splits) for row in rows_of(part)) == sorted(
        rows
    )
    again = datasets.load_task(str(path), test_fraction=0.2)
    assert list(map(rows_of, parts(again))) == list(map(rows_of, parts(splits)))
    smaller = datasets.load_task(path, test_fraction=0.1)
    assert set(smaller.test.sources) < set(splits.test.sources)


def test_what_was_trained_on_never_comes_into_the_test_part_of_a_longer_file(save):
    rows = numbered(400)
    short = datasets.load_task(save("short.tsv", lines(rows)))
    more = [(f"a new source {i}", "new") for i in range(300)]
    long = datasets.load_task(save("long.tsv", lines([*more, *rows])))
    for name in ("train", "validation", "test"):
        before = set(getattr(short, name).sources)
        assert before <= set(getattr(long, name).sources)
        share = len(set(getattr(long, name).sources)) / 700
        assert share == pytest.approx({"train": 0.8}.get(name, 0.1), abs=0.05)


def test_sources_that_are_one_text_to_a_model_go_together(save):
    rows = [(f"caf\u00e9 {i}", "x") for i in range(40)]
    rows += [(f"cafe\u0301  {i}", "y") for i in range(40)]
    rows += [(f"Caf\u00e9 {i}", "z") for i in range(40)]
    splits = datasets.load_task(save("own.tsv", lines(rows)))
    found = [{normalized(t, True)[0] for t in part.sources} for part in parts(splits)]
    assert sum(map(len, found)) == 40


def test_a_header_may_have_capitals(save):
    rows = [("Source", "Target"), *numbered(9)]
    for name in ("own.csv", "own.tsv"):
        mark = "," if name.endswith("csv") else "\t"
        text = "".join(f"{a}{mark}{b}\n" for a, b in rows)
        assert len(datasets.load_pairs(save(name, text))) == 9


def test_three_sources_are_three_parts(save):
    splits = datasets.load_task(save("own.tsv", lines(numbered(3))))
    assert [len(part) for part in parts(splits)] == [1, 1, 1]
    with pytest.raises(ValueError, match=r"too few different sources.*Received: 2"):
        datasets.load_task(save("two.tsv", lines(numbered(2))))


@pytest.mark.parametrize(
    ("task", "options", "error", "match"),
    [
        (3, {}, TypeError, "`task` must be a string or a path"),
        ("revers", {}, FileNotFoundError, r"one of \('reverse'.*'revers', which does"),
        (".", {}, ValueError, "which is no file"),
        ("reverse", {"data": "x"}, ValueError, '`data` is for the tasks "g2p"'),
        ("reverse", {"source_column": "x"}, ValueError, "Leave them out"),
        ("g2p", {}, FileNotFoundError, r"needs `data`.*g014b2b\.train.*sourceforge"),
        ("en-fr", {}, FileNotFoundError, r"needs `data`.*fra\.txt.*manythings"),
        ("en-fr", {"data": "no"}, FileNotFoundError, r"no 'no'.*manythings"),
        ("own", {"data": "x"}, ValueError, "`data` is for"),
        ("csv", {"data": "x"}, ValueError, "own take the place of the task's name"),
        ("own", {"test_fraction": 0}, ValueError, "`test_fraction` must be more than"),
        (
            "own",
            {"test_fraction": 0.5, "validation_fraction": 0.5},
            ValueError,
            "must be more than 0 and leave training data. Received: 0.5 and 0.5",
        ),
    ],
)
def test_tasks_that_cannot_be_loaded_are_refused(save, task, options, error, match):
    if task == "own":
        task = save("own.tsv", lines(numbered(10)))
    with pytest.raises(error, match=match):
        datasets.load_task(task, **options)


def test_a_table_of_ones_own_is_no_data_of_a_published_task(save):
    path = save("own.csv", lines(numbered(10)))
    for task in ("en-fr", "g2p"):
        with pytest.raises(ValueError, match=r"Received: .*own.csv.*task='.*own.csv'"):
            datasets.load_task(task, path)


# ---- the published splits, and files that look like them


def share(sentence):
    return int(hashlib.sha1(sentence.encode()).hexdigest(), 16) % 100


def test_an_anki_file_is_split_by_the_hash_of_its_english_sentences(save):
    rows = [(f"Sentence {i}.", f"Phrase {i}.", "CC-BY 2.0") for i in range(800)]
    rows.append((rows[5][0], "Une autre.", "CC-BY 2.0"))
    splits = datasets.load_task("en-fr", data=save("fra.txt", lines(rows)))
    expected = {
        "test": [row[:2] for row in rows if share(row[0]) == 0],
        "validation": [row[:2] for row in rows if share(row[0]) == 1],
        "train": [row[:2] for row in rows if share(row[0]) > 2],
    }
    assert all(expected.values())
    for name, pairs in expected.items():
        assert rows_of(getattr(splits, name)) == pairs


def test_a_folder_of_sentence_pairs_is_read_as_it_is_split(save):
    folder = save("tatoeba/en-fr.train.tsv.gz", "Go.\tVa !\n").parent
    save("tatoeba/en-fr.val.tsv", "Come on.\tAllez !\nCome on.\tViens !\n")
    with pytest.raises(FileNotFoundError, match=r"no file en-fr\.test\.tsv or"):
        datasets.load_task("en-fr", data=folder)
    save("tatoeba/en-fr.test.tsv", "Stop!\tStop !\n")
    splits = datasets.load_task("en-fr", data=str(folder))
    assert list(map(rows_of, parts(splits))) == [
        [("Go.", "Va !")],
        [("Come on.", "Allez !"), ("Come on.", "Viens !")],
        [("Stop!", "Stop !")],
    ]


def test_pronunciations_are_split_by_word(save):
    rows = [(f"W{i}", "W AH N") for i in range(150)] + [("W7", "W AA"), ("T", "T IY")]
    folder = save("g2p/g014b2b.train.gz", lines(rows)).parent
    with pytest.raises(FileNotFoundError, match=r"one file that ends in \.test.*none"):
        datasets.load_task("g2p", data=folder)
    save("g2p/g014b2b.test", "T\tT IY\nU\tY UW\n")
    splits = datasets.load_task("g2p", data=folder)
    assert rows_of(splits.test) == [("T", "T IY"), ("U", "Y UW")]
    assert "T" not in splits.train.sources
    assert len(set(splits.validation.sources)) == 3  # 2 % of 150
    assert len(splits.train) + len(splits.validation) == 151
    seeds = [datasets.load_task("g2p", folder, seed).validation for seed in range(5)]
    assert len({tuple(part.sources) for part in seeds}) > 1


def real(name):
    beside = pathlib.Path(__file__).parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("ATTENTION_ZOO_DATA", beside)) / name
    if not folder.is_dir():
        pytest.skip(f"the {name} files are absent")
    return folder


def test_the_real_sentence_pairs_follow_the_rule():
    splits = load_tatoeba(real("tatoeba"))
    assert list(map(len, parts(splits))) == [162_291, 1_574, 1_686]
    assert {share(s) for s in splits.test.sources} == {0}
    assert {share(s) for s in splits.validation.sources} == {1}
    assert {share(s) for s in splits.train.sources} == set(range(3, 100))


def test_the_real_pronunciations_are_the_published_split():
    splits = datasets.load_task("g2p", data=real("g2p"))
    words, references = datasets.reference_groups(splits.test)
    assert len(words) == 12_000 and sum(map(len, references)) == 12_753
    assert len(splits.train) + len(splits.validation) == 113_438
    assert len(set(splits.validation.sources)) == 2_137  # 2 % of 106,837


# ---- reversal


def test_reversed_strings_are_new_in_each_part():
    splits = datasets.load_task("reverse", seed=7)
    assert list(map(len, parts(splits))) == [50_000, 1_000, 2_000]
    everything = [text for part in parts(splits) for text in part.sources]
    assert len(set(everything)) == len(everything)
    for part in parts(splits):
        assert all(
            target == "".join(reversed(source)) for source, target in rows_of(part)
        )
    assert set("".join(everything)) == set("abcdefghijklmnopqrstuvwxyz")


def test_the_lengths_of_strings_are_equally_frequent_where_they_can_be():
    splits = datasets.load_task("reverse", seed=7)
    for part in parts(splits):
        counts = collections.Counter(map(len, part.sources))
        assert set(counts) == set(range(1, 21))
        long = [counts[length] for length in range(4, 21)]
        assert max(long) - min(long) <= 1
        share_of_short = counts[1] / 26, counts[2] / 26**2
        if part is not splits.train:
            assert all(0 < share <= 0.1 for share in share_of_short)
    short = {text for part in parts(splits) for text in part.sources if len(text) == 1}
    assert len(short) == 26  # every letter is somewhere, and in one part only


def test_reversals_follow_the_seed():
    first, again, other = (datasets.load_task("reverse", seed=s) for s in (3, 3, 5))
    assert list(map(rows_of, parts(first))) == list(map(rows_of, parts(again)))
    assert first.test.sources != other.test.sources


def test_a_part_of_no_strings_is_refused():
    from training.datasets.reversal import make_reversals

    with pytest.raises(ValueError, match=r"`test` must be 1 or more\. Received: 0"):
        make_reversals(test=0)


def test_the_tasks_that_have_data_are_those_that_have_settings():
    assert tuple(seq2seq_tasks.TASKS) == datasets.TASKS
