"""How good what was written is: exact match, BLEU and phoneme errors, by libraries."""


def scores_for(metric):
    """The function that scores by the metric of a task.

    Args:
        metric: "exact", "bleu" or "wer".

    Returns:
        A function `(texts, references) -> {name: number or string}` of N texts and of N
        lists of right texts.
    """
    return {"exact": exact_match, "bleu": bleu, "wer": word_errors}[metric]


def better(metric):
    """1 where a higher number of the metric is better, -1 where a lower one is."""
    return -1 if metric == "wer" else 1


def exact_match(texts, references):
    """The fraction of texts that are one of their references.

    Example:

    >>> exact_match(["ab", "c"], [["ab", "ba"], ["d"]])
    {'exact': 0.5}
    """
    right = [t in refs for t, refs in zip(texts, references, strict=True)]
    return {"exact": sum(right) / len(right)}


def bleu(texts, references):
    """sacreBLEU over all references, with its signature.

    Post (2018), "A Call for Clarity in Reporting BLEU Scores".

    Example:

    >>> bleu(["the cat sat on the mat"], [["the cat sat on the mat"]])["bleu"]
    100.00000000000004
    """
    from sacrebleu.metrics import BLEU

    most = max(map(len, references))
    streams = [
        [refs[i] if i < len(refs) else None for refs in references] for i in range(most)
    ]
    metric = BLEU()
    score = metric.corpus_score(texts, streams).score
    return {"bleu": score, "signature": str(metric.get_signature())}


def word_errors(texts, references):
    """WER and PER of pronunciations, whose phones are separated by blanks.

    WER is the fraction of words whose phones are none of the right pronunciations. PER
    is the number of phones to insert, delete or replace, to come to the nearest of
    them, divided by the number of phones of those.

    Example:

    >>> word_errors(["K AE T", "D AO"], [["K AE T"], ["D AO G", "D AA G Z"]])
    {'wer': 0.5, 'per': 0.16666666666666666}
    """
    import jiwer

    errors = phones = 0
    for text, refs in zip(texts, references, strict=True):
        counts = [_edits(jiwer.process_words(ref, text)) for ref in refs]
        fewest, length = min(counts, key=lambda count: count[0])
        errors, phones = errors + fewest, phones + length
    return {
        "wer": 1 - exact_match(texts, references)["exact"],
        "per": errors / phones,
    }


def _edits(output):
    """(edits, phones of the reference)."""
    edits = output.substitutions + output.deletions + output.insertions
    return edits, output.hits + output.substitutions + output.deletions
