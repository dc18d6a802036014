"""Runs that are killed in their second epoch, to see what they leave."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import zoo

ROOT = pathlib.Path(__file__).parents[1]
SLOW = """\
import time, training.epochs as epochs
reseed = epochs.reseed
def slow(model, seed, epoch):
    time.sleep(60 if epoch else 0)
    reseed(model, seed, epoch)
epochs.reseed = slow
"""


def kill_in_the_second_epoch(words, options, folder, tmp_path):
    """Runs the training program in a process of its own, and ends it by SIGKILL.

    Args:
        words: What stands behind `python -m training`.
        options: A dictionary of options more.
        folder: The run's folder.
        tmp_path: Where to write what slows the second epoch down.
    """
    (tmp_path / "sitecustomize.py").write_text(SLOW)
    words = [sys.executable, "-m", "training", *words, "--out", str(folder)]
    for name, value in options.items():
        words += ["--" + name.replace("_", "-"), str(value)]
    process = subprocess.Popen(
        words,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{ROOT}"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    history, deadline = folder / "history.csv", time.monotonic() + 300
    while not history.exists() and time.monotonic() < deadline:
        assert process.poll() is None, "it ended by itself"
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert len(history.read_text().splitlines()) == 2, "killed in the second epoch"
    assert not (folder / "metrics.json").exists()
    with pytest.raises(FileNotFoundError, match="finished training run"):
        zoo.load(folder)


def check_same_end(resumed, alone, folder, alone_folder):
    """The metrics of both runs are the same, and their weights to 1e-6."""
    assert resumed["validation"] == alone["validation"]
    assert resumed["best_epoch"] == alone["best_epoch"]
    for one, other in zip(
        zoo.load(folder).model.get_weights(),
        zoo.load(alone_folder).model.get_weights(),
        strict=True,
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
