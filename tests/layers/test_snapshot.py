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
    visualize,
)
from keras_attention.snapshot import join
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


def test_training_that_goes_on_adds_its_pictures(tmp_path):
    model = model_of()
    fit(model, AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, layer="mix"), 2)
    before = (tmp_path / "epoch-000.png").read_bytes()
    snapshot = AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, layer="mix")
    model.fit(
        TOKENS, LABELS, epochs=4, initial_epoch=2, callbacks=[snapshot], verbose=0
    )
    assert (tmp_path / "epoch-000.png").read_bytes() == before
    names = [path.name for path in snapshot.pictures]
    assert names == [f"epoch-00{n}.png" for n in range(5)]
    with Image.open(tmp_path / "attention.gif") as picture:
        assert picture.n_frames == 5


def test_frames_of_other_sizes_keep_their_ground(tmp_path):
    for name, size in (("a.png", (4, 3)), ("b.png", (2, 5))):
        Image.new("RGB", size, (250, 240, 230)).save(tmp_path / name)
    pictures = [tmp_path / "a.png", tmp_path / "b.png"]
    join(pictures, tmp_path / "both.png", 0.5)
    with Image.open(tmp_path / "both.png") as picture:
        for frame in range(picture.n_frames):
            picture.seek(frame)
            shown = picture.convert("RGB")
            assert shown.size == (4, 5)
            assert shown.getcolors() == [(20, (250, 240, 230))]


def test_a_title_may_be_left_out(tmp_path, monkeypatch):
    titles = []
    monkeypatch.setattr(
        visualize, "heatmap", lambda *_, title, **options: titles.append(title)
    )
    for title in ("Look", None):
        options = {"title": title, "layer": "mix", "animation": None}
        fit(model_of(), AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, **options), 1)
    assert titles == ["Look, epoch 0", "Look, epoch 1", "Epoch 0", "Epoch 1"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"rows": "the cat"}, ValueError, "`rows` must be a list of labels"),
        ({"columns": "the cat"}, ValueError, "`columns` must be a list of labels"),
        ({"rows": [b"the"]}, TypeError, "`rows` must hold strings"),
        ({"title": 3}, TypeError, "`title` must be a string"),
        ({"animation": "a.mp4"}, ValueError, r"\.gif, \.webp or \.png.*'a\.mp4'"),
        ({"animation": "film"}, ValueError, r"\.gif, \.webp or \.png.*'film'"),
        ({"animation": "new/a.gif"}, ValueError, "without a folder.*'new/a.gif'"),
        ({"animation": "epoch-000.png"}, ValueError, "unlike those of the pictures"),
        ({"seconds": 0}, ValueError, "`seconds` must be a number over 0.*: 0"),
        ({"seconds": "1"}, ValueError, "`seconds` must be a number over 0.*'1'"),
        ({"seconds": float("nan")}, ValueError, "`seconds` must be a number.*nan"),
    ],
)
def test_what_could_only_fail_after_training_is_refused_at_once(
    tmp_path, options, error, message
):
    with pytest.raises(error, match=message):
        AttentionSnapshot(
            **{"inputs": TOKENS, "rows": WORDS, "folder": tmp_path, **options}
        )


@pytest.mark.parametrize("head", [2, -1, "0", 0.0])
def test_a_head_that_is_not_there_is_refused(tmp_path, head):
    snapshot = AttentionSnapshot(TOKENS, WORDS, folder=tmp_path, layer="mix", head=head)
    with pytest.raises(ValueError, match=rf"0 to 1, or None.*Received: {head!r}"):
        fit(model_of(), snapshot)
    pooled = {"columns": WORDS, "layer": "pool", "head": 0}
    with pytest.raises(ValueError, match=r"`head` must be .*is None.* Received: 0"):
        fit(model_of(), AttentionSnapshot(TOKENS, ["a"], folder=tmp_path, **pooled))


def test_more_than_one_example_is_refused(tmp_path):
    for count in (0, 3):
        many = AttentionSnapshot(
            np.repeat(TOKENS, count, axis=0), WORDS, folder=tmp_path, layer="mix"
        )
        with pytest.raises(ValueError, match=f"a single example. Received: {count}"):
            fit(model_of(), many)


def test_what_cannot_be_drawn_is_refused_before_training(tmp_path):
    with pytest.raises(ValueError, match=r"one of mix, pool\. Received: 'mixx'"):
        fit(model_of(), AttentionSnapshot(TOKENS, WORDS, layer="mixx", folder=tmp_path))
    with pytest.raises(ValueError, match=r"one of mix, pool\. Received: None"):
        fit(model_of(), AttentionSnapshot(TOKENS, WORDS, folder=tmp_path))
    two = AttentionSnapshot(TOKENS, WORDS[:2], layer="mix", folder=tmp_path)
    with pytest.raises(ValueError, match="`rows` of length 2"):
        fit(model_of(), two)
    assert not list(tmp_path.iterdir())
