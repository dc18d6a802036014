"""Byte-pair encoding: learns which characters to merge, and merges them."""

import collections
import itertools
import json
import re

import tokenizers
from tokenizers import pre_tokenizers, trainers

# Stands for a run of characters that no merge knows. Unicode will never assign it.
NO_CHARACTER = "\uffff"

# Merges stay inside these pieces: letters, with the clitics of French in front of them
# (l'homme: "l'" and "homme") and those of English behind (it's: "it" and "'s"); one
# digit; one mark of punctuation, or several of a kind. A blank goes with what follows.
_CLITIC = "'(?i:s|t|re|ve|m|ll|d)(?![\\p{L}\\p{M}])"
_PIECES = "|".join(
    [
        _CLITIC,
        f" ?[\\p{{L}}\\p{{M}}]+(?:(?!{_CLITIC})'(?=\\p{{L}}))?",
        " ?\\p{N}",
        " ?([^\\s\\p{L}\\p{M}\\p{N}])\\1*",
        " ",
    ]
)


class Subwords:
    """Splits texts into subwords by merges that `learn_subwords` has found.

    Args:
        ids: dict of string to integer, the id of each subword.
        merges: list of (string, string), what to join, in order.
        unknown_id: integer, the id of a run of characters that are in no subword,
            together with the blank before it.
    """

    def __init__(self, ids, merges, unknown_id):
        # none of the pieces below has a blank at its end, so no text gives this token
        unknown = "[UNKNOWN] "
        self._backend = tokenizers.Tokenizer(
            tokenizers.models.BPE(
                ids | {unknown: unknown_id}, list(merges), unk_token=unknown
            )
        )
        self._backend.pre_tokenizer = _pieces()
        self._unseen = _unseen(token for token in ids if len(token) == 1)

    def split(self, texts):
        """The subwords of each text.

        Args:
            texts: list of (plain, places) as `zoo.normalization.normalized` gives them.

        Returns:
            list of (ids, offsets), the offsets into the texts as typed, without the
            blank before a word: of a blank that is a subword alone, nothing is left.
        """
        marked = [_mark(plain, places, self._unseen) for plain, places in texts]
        found = self._backend.encode_batch([plain for plain, _ in marked])
        return [
            (encoding.ids, _typed(encoding.offsets, plain, places))
            for encoding, (plain, places) in zip(found, marked, strict=True)
        ]


def learn_subwords(texts, size):
    """Learns subwords: the most frequent pair of neighbours becomes one, and again.

    Pairs of one frequency are merged in a fixed order, so the same texts give the same
    subwords. A pair that stands only once in all texts is never merged.

    Args:
        texts: list of strings, none empty, each with its blanks made even.
        size: integer, how many subwords to make, single characters counted. Where not
            even the characters fit, the most frequent ones.

    Returns:
        (tokens, merges): list of at most `size` strings, the characters first, in order
        of frequency; list of (string, string), in the order in which they were merged.

    Reference: Sennrich et al., "Neural Machine Translation of Rare Words with Subword
    Units" (2016), Algorithm 1.

    Example:

    >>> learn_subwords(["ab", "abc", "ab"], 6)
    ([' ', 'a', 'b', 'c', ' a', ' ab'], [(' ', 'a'), (' a', 'b')])
    """
    counts = collections.Counter()
    for text in texts:
        counts.update(text)
    for left_out in (" ", NO_CHARACTER):
        counts.pop(left_out, None)
    alphabet = [" ", *by_frequency(counts)][:size]
    unseen = _unseen(alphabet)
    learner = tokenizers.Tokenizer(tokenizers.models.BPE())
    learner.pre_tokenizer = _pieces()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        initial_alphabet=alphabet,
        min_frequency=2,
        show_progress=False,
    )
    parts = (_mark(text, None, unseen)[0].split(NO_CHARACTER) for text in texts)
    learner.train_from_iterator(itertools.chain.from_iterable(parts), trainer)
    learnt = learner.get_vocab()
    later = sorted(learnt.keys() - set(alphabet), key=learnt.get)
    merges = json.loads(learner.to_str())["model"]["merges"]
    return [*alphabet, *later], [tuple(pair) for pair in merges]


def by_frequency(counts):
    """The keys of a counter, most frequent first, then in alphabetical order."""
    return sorted(counts, key=lambda key: (-counts[key], key))


def _pieces():
    return pre_tokenizers.Split(tokenizers.Regex(_PIECES), behavior="isolated")


def _unseen(alphabet):
    known = "".join(map(re.escape, alphabet))
    return re.compile(f" ?[^{known}]+")


def _mark(plain, places, unseen):
    """The text with a blank before it and NO_CHARACTER for each run that is unseen.

    Returns:
        (marked, places): `places[i]` is the place of `marked[i]` as typed; None where
        it is that before the blank was added.
    """
    marked = f" {plain}" if plain else ""
    if places is None and not unseen.search(marked):
        return marked, None
    if places is None:
        places = [(i, i + 1) for i in range(len(plain))]
    places = [(a, a) for a, _ in places[:1]] + places
    parts, kept, end = [], [], 0
    for match in unseen.finditer(marked):
        start, stop = match.span()
        parts += [marked[end:start], NO_CHARACTER]
        first = start + (marked[start] == " ")
        kept += [*places[end:start], (places[first][0], places[stop - 1][1])]
        end = stop
    return "".join(parts) + marked[end:], kept + places[end:]


def _typed(offsets, marked, places):
    """Offsets into the text as typed, from those into the marked text."""
    spans = [(a + (marked[a] == " "), b) for a, b in offsets]
    if places is None:
        return [(a - 1, b - 1) for a, b in spans]
    return [
        (places[a][0] if a < b else places[b - 1][1], places[b - 1][1])
        for a, b in spans
    ]
