"""Measures a model of two texts: what it writes, and how it judges the right texts."""

import math
import pathlib

import numpy as np
from keras import ops

from training import pair_batches
from training.datasets import load_task, reference_groups, split_by_text
from training.datasets.tasks import own_pairs
from training.distillation import taught
from training.losses import TokenCrossentropy
from training.pair_ids import encoded, fingerprint
from training.run_folder import TEACHER
from training.seq2seq_scores import METRICS, bleu
from training.seq2seq_tasks import TASKS, own_task
from zoo.compiled import compiled
from zoo.files import read_json
from zoo.normalization import normalized
from zoo.padding import padded
from zoo.tokens import PAD_ID

BATCH_TOKENS = 6_000


def evaluate(translator, pairs, metric, num_beams=5, mirrored=False):
    """The metric of what beam search writes for each different source.

    Args:
        translator: A `zoo.Translator`.
        pairs: `training.datasets.Pairs`; any target of a source counts as right.
        metric: One of `seq2seq_scores.METRICS`.
        num_beams: 1 is greedy search.
        mirrored: Whether to measure the alignments as `mirrored_share` does.

    Returns:
        A dictionary: what the metric's function in `seq2seq_scores` gives, sources,
        num_beams, and maybe mirrored.
    """
    sources, references = reference_groups(pairs)
    written = translator.translate(sources, num_beams=num_beams)
    scores = score(translator, written, references, metric)
    if mirrored:
        scores["mirrored"] = mirrored_share(written)
    return {**scores, "sources": len(sources), "num_beams": num_beams}


def evaluate_task(
    translator,
    task,
    *,
    data=None,
    source_column=None,
    target_column=None,
    metric=None,
    num_beams=5,
    run=None,
):
    """`evaluate` on the test part of a task, or on pairs of a file.

    Of a file all pairs are measured; but of the file that the run was trained on, or of
    one that holds the same pairs, only those that it kept back as its test part.

    Args:
        translator: A `zoo.Translator`.
        task: "reverse", "dates", "g2p", "en-fr", or the path of a file of pairs.
        data: For "g2p" and "en-fr": where they are.
        source_column, target_column: For a file, as `datasets.load_pairs` takes them;
            for the run's own by default as it took them.
        metric: For a file: one of `seq2seq_scores.METRICS`, by default that of the run,
            if it was trained on a file too, else "chrf".
        num_beams: 1 is greedy search.
        run: The folder of the run that trained the translator, if there is one.

    Returns:
        What `evaluate` returns, and part: "test", or "all" of a file.

    Raises:
        ValueError: for an option that the task decides, or that does nothing.
    """
    columns = {"source_column": source_column, "target_column": target_column}
    if task not in TASKS:
        if data is not None:
            raise ValueError(
                f"`data` is for the tasks g2p and en-fr. Received: {data!r} with "
                f"{str(task)!r}. Leave it out: all pairs of that file are measured."
            )
        if metric is not None and metric not in METRICS:
            raise ValueError(
                f"`metric` must be one of {', '.join(METRICS)}. Received: {metric!r}."
            )
        config = _config_of(run)
        metric = metric or _metric_of(config)
        is_own = _is_own(task, config)
        if is_own:
            columns = {
                name: config["training"].get(name) if column is None else column
                for name, column in columns.items()
            }
        pairs = own_pairs(task, **columns)
        if is_own:  # a hash of the source decides its part, whatever was added since
            test = split_by_text(pairs).test
        else:
            test = _kept_back(translator, pairs, run, config)
        measured = evaluate(translator, test or pairs, metric, num_beams)
        return {**measured, "part": "test" if test else "all"}
    own = TASKS[task]
    if metric is not None:
        raise ValueError(
            f"`metric` is for a file of pairs. Received: {metric!r} with the task "
            f"{task}, which has its own. Leave it out."
        )
    pairs = load_task(task, data, **columns).test
    measured = evaluate(translator, pairs, own.metric, num_beams, own.mirrored)
    return {**measured, "part": "test"}


