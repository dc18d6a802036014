"""The tokenizer: Keras's IMDB ids, a person's own characters, nothing glued or lost."""

import gzip
import json
import unicodedata

import pytest

from training.imdb_vocabulary import tokenizer_of_keras
from training.start import imdb_tokenizer
from zoo.text import START_ID, UNKNOWN_ID, Tokenizer

WORDS = ["the", "and", "it's", "café", "fine", "br", "great", "plot", "good", "bad"]
WORDS += ["owner", "you", "a", "b", "c", "film"]

# The first review of keras.datasets.imdb as its documentation gives it, and its ids.
DOCUMENTED = "this film was just brilliant,casting,location scenery,story"
DOCUMENTED_IDS = [1, 14, 22, 16, 43, 530, 973, 1622, 1385, 65]


@pytest.fixture(scope="module")
def imdb():
    return imdb_tokenizer()


@pytest.fixture
def small():
    return Tokenizer.from_words(WORDS)


def words(tokenizer, text):
    """What the ids stand for."""
    return tokenizer.decode(tokenizer.encode(text)).split(" ")


def test_the_shipped_ids_are_those_of_keras(imdb):
    assert imdb.encode(DOCUMENTED) == DOCUMENTED_IDS
    assert imdb.vocabulary_size == 88_588
    assert imdb.decode(DOCUMENTED_IDS) == DOCUMENTED.replace(",", " ")


def test_the_shipped_tokenizer_is_made_from_keras_word_index(imdb, imdb_files):
    with gzip.open(
        imdb_files / "imdb_word_index.json.gz", "rt", encoding="utf-8"
    ) as file:
        index = json.load(file)
    made = tokenizer_of_keras(index)
    assert made.words == imdb.words
    for word in ("the", "br", "brilliant", "it's", "cliché"):
        assert imdb.encode(word) == [START_ID, index[word] + 3]


def test_raw_reviews_give_the_ids_of_keras(imdb, imdb_files):
    """Keras's own rule, restated; texts that it mangles are counted, and few."""
    with gzip.open(
        imdb_files / "imdb_word_index.json.gz", "rt", encoding="utf-8"
    ) as file:
        index = json.load(file)
    filters = '!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n'
    blanks = str.maketrans(filters, " " * len(filters))
    with gzip.open(
        imdb_files / "train.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        texts = [line.rstrip("\n").split("\t", 1)[1] for line in file][::5]
    different = 0
    for text, encoding in zip(texts, imdb.encode_batch(texts), strict=True):
        plain = text.lower().translate(blanks).split(" ")
        keras_ids = [1] + [index.get(word, -1) + 3 for word in plain if word]
        if encoding.ids != keras_ids:
            different += 1
            assert not text.isascii() or "&" in text
    assert different < 0.002 * len(texts)
    (documented,) = [t for t in texts if t.startswith("this film was just brill")] or [
        None
    ]
    if documented:
        assert len(imdb.encode(documented)) == 218


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("great.<br /><br />The plot", "great br br the plot"),
        ("good<br/>bad", "good br bad"),
        ("owner...you", "owner you"),
        ("owner\u2026you", "owner you"),
        ("good\u2014bad", "good bad"),
        ("it&#39;s &quot;fine&quot;", "it's fine"),
        ("it\u2019s it&rsquo;s it&#x2019;s", "it's it's it's"),
        ("a < b > c", "a b c"),
        ("good\u00a0bad\u2009fine&nbsp;film", "good bad fine film"),
        ("\ufeffGood", "good"),
        ("caf\u00e9 cafe\u0301 CAFE\u0301 caf&eacute;", "café café café café"),
    ],
)
def test_no_word_is_glued_or_lost(small, text, expected):
    assert words(small, text) == expected.split(" ")


def test_entities_are_decoded_once(small):
    encoding = small.encode_batch(["&amp;quot;fine&amp;quot;"])[0]
    assert encoding.tokens == ["quot", "fine", "quot"]


