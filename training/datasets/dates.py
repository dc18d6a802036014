"""Makes dates as people write them in many languages, with ISO 8601 as the target."""

import datetime

import numpy as np

from training.datasets.date_forms import LANGUAGES, written_forms
from training.datasets.pairs import Pairs, PairSplits

FIRST = datetime.date(1900, 1, 1)
LAST = datetime.date(2099, 12, 31)
AS_IS = 0.5  # share of the texts that keep the letters and digits of the CLDR
DAYS = (LAST - FIRST).days + 1


def make_dates(
    seed=0, *, train=50_000, validation=1_000, test=2_000, languages=LANGUAGES
):
    """Dates from 1900 to 2099 as written in some 40 languages -> yyyy-mm-dd.

    The forms are those of the Unicode CLDR, which the package `babel` holds. Each text
    says by itself which day it means (see `written_forms`): no text stands for two
    days. The days of the three parts are different: those of the test part are in no
    language in the training part.

    Args:
        seed: integer.
        train: integer, the number of training texts, of days drawn at random.
        validation, test: integers, the number of days, each written once.
        languages: list of strings, names of the CLDR such as "en_GB".

    Returns:
        `PairSplits`.

    Raises:
        ModuleNotFoundError: `babel` is not installed.
        ValueError: a part of no dates, or more days than there are.

    Example:

        make_dates().train.sources[:2]  # "7 de marzo de 2020", "Sat, Mar 7, 2020", ...
    """
    held_out = validation + test
    if min(train, validation, test) < 1 or held_out >= DAYS:
        raise ValueError(
            f"Each part needs 1 date or more, and {DAYS} days are in reach. Received: "
            f"train={train}, validation={validation}, test={test}. Ask for fewer."
        )
    generator = np.random.default_rng(seed)
    days = generator.permutation(DAYS)
    forms = written_forms(languages)
    parts = {
        "train": generator.choice(days[held_out:], size=train),
        "validation": days[test:held_out],
        "test": days[:test],
    }
    return PairSplits(
        **{name: _write(part, name, forms, generator) for name, part in parts.items()}
    )


def _write(days, name, forms, generator):
    languages = list(forms)
    sources, targets = [], []
    for day in days:
        date = FIRST + datetime.timedelta(days=int(day))
        texts = []
        while not texts:  # a form may have no text for a date that it leaves in doubt
            language = languages[generator.integers(len(languages))]
            form = forms[language][generator.integers(len(forms[language]))]
            texts = form.texts(date)
        as_is = generator.random() < AS_IS
        sources.append(texts[0 if as_is else generator.integers(len(texts))])
        targets.append(date.isoformat())
    return Pairs(sources, targets, f"dates {name}")
