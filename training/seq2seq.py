"""Trains the zoo's models of two texts, or a user's own, from pairs of texts."""

import dataclasses

import numpy as np

from training import pair_batches
from training.datasets import reference_groups
from training.datasets.pair_files import print_line_1
from training.distillation import distilled
from training.epochs import EpochRun, carry_out
from training.losses import TokenAccuracy, TokenCrossentropy
from training.optimization import OPTIMIZERS, check_tensorflow
from training.pair_ids import encoded, fingerprint, spread
from training.run_folder import TEACHER
from training.scheduled_sampling import ScheduledSampling
from training.seq2seq_artifacts import plot_sample, write_translator
from training.seq2seq_evaluate import (
    ForcedMeasures,
    evaluate,
    mirrored_share,
    score,
)
from training.seq2seq_scores import better, chosen_by
from training.seq2seq_start import (
    check_architecture,
    read_pairs,
    starting_translator,
)
from training.seq2seq_tasks import TASKS
from zoo.sources import needed_length_ratio

USUAL_STEPS = 2_000


def train(config, progress=True):
    """Trains a model and writes the run's folder.

    After each epoch the validation part is measured: cross-entropy, perplexity and
    token accuracy with the right tokens fed, and the task's metric of what greedy
    search writes. The epoch with the best metric is the result. The test part is
    decoded once, at the end, and never chosen by.

    Args:
        config: A `training.seq2seq_config.Seq2SeqConfig`.
        progress: Whether to show a bar for each epoch, on standard error.

    Returns:
        The metrics, as in metrics.json: a dictionary.

    Raises:
        ValueError, FileNotFoundError: for data or a folder that cannot be used.
    """
    check_architecture(config)

    def start(folder):
        parts = read_pairs(config)
        if progress and config.task not in TASKS:
            columns = config.source_column, config.target_column
            print_line_1(config.task, *columns)
        translator = starting_translator(config, parts.train)
        if config.teacher:
            path = folder / TEACHER
            train = distilled(parts.train, config.teacher, path, progress)
            parts = dataclasses.replace(parts, train=train)
        return Seq2SeqRun(config, folder, translator, parts, progress)

    return carry_out(config, start, config.data or config.task)


class Seq2SeqRun(EpochRun):
    """One training run, an epoch at a time.

    Args:
        config: A `training.seq2seq_config.Seq2SeqConfig`.
        folder: The run's folder.
        translator: The `zoo.Translator` whose model is trained.
        parts: `training.datasets.PairSplits`.
        progress: Whether to show a bar for each epoch.
    """

    def __init__(self, config, folder, translator, parts, progress=True):
        model = translator.model
        if config.bfloat16:
            check_tensorflow("bfloat16")
        if config.scheduled_sampling:
            model = ScheduledSampling(model, config.seed)
        super().__init__(folder, model, config.seed, progress, config.patience)
        self.config, self.translator, self.parts = config, translator, parts
        self.train_ids = self.encoded("train")
        self.validation_ids = self.encoded("validation")
        translator.length_ratio = max(
            translator.length_ratio, needed_length_ratio(*self.train_ids)
        )
        self.to_decode = spread(
            *reference_groups(parts.validation), count=config.validation_sentences
        )
        self.forced = ForcedMeasures(translator.model)
        self.bfloat16 = config.bfloat16
        self.steps = len(self.data(0))
        self.epochs = config.setting("epochs") or usual_epochs(self.steps)
        self.compile()

    def encoded(self, part):
        """Ids of both sides of a part, those that fit: see `pair_ids.encoded`."""
        ids, left_out = encoded(self.translator, getattr(self.parts, part))
        most = self.translator.maxlen
        if left_out:
            self.say(f"{left_out:,} pairs of {part} left out: over {most} tokens")
        if not ids[0]:
            raise ValueError(
                f"All targets of the {part} part are over {most} tokens. Give a "
                "greater `maxlen`, subwords instead of characters, or shorter texts."
            )
        return ids

    @property
    def fingerprint(self):
        """A hash of what is learned from and chosen by, and so of the vocabularies."""
        return fingerprint(self.train_ids, self.validation_ids)

    def compile(self):
        """The optimizer, on the cross-entropy of the real tokens."""
        config = self.config
        self.model.compile(
            OPTIMIZERS[config.setting("optimizer")](
                config.setting("learning_rate"),
                steps=self.epochs * self.steps,
                average_over=config.average * self.steps,
                schedule=config.schedule,
                warm_up=config.warm_up,
                clip_norm=config.clip_norm,
            ),
            TokenCrossentropy(config.setting("label_smoothing")),
            metrics=[TokenAccuracy()],
            # XLA compiles anew for each shape of a batch.
            jit_compile=False,
        )

    def begin_epoch(self, epoch):
        """The share of the decoder's inputs that are its own guesses rises."""
        if self.config.scheduled_sampling:
            share = (epoch + 1) / self.epochs
            self.model.share.assign(share * self.config.scheduled_sampling)

    def data(self, epoch):
        """The pairs of one epoch, in batches."""
        rng = np.random.default_rng([self.config.seed, epoch])
        return pair_batches.dataset(
            *self.train_ids, self.config.setting("batch_tokens"), rng
        )

    # ---- how good it is

    def validate(self, title):
        """Teacher-forced measures and the metric of greedy search, on validation."""
        row = self.forced(*self.validation_ids)
        metric = self.config.of_task.metric
        sources, references = self.to_decode
        written = self.translator.translate(sources, num_beams=1, batch_size=128)
        scores = score(self.translator, written, references, metric)
        row = {f"val_{name}": value for name, value in row.items()}
        row[f"val_{chosen_by(metric)}"] = scores[chosen_by(metric)]
        if self.config.of_task.mirrored:
            row["val_mirrored"] = mirrored_share(written)
        shown = "  ".join(f"{k.removeprefix('val_')} {v:.4f}" for k, v in row.items())
        self.say(f"{title} validation: {shown}")
        sample = max(written[:20], key=lambda t: len(t.source_tokens))
        self.say(f"  {sample.source!r} -> {sample.text!r}")
        number = len(self.history) + 1
        plot_sample(self.folder / "plots" / f"epoch-{number:03d}.png", sample)
        return row

    def rank(self, row):
        """Best metric, then least loss."""
        metric = self.config.of_task.metric
        return -better(metric) * row[f"val_{chosen_by(metric)}"], row["val_loss"]

    def metrics(self):
        """What the run reached, once it is finished."""
        config = self.config
        best = self.history[self.best_epoch - 1]
        return {
            "model": self.translator.name,
            "seed": config.seed,
            "epochs": len(self.history),
            "best_epoch": self.best_epoch,
            "validation": {
                name.removeprefix("val_"): value
                for name, value in best.items()
                if name.startswith("val_")
            },
            "test": self.test(),
            "seconds": sum(row["seconds"] for row in self.history),
            "parameters": self.translator.model.count_params(),
            "train_pairs": len(self.train_ids[0]),
            "validation_sources": len(self.to_decode[0]),
        }

    def test(self):
        """The task's metric on the test part, by beam search."""
        self.say("decoding the test part ...")
        return evaluate(
            self.translator,
            self.parts.test,
            self.config.of_task.metric,
            self.config.num_beams,
            self.config.of_task.mirrored,
        )

    def write(self, metrics):
        """Model, tokenizers, attention sub-model, plots, card, metrics."""
        write_translator(
            self.folder, self.config, self.translator, self.parts, metrics, self.history
        )


def usual_epochs(steps):
    """How many epochs of so many steps to train: few of many pairs, many of few."""
    return min(max(USUAL_STEPS // steps, 10), 100)
