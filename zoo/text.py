"""Tokenizer: the text a person types -> ids, tokens and their places in that text."""

import dataclasses
import html
import html.entities
import pathlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable

import tokenizers
from tokenizers import normalizers, pre_tokenizers, processors

from zoo.normalization import APOSTROPHES, SURROGATE, composed

PAD_ID, START_ID, UNKNOWN_ID, FIRST_WORD_ID = 0, 1, 2, 4
PAD, START, UNKNOWN, UNUSED = "[PAD]", "[START]", "[UNKNOWN]", "[UNUSED]"

# What separates words: the characters of keras.datasets.imdb's rule, every white space,
# and marks that its 2011 web text does not have but a person's does.
_SEPARATORS = r"""[\s!"#$%&()*+,\-./:;<=>?@\[\\\]^_`{|}~""" + (
    "\u2026\u2013\u2014\u201c\u201d\u201e\u00ab\u00bb\u200b\u2060\ufeff]+"
)
_ENTITY = re.compile(
    r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)


@dataclasses.dataclass(frozen=True)
class Encoding:
    """One text as ids, with the characters that each of them stands for.

    Attributes:
        ids: Token ids. Those of `Tokenizer` open with the start id, which has no
            token; those of `SequenceTokenizer` are the tokens' alone.
        tokens: The tokens as typed, `text[start:end]` each.
        offsets: (start, end) of each token in the text, in characters.
    """

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]


class Tokenizer:
    """Words -> ids by one fixed rule, with the place of every word in the text.

    The rule: HTML entities are decoded once; the text is brought to Unicode NFC; curly
    apostrophes become straight; everything is lower-cased; words are what stands
    between white space and the characters ``!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~`` (and
    dashes, curly quotes and the ellipsis). Id 0 is padding, 1 the start of a text, 2
    any word that is not in the vocabulary, 3 is never used, and words begin at 4, most
    frequent first: the numbering of `keras.datasets.imdb`. What a person types never
    becomes a control token: typed "[PAD]" is the word "pad".

    Make one with `Tokenizer.train(texts, vocabulary_size)`,
    `Tokenizer.from_words(words)` or `Tokenizer.load(file)`.

    Example:

    >>> tokenizer = Tokenizer.from_words(["the", "it's", "superb"])
    >>> tokenizer.encode("It\u2019s superb, REALLY!")
    [1, 5, 6, 2]
    >>> tokenizer.encode_batch(["It&#39;s superb"])[0].tokens
    ['It&#39;s', 'superb']
    """

    def __init__(self, backend):
        """Wraps a `tokenizers.Tokenizer` that holds the rule and a vocabulary."""
        self._backend = backend

    # ---- making one

    @classmethod
    def from_words(cls, words):
        """A tokenizer whose words have the ids 4, 5, 6, ... in the order given.

        Raises:
            ValueError: if a word stands twice.
        """
        vocabulary = {PAD: PAD_ID, START: START_ID, UNKNOWN: UNKNOWN_ID, UNUSED: 3}
        for place, word in enumerate(words, start=FIRST_WORD_ID):
            if vocabulary.setdefault(word, place) != place:
                raise ValueError(
                    f"`words` must hold each word once. Received: {word!r} twice."
                )
        backend = tokenizers.Tokenizer(
            tokenizers.models.WordLevel(vocabulary, unk_token=UNKNOWN)
        )
        backend.normalizer = normalizers.Sequence(
            [
                normalizers.NFC(),
                normalizers.Replace(tokenizers.Regex(APOSTROPHES), "'"),
                normalizers.Lowercase(),
            ]
        )
        backend.pre_tokenizer = pre_tokenizers.Split(
            tokenizers.Regex(_SEPARATORS), behavior="removed"
        )
        backend.post_processor = processors.TemplateProcessing(
            single=f"{START} $A", special_tokens=[(START, START_ID)]
        )
        return cls(backend)

    @classmethod
    def train(cls, texts, vocabulary_size):
        """A tokenizer of the most frequent words of `texts`.

        Args:
            texts: Iterable of strings.
            vocabulary_size: Number of ids, the four reserved ones counted, so at most
                `vocabulary_size - 4` words; fewer if the texts have fewer. Words of
                one frequency are taken in alphabetical order.

        Raises:
            ValueError: if there is no room for a word, or no word in the texts.
        """
        if vocabulary_size <= FIRST_WORD_ID:
            raise ValueError(
                f"`vocabulary_size` must be at least {FIRST_WORD_ID + 1}: four ids are "
                f"reserved. Received: {vocabulary_size}."
            )
        rule, counts = cls.from_words([])._backend, Counter()
        for text in check_texts(texts):
            plain = rule.normalizer.normalize_str(_plain(text)[0])
            counts.update(w for w, _ in rule.pre_tokenizer.pre_tokenize_str(plain))
        if not counts:
            raise ValueError("`texts` hold no word. Received: only empty texts.")
        by_rank = sorted(counts, key=lambda word: (-counts[word], word))
        return cls.from_words(by_rank[: vocabulary_size - FIRST_WORD_ID])

    @classmethod
    def load(cls, path):
        """Reads a tokenizer that `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is not one of ours, by its name.
        """
        path = pathlib.Path(path)
        if not path.is_file():
            raise FileNotFoundError(f"There is no tokenizer file '{path}'.")
        try:
            backend = tokenizers.Tokenizer.from_str(path.read_text(encoding="utf-8"))
        except Exception as error:  # the library raises bare Exception
            raise ValueError(
                f"'{path}' is not a tokenizer file, or it is damaged: {error}."
            ) from None
        reserved = [backend.id_to_token(i) for i in range(3)]
        if reserved != [PAD, START, UNKNOWN]:
            raise ValueError(
                f"'{path}' holds a tokenizer of another kind: its ids 0, 1 and 2 must "
                f"be {PAD}, {START} and {UNKNOWN}. Received: {reserved}."
            )
        return cls(backend)

    def save(self, path):
        """Writes the rule and the vocabulary to one JSON file."""
        pathlib.Path(path).write_text(self._backend.to_str(), encoding="utf-8")

    # ---- using it

    @property
    def vocabulary_size(self):
        """Number of ids: every id is less than this."""
        return max(self._backend.get_vocab_size(), FIRST_WORD_ID)

    @property
    def words(self):
        """The words, in the order of their ids."""
        ids = range(FIRST_WORD_ID, self.vocabulary_size)
        return [self._backend.id_to_token(i) for i in ids]

    def encode(self, text):
        """The ids of a text, uncut, the start id first."""
        return self.encode_batch([text])[0].ids

    def encode_batch(self, texts):
        """An `Encoding` for each text, in order.

        Args:
            texts: Iterable of strings.

        Raises:
            TypeError: if `texts` is one string, or an item is not a string, by its
                place.
        """
        texts = check_texts(texts)
        decoded = [_plain(text) for text in texts]
        encodings = self._backend.encode_batch([plain for plain, _ in decoded])
        return [
            _with_typed_words(encoding, text, places)
            for encoding, text, (_, places) in zip(
                encodings, texts, decoded, strict=True
            )
        ]

    def decode(self, ids):
        """The words of ids, joined by blanks; padding and start are left out."""
        words = (self._backend.id_to_token(int(i)) for i in ids if int(i) > START_ID)
        return " ".join(UNKNOWN if word is None else word for word in words)


