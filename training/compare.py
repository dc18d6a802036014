"""What attention is worth: the same training with and without it, over seeds."""

import dataclasses
import pathlib

import numpy as np

from training.config import MODELS
from training.sentiment import train
from training.start import trained_start
from zoo.files import write_json, write_text


def compare(config, seeds, progress=True):
    """Trains each model with each seed and tabulates what they reach.

    Runs that are finished in the folder already are not trained again.

    Args:
        config: A `SentimentConfig` for imdb_bilstm_attention; `out` is the folder of
            all runs, `seed` the first seed. `weights` may be the folder of another
            comparison: each run then goes on from its namesake there.
        seeds: Number of seeds, at least 1.
        progress: Whether to show progress bars.

    Returns:
        A list of dictionaries, one a model: model, runs, validation and test accuracy
        (mean and spread, the sample standard deviation), seconds (mean of a run).
    """
    if seeds < 1:
        raise ValueError(f"`seeds` must be at least 1. Received: {seeds}.")
    out = pathlib.Path(config.out).expanduser()
    runs = {
        name: [
            _run(config, name, seed, out)
            for seed in range(config.seed, config.seed + seeds)
        ]
        for name in MODELS
    }
    for run in (run for named in runs.values() for run in named):
        trained_start(run)  # refused now, not after the first trainings
    rows = [
        _row(name, [train(run, progress) for run in named])
        for name, named in runs.items()
    ]
    write_json(out / "comparison.json", rows)
    write_text(out / "comparison.md", table(rows))
    return rows


def _run(config, name, seed, out):
    """The config of one run of a comparison."""
    start = config.weights
    namesake = pathlib.Path(start or "").expanduser() / f"{name}-{seed}"
    if start and namesake.is_dir():
        start = str(namesake)
    return dataclasses.replace(
        config,
        weights=start,
        name=name,
        seed=seed,
        out=str(out / f"{name}-{seed}"),
        attention_units=config.attention_units if "attention" in name else None,
        resume=True,
    )


def _row(name, results):
    row = {"model": name, "runs": len(results)}
    for part in ("validation", "test"):
        if all(result[part] for result in results):
            values = [result[part]["accuracy"] for result in results]
            row[part], row[f"{part}_spread"] = mean_and_spread(values)
    row["seconds"] = mean_and_spread([result["seconds"] for result in results])[0]
    return row


def table(rows):
    """The comparison as a Markdown table."""
    lines = [
        "| model | runs | validation accuracy | test accuracy | seconds a run |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [_accuracy(row, part) for part in ("validation", "test")]
        lines.append(
            f"| {row['model']} | {row['runs']} | {' | '.join(cells)} "
            f"| {row['seconds']:.0f} |"
        )
    return "\n".join(lines) + "\n"


def _accuracy(row, part):
    if part not in row:
        return "-"
    spread = f" ± {row[part + '_spread']:.2%}" if row["runs"] > 1 else ""
    return f"{row[part]:.2%}{spread}"


def mean_and_spread(values):
    """Mean and sample standard deviation (0 for a single value)."""
    values = np.asarray(values, "float64")
    return float(values.mean()), float(values.std(ddof=1)) if len(values) > 1 else 0.0
