"""HeadProjections: what multi-head attention learns, into heads and out of them."""

import keras
from keras import ops

from keras_attention.arguments import sequence_form
from keras_attention.base import AttentionLayer
from keras_attention.functional import merge_heads, project
from keras_attention.kernels import Kernels, check_whole
from keras_attention.masking import as_boolean_mask


class HeadProjections(Kernels, AttentionLayer):
    """Base of multi-head attention (abstract): four projections, and their sizes.

    Args:
        num_heads, key_dim, value_dim, num_key_value_heads, output_dim, use_bias,
            rotary_embedding: Those of `MultiHeadAttention`.
        **kwargs: Those of `AttentionLayer`.
    """

    def __init__(
        self,
        num_heads,
        key_dim,
        value_dim=None,
        *,
        num_key_value_heads=None,
        output_dim=None,
        use_bias=True,
        rotary_embedding=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = check_whole("num_heads", num_heads, "4 to 16 are usual.")
        self.key_dim = check_whole("key_dim", key_dim, "32 to 128 are usual.")
        for name, size in (("value_dim", value_dim), ("output_dim", output_dim)):
            if size is not None:
                check_whole(name, size, "None takes the default.")
        self.value_dim = value_dim
        self.output_dim = output_dim
        self.num_key_value_heads = num_key_value_heads
        groups = num_heads if num_key_value_heads is None else num_key_value_heads
        advice = "None is one for each head."
        self.groups = groups = check_whole("num_key_value_heads", groups, advice)
        if self.num_heads % groups:
            raise ValueError(
                "`num_key_value_heads` must divide `num_heads`. Received: "
                f"num_heads={num_heads}, num_key_value_heads={num_key_value_heads}. "
                "1 shares one key and value head among all."
            )
        if rotary_embedding is not None:
            _check_rotary(rotary_embedding, key_dim)
        self.use_bias = use_bias
        self.rotary_embedding = rotary_embedding

    def build(self, query_shape, value_shape=None, key_shape=None):
        self.check_shapes(query_shape, value_shape, key_shape)
        value_shape = value_shape or query_shape
        key_shape = key_shape or value_shape
        queries, keys = self.num_heads * self.key_dim, self.groups * self.key_dim
        value_dim = self.value_dim or self.key_dim
        widths = {
            "query": (query_shape[-1], queries),
            "key": (key_shape[-1], keys),
            "value": (value_shape[-1], self.groups * value_dim),
            "output": (self.num_heads * value_dim, self.output_dim or query_shape[-1]),
        }
        for name, shape in widths.items():
            setattr(self, f"{name}_kernel", self.add_kernel(f"{name}_kernel", shape))
            bias = None
            if self.use_bias:
                bias = self.add_bias(f"{name}_bias", shape[1:])
            setattr(self, f"{name}_bias", bias)
        if self.rotary_embedding is not None and not self.rotary_embedding.built:
            self.rotary_embedding.build((None, None, self.num_heads, self.key_dim))
        self.built = True

    def _split(self, inputs, name, num_heads):
        """Projected inputs with an axis of heads, (B, T, H, d)."""
        bias = getattr(self, f"{name}_bias")
        kernel = self.read(getattr(self, f"{name}_kernel"))
        bias = None if bias is None else self.read(bias)
        rows = project(self.lift(inputs), kernel, bias)
        batch, length = ops.shape(rows)[:2]
        width = rows.shape[-1] // num_heads
        return ops.reshape(rows, (batch, length, num_heads, width))

    def _turned(self, inputs, name, num_heads, start, mask):
        """Heads of queries or keys (B, H, T, d), turned by positions from `start`."""
        heads = self._split(inputs, name, num_heads)
        if self.rotary_embedding is not None:
            length = ops.shape(heads)[1]
            mask = None if mask is None else as_boolean_mask(mask)
            heads = self.rotary_embedding.place(heads, length, start, mask)
        return ops.transpose(heads, (0, 2, 1, 3))

    def query_heads(self, query, start, mask=None):
        """Queries (B, T, D) in the slots from `start` on -> (B, H, T, d)."""
        return self._turned(query, "query", self.num_heads, start, mask)

    def memory_heads(self, key, value, start, mask=None):
        """Keys (B, S, K) and values (B, S, F) -> (B, G, S, d) and (B, G, S, v)."""
        value_heads = self._split(value, "value", self.groups)
        key_heads = self._turned(key, "key", self.groups, start, mask)
        return key_heads, ops.transpose(value_heads, (0, 2, 1, 3))

    def merge(self, context, may_attend, query_mask):
        """Contexts (B, H, T, v) -> (B, T, output_dim); 0 with nothing to attend to."""
        bias = None if self.output_bias is None else self.read(self.output_bias)
        output = project(merge_heads(context), self.read(self.output_kernel), bias)
        if may_attend is not None and bias is not None:
            live = ops.any(may_attend, axis=(1, 3))  # (B, T)
            output = ops.where(live[..., None], output, 0)
        output = self.lower(output)
        if query_mask is None:
            return output
        return self._carry_mask(output, mask=as_boolean_mask(query_mask))

    # ---- what Keras asks

    def check_shapes(self, query_shape, value_shape=None, key_shape=None):
        sequence_form(type(self).__name__, query_shape, value_shape, key_shape)

    def output_shapes(self, query_shape, value_shape=None):
        batch, length, width = query_shape
        keys = (value_shape or query_shape)[1]
        output = (batch, length, self.output_dim or width)
        return output, (batch, self.num_heads, length, keys)

    def get_config(self):
        rotary = keras.saving.serialize_keras_object(self.rotary_embedding)
        return {
            **super().get_config(),
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "value_dim": self.value_dim,
            "num_key_value_heads": self.num_key_value_heads,
            "output_dim": self.output_dim,
            "use_bias": self.use_bias,
            "rotary_embedding": rotary,
        }

    @classmethod
    def from_config(cls, config):
        rotary = keras.saving.deserialize_keras_object(config["rotary_embedding"])
        return cls(**{**config, "rotary_embedding": rotary})


def _check_rotary(rotary_embedding, key_dim):
    """Refuses what cannot turn heads, or heads of an odd width."""
    if not getattr(rotary_embedding, "turns_pairs", False) or key_dim % 2:
        raise ValueError(
            "`rotary_embedding` must be a RotaryEmbedding, and `key_dim` even, as it "
            f"turns pairs. Received: {rotary_embedding!r} and key_dim={key_dim}. Leave "
            "it out, or take an even `key_dim`."
        )
