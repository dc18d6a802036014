"""The one literal table of what the zoo holds: every set of trained weights."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class TrainedWeights:
    """One set of trained weights: which file, made for what, how good.

    Attributes:
        file: File name in zoo/weights.
        sha256: Of that file; checked before it is read.
        tokenizers: (file name, SHA-256) by role: "text"; or "source" and "target",
            which are one file where the two texts have one vocabulary.
        architecture: The factory's arguments the weights belong to.
        parameters: Number of weights of the model.
        maxlen: Number of ids a text is cut to.
        data: What it was trained on.
        metric: What it reaches, with the protocol.
        licence: Of the weights.
        labels: Class names of a classifier, by class index.
        length_ratio: Of a model of two texts: see `zoo.Translator`.
    """

    file: str
    sha256: str
    tokenizers: dict[str, tuple[str, str]]
    architecture: dict
    parameters: int
    maxlen: int
    data: str
    metric: str
    licence: str
    labels: tuple[str, ...] = ()
    length_ratio: float = 2.0


@dataclasses.dataclass(frozen=True)
class Entry:
    """One model of the zoo.

    Attributes:
        name: What `zoo.load` calls it.
        task: "sentiment" or another of the pipelines.
        factory: What the function that makes the model is called.
        weights: Trained weights by the name that `weights=` takes; the first is the
            default.
    """

    name: str
    task: str
    factory: str
    weights: dict[str, TrainedWeights]


# ---- rows that several entries share

_IMDB = {
    "tokenizers": {
        "text": (
            "imdb.tokenizer.json",
            "a0c243904e8a973196bd5e34ec6600e976d964d24fb1f1c3288384fb60adf2f5",
        )
    },
    "labels": ("negative", "positive"),
    "maxlen": 400,
    "data": "IMDB",
    "licence": "Apache-2.0",
}
_SIZES = {
    "vocabulary_size": 30_000,
    "embedding_dim": 128,
    "lstm_units": 64,
    "dropout": 0.3,
    "num_classes": 2,
}

_REVERSE = {
    "tokenizers": dict.fromkeys(
        ("source", "target"),
        (
            "reverse.tokenizer.json",
            "bab664f321914f9cc0ae2191f4fc2b1d37e44d519a226b571693407f25524d07",
        ),
    ),
    "maxlen": 256,
    "data": "strings of a-z",
    "licence": "Apache-2.0",
}
_SMALL = {
    "source_vocabulary_size": 30,
    "target_vocabulary_size": 30,
    "share_embeddings": True,
    "embedding_dim": 64,
    "units": 128,
    "num_layers": 1,
    "cell": "gru",
    "dropout": 0.1,
}
_DATES = {
    "tokenizers": {
        "source": (
            "dates.source.tokenizer.json",
            "3547be7efd2c531df98b8d047d8689bb7411f942654485efc3f1b56601325431",
        ),
        "target": (
            "dates.target.tokenizer.json",
            "6d6203d93ae1abeab382272c8e349bf8d0bf6a4d143043909b7c3823f27b9887",
        ),
    },
    "maxlen": 256,
    "data": "dates by Unicode CLDR",
    "licence": "Apache-2.0",
}
_DATES_SIZES = {
    **_SMALL,
    "source_vocabulary_size": 649,
    "target_vocabulary_size": 15,
    "share_embeddings": False,
}
_LUONG = {"score": "general", "local": None, "window": None, "input_feeding": True}

_EN_FR = {
    "tokenizers": dict.fromkeys(
        ("source", "target"),
        (
            "en_fr.tokenizer.json",
            "02434c23353bc88261f0407d32e7bd3798c157ea92172c50fc5cd080e4095f6c",
        ),
    ),
    "maxlen": 256,
    "data": "Tatoeba",
    "licence": "CC BY 2.0 FR",
}
_EN_FR_TEXTS = {
    "source_vocabulary_size": 6_000,
    "target_vocabulary_size": 6_000,
    "share_embeddings": True,
}

_G2P = {
    "tokenizers": {
        "source": (
            "g2p.source.tokenizer.json",
            "80bf410ecf6f56744afc6532ade80a1f8326c71503b153f015108c624e4b3cbe",
        ),
        "target": (
            "g2p.target.tokenizer.json",
            "d4c5de11f4eccc97a13accd0ed79639f675348bff4e735a212a7020b2392f0f4",
        ),
    },
    "maxlen": 256,
    "data": "CMUdict",
    "licence": "Apache-2.0",
}

ENTRIES = (
    Entry(
        name="imdb_bilstm_attention",
        task="sentiment",
        factory="imdb_bilstm_attention",
        weights={
            "imdb": TrainedWeights(
                file="imdb_bilstm_attention.weights.h5",
                sha256=(
                    "1273cc95c6702e0c09d819663ca1cf43347b850f45046cf756ffe770cffc0dd7"
                ),
                architecture={**_SIZES, "attention_units": 64},
                parameters=3_947_265,
                metric="90.91% of the 25,000 test reviews",
                **_IMDB,
            )
        },
    ),
    Entry(
        name="imdb_bilstm",
        task="sentiment",
        factory="imdb_bilstm",
        weights={
            "imdb": TrainedWeights(
                file="imdb_bilstm.weights.h5",
                sha256=(
                    "557b7a27d6e8e48167bc914c06a31a7a83d6688d546bdf169cbb093f3b500880"
                ),
                architecture=_SIZES,
                parameters=3_938_945,
                metric="90.65% of the 25,000 test reviews",
                **_IMDB,
            )
        },
    ),
    Entry(
        name="reverse_bahdanau",
        task="reversal",
        factory="seq2seq_bahdanau",
        weights={
            "reverse": TrainedWeights(
                file="reverse_bahdanau.weights.h5",
                sha256=(
                    "6f5d7118d8200b2705931d3f2d38020e0e2a1e8d4675f9ff115e97838015b3df"
                ),
                architecture={
                    **_SMALL,
                    "units": 64,
                    "dropout": 0.5,
                    "attention_units": 64,
                },
                parameters=134_336,
                metric="100.00% of 2,000 new strings, exactly",
                **_REVERSE,
            )
        },
    ),
    Entry(
        name="reverse_luong",
        task="reversal",
        factory="seq2seq_luong",
        weights={
            "reverse": TrainedWeights(
                file="reverse_luong.weights.h5",
                sha256=(
                    "46d236ad925164ab6b95431c51d1d1f028c84137d683cd11ed0a5ff577e43e88"
                ),
                architecture={**_SMALL, **_LUONG},
                parameters=340_224,
                metric="99.95% of 2,000 new strings, exactly",
                **_REVERSE,
            )
        },
    ),
    Entry(
        name="dates_luong",
        task="dates",
        factory="seq2seq_luong",
        weights={
            "dates": TrainedWeights(
                file="dates_luong.weights.h5",
                sha256=(
                    "abfbc4a3ae275c321f836369f0681f6c1904f8cc872fed023d97f7da98d482bb"
                ),
                architecture={**_DATES_SIZES, **_LUONG},
                parameters=380_800,
                metric="99.85% of 2,000 unseen dates, exactly",
                **_DATES,
            )
        },
    ),
    Entry(
        name="dates_local",
        task="dates",
        factory="seq2seq_luong",
        weights={
            "dates_local": TrainedWeights(
                file="dates_local.weights.h5",
                sha256=(
                    "3d14d1d1b45b0adf9b9aa3069672cf302e108e24d1fa411ad093c1acc960a7b8"
                ),
                architecture={
                    **_DATES_SIZES,
                    **_LUONG,
                    "local": "monotonic",
                    "window": 10,
                },
                parameters=380_800,
                metric="100.00% of 2,000 unseen dates, exactly",
                **_DATES,
            )
        },
    ),
    Entry(
        name="g2p_transformer",
        task="pronunciation",
        factory="seq2seq_transformer",
        weights={
            "g2p": TrainedWeights(
                file="g2p_transformer.weights.h5",
                sha256=(
                    "74c3cccc16f6c1bf76a6e4212040b81301330b1c6dd92f3420eb1627e6d1a882"
                ),
                architecture={
                    "source_vocabulary_size": 31,
                    "target_vocabulary_size": 43,
                    "share_embeddings": False,
                    "embedding_dim": 256,
                    "num_layers": 3,
                    "num_heads": 4,
                    "intermediate_dim": 512,
                    "dropout": 0.1,
                },
                parameters=3_973_632,
                metric="21.12% word errors on 12,000 test words",
                **_G2P,
            )
        },
    ),
    Entry(
        name="en_fr_bahdanau",
        task="translation",
        factory="seq2seq_bahdanau",
        weights={
            "en_fr": TrainedWeights(
                file="en_fr_bahdanau.weights.h5",
                sha256=(
                    "b1b19b5dbddc798c433163f74ad4c9cfdd4511ffc7a878b65d09c4b4469f036b"
                ),
                architecture={
                    **_EN_FR_TEXTS,
                    "embedding_dim": 256,
                    "units": 384,
                    "num_layers": 1,
                    "cell": "gru",
                    "attention_units": 256,
                    "dropout": 0.1,
                },
                parameters=5_525_120,
                metric="47.97 sacreBLEU on 1,196 test sentences",
                **_EN_FR,
            )
        },
    ),
    Entry(
        name="en_fr_transformer",
        task="translation",
        factory="seq2seq_transformer",
        weights={
            "en_fr": TrainedWeights(
                file="en_fr_transformer.weights.h5",
                sha256=(
                    "547529559e3e3037adcd00de78aa228ac7f8be0ce0af73d94fc9f509f9e15783"
                ),
                architecture={
                    **_EN_FR_TEXTS,
                    "embedding_dim": 256,
                    "num_layers": 3,
                    "num_heads": 4,
                    "intermediate_dim": 1024,
                    "dropout": 0.1,
                },
                parameters=7_066_624,
                metric="51.91 sacreBLEU on 1,196 test sentences",
                **_EN_FR,
            )
        },
    ),
)
