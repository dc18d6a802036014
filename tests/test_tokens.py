"""Sequence tokenizers: text to ids and back, tied to the characters typed."""

import collections
import functools
import itertools
import json
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zoo.text import Tokenizer
from zoo.tokens import END_ID, PAD_ID, START_ID, UNKNOWN_ID, SequenceTokenizer

KINDS = ["bpe", "characters", "words"]
TEXTS = [
    "The cat sat on the mat, and the cats' hats fell.",
    "It's the caf\u00e9; don't sit in 2003 or 2013!",
    "L\u2019homme s\u2019en va\u202f! Aujourd'hui c'est l'\u00e9t\u00e9.",
    "aujourd'hui l'homme est all\u00e9 au caf\u00e9\u00a0?",
]
# everything that a text can be made of, for texts that may hold any of it
ANY = st.text(st.characters(exclude_categories=[]), max_size=23)
TYPED = st.lists(
    st.sampled_from(
        [*"abcTh ,.!'\u2019\u00e9e\u0301\u202f\u00a0\t\n1", "the", "\ud83d"]
    ),
    max_size=17,
).map("".join)


@functools.cache
def trained(kind, lowercase=False):
    return SequenceTokenizer.train(TEXTS, kind, lowercase=lowercase)


@pytest.fixture(scope="module", params=KINDS)
def tokenizer(request):
    return trained(request.param)


@pytest.fixture(scope="module")
def bpe():
    return trained("bpe")


def plain(text):
    """The one form, restated: NFC, straight apostrophes, single blanks."""
    text = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)
    text = unicodedata.normalize("NFC", text)
    for mark in "\u2018\u2019\u02bc\uff07":
        text = text.replace(mark, "'")
    for mark in "\u200b\u2060\ufeff":
        text = text.replace(mark, " ")
    return " ".join(text.split())


# ---- training


def merges_by_hand(words, count):
    """Sennrich et al., Algorithm 1, by the book: {word: frequency} -> merges.

    Ties go to the pair whose parts are older, single characters by code point.
    """
    ages = {c: i for i, c in enumerate(sorted({c for word in words for c in word}))}
    split, merges = {word: list(word) for word in words}, []
    for _ in range(count):
        pairs = collections.Counter()
        for word, parts in split.items():
            for pair in itertools.pairwise(parts):
                pairs[pair] += words[word]
        if not pairs:
            break
        best = min(pairs, key=lambda p: (-pairs[p], ages[p[0]], ages[p[1]]))
        if pairs[best] < 2:
            break
        merges.append(best)
        ages.setdefault("".join(best), len(ages))
        for parts in split.values():
            place = 0
            while place < len(parts) - 1:
                if (parts[place], parts[place + 1]) == best:
                    parts[place : place + 2] = ["".join(best)]
                place += 1
    return merges


def test_subwords_are_those_of_the_algorithm(tmp_path):
    text = "low low low low low lower lower newest newest newest newest widest widest"
    words = collections.Counter(f" {word}" for word in text.split())
    expected = merges_by_hand(words, 11)
    characters = len(set(text))
    tokenizer = SequenceTokenizer.train([text], "bpe", 4 + characters + 11)
    tokenizer.save(tmp_path / "t.json")
    saved = json.loads((tmp_path / "t.json").read_text(encoding="utf-8"))
    assert [tuple(pair) for pair in saved["merges"]] == expected
    assert saved["tokens"][characters:] == ["".join(pair) for pair in expected]
    assert tokenizer.vocabulary_size == 4 + characters + 11


def test_the_same_texts_give_the_same_ids_in_another_process(bpe):
    program = (
        "import sys, json; from zoo.tokens import SequenceTokenizer as S; "
        "texts = json.loads(sys.argv[1]); "
        "print(json.dumps(S.train(texts, 'bpe').encode(' '.join(texts))))"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program, json.dumps(TEXTS)],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert json.loads(done.stdout.splitlines()[-1]) == bpe.encode(" ".join(TEXTS))


