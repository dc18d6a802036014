"""Batches of pairs: teacher forcing one step apart, every pair once, few pads."""

import numpy as np
import pytest

from training import pair_batches


def test_inputs_and_labels_are_one_step_apart():
    inputs, labels = pair_batches.teacher_forced([[7, 8], []])
    assert inputs.tolist() == [[1, 7, 8], [1, 0, 0]]
    assert labels.tolist() == [[7, 8, 3], [3, 0, 0]]


def test_the_end_counts_once_and_the_start_is_never_a_label():
    targets = [[5, 6, 7], [9], [4, 4]]
    inputs, labels = pair_batches.teacher_forced(targets)
    assert [(row == 3).sum() for row in labels] == [1, 1, 1]
    assert (labels != 1).all()
    assert (inputs != 3).all()
    assert ((inputs != 0) == (labels != 0)).all()


@pytest.mark.parametrize("batch_tokens", [1, 17, 200])
def test_every_pair_stands_in_one_batch_within_the_limit(batch_tokens):
    lengths = np.random.default_rng(0).integers(0, 23, 101)
    batches = pair_batches.plan(lengths, batch_tokens, np.random.default_rng(1))
    assert sorted(np.concatenate(batches).tolist()) == list(range(101))
    for rows in batches:
        longest = max(1, lengths[rows].max())
        assert len(rows) == 1 or len(rows) * longest <= batch_tokens


def test_batches_hold_little_padding_and_come_in_no_order_of_length():
    lengths = np.random.default_rng(0).integers(1, 40, 5_000)
    batches = pair_batches.plan(lengths, 500, np.random.default_rng(1))
    cells = sum(len(rows) * lengths[rows].max() for rows in batches)
    assert lengths.sum() / cells > 0.9
    means = [lengths[rows].mean() for rows in batches]
    assert abs(np.corrcoef(means, np.arange(len(means)))[0, 1]) < 0.2


def test_the_order_depends_on_the_generator_alone():
    lengths = np.random.default_rng(0).integers(1, 40, 300)
    once, again, other = (
        pair_batches.plan(lengths, 100, np.random.default_rng(seed))
        for seed in (1, 1, 2)
    )
    assert [list(a) for a in once] == [list(b) for b in again]
    assert [list(a) for a in once] != [list(b) for b in other]


def test_a_data_set_gives_what_a_model_takes():
    sources, targets = [[5, 6], [7]], [[8], [9, 10]]
    data = pair_batches.dataset(sources, targets, 100, np.random.default_rng(0))
    (((ids, inputs), labels),) = list(data)
    order = [0, 1] if ids[0, 0] == 5 else [1, 0]
    expected = [[5, 6], [7, 0]], [[1, 8, 0], [1, 9, 10]], [[8, 3, 0], [9, 10, 3]]
    for array, rows in zip((ids, inputs, labels), expected, strict=True):
        assert array.numpy().tolist() == [rows[i] for i in order]
    assert len(data) == 1
