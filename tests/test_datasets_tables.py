"""A table of one's own: what is read, and every sentence that refuses it."""

import csv
import gzip

import pytest

from training import datasets

NAMES = ("negative", "positive")
# 3 good, 4 bad: distinct counts, and enough of each class
LABELS = ["good", "bad", "bad", "good", "bad", "good", "bad"]
ROWS = [(f"text {i}", label) for i, label in enumerate(LABELS)]


@pytest.fixture
def save(tmp_path):
    """Writes `content` (text or bytes) to a file, packed if its name ends in .gz."""

    def write(name, content):
        raw = content if isinstance(content, bytes) else content.encode("utf-8")
        path = tmp_path / name
        path.write_bytes(gzip.compress(raw) if name.endswith(".gz") else raw)
        return path

    return write


def table(rows=ROWS, header="text,label", separator=","):
    lines = [header.replace(",", separator)] if header else []
    lines += [separator.join(row) for row in rows]
    return "\n".join(lines) + "\n"


def labelled(values):
    return table([(f"text {i}", value) for i, value in enumerate(values)])


def load(path, **options):
    return datasets.load(path, **options).train


# ---- what is read


def test_csv_quotes_hold_commas_quotes_and_line_breaks(save):
    first = 'He said ""no"", and\nleft'
    content = f'label,text\nbad,"{first}"\n' + "bad,b\nbad,c\ngood,d\ngood,e\ngood,f\n"
    data = load(save("a.csv", content))
    assert data.texts == ['He said "no", and\nleft', "b", "c", "d", "e", "f"]
    assert data.label_names == ("bad", "good")
    assert data.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert datasets.load(save("a.csv", content)).test is None


