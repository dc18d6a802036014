"""faithfulness: whether a classifier needs the words that its attention looked at."""

import dataclasses

import numpy as np

from zoo.checks import check_integer


@dataclasses.dataclass(frozen=True)
class Faithfulness:
    """How the probability of a label moves when words are removed.

    Attributes:
        label: The class that the model gives the whole text.
        score: Its probability.
        words: The k most attended words, the strongest first, as typed.
        score_without: The probability of `label` without these words.
        random_scores: The same without k words at random, once for each draw.
    """

    label: str
    score: float
    words: list[str]
    score_without: float
    random_scores: list[float]

    @property
    def drop(self):
        """What removing the attended words takes from the probability."""
        return self.score - self.score_without

    @property
    def random_drop(self):
        """What removing random words takes from it, on average."""
        return self.score - float(np.mean(self.random_scores))

    @property
    def share_moved_less(self):
        """The share of the draws that moved the probability less, either way.

        About 0.5 where the attended words matter no more than any others.
        """
        moved = np.abs(self.score - np.asarray(self.random_scores))
        less = (moved < abs(self.drop)).mean()
        equal = (moved == abs(self.drop)).mean()
        return float(less + equal / 2)

    def __str__(self):
        count, draws = len(self.words), len(self.random_scores)
        words, listed = f"{count} word{'s' * (count > 1)}", ", ".join(self.words)
        return (
            f"P({self.label}) is {self.score:.3f}. Without the {words} most attended "
            f"({listed}) it is {self.score_without:.3f}. Without {words} "
            f"at random it is {self.score - self.random_drop:.3f} on average; of the "
            f"{draws} draws, {self.share_moved_less:.0%} moved it less."
        )


def faithfulness(clf, text, k=3, draws=100, seed=0):
    """Removes the most attended words, and random ones, and compares what happens.

    Attention weights show where a model looked, not why it decided. If it needed the
    words that it looked at, then its answer moves more without them than without as
    many others: the comprehensiveness of DeYoung et al. (2020), "ERASER",
    arXiv:1911.03429, section 4, beside a baseline.

    Args:
        clf: A `zoo.SentimentClassifier` whose model pools by attention.
        text: A string of more than k words. Words that were cut off and not read are
            never removed.
        k: How many words to remove.
        draws: How many times to remove k words at random.
        seed: Integer, of the draws.

    Returns:
        A `Faithfulness`; print it for a sentence.

    Raises:
        ValueError: if the text has too few words, or a number is out of range.
        TypeError: if `text` is not a string, or `clf` no pipeline.

    Example:

        clf = zoo.load("imdb_bilstm_attention")
        print(zoo.faithfulness(clf, "A slow start, but the ending is superb."))
    """
    if not hasattr(clf, "explain"):
        raise TypeError(
            "`clf` must be a pipeline that explains, such as "
            f"zoo.load('imdb_bilstm_attention'). Received: {type(clf).__name__}."
        )
    k, draws = check_integer("k", k, 1), check_integer("draws", draws, 1)
    seed = check_integer("seed", seed, 0)
    explanation = clf.explain(text)
    count = len(explanation.tokens)
    if count <= k:
        raise ValueError(
            f"`text` must have more words than are removed, k={k}. Received: {count} "
            "words that were read. Give a longer text or a smaller k."
        )
    strongest = np.argsort(explanation.weights, kind="stable")[::-1][:k]
    rng = np.random.default_rng(seed)
    removed = [strongest, *(rng.permutation(count)[:k] for _ in range(draws))]
    ids = read_ids(clf, text)
    first = len(ids) - count  # the start id is no word
    rows = [np.delete(ids, places + first) for places in removed]
    of_label = clf.labels.index(explanation.label)
    scores = clf.predict_ids(rows)[:, of_label].astype("float64").tolist()
    return Faithfulness(
        label=explanation.label,
        score=explanation.score,
        words=[explanation.tokens[place] for place in strongest],
        score_without=scores[0],
        random_scores=scores[1:],
    )


def read_ids(clf, text):
    """The ids of a text that reach the model: its end, where it is over the limit."""
    (encoding,) = clf.tokenizer.encode_batch([text])
    return np.asarray(encoding.ids[-clf.maxlen :])
