"""The sizes of the models of two texts: the factories' defaults, and what cannot be."""

from keras_attention.multiplicative import SCORES
from zoo.checks import check_choice, check_fraction, check_integer

_TEXTS = {
    "source_vocabulary_size": 8_000,
    "target_vocabulary_size": 8_000,
    "share_embeddings": False,
}
_RECURRENT = {
    **_TEXTS,
    "embedding_dim": 256,
    "units": 256,
    "num_layers": 1,
    "cell": "gru",
    "dropout": 0.2,
}
DEFAULTS = {
    "seq2seq_bahdanau": {**_RECURRENT, "attention_units": 256},
    "seq2seq_luong": {
        **_RECURRENT,
        "score": "general",
        "local": None,
        "window": None,
        "input_feeding": True,
    },
    "seq2seq_transformer": {
        **_TEXTS,
        "embedding_dim": 256,
        "num_layers": 3,
        "num_heads": 4,
        "intermediate_dim": 1024,
        "dropout": 0.1,
    },
}

CHOICES = {
    "share_embeddings": (True, False),
    "input_feeding": (True, False),
    "cell": ("gru", "lstm"),
    "score": SCORES,
    "local": (None, "monotonic", "predictive"),
}


def checked_sizes(sizes):
    """The sizes as plain types, once none is refused.

    Args:
        sizes: All arguments of a factory that decide its model, by name.

    Raises:
        ValueError: for the first that cannot be, or two that contradict each other.
    """
    sizes = {name: _checked(name, value) for name, value in sizes.items()}
    texts = [sizes[f"{side}_vocabulary_size"] for side in ("source", "target")]
    if sizes["share_embeddings"] and texts[0] != texts[1]:
        raise ValueError(
            "`share_embeddings` needs one vocabulary for both texts. Received: sizes "
            f"{texts[0]} and {texts[1]}. Train one tokenizer on both, or give "
            "share_embeddings=False."
        )
    local, window = sizes.get("local"), sizes.get("window")
    if (local is None) != (window is None):
        raise ValueError(
            "`local` and `window` go together. Received: "
            f"local={local!r}, window={window!r}. Give both, such as "
            'local="monotonic", window=10, or none.'
        )
    if sizes.get("score") in ("dot", "scaled_dot") and sizes["units"] % 2:
        raise ValueError(
            f"`units` must be even with score='{sizes['score']}': the two directions "
            f"of the encoder share them. Received: {sizes['units']}."
        )
    if sizes.get("num_heads") and sizes["embedding_dim"] % sizes["num_heads"]:
        raise ValueError(
            "`num_heads` must divide `embedding_dim`. Received: "
            f"num_heads={sizes['num_heads']}, embedding_dim={sizes['embedding_dim']}."
        )
    return sizes


def _checked(name, value):
    if name in CHOICES:
        return check_choice(name, value, CHOICES[name])
    if name == "dropout":
        return check_fraction(name, value)
    if name == "window" and value is None:
        return None
    return check_integer(name, value, 5 if name.endswith("vocabulary_size") else 1)
