"""The reviews that benchmarks run on: any source of the training programs."""

import argparse

from training import datasets


def parse(description, texts):
    """The options that every benchmark on reviews has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", default="tfds", help="as for training [tfds]")
    parser.add_argument("--text-column", default="text")
    parser.add_argument("--label-column", default="label")
    parser.add_argument("--texts", type=int, default=texts, help=f"how many [{texts}]")
    parser.add_argument("--rounds", type=int, default=3, help="alternations [3]")
    return parser.parse_args()


def read(options):
    """`--texts` reviews, spread evenly over the source: (texts, labels)."""
    data = datasets.load(
        options.data,
        text_column=options.text_column,
        label_column=options.label_column,
    ).train
    step = max(1, len(data) // options.texts)
    data = data.select(list(range(0, len(data), step))[: options.texts])
    return data.texts, data.labels