@pytest.mark.parametrize(
    "text", ["naïve über Straße", "İstanbul IĞDIR", "ñandú", "Ångström ﬁne"]
)
def test_composed_and_decomposed_forms_have_the_same_ids(text):
    tokenizer = Tokenizer.train([text], 50)
    forms = [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    first, second = (tokenizer.encode(form) for form in forms)
    assert first == second and UNKNOWN_ID not in first
    for word in tokenizer.words:
        assert not unicodedata.combining(word[0])


@pytest.mark.parametrize(
    "text",
    [
        "It&#39;s a caf\u00e9; cafe\u0301 too, XYZZY \U0001f642!",
        "日本語 Geschichten über C'est العربية",
        "  lots   of\tspace\n",
        "\ufeffx&eacute;y &notanentity; &#0; &#1114112;",
        "half \ud83d a pair",
    ],
)
def test_every_token_is_tied_to_the_characters_typed(small, text):
    encoding = small.encode_batch([text])[0]
    assert len(encoding.tokens) == len(encoding.offsets) == len(encoding.ids) - 1
    end = 0
    for token, (a, b) in zip(encoding.tokens, encoding.offsets, strict=True):
        assert end <= a < b <= len(text)
        assert token == text[a:b]
        assert token[0] == "&" or token == token.strip(" \t\n.,;!")
        end = b


def test_a_letter_keeps_its_accents_in_the_offsets(small):
    text = "cafe\u0301 good"
    assert small.encode_batch([text])[0].tokens == ["cafe\u0301", "good"]


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("text", ["정말 좋은", "tiếng Việt", "한국어, Ångström é"])
def test_offsets_hold_whole_letters_in_every_form(small, form, text):
    typed = unicodedata.normalize(form, text)
    tokens = small.encode_batch([typed])[0].tokens
    assert tokens == typed.replace(",", "").split(" ")


def test_an_accent_behind_an_entity_belongs_to_its_letter(small):
    encoding = small.encode_batch(["cafe&#769; a\u212b \u212bb"])[0]
    assert encoding.tokens == ["cafe&#769;", "a\u212b", "\u212bb"]
    assert encoding.ids[1] == small.encode("café")[1]


def test_letters_of_other_scripts_are_kept(small):
    assert small.encode_batch(["日本語 über العربية"])[0].tokens == [
        "日本語",
        "über",
        "العربية",
    ]


@pytest.mark.parametrize("text", ["", "   ", "!!!", "\u200b\ufeff", "<<>>"])
def test_a_text_without_words_is_the_start_alone(small, text):
    encoding = small.encode_batch([text])[0]
    assert encoding.ids == [START_ID] and encoding.tokens == []


@pytest.mark.parametrize("typed", ["[PAD]", "[START]", "[UNKNOWN]", "<pad>", "<unk>"])
def test_what_a_person_types_never_becomes_a_control_token(typed):
    tokenizer = Tokenizer.train([typed], 50)
    ids = tokenizer.encode(typed)
    assert ids[0] == START_ID and all(i > UNKNOWN_ID for i in ids[1:])


@pytest.mark.parametrize("size", [5, 6, 8, 9, 100])
def test_every_id_is_less_than_the_vocabulary_size(size):
    texts = ["b b b a a c d"]
    tokenizer = Tokenizer.train(texts, size)
    assert tokenizer.vocabulary_size == min(size, 8)
    ids = tokenizer.encode("a b c d never seen")
    assert max(ids) < tokenizer.vocabulary_size
    assert tokenizer.words == ["b", "a", "c", "d"][: size - 4]


def test_sizes_without_room_and_texts_without_words_are_refused():
    with pytest.raises(ValueError, match=r"at least 5.*Received: 4"):
        Tokenizer.train(["a"], 4)
    with pytest.raises(ValueError, match="hold no word"):
        Tokenizer.train(["", "!!"], 50)
    with pytest.raises(TypeError, match="Put it into a list"):
        Tokenizer.train("good film", 100)
    with pytest.raises(ValueError, match="'a' twice"):
        Tokenizer.from_words(["a", "b", "a"])


def test_one_rule_for_the_vocabulary_and_for_its_use():
    texts = ["It\u2019s the CAFE\u0301&nbsp;again", "<br />Owner\u2026you"]
    tokenizer = Tokenizer.train(texts, 50)
    assert all(UNKNOWN_ID not in tokenizer.encode(text) for text in texts)


def test_a_file_gives_the_same_tokenizer_back(small, tmp_path):
    small.save(tmp_path / "tokenizer.json")
    again = Tokenizer.load(tmp_path / "tokenizer.json")
    text = "It&#39;s the caf\u00e9"
    assert again.encode_batch([text]) == small.encode_batch([text])
    assert again.words == WORDS


def test_foreign_files_are_refused_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="no tokenizer file"):
        Tokenizer.load(tmp_path / "nothing.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(ValueError, match=r"bad\.json' is not a tokenizer"):
        Tokenizer.load(tmp_path / "bad.json")
    import tokenizers

    other = tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0}, "a"))
    other.save(str(tmp_path / "other.json"))
    with pytest.raises(ValueError, match="tokenizer of another kind"):
        Tokenizer.load(tmp_path / "other.json")


def test_an_item_that_is_not_a_string_is_named(small):
    with pytest.raises(TypeError, match="None of type NoneType as item 1"):
        small.encode_batch(["good", None])
    with pytest.raises(TypeError, match="Put it into a list"):
        small.encode_batch("good")
    with pytest.raises(TypeError, match=r"iterable of strings.*int"):
        small.encode_batch(3)


def test_a_word_index_with_gaps_is_refused():
    with pytest.raises(ValueError, match="without gaps"):
        tokenizer_of_keras({"the": 1, "and": 3})
