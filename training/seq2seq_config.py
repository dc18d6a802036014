"""The options of a run that trains a sequence-to-sequence model.

The command line is made from the dataclass. Importing this module imports neither Keras
nor TensorFlow.
"""

import dataclasses

from training.nearest import nearest
from training.options import RunOptions, check_bounds, make_plain, option
from training.seq2seq_tasks import KINDS, METRICS, MODELS, TASKS, own_task

OPTIMIZERS = ("adam", "muon")
MUON_RATE = 4  # times Adam's peak
OF_RECURRENT = ("units", "cell", "scheduled_sampling")
OF_LUONG = ("score", "local", "window", "no_input_feeding")
OF_TRANSFORMER = ("num_heads", "intermediate_dim")


@dataclasses.dataclass(frozen=True)
class Seq2SeqConfig(RunOptions):
    """What `training.seq2seq.train` takes. None means the task's own, or the default.

    Raises:
        ValueError: for a value out of bounds, or options that contradict each other.
    """

    task: str = option(
        dataclasses.MISSING,
        "reverse, dates, g2p, en-fr, or a .tsv/.csv file of pairs of your own",
    )
    model: str = option(dataclasses.MISSING, "bahdanau, luong or transformer")
    out: str = option(dataclasses.MISSING, "folder of the run")
    data: str | None = option(None, "for g2p and en-fr: folder or file of the data")
    source_column: str | None = option(
        None,
        "for a file: column of the sources: its name in the header row, or its "
        "position where there is none [1]",
    )
    target_column: str | None = option(
        None, "for a file: column of the targets, likewise [2]"
    )
    tokens: str | None = option(
        None, "for a file: cut texts into bpe, characters or words [bpe]"
    )
    metric: str | None = option(
        None,
        "for a file: what chooses the best epoch: chrf, exact, bleu, wer, or "
        "pronunciation (targets are the phones of a word) [chrf]",
    )
    weights: str | None = option(
        None, "start from the folder of a run, or a model of the zoo [random]"
    )
    teacher: str | None = option(
        None,
        "learn what this model writes for the training sources, in the place of their "
        "own targets: a model of the zoo, or the folder of a run [none]",
    )
    vocabulary_size: int | None = option(
        None,
        "number of ids of a vocabulary; rarer tokens are unknown [bpe: 6000, else all]",
        least=5,
    )
    lowercase: bool = option(False, "lower-case all texts, in training and in use")
    maxlen: int | None = option(
        None,
        "tokens a source is cut to; pairs with longer targets are left out [256]",
        least=1,
    )
    embedding_dim: int | None = option(None, "width of the embeddings", least=1)
    num_layers: int | None = option(None, "layers of encoder and decoder", least=1)
    units: int | None = option(None, "recurrent: width of the states", least=1)
    attention_units: int | None = option(
        None, "bahdanau: width of the attention", least=1
    )
    cell: str | None = option(None, "recurrent: gru or lstm [gru]")
    score: str | None = option(None, "luong: dot, scaled_dot, general or concat")
    local: str | None = option(
        None, "luong: monotonic or predictive, attention to a window [none]"
    )
    window: int | None = option(None, "luong: half the window of --local", least=1)
    no_input_feeding: bool = option(False, "luong: attention is not fed to the cell")
    num_heads: int | None = option(None, "transformer: number of heads", least=1)
    intermediate_dim: int | None = option(
        None, "transformer: width of the feed-forward networks", least=1
    )
    epochs: int | None = option(
        None,
        "passes over the training pairs [the task's; for a file what 2,000 steps take: "
        "10 to 100]",
        least=1,
    )
    batch_tokens: int | None = option(
        None, "rows times longest row of a step, at most", least=1
    )
    optimizer: str | None = option(
        None,
        "adam, or muon for the kernels of dense and attention layers and adam for the "
        "rest [adam; for g2p's transformer muon]",
    )
    learning_rate: float | None = option(
        None, "the peak [the task's, 4 times as much for muon]", least=0
    )
    schedule: str = option(
        "cosine", "after the warm-up: cosine (to 0), inverse_sqrt or constant"
    )
    warm_up: float = option(
        0.05, "fraction of all steps that the rate rises", least=0, most=0.99
    )
    clip_norm: float = option(1.0, "greatest norm of all gradients together", least=0)
    dropout: float | None = option(
        None,
        "fraction dropped [the task's, or that of --weights]",
        least=0,
        most=0.99,
    )
    label_smoothing: float | None = option(
        None, "share of the target that all tokens get", least=0, most=0.99
    )
    average: float = option(
        0.5,
        "fraction of an epoch that the average of weights reaches back; 0: none",
        least=0,
        most=10,
    )
    scheduled_sampling: float | None = option(
        None,
        "recurrent: share of the decoder's inputs that are its own guesses in the last "
        "epoch, rising epoch by epoch [0]",
        least=0,
        most=1,
    )
    bfloat16: bool = option(
        False, "multiply matrices in bfloat16: faster on a CPU with AVX512-BF16 or AMX"
    )
    patience: int | None = option(
        None, "stop after so many epochs without a better one [never]", least=1
    )
    validation_sentences: int = option(
        1_000,
        "sources from all over the validation part that are decoded each epoch",
        least=1,
    )
    num_beams: int = option(5, "beams of the evaluation at the end", least=1)
    seed: int = option(0, "of weights, order, dropout", least=0, most=2**32 - 1)
    resume: bool = option(False, "go on from the last finished epoch of --out")

    def __post_init__(self):
        make_plain(self)
        check_bounds(self)
        _check_choice("model", self.model, MODELS)
        _check_choice("schedule", self.schedule, ("cosine", "inverse_sqrt", "constant"))
        for name, choices in (
            ("tokens", KINDS),
            ("metric", METRICS),
            ("cell", ("gru", "lstm")),
            ("optimizer", OPTIMIZERS),
        ):
            if getattr(self, name) is not None:
                _check_choice(name, getattr(self, name), choices)
        self._refuse_without_effect()

    def _refuse_without_effect(self):
        """No option does nothing."""
        for why, names in self._without_effect():
            values = {name: getattr(self, name) for name in names}
            given = [n for n, v in values.items() if v is not None and v is not False]
            if given:
                raise ValueError(
                    f"{', '.join(f'`{name}`' for name in given)} "
                    f"{'has' if len(given) == 1 else 'have'} no effect with {why}. "
                    f"Leave {'it' if len(given) == 1 else 'them'} out."
                )

    def _without_effect(self):
        """Pairs of what is given and the names of options that do nothing beside it."""
        pairs = []
        if self.task in TASKS:
            of_files = "source_column", "target_column", "tokens", "metric"
            pairs.append((f"the task {self.task}, which decides them", of_files))
            if self.of_task.target_tokens != "bpe":
                why = f"the task {self.task}, which takes all"
                pairs.append((why, ("vocabulary_size",)))
        if self.model == "transformer":
            pairs.append(("a transformer", (*OF_RECURRENT, *OF_LUONG)))
        else:
            pairs.append((f"the model {self.model}", OF_TRANSFORMER))
        if self.model != "luong":
            pairs.append((f"the model {self.model}", OF_LUONG))
        if self.model != "bahdanau":
            pairs.append((f"the model {self.model}", ("attention_units",)))
        if self.weights:
            sizes = ("embedding_dim", "num_layers", "units", "attention_units", "cell")
            of_texts = ("vocabulary_size", "tokens", "lowercase")
            names = (*sizes, *OF_LUONG, *OF_TRANSFORMER, *of_texts)
            pairs.append(("`weights`, which decide them", names))
        return pairs

    # ---- what the task decides where nothing is given

    @property
    def of_task(self):
        """The `Task`: one of those with a name, or that of a file of one's own."""
        return TASKS.get(self.task) or own_task(self.tokens, self.metric)

    def setting(self, name):
        """An option's value, or the task's own where it was left out."""
        value = getattr(self, name)
        if value is not None:
            return value
        value = self.of_task.setting(name, self.model)
        if name == "learning_rate" and self.setting("optimizer") == "muon":
            return MUON_RATE * value
        return value

    @property
    def options(self):
        """All that decides the result: what the task decides stands in it as a value.

        A later version may decide otherwise. It will not resume this run as another.
        """
        idle = {name for _, names in self._without_effect() for name in names}
        if self.weights:
            idle.add("dropout")  # they have one
        return {
            name: self.setting(name) if value is None and name not in idle else value
            for name, value in super().options.items()
        }

    @property
    def architecture(self):
        """The arguments of the model's factory, the vocabularies left aside."""
        names = ["embedding_dim", "num_layers", "dropout"]
        if self.model == "transformer":
            names += OF_TRANSFORMER
        else:
            names += ["units", "cell"]
        if self.model == "bahdanau":
            names.append("attention_units")
        if self.model == "luong":
            names += ["score", "local", "window"]
        given = {name: self.setting(name) for name in names}
        if self.model == "luong":
            given["input_feeding"] = not self.no_input_feeding
        return {name: value for name, value in given.items() if value is not None}


def _check_choice(name, value, choices):
    if value not in choices:
        close = nearest(value, choices)
        guess = f" Did you mean {close!r}?" if close else ""
        raise ValueError(
            f"`{name}` must be one of {', '.join(choices)}. Received: {value!r}.{guess}"
        )
