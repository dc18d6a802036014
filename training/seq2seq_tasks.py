"""What each task of two texts decides: tokens, metric, and settings left out.

Importing this module imports neither Keras nor TensorFlow.
"""

import dataclasses

MODELS = ("bahdanau", "luong", "transformer")
METRICS = ("chrf", "exact", "bleu", "wer", "pronunciation")
KINDS = ("bpe", "characters", "words")


@dataclasses.dataclass(frozen=True)
class Task:
    """How the texts of a task are cut into tokens, and how it is measured.

    Attributes:
        metric: One of METRICS: what chooses the best epoch.
        source_tokens, target_tokens: Kinds of `zoo.tokens.SequenceTokenizer`.
        joint: Whether both texts have one vocabulary and one embedding.
        settings: What to use for options that are left out; the learning rate is
            Adam's.
        transformer: What a Transformer has instead.
        any_case: Whether sources are read in lower case, however they are written.
        mirrored: Whether the right alignment runs from the last to the first, so that
            it can be measured too.
    """

    metric: str
    source_tokens: str
    target_tokens: str
    joint: bool
    settings: dict
    transformer: dict = dataclasses.field(default_factory=dict)
    any_case: bool = False
    mirrored: bool = False

    def setting(self, name, model):
        """What to use for an option, None for one that the task leaves open."""
        settings = self.settings | (self.transformer if model == "transformer" else {})
        return settings.get(name)


_SMALL = {
    "embedding_dim": 64,
    "units": 128,
    "attention_units": 64,
    "num_layers": 1,
    "num_heads": 4,
    "intermediate_dim": 256,
    "batch_tokens": 2_000,
    "optimizer": "adam",
    "learning_rate": 3e-3,
    "epochs": 12,
    "dropout": 0.1,
    "label_smoothing": 0.0,
}
_LARGE = {
    "embedding_dim": 256,
    "units": 384,
    "attention_units": 256,
    "num_layers": 1,
    "num_heads": 4,
    "intermediate_dim": 1024,
    "batch_tokens": 3_000,
    "optimizer": "adam",
    "learning_rate": 1e-3,
    "epochs": 10,
    "dropout": 0.1,
    "label_smoothing": 0.1,
}
_DEEP = {"num_layers": 3}
TASKS = {
    "reverse": Task("exact", "characters", "characters", True, _SMALL, mirrored=True),
    "dates": Task("exact", "characters", "characters", False, _SMALL),
    "g2p": Task(
        "pronunciation",
        "characters",
        "words",
        False,
        {**_LARGE, "epochs": 30},
        transformer={
            **_DEEP,
            "intermediate_dim": 512,
            "optimizer": "muon",
            "epochs": 36,
            "dropout": 0.2,
        },
        any_case=True,  # the dictionary has capitals alone
    ),
    "en-fr": Task("bleu", "bpe", "bpe", True, _LARGE, transformer=_DEEP),
}


def own_task(tokens=None, metric=None):
    """The task of a file of one's own.

    Args:
        tokens: One of KINDS, or None for "bpe".
        metric: One of METRICS, or None for "chrf", which also tells short texts apart:
            BLEU is 0 where no text has four words.
    """
    tokens = tokens or "bpe"
    settings = {**_LARGE, "batch_tokens": 1_000}
    del settings["epochs"]  # by the number of pairs
    return Task(metric or "chrf", tokens, tokens, tokens == "bpe", settings, _DEEP)
