"""How good what was written is: exact match, BLEU, word errors, by libraries.

Each metric is a function `(texts, references) -> {name: number or string}` of N texts
and of N lists of right texts.
"""


def chosen_by(metric):
    """The number among a metric's that says which of two models is the better."""
    return "wer" if metric == "pronunciation" else metric


def better(metric):
    """1 where a higher number of the metric is better, -1 where a lower one is."""
    return -1 if chosen_by(metric) == "wer" else 1


def exact_match(texts, references):
    """The fraction of texts that are one of their references.

    Example:

    >>> exact_match(["ab", "c"], [["ab", "ba"], ["d"]])
    {'exact': 0.5}
    """
    right = [t in refs for t, refs in zip(texts, references, strict=True)]
    return {"exact": sum(right) / len(right)}


def bleu(texts, references, lowercase=False):
    """sacreBLEU over all references, with its signature.

    Post (2018), "A Call for Clarity in Reporting BLEU Scores". Of texts that are all
    under four words it is 0. With `lowercase` case counts nowhere, and the signature
    says so (case:lc).

    Example:

    >>> bleu(["the cat sat on the mat"], [["the cat sat on the mat"]])["bleu"]
    100.00000000000004
    """
    from sacrebleu.metrics import BLEU

    return _corpus_score("bleu", BLEU(lowercase=lowercase), texts, references)


def chrf(texts, references):
    """chrF over all references, with its signature: n-grams of characters.

    Popović (2015), "chrF: character n-gram F-score for automatic MT evaluation".

    Example:

    >>> chrf(["le chat"], [["le chat"]])["chrf"]
    100.0
    """
    from sacrebleu.metrics import CHRF

    return _corpus_score("chrf", CHRF(), texts, references)


def _corpus_score(name, metric, texts, references):
    most = max(map(len, references))
    streams = [
        [refs[i] if i < len(refs) else None for refs in references] for i in range(most)
    ]
    score = metric.corpus_score(texts, streams).score
    return {name: score, "signature": str(metric.get_signature())}


def pronunciation_errors(texts, references):
    """WER and PER of pronunciations, whose phones are separated by blanks.

    A text is the phones of one word here.

    WER is the fraction of words whose phones are none of the right pronunciations. PER
    is the number of phones to insert, delete or replace, to come to the nearest of
    them, divided by the number of phones of those.

    Example:

    >>> pronunciation_errors(["K AE T", "D AO"], [["K AE T"], ["D AO G", "D AA G Z"]])
    {'wer': 0.5, 'per': 0.16666666666666666}
    """
    return {
        "wer": 1 - exact_match(texts, references)["exact"],
        "per": word_errors(texts, references)["wer"],
    }


def word_errors(texts, references):
    """WER of sentences: words to insert, delete or replace, per word of the reference.

    Each text is held against the reference that it is nearest to.

    Example:

    >>> word_errors(["the cat sat"], [["a cat sat down", "the dog lay"]])
    {'wer': 0.5}
    """
    import jiwer

    errors = words = 0
    for text, refs in zip(texts, references, strict=True):
        counts = [_edits(jiwer.process_words(ref, text)) for ref in refs]
        fewest, length = min(counts, key=lambda count: count[0])
        errors, words = errors + fewest, words + length
    return {"wer": errors / words}


def _edits(output):
    """(edits, words of the reference)."""
    edits = output.substitutions + output.deletions + output.insertions
    return edits, output.hits + output.substitutions + output.deletions


METRICS = {
    "chrf": chrf,
    "exact": exact_match,
    "bleu": bleu,
    "wer": word_errors,
    "pronunciation": pronunciation_errors,
}
