"""Cards of sequence-to-sequence runs: data, command, numbers, limits."""

from training import cards

LIMITS = """\
- Attention weights show where the model looked, not why it wrote what it wrote.
- A source is cut to {maxlen} tokens; its beginning is kept.
- It knows {source:,} tokens of the source and {target:,} of the target."""

NAMES = {
    "exact": "exact match",
    "bleu": "sacreBLEU",
    "chrf": "chrF",
    "wer": "word error rate",
    "per": "phoneme error rate",
    "mirrored": "alignment on the mirrored token",
    "loss": "cross-entropy, nats a token",
    "perplexity": "perplexity a token",
    "accuracy": "token accuracy",
}
OF_FED_TOKENS, FED = ("loss", "perplexity", "accuracy"), "right tokens fed"


def run_card(config, translator, metrics):
    """The card of one training run, as Markdown.

    Args:
        config: The run's config.
        translator: The trained pipeline.
        metrics: As in metrics.json.

    Returns:
        A string.
    """
    decoded = {
        "validation": f"greedy search, {metrics['validation_sources']:,} sources",
        "test": f"{config.num_beams} beams, {metrics['test']['sources']:,} sources",
    }
    rows = [
        f"| {part} | {NAMES[name]} | {shown(name, value)} | "
        f"{FED if name in OF_FED_TOKENS else how} |"
        for part, how in decoded.items()
        for name, value in metrics[part].items()
        if name in NAMES
    ]
    facts = [
        f"Training pairs: {metrics['train_pairs']:,}; seed: {config.seed}",
        *cards.circumstances(metrics, "seq2seq", config),
    ]
    if "signature" in metrics["test"]:
        facts.append(f"Signature of sacreBLEU: `{metrics['test']['signature']}`")
    return cards.page(
        translator.name,
        f"A model of two texts, trained on the task `{config.task}`.",
        ["| part | measure | | by |", "|---|---|---|---|", *rows],
        f"The best of {metrics['epochs']} epochs by validation is number "
        f"{metrics['best_epoch']}. The test part ({metrics['test']['sources']:,} "
        "different sources, any of their targets counts) was decoded once.",
        facts,
        LIMITS.format(
            maxlen=translator.maxlen,
            source=translator.source_tokenizer.vocabulary_size,
            target=translator.target_tokenizer.vocabulary_size,
        ),
    )


def shown(name, value):
    """A measure as cards and the command line show it."""
    if name in ("exact", "wer", "per", "mirrored", "accuracy"):
        return f"{value:.2%}"
    return f"{value:.2f}" if name in ("bleu", "chrf") else f"{value:.4f}"
