"""Attention layers for Keras 3 that return what they attended to.

The letters of shapes, here and in every comment: B batch, T query length, S key
length, H heads, D, F, K, U widths (query, value, key, units).
"""

from keras_attention import functional, masking
from keras_attention._version import __version__
from keras_attention.additive import BahdanauAttention
from keras_attention.base import AttentionLayer
from keras_attention.conversion import copy_weights
from keras_attention.dot_product import ScaledDotProductAttention, SelfAttention
from keras_attention.local import LocalAttention
from keras_attention.location import LocationSensitiveAttention
from keras_attention.monotonic import MonotonicAttention
from keras_attention.multi_head import MultiHeadAttention
from keras_attention.multiplicative import LuongAttention
from keras_attention.positional import (
    LearnedPositionEmbedding,
    RotaryEmbedding,
    SinusoidalPositionEncoding,
)
from keras_attention.recurrent import AttentionDecoder
from keras_attention.scored import ScoredAttention
from keras_attention.snapshot import AttentionSnapshot
from keras_attention.submodel import attention_submodel, holds_attention
from keras_attention.transformer import (
    TransformerDecoderBlock,
    TransformerEncoderBlock,
)

__all__ = [
    "AttentionDecoder",
    "AttentionLayer",
    "AttentionSnapshot",
    "BahdanauAttention",
    "LearnedPositionEmbedding",
    "LocalAttention",
    "LocationSensitiveAttention",
    "LuongAttention",
    "MonotonicAttention",
    "MultiHeadAttention",
    "RotaryEmbedding",
    "ScaledDotProductAttention",
    "ScoredAttention",
    "SelfAttention",
    "SinusoidalPositionEncoding",
    "TransformerDecoderBlock",
    "TransformerEncoderBlock",
    "__version__",
    "attention_submodel",
    "copy_weights",
    "functional",
    "holds_attention",
    "masking",
]