def _config_of(run):
    """The config.json of a run; a name of the zoo has none."""
    path = None if run is None else pathlib.Path(run).expanduser() / "config.json"
    return read_json(path) if path is not None and path.is_file() else {}


def _metric_of(config):
    """By what a run on a file chose its best epoch, or the metric of any file."""
    options = config.get("training", {})
    of_file = options.get("task") not in TASKS
    return (of_file and options.get("metric")) or own_task().metric


def _is_own(task, config):
    """Whether a file is the one that the run of a config was trained on."""
    own = config.get("training", {}).get("task")
    if own is None or own in TASKS:
        return False
    paths = [pathlib.Path(path).expanduser().resolve() for path in (own, task)]
    return paths[0] == paths[1]


def _kept_back(translator, pairs, run, config):
    """The test part of pairs that a run was trained on, split as then; else None."""
    try:
        parts = split_by_text(pairs)
        train = _learned(parts.train, run, config)
    except (ValueError, OSError):  # too few to be trained on, or others were
        return None
    ids = [encoded(translator, part)[0] for part in (train, parts.validation)]
    return parts.test if fingerprint(*ids) == config.get("data") else None


def _learned(train, run, config):
    """What a run learned from these pairs: with a teacher, what that one wrote."""
    teacher = config.get("training", {}).get("teacher")
    if not teacher:
        return train
    return taught(train, teacher, pathlib.Path(run).expanduser() / TEACHER)


def mirrored_share(written):
    """The share of tokens whose greatest weight lies on the mirrored source token.

    Args:
        written: `zoo.Translation`s of sources that are to be reversed.
    """
    hits = count = 0
    for translation in written:
        length = len(translation.source_tokens)
        for step, row in enumerate(translation.alignment):
            hits += int(row.argmax()) == length - 1 - step
            count += 1
    return hits / max(1, count)


def score(translator, written, references, metric):
    """The metric of translations, each with its list of right texts.

    BLEU takes the right texts as they are, and leaves case aside where the model writes
    none. For the others they are brought to the one form that the target's tokenizer
    writes in: accents, apostrophes, blanks, case.
    """
    texts = [translation.text for translation in written]
    lowercase = translator.target_tokenizer.lowercase
    if metric == "bleu":
        return bleu(texts, references, lowercase)
    references = [
        [normalized(text, lowercase)[0] for text in group] for group in references
    ]
    return METRICS[metric](texts, references)


class ForcedMeasures:
    """Cross-entropy, perplexity and accuracy a token, with the right tokens fed.

    Compiled once; the model's weights are read anew at each call.

    Args:
        model: A `keras.Model` from [source ids, target ids] to logits.
    """

    def __init__(self, model):
        token_losses = TokenCrossentropy().call

        def measure(ids, inputs, labels):
            logits = model([ids, inputs], training=False)
            real = ops.cast(ops.not_equal(labels, PAD_ID), "float32")
            right = ops.equal(ops.cast(ops.argmax(logits, -1), "int32"), labels)
            return ops.stack(
                [
                    ops.sum(token_losses(labels, logits) * real),
                    ops.sum(ops.cast(right, "float32") * real),
                    ops.sum(real),
                ]
            )

        self._run = compiled(measure, model.variables, ranks=(2, 2, 2))

    def __call__(self, sources, targets):
        """Measures pairs.

        Args:
            sources, targets: Lists of N lists of ids, without start and end.

        Returns:
            A dictionary: loss (nats a token), perplexity, accuracy. Padding is not
            counted.
        """
        pairs = zip(sources, targets, strict=True)
        lengths = [max(len(source), len(target) + 1) for source, target in pairs]
        totals = np.zeros(3)
        for rows in pair_batches.plan(lengths, BATCH_TOKENS, np.random.default_rng(0)):
            inputs, labels = pair_batches.teacher_forced([targets[i] for i in rows])
            ids = padded([sources[i] for i in rows])
            totals += ops.convert_to_numpy(self._run(ids, inputs, labels))
        loss, accuracy = (float(total / totals[2]) for total in totals[:2])
        perplexity = math.exp(min(loss, 700.0))  # beyond it there are no floats
        return {"loss": loss, "perplexity": perplexity, "accuracy": accuracy}