def test_tsv_keeps_quotes_and_separators_other_than_tab_raw(save):
    texts = ['"open', 'a ""b"', "one, two", "\u2028and\x85so", "", " kept "]
    rows = [(text, "x" if i % 2 else "y") for i, text in enumerate(texts)]
    data = load(save("a.tsv", table(rows, "text,label", "\t")))
    assert data.texts == texts
    assert data.labels.tolist() == [1, 0, 1, 0, 1, 0]


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.tsv", "a.tsv.gz", "A.CSV"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["plain", "BOM"])
@pytest.mark.parametrize("end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_packing_byte_order_mark_and_line_ends_change_nothing(save, name, mark, end):
    separator = "\t" if ".tsv" in name else ","
    content = table(separator=separator).replace("\n", end).encode()
    data = load(save(name, mark + content))
    assert list(zip(data.texts, data.labels, strict=True)) == [
        (text, 1 if label == "good" else 0) for text, label in ROWS
    ]


def test_positions_read_a_file_without_a_header_row(save):
    by_name = load(save("a.csv", table()))
    path = save("b.csv", table(header=None))
    for columns in (("1", "2"), (1, 2)):
        data = load(path, text_column=columns[0], label_column=columns[1])
        assert data.texts == by_name.texts
        assert data.labels.tolist() == by_name.labels.tolist()


def test_a_header_may_be_made_of_numbers(save):
    data = load(save("a.csv", table(header="0,1")), text_column="0", label_column="1")
    assert len(data) == len(ROWS)


def test_blank_lines_and_empty_texts_are_no_errors(save):
    data = load(save("a.csv", "text,label\n\n,a\nx,a\n\ny,a\nz,b\nw,b\nv,b\n\n"))
    assert data.texts == ["", "x", "y", "z", "w", "v"]


def test_integer_labels_are_classes_in_numeric_order(save):
    data = load(save("a.csv", labelled(["10", "9", "-1"] * 3)))
    assert data.label_names == ("-1", "9", "10")
    assert data.labels[:3].tolist() == [2, 1, 0]


def test_long_texts_are_read_and_the_limit_of_csv_stays(save):
    before = csv.field_size_limit()
    rows = [("x" * (before + 1), "a"), ("y", "a"), ("z", "a")] + [("w", "b")] * 3
    data = load(save("a.csv", table(rows)))
    assert len(data.texts[0]) == before + 1
    with pytest.raises(ValueError, match="quote"):
        load(save("b.csv", 'text,label\n"open,a\n'))
    assert csv.field_size_limit() == before


def test_labels_of_a_trained_model_may_be_names_or_indices(save):
    named = load(save("a.csv", labelled(["positive", "negative"])), label_names=NAMES)
    numbered = load(save("b.csv", labelled([" 1", "0 "])), label_names=NAMES)
    for data in (named, numbered):
        assert data.label_names == NAMES
        assert data.labels.tolist() == [1, 0]


def test_names_that_are_digits_are_names_first(save):
    data = load(save("a.csv", labelled(["0", "1", "1"])), label_names=["1", "0"])
    assert data.labels.tolist() == [1, 0, 0]


def test_the_imdb_export_is_read_whole(imdb_files):
    data = load(imdb_files / "train.tsv.gz", text_column="2", label_column="1")
    assert len(data) == 25_000
    assert data.label_names == ("0", "1")
    assert data.labels.sum() == 12_500
    assert sum("<br />" in text for text in data.texts) > 10_000


def test_labels_with_signs_that_are_no_integers_are_names(save):
    data = load(save("a.csv", labelled(["--1", "-", "1"] * 3)))
    assert data.label_names == ("-", "--1", "1")


# ---- what is refused: the file


REFUSED_FILES = {
    "empty file": ("a.csv", "", r"a\.csv is empty\. Expected: a table"),
    "only blank lines": ("a.tsv", "\n\n", r"a\.tsv is empty"),
    "header only": ("a.csv", "text,label\n", r"header row only.*text_column=1"),
    "too few fields": (
        "a.csv",
        table([*ROWS, ("alone",)]),
        r"a\.csv, line 9: 1 field\. Expected: 2, as in line 1\. Fill in",
    ),
    "too many fields, csv": (
        "a.csv",
        table([*ROWS, ("a", "b", "good")]),
        r"a\.csv, line 9: 3 fields\. Expected: 2.*quotes around",
    ),
    "too many fields, tsv": (
        "a.tsv",
        table([*ROWS, ("a", "b", "good")], separator="\t"),
        r"a\.tsv, line 9: 3 fields\. Expected: 2.*Replace tabs",
    ),
    "row after a text of two lines": (
        "a.csv",
        'text,label\n"one\ntwo",a\nx\n',
        r"a\.csv, line 4: 1 field",
    ),
    "a quote never closed": (
        "a.csv",
        table([*ROWS[:2], ('"open', "bad"), *ROWS[2:]]),
        r"a\.csv, line 4: the row that begins here has a quote .*line 9\).*as \.tsv",
    ),
    "text behind a closed quote": (
        "a.csv",
        table([*ROWS, ('"He" said', "bad")]),
        r"a\.csv, line 9: the row that begins here has a quote",
    ),
    "not UTF-8": (
        "a.csv",
        "text,label\na,b\ncaf\u00e9,c\n".encode("latin-1"),
        r"a\.csv, line 3: byte 0xe9 is not UTF-8.*save it as UTF-8",
    ),
    "not UTF-8 behind a byte order mark": (
        "a.csv",
        b"\xef\xbb\xbftext,label\n\xff,b\n",
        r"a\.csv, line 2: byte 0xff is not UTF-8",
    ),
    "UTF-16": ("a.csv", table().encode("utf-16"), r"a\.csv is UTF-16.*as UTF-8"),
    "NUL byte": ("a.tsv", "text\tlabel\na\0\tb\n", r"a\.tsv, line 2: .*NUL byte"),
    "not a gzip file": ("a.csv", None, r"a\.csv\.gz cannot be unpacked.*again"),
}


@pytest.mark.parametrize(
    "name, content, match", REFUSED_FILES.values(), ids=REFUSED_FILES
)
def test_a_damaged_file_is_refused_by_line(save, name, content, match):
    path = save(name, "text" if content is None else content)
    if content is None:
        path = path.rename(path.with_suffix(".csv.gz"))
    with pytest.raises(ValueError, match=f"(?s){match}"):
        load(path)


def test_a_gzip_file_that_was_cut_short_is_refused(save):
    path = save("a.csv.gz", table())
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="cannot be unpacked"):
        load(path)


# ---- what is refused: the columns


@pytest.mark.parametrize(
    "header, options, match",
    [
        (
            "review,label",
            {},
            r"line 1: there is no column 'text' for `text_column`\. The columns are: "
            r"'review', 'label'\. Give",
        ),
        ("Texts,label", {}, r"Did you mean 'Texts'\?.*without a header row"),
        ("text,lable", {}, r"`label_column`.*Did you mean 'lable'\?"),
        ("text;label", {}, r"separated by semicolons: save it with commas"),
        ("text\tlabel", {}, r"separated by tabs"),
        ("text,text", {}, r"2 columns are named 'text'.*Rename"),
        (
            "text,label",
            {"text_column": "label"},
            r"must be two columns\. Received: 'label' for both",
        ),
        (
            "text,label",
            {"text_column": "1"},
            r"two header names or two positions\. Received: '1' and 'label'.*position "
            r"of 'label'",
        ),
        (
            "text,label",
            {"text_column": "1", "label_column": "3"},
            r"line 1: there is no column 3 for `label_column`\. The line has 2 fields: "
            r"'text', 'label'",
        ),
        (
            "1,2",
            {"text_column": "1", "label_column": "2"},
            r"could be read two ways.*header row of words",
        ),
    ],
)
def test_a_column_that_is_not_there_is_refused(save, header, options, match):
    rows = ROWS if "," in header else [(";".join(row),) for row in ROWS]
    with pytest.raises(ValueError, match=match):
        load(save("a.csv", table(rows, header)), **options)


