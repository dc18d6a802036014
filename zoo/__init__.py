"""Prebuilt attention models with trained weights: text in, text and attention out.

clf = zoo.load("imdb_bilstm_attention")           # a pipeline
clf.explain("A slow start, but the ending is superb.").plot("where.png")
model = zoo.imdb_bilstm_attention()               # a plain keras.Model
"""

import keras_attention

if not hasattr(keras_attention, "BahdanauAttention"):
    raise ImportError(
        "`import keras_attention` found another package, in "
        f"{getattr(keras_attention, '__file__', 'an unknown place')}: the PyPI package "
        "'keras-attention' of 2019 installs the same import name. Run: pip uninstall "
        "keras-attention; then, in the folder of keras-attention-zoo: pip install "
        "--force-reinstall --no-deps -e ."
    )

from zoo.explanation import Explanation
from zoo.loading import load
from zoo.model_table import list_models
from zoo.pipelines import Prediction, SentimentClassifier
from zoo.sentiment import imdb_bilstm, imdb_bilstm_attention
from zoo.seq2seq import seq2seq_bahdanau, seq2seq_luong, seq2seq_transformer
from zoo.text import Encoding, Tokenizer
from zoo.tokens import SequenceTokenizer
from zoo.translation import Translation
from zoo.translator import Translator
from zoo.word_removal import Faithfulness, faithfulness

__all__ = [
    "Encoding",
    "Explanation",
    "Faithfulness",
    "Prediction",
    "SentimentClassifier",
    "SequenceTokenizer",
    "Tokenizer",
    "Translation",
    "Translator",
    "faithfulness",
    "imdb_bilstm",
    "imdb_bilstm_attention",
    "list_models",
    "load",
    "seq2seq_bahdanau",
    "seq2seq_luong",
    "seq2seq_transformer",
]
