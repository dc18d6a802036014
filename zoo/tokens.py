"""SequenceTokenizer: text -> ids of subwords, characters or words, and back to text."""

import collections
import re

from zoo.normalization import normalized
from zoo.subwords import Subwords, by_frequency, learn_subwords
from zoo.text import (
    PAD,
    PAD_ID,
    START,
    START_ID,
    UNKNOWN,
    UNKNOWN_ID,
    Encoding,
    check_texts,
)
from zoo.token_files import (
    check_kind,
    check_tokens,
    damaged,
    read_tokens,
    write_tokens,
)

__all__ = [
    "END_ID",
    "FIRST_TOKEN_ID",
    "PAD_ID",
    "START_ID",
    "UNKNOWN_ID",
    "SequenceTokenizer",
]

END, END_ID, FIRST_TOKEN_ID = "[END]", 3, 4
CONTROL = (PAD, START, UNKNOWN, END)
BPE_VOCABULARY_SIZE = 8000


class SequenceTokenizer:
    """Subwords, characters or words -> ids and back, for models that write text.

    Id 0 is padding, 1 the start of a text, 2 whatever the training texts do not have, 3
    the end of a text; tokens begin at 4. What a person types never becomes one of the
    first four: typed "[PAD]" or "</s>" is text. `encode` adds neither start nor end.

    Before anything else a text is brought to one form, at training and at use:
    accents composed (Unicode NFC), curly apostrophes straight, each run of Unicode
    white space one blank, none at the edges; lower case if `lowercase`. Then

    - "bpe" makes subwords (byte-pair encoding). They never reach over a word, a digit
      or a mark of punctuation. A run of characters unseen in training is one unknown,
      together with the blank before it.
    - "characters" makes each character a token, the blank too.
    - "words" makes a token of what stands between blanks, such as the phones "AH B".

    Make one with `SequenceTokenizer.train(texts, kind)` or
    `SequenceTokenizer.load(file)`. For source and target in common, train it on both.

    Args:
        kind: "bpe", "characters" or "words".
        tokens: list of distinct strings; the first has the id 4. For "bpe" a token that
            opens a word opens with a blank.
        merges: for "bpe", list of (string, string): what to join, in order.
        lowercase: whether texts are lower-cased first.

    Raises:
        ValueError: another kind, or tokens and merges that do not fit.

    Example:

    >>> tokenizer = SequenceTokenizer.train(["the cat", "a cat, the hats"], "bpe", 20)
    >>> encoding = tokenizer.encode_batch(["the  cats!"])[0]
    >>> encoding.tokens
    ['the', 'cat', 's', '!']
    >>> encoding.offsets
    [(0, 3), (5, 8), (8, 9), (9, 10)]
    >>> tokenizer.decode(tokenizer.encode("that  cat"))
    'that cat'
    """

    def __init__(self, kind, tokens, merges=(), lowercase=False):
        self._kind, self._lowercase = kind, lowercase
        self._tokens, self._merges = list(tokens), [tuple(pair) for pair in merges]
        check_tokens(kind, self._tokens, self._merges)
        self._ids = {t: i for i, t in enumerate(self._tokens, start=FIRST_TOKEN_ID)}
        if kind == "bpe":
            self._subwords = Subwords(self._ids, self._merges, UNKNOWN_ID)

    # ---- making one

    @classmethod
    def train(cls, texts, kind, vocabulary_size=None, lowercase=False):
        """A tokenizer of what is frequent in `texts`.

        The same texts give the same ids. Characters and words of one frequency are
        taken in alphabetical order.

        Args:
            texts: iterable of strings.
            kind: "bpe", "characters" or "words".
            vocabulary_size: integer, number of ids, the four reserved ones counted;
                fewer if the texts have fewer tokens. None is 8,000 for "bpe", and all
                characters or words for the others. For "bpe" it is the characters that
                go in first.
            lowercase: whether to lower-case texts, in training and later.

        Raises:
            ValueError: if there is no room for a token, or no token in the texts.
            TypeError: if `texts` is one string, or an item is not a string.
        """
        check_kind(kind)
        if vocabulary_size is not None and vocabulary_size <= FIRST_TOKEN_ID:
            raise ValueError(
                f"`vocabulary_size` must be at least {FIRST_TOKEN_ID + 1}: four ids "
                f"are reserved. Received: {vocabulary_size}."
            )
        plain = (normalized(text, lowercase)[0] for text in check_texts(texts))
        plain = [text for text in plain if text]
        if not plain:
            raise ValueError(
                "`texts` hold no token. Received: only empty texts. Give texts with "
                "words in them."
            )
        if kind == "bpe":
            size = (vocabulary_size or BPE_VOCABULARY_SIZE) - FIRST_TOKEN_ID
            return cls(kind, *learn_subwords(plain, size), lowercase)
        counts = collections.Counter()
        for text in plain:
            counts.update(text.split(" ") if kind == "words" else text)
        room = None if vocabulary_size is None else vocabulary_size - FIRST_TOKEN_ID
        return cls(kind, by_frequency(counts)[:room], lowercase=lowercase)

    @classmethod
    def load(cls, path):
        """Reads a tokenizer that `save` wrote.

        Raises:
            FileNotFoundError: if there is no such file.
            ValueError: if the file is not one of ours, by its name.
        """
        saved = read_tokens(path)
        try:
            return cls(**saved)
        except (ValueError, TypeError) as error:
            raise damaged(path, error) from None

    def save(self, path):
        """Writes the rule and the vocabulary to one JSON file."""
        write_tokens(
            path,
            kind=self._kind,
            tokens=self._tokens,
            merges=self._merges,
            lowercase=self._lowercase,
        )

    # ---- using it

    @property
    def kind(self):
        """What the tokens are: "bpe", "characters" or "words"."""
        return self._kind

    @property
    def lowercase(self):
        """Whether texts are lower-cased first."""
        return self._lowercase

    @property
    def vocabulary_size(self):
        """Number of ids, the four reserved ones counted: every id is less than this."""
        return FIRST_TOKEN_ID + len(self._tokens)

    def encode(self, text):
        """The ids of a text, uncut, without start and end; of an empty text none."""
        return self.encode_batch([text])[0].ids

    def encode_batch(self, texts):
        """An `Encoding` for each text, in order.

        Args:
            texts: iterable of strings.

        Raises:
            TypeError: if `texts` is one string, or an item is not a string, by its
                place.
        """
        texts = check_texts(texts)
        plain = [normalized(text, self._lowercase) for text in texts]
        split = self._subwords.split if self._kind == "bpe" else self._split
        return [
            Encoding(ids, [text[a:b] for a, b in offsets], offsets)
            for text, (ids, offsets) in zip(texts, split(plain), strict=True)
        ]

    def decode(self, ids, copies=None):
        """The text of ids. Padding, start and end are left out.

        `decode(encode(text))` is the text in the one form (see the class), with
        "[UNKNOWN]" where an id 2 stands.

        Args:
            ids: iterable of integers.
            copies: what to write for each id 2, in order, in the place of "[UNKNOWN]".

        Raises:
            ValueError: if an id is not less than the vocabulary size, or negative, or
                there are more or fewer `copies` than unknowns.
        """
        ids = [i for i in map(int, ids) if i not in (PAD_ID, START_ID, END_ID)]
        blank = " " if self._kind == "bpe" else ""
        count = ids.count(UNKNOWN_ID)
        copies = [UNKNOWN] * count if copies is None else list(copies)
        if len(copies) != count:
            raise ValueError(
                "`copies` must hold a text for each unknown among `ids`. Received: "
                f"{len(copies)} for {count} unknowns. Leave it out for '{UNKNOWN}'."
            )
        unknowns = iter(copies)
        pieces = [
            blank + next(unknowns) if i == UNKNOWN_ID else self._token(i) for i in ids
        ]
        if self._kind == "words":
            return " ".join(pieces)
        return "".join(pieces).removeprefix(blank)

    def pieces(self, ids):
        """What each id stands for, to label it: a list of as many strings.

        Of a subword the blank before it is left out, so a blank that stands alone, as
        before a word of rare letters, is "". The reserved ids are "[PAD]", "[START]",
        "[UNKNOWN]" and "[END]".

        Raises:
            ValueError: if an id is not less than the vocabulary size, or negative.
        """
        tokens = [self._token(int(i)) for i in ids]
        if self._kind != "bpe":
            return tokens
        return [token.removeprefix(" ") for token in tokens]

    def starts_word(self, token_id):
        """Whether a word begins at this id, and not inside the one before it.

        Words are what blanks separate. Of the reserved ids each stands alone; among
        characters it is the blank that begins a word.

        Raises:
            ValueError: if the id is not less than the vocabulary size, or negative.
        """
        token = self._token(int(token_id))
        return token_id < FIRST_TOKEN_ID or self._kind == "words" or token[0] == " "

    def _token(self, token_id):
        if not 0 <= token_id < self.vocabulary_size:
            raise ValueError(
                f"Ids must lie in 0..{self.vocabulary_size - 1}, those of this "
                f"tokenizer. Received: {token_id}. Decode with the tokenizer that the "
                "model was trained with."
            )
        reserved = token_id < FIRST_TOKEN_ID
        return (
            CONTROL[token_id] if reserved else self._tokens[token_id - FIRST_TOKEN_ID]
        )

    def _split(self, plain):
        """(ids, offsets) of each (text, places): characters, or words."""
        unit = re.compile("[^ ]+" if self._kind == "words" else "(?s:.)")
        for text, places in plain:
            found = list(unit.finditer(text))
            spans = [match.span() for match in found]
            if places is not None:
                spans = [(places[a][0], places[b - 1][1]) for a, b in spans]
            yield [self._ids.get(m.group(), UNKNOWN_ID) for m in found], spans