@pytest.mark.parametrize("kind", KINDS)
def test_a_vocabulary_is_as_large_as_asked_at_most(kind):
    everything = SequenceTokenizer.train(TEXTS, kind).vocabulary_size
    for size in (5, 11, everything - 1, everything, everything + 7):
        tokenizer = SequenceTokenizer.train(TEXTS, kind, size)
        assert tokenizer.vocabulary_size == min(size, everything)
        ids = {i for text in TEXTS for i in tokenizer.encode(text)}
        assert max(ids) < tokenizer.vocabulary_size
        enough = (
            len(set("".join(map(plain, TEXTS)))) if kind == "bpe" else everything - 4
        )
        assert (UNKNOWN_ID in ids) == (size - 4 < enough)


def test_characters_and_words_are_numbered_by_frequency():
    words = SequenceTokenizer.train(["b a c", "c b", "c d"], "words")
    assert words.pieces([4, 5, 6, 7]) == ["c", "b", "a", "d"]
    characters = SequenceTokenizer.train(["ba", "cac"], "characters", 6)
    assert characters.pieces([4, 5]) == ["a", "c"]
    assert characters.encode("abc") == [4, UNKNOWN_ID, 5]


def test_what_cannot_be_trained_is_refused():
    with pytest.raises(ValueError, match=r"'bpe', 'characters', 'words'.*'subword'"):
        SequenceTokenizer.train(TEXTS, "subword")
    with pytest.raises(ValueError, match=r"at least 5.*Received: 4"):
        SequenceTokenizer.train(TEXTS, "bpe", 4)
    with pytest.raises(ValueError, match="hold no token"):
        SequenceTokenizer.train(["", " \u202f"], "words")
    with pytest.raises(TypeError, match="Put it into a list"):
        SequenceTokenizer.train("text", "words")


# ---- back to text


def test_decoding_gives_the_text_in_one_form(tokenizer):
    for text in TEXTS:
        assert tokenizer.decode(tokenizer.encode(text)) == plain(text)


@given(words=st.lists(st.sampled_from(" ".join(TEXTS).split()), max_size=7))
def test_known_text_is_restored_exactly(bpe, words):
    text = " ".join(words)
    assert bpe.decode(bpe.encode(text)) == plain(text)


@functools.cache
def every_character():
    known = "abcTthe ,.!'\u00e91\ufffd" + "".join(
        f"{c}\u0301" for c in "abcTthe1\u00e9"
    )
    return SequenceTokenizer.train([known, f"x\u0301{known}"], "bpe")


@given(text=TYPED)
def test_all_known_characters_are_restored(text):
    alphabet = every_character()
    assert alphabet.decode(alphabet.encode(text)) == plain(text)


def test_reserved_ids_are_left_out_of_the_text_and_named_in_labels(tokenizer):
    text = TEXTS[0]
    ids = [START_ID, *tokenizer.encode(text), END_ID, PAD_ID, PAD_ID]
    assert tokenizer.decode(ids) == text
    assert tokenizer.pieces([0, 1, 2, 3]) == ["[PAD]", "[START]", "[UNKNOWN]", "[END]"]
    assert "[UNKNOWN]" in tokenizer.decode([*ids, UNKNOWN_ID])


def test_ids_beyond_the_vocabulary_are_refused(tokenizer):
    for bad in (-1, tokenizer.vocabulary_size):
        for use in (tokenizer.decode, tokenizer.pieces):
            with pytest.raises(ValueError, match=rf"Ids must lie in 0\.\..*: {bad}\."):
                use([4, bad])
        with pytest.raises(ValueError, match="Ids must lie in"):
            tokenizer.starts_word(bad)


# ---- what a person types


@pytest.mark.parametrize(
    "typed",
    ["[PAD]", "[START]", "[UNKNOWN] ", "[END]", "<unk>", "</s>", "<eos>", "\u2581"],
)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_person_types_never_becomes_a_control_token(kind, typed):
    knowing = SequenceTokenizer.train([typed, *TEXTS, typed], kind)
    assert min(knowing.encode(typed)) > END_ID
    assert knowing.decode(knowing.encode(f"The {typed}")) == f"The {typed}".strip()
    ids = SequenceTokenizer.train(TEXTS, kind).encode(typed)
    assert not {PAD_ID, START_ID, END_ID} & set(ids)


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "\u00a0\u202f\u3000", "\ufeff"])
def test_a_text_of_nothing_has_no_ids(tokenizer, text):
    first, empty, last = tokenizer.encode_batch([TEXTS[0], text, TEXTS[1]])
    assert empty.ids == empty.tokens == empty.offsets == []
    assert first.ids == tokenizer.encode(TEXTS[0])
    assert last.ids == tokenizer.encode(TEXTS[1])