def check_texts(texts):
    """`texts` as a list of strings, or an error that names the item that is not one."""
    if isinstance(texts, str | bytes):
        raise TypeError(
            f"`texts` must be an iterable of strings, such as a list. Received: one "
            f"{type(texts).__name__}. Put it into a list: [text]."
        )
    if not isinstance(texts, Iterable):
        raise TypeError(
            "`texts` must be an iterable of strings, such as a list. Received: "
            f"{type(texts).__name__}."
        )
    texts = list(texts)
    for place, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(
                f"Every item of `texts` must be a string. Received: {text!r} of type "
                f"{type(text).__name__} as item {place}."
            )
    return [str(text) for text in texts]


def _plain(text):
    """The text with HTML entities decoded once and accents composed (Unicode NFC).

    Returns:
        (plain, places): `places[i]` is the (start, end) in `text` that `plain[i]` came
        from, or places is None where every character stands in its own place.
    """
    text = SURROGATE.sub("\ufffd", text)
    entities = "&" in text and _ENTITY.search(text)
    if not entities and unicodedata.is_normalized("NFC", text):
        return text, None
    pieces, end = [], 0  # (characters, start, end)
    for match in _ENTITY.finditer(text) if entities else ():
        characters = _unescape(match.group())
        if characters is not None:
            pieces += [(text[i], i, i + 1) for i in range(end, match.start())]
            pieces.append((characters, *match.span()))
            end = match.end()
    pieces += [(text[i], i, i + 1) for i in range(end, len(text))]
    pieces = composed(pieces)
    places = [(a, b) for characters, a, b in pieces for _ in characters]
    return "".join(characters for characters, _, _ in pieces), places


def _unescape(entity):
    """The characters that an entity stands for, or None if there is no such entity."""
    if not entity.startswith("&#") and entity[1:] not in html.entities.html5:
        return None
    return SURROGATE.sub("\ufffd", html.unescape(entity))


def _with_typed_words(encoding, text, places):
    """The library's encoding with offsets into the text as it was typed."""
    offsets = encoding.offsets[1:]  # the start id has no place in the text
    if places is not None:
        offsets = [(places[a][0], places[b - 1][1]) for a, b in offsets]
    return Encoding(encoding.ids, [text[a:b] for a, b in offsets], offsets)