def test_a_wide_header_is_listed_in_short(save):
    header = ",".join(f"column{i}" for i in range(23))
    with pytest.raises(ValueError, match="'column19' and 3 more"):
        load(save("a.csv", header + "\n" + "," * 22 + "\n"))


def test_a_tsv_with_commas_says_so(save):
    with pytest.raises(ValueError, match="separated by commas: save it with tabs"):
        load(save("a.tsv", table()))


# ---- what is refused: the labels


A, B = ["a"] * 3, ["b"] * 3

REFUSED_LABELS = {
    "empty label": ([*A, " ", *B], r"a\.csv, line 5: the label \('label'\) is empty"),
    "one class": (A, r"all 3 labels \('label'\) are 'a'\. Expected: two classes"),
    "once": (
        ["postive", *["positive"] * 3, *B],
        r"'postive' \('label'\) stands only once \(line 2\)\..*\(did you mean "
        r"'positive'\?\)",
    ),
    "twice": ([*A, "b", "c", "b", "c"], r"'b'.*twice \(lines 5 and 7\), and 1 more"),
    "case": (
        ["Positive", *A, "positive"],
        r"'Positive' \(line 2\) and 'positive' \(line 6\) in 'label' look like one",
    ),
    "blanks": (["a", *B, "a "], r"'a' \(line 2\) and 'a ' \(line 6\)"),
    "numbers": (["1", "0", "1.0"], r"'1' \(line 2\) and '1.0' \(line 4\)"),
    "score": (
        ["1", "0.37", "0"],
        r"a\.csv, line 3: the label \('label'\) is 0\.37, which looks like a score",
    ),
    "texts": (
        [f"this is a whole text, number {i}" for i in range(3)],
        r"'label' has 3 different labels in 3 rows.*Then swap",
    ),
    "identifiers": (
        [str(i) for i in range(23)],
        r"'label' has 23 different labels.*'text' that of the labels\?.*identifiers",
    ),
}


@pytest.mark.parametrize("values, match", REFUSED_LABELS.values(), ids=REFUSED_LABELS)
def test_labels_that_are_not_what_they_seem_are_refused(save, values, match):
    rows = [(f"text {i}", f'"{value}"') for i, value in enumerate(values)]
    with pytest.raises(ValueError, match=match):
        load(save("a.csv", table(rows)))


def test_a_header_row_read_as_an_example_is_recognised(save):
    with pytest.raises(ValueError, match=r"'label'.*If line 1 is a header row"):
        load(save("a.csv", table()), text_column="1", label_column="2")


def test_a_column_of_empty_texts_is_refused(save):
    rows = [(" ", label) for _, label in ROWS]
    with pytest.raises(ValueError, match=r"all 7 texts \('text'\) are empty"):
        load(save("a.csv", table(rows)))


@pytest.mark.parametrize(
    "values, match",
    [
        (
            ["negative", "postive"],
            r"a\.csv, line 3: the label \('label'\) is 'postive'\. Expected: one of "
            r"\('negative', 'positive'\).*indices 0\.\.1 \(did you mean 'positive'\?\)",
        ),
        (["0", "2"], r"line 3: the label \('label'\) is '2'"),
        (["positive", "0"], r"line 3: the label \('label'\) is '0'"),
        (["-1", "1"], r"line 2: the label \('label'\) is '-1'"),
    ],
)
def test_labels_that_a_trained_model_does_not_know_are_refused(save, values, match):
    with pytest.raises(ValueError, match=match):
        load(save("a.csv", labelled(values)), label_names=NAMES)


@pytest.mark.parametrize(
    "label_names, error, match",
    [
        ("negative", TypeError, "must be a list of strings"),
        ([0, 1], TypeError, "must be a list of strings"),
        (2, TypeError, "must be a list of strings"),
        (["a"], ValueError, "two or more names"),
        (["a", "a"], ValueError, "two or more names, each once"),
    ],
)
def test_label_names_that_are_no_names_are_refused(save, label_names, error, match):
    with pytest.raises(error, match=match):
        load(save("a.csv", table()), label_names=label_names)


# ---- texts without labels


def test_unlabelled_texts_are_lines(save):
    content = '\ufeffone\r\n\n  \n"two"\ttabs\x85here\nthree'
    expected = ["one", '"two"\ttabs\x85here', "three"]
    for name in ("a.txt", "a.txt.gz"):
        assert datasets.unlabelled(save(name, content)) == expected


def test_unlabelled_refuses_what_is_no_text_file(save, tmp_path):
    with pytest.raises(ValueError, match=r"from a \.txt or \.txt\.gz file.*a\.csv"):
        datasets.unlabelled(save("a.csv", "x"))
    with pytest.raises(ValueError, match=r"a\.txt holds no text"):
        datasets.unlabelled(save("a.txt", " \n\n"))
    with pytest.raises(FileNotFoundError, match=r"There is no file .*b\.txt"):
        datasets.unlabelled(tmp_path / "b.txt")