@given(text=st.one_of(ANY, TYPED))
@pytest.mark.parametrize("kind", KINDS)
def test_every_token_is_tied_to_the_characters_typed(kind, text):
    tokenizer = trained(kind)
    encoding = tokenizer.encode_batch([text])[0]
    assert len(encoding.ids) == len(encoding.tokens) == len(encoding.offsets)
    assert all(END_ID < i < tokenizer.vocabulary_size or i == 2 for i in encoding.ids)
    end = 0
    for token, (a, b) in zip(encoding.tokens, encoding.offsets, strict=True):
        assert a <= b <= len(text) and token == text[a:b]
        assert b >= end
        end = b
    covered = {i for a, b in encoding.offsets for i in range(a, b)}
    for place, character in enumerate(text):
        if plain(character):
            assert place in covered


@given(text=st.one_of(ANY, TYPED), lowercase=st.booleans())
@pytest.mark.parametrize("kind", KINDS)
def test_texts_that_look_the_same_have_the_same_ids(kind, text, lowercase):
    tokenizer = trained(kind, lowercase)
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    forms += [plain(text), f"\u202f{text}\n"]
    ids = [encoding.ids for encoding in tokenizer.encode_batch([text, *forms])]
    assert all(other == ids[0] for other in ids)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("the cat, the cat", ["the", "cat", ",", "the", "cat"]),
        ("the  \u00a0cat", ["the", "cat"]),
        ("cafe\u0301!", ["cafe\u0301", "!"]),
        ("aujourd\u2019hui", ["aujourd\u2019", "hui"]),
        ("It's 13", ["It", "'s", "1", "3"]),
        ("don't", ["don", "'t"]),
        ("l'homme", ["l'", "homme"]),
        ("the XQ\u4e2d cat", ["the", "XQ\u4e2d", "cat"]),
        ("the \U0001f642\U0001f642 cat", ["the", "\U0001f642\U0001f642", "cat"]),
        ("cat\u4e2d\u6587m", ["cat", "\u4e2d\u6587", "m"]),
        ("the \ud83d cat", ["the", "\ud83d", "cat"]),
    ],
)
def test_subwords_are_labelled_as_typed(text, tokens):
    often = ["the cat, caf\u00e9! don't It's l'homme", "aujourd'hui 1 3"] * 2
    tokenizer = SequenceTokenizer.train(often, "bpe", 200)
    assert tokenizer.encode_batch([text])[0].tokens == tokens
    plain_forms = [plain(token) for token in tokens]
    ids = tokenizer.encode(text)
    for piece, token, i in zip(tokenizer.pieces(ids), plain_forms, ids, strict=True):
        assert piece == ("[UNKNOWN]" if i == UNKNOWN_ID else token)


@pytest.mark.parametrize("blanks", [" ", " \t"])
def test_an_accent_that_is_not_composed_has_a_place_of_its_own(blanks):
    encoding = trained("characters").encode_batch([f"x\u0301{blanks}e\u0301"])[0]
    assert encoding.tokens == ["x", "\u0301", blanks, "e\u0301"]


def test_a_run_of_unseen_characters_is_one_unknown(bpe):
    ids = bpe.encode("the \u65e5\u672c\u8a9e\U0001f642 cat \u0416")
    assert ids.count(UNKNOWN_ID) == 2
    assert bpe.decode(ids) == "the [UNKNOWN] cat [UNKNOWN]"
    pair = bpe.encode_batch(["the \u65e5 \u672c\u8a9e"])[0]
    assert pair.ids[-2:] == [UNKNOWN_ID] * 2
    assert pair.tokens[-2:] == ["\u65e5", "\u672c\u8a9e"]
    characters = trained("characters")
    assert characters.encode("\u65e5\u672c\u8a9e") == [UNKNOWN_ID] * 3


