"""AttentionSnapshot: pictures of a map, epoch by epoch, that are those of the model."""

import keras
import numpy as np
import pytest
from PIL import Image

from keras_attention import (
    AttentionSnapshot,
    BahdanauAttention,
    MultiHeadAttention,
    attention_submodel,
)
from tests.layers.contract import normal, to_numpy

WORDS = ["the", "cat", "sat"]
TOKENS = normal(1, 3, 4)
LABELS = np.ones((1, 1), "float32")


def model_of(heads=2):
    """Self-attention of several heads, then pooling: two maps."""
    inputs = keras.Input((None, 4))
    mixed, _ = MultiHeadAttention(heads, 4, name="mix")(inputs)
    context, _ = BahdanauAttention(5, name="pool")(mixed)
    model = keras.Model(inputs, keras.layers.Dense(1)(context))
    model.compile(keras.optimizers.Adam(0.1), "mse")
    return model


def fit(model, snapshot, epochs=3):
    model.fit(TOKENS, LABELS, epochs=epochs, callbacks=[snapshot], verbose=0)


def test_a_picture_an_epoch_and_all_in_one(tmp_path):
    folder = tmp_path / "new" / "folder"
    snapshot = AttentionSnapshot(TOKENS, WORDS, folder=folder, layer="mix")
    fit(model_of(), snapshot)
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["attention.gif", *(f"epoch-00{n}.png" for n in range(4))]
    sizes = set()
    for path in folder.glob("*.png"):
        with Image.open(path) as picture:
            sizes.add(picture.size)
    assert len(sizes) == 1
    with Image.open(folder / "attention.gif") as picture:
        assert (picture.n_frames, picture.size) == (4, sizes.pop())
        assert picture.info["loop"] == 0


def test_the_map_is_that_of_the_model_as_it_is_now(tmp_path):
    model, seen = model_of(), []

    class Remember(AttentionSnapshot):
        def _write(self, epoch):
            seen.append(self.weights())

    snapshot = Remember(
        TOKENS, WORDS, folder=tmp_path, layer="mix", head=1, animation=None
    )
    before = to_numpy(attention_submodel(model)(TOKENS)[1]["mix"])[0, 1]
    fit(model, snapshot)
    after = to_numpy(attention_submodel(model)(TOKENS)[1]["mix"])[0, 1]
    np.testing.assert_allclose(seen[0], before, atol=1e-6)
    np.testing.assert_allclose(seen[-1], after, atol=1e-6)
    assert len(seen) == 4 and np.abs(after - before).max() > 1e-3


def test_without_a_head_it_is_the_mean_of_the_heads(tmp_path):
    model = model_of()
    snapshot = AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, layer="mix")
    fit(model, snapshot, epochs=1)
    maps = to_numpy(attention_submodel(model)(TOKENS)[1]["mix"])
    np.testing.assert_allclose(snapshot.weights(), maps[0].mean(axis=0), atol=1e-6)


def test_what_pools_is_a_single_row(tmp_path):
    snapshot = AttentionSnapshot(TOKENS, ["all"], WORDS, tmp_path, layer="pool")
    fit(model_of(), snapshot, epochs=1)
    assert snapshot.weights().shape == (1, 3)
    assert snapshot.weights().sum() == pytest.approx(1, abs=1e-6)


def test_a_model_of_several_inputs(tmp_path):
    inputs = [keras.Input((None, 4)), keras.Input((None, 6))]
    context, _ = BahdanauAttention(5)(*inputs)
    model = keras.Model(inputs, keras.layers.Dense(1)(context))
    model.compile("sgd", "mse")
    pair = [normal(1, 2, 4), normal(1, 3, 6)]
    snapshot = AttentionSnapshot(pair, ["le", "chat"], WORDS, tmp_path)
    model.fit(pair, np.ones((1, 2, 1)), callbacks=[snapshot], verbose=0)
    assert snapshot.weights().shape == (2, 3)


def test_what_cannot_be_drawn_is_refused_before_training(tmp_path):
    with pytest.raises(ValueError, match=r"one of mix, pool\. Received: 'mixx'"):
        fit(model_of(), AttentionSnapshot(TOKENS, WORDS, layer="mixx", folder=tmp_path))
    with pytest.raises(ValueError, match=r"one of mix, pool\. Received: None"):
        fit(model_of(), AttentionSnapshot(TOKENS, WORDS, folder=tmp_path))
    two = AttentionSnapshot(TOKENS, WORDS[:2], layer="mix", folder=tmp_path)
    with pytest.raises(ValueError, match="`rows` of length 2"):
        fit(model_of(), two)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("head", [2, -1, 0.5])
def test_a_head_that_is_none_of_the_layers_is_refused(tmp_path, head):
    snapshot = AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, layer="mix", head=head)
    with pytest.raises(ValueError, match=rf"from 0 to 1\. Received: {head}"):
        fit(model_of(heads=2), snapshot)


def test_a_head_of_a_layer_without_heads_is_refused(tmp_path):
    snapshot = AttentionSnapshot(TOKENS, ["all"], WORDS, tmp_path, layer="pool", head=0)
    with pytest.raises(ValueError, match=r"without heads\. Received: 0"):
        fit(model_of(), snapshot)


@pytest.mark.parametrize(
    ("option", "value"), [("animation", "map.mp4"), ("seconds", 0), ("seconds", "1")]
)
def test_an_animation_that_cannot_be_written_is_refused_at_once(option, value):
    with pytest.raises(ValueError, match=f"`{option}` must .* Received: {value!r}"):
        AttentionSnapshot(TOKENS, WORDS, **{option: value})