def test_subwords_are_grouped_into_words(bpe):
    text = "The cats' hats, don't all\u00e9"
    ids = bpe.encode(text)
    words = []
    for i, piece in zip(ids, bpe.pieces(ids), strict=True):
        if bpe.starts_word(i):
            words.append("")
        words[-1] += piece
    assert words == text.split(" ")
    assert "" in bpe.pieces(ids)  # a blank alone, where a letter is rare behind it
    assert all(bpe.starts_word(i) for i in range(4))
    words = SequenceTokenizer.train(["AH B"], "words")
    assert words.starts_word(4) and words.starts_word(5)
    characters = SequenceTokenizer.train(["a b"], "characters")
    assert [characters.starts_word(i) for i in characters.encode("a b")] == [0, 1, 0]


def test_lower_case_is_kept_in_the_tokenizer():
    tokenizer = SequenceTokenizer.train(["The \u00c9t\u00e9"], "words", lowercase=True)
    encoding = tokenizer.encode_batch(["THE E\u0301T\u00c9"])[0]
    assert (
        encoding.ids == tokenizer.encode("the \u00e9t\u00e9") and 2 not in encoding.ids
    )
    assert encoding.tokens == ["THE", "E\u0301T\u00c9"]
    kept = SequenceTokenizer.train(["The"], "words")
    assert kept.encode("the The") == [UNKNOWN_ID, 4]


def test_items_that_are_no_strings_are_named(tokenizer):
    with pytest.raises(TypeError, match="None of type NoneType as item 1"):
        tokenizer.encode_batch(["a", None])
    with pytest.raises(TypeError, match="Put it into a list"):
        tokenizer.encode_batch("a")


# ---- files


@pytest.mark.parametrize("lowercase", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_gives_the_same_tokenizer_back(kind, lowercase, tmp_path):
    made = SequenceTokenizer.train(TEXTS, kind, lowercase=lowercase)
    made.save(tmp_path / "tokenizer.json")
    again = SequenceTokenizer.load(str(tmp_path / "tokenizer.json"))
    texts = [*TEXTS, "never \u65e5 seen", ""]
    assert again.encode_batch(texts) == made.encode_batch(texts)
    assert (again.kind, again.lowercase) == (kind, lowercase)
    assert again.vocabulary_size == made.vocabulary_size
    again.save(tmp_path / "again.json")
    first, second = (
        (tmp_path / f"{n}.json").read_bytes() for n in ("tokenizer", "again")
    )
    assert first == second


def test_a_tokenizers_file_may_be_in_the_home_folder(bpe, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    bpe.save("~/t.json")
    assert (tmp_path / "t.json").is_file()
    assert SequenceTokenizer.load("~/t.json").encode("a b") == bpe.encode("a b")


def test_each_tokenizer_refuses_the_files_of_the_other(bpe, tmp_path):
    Tokenizer.from_words(["a"]).save(tmp_path / "words.json")
    with pytest.raises(ValueError, match=r"words\.json' holds a tokenizer of another"):
        SequenceTokenizer.load(tmp_path / "words.json")
    bpe.save(tmp_path / "subwords.json")
    with pytest.raises(ValueError, match=r"subwords\.json' is not a tokenizer file"):
        Tokenizer.load(tmp_path / "subwords.json")


DAMAGE = {
    "no JSON": lambda saved: "{",
    "no object": lambda saved: "[1]",
    "no tokens": lambda saved: json.dumps({"format": saved["format"]}),
    "another kind": lambda saved: json.dumps(saved | {"kind": "letters"}),
    "merges of characters": lambda saved: json.dumps(saved | {"kind": "characters"}),
    "a token twice": lambda saved: json.dumps(saved | {"tokens": ["a", "a"]}),
    "a token that is none": lambda saved: json.dumps(saved | {"tokens": ["a", [1]]}),
    "tokens cut off": lambda saved: json.dumps(
        saved | {"tokens": saved["tokens"][:-1]}
    ),
    "a merge of three": lambda saved: json.dumps(saved | {"merges": [["a", "b", "c"]]}),
    "merges that are none": lambda saved: json.dumps(saved | {"merges": [3]}),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_files_are_refused_by_name(bpe, tmp_path, damage):
    path = tmp_path / "bad.json"
    bpe.save(path)
    saved = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(damage(saved), encoding="utf-8")
    with pytest.raises(ValueError, match=r"bad\.json'"):
        SequenceTokenizer.load(path)
    with pytest.raises(FileNotFoundError, match="no tokenizer file"):
        SequenceTokenizer.load(tmp_path / "nothing.json")
