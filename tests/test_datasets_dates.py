"""Dates: real forms of many languages, each text one day, unseen days in the test."""

import collections
import datetime
import re
import sys
import unicodedata

import pytest

from training import datasets
from training.datasets.date_forms import LANGUAGES

pytest.importorskip("babel")

from training.datasets.date_forms import written_forms
from training.datasets.dates import make_dates


@pytest.fixture(scope="module")
def forms():
    return written_forms()


def day(text):
    return datetime.date.fromisoformat(text)


def texts(forms, language, date):
    return {text for form in forms[language] for text in form.texts(day(date))}


def loose(text):
    """A text without case, and every mark a blank."""
    kept = (" " if unicodedata.category(c)[0] in "PSZC" else c for c in text)
    return " ".join("".join(kept).casefold().split())


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", {"Tuesday, March 17, 2020", "17th of March 2020", "3/17/2020"}),
        (
            "en_GB",
            {"17 March 2020", "17/03/2020", "2020-03-17", "the 17th of march, 2020"},
        ),
        ("fr", {"mardi 17 mars 2020", "MARDI 17 MARS 2020"}),
        ("pt", {"17 de março de 2020", "17 de mar. de 2020"}),
        ("hu", {"2020. március 17., kedd"}),
        ("ru", {"17 марта 2020\u202f\u0433."}),
        ("fa", {"17 مارس 2020", "\u06f1\u06f7 مارس \u06f2\u06f0\u06f2\u06f0"}),
        ("bn", {"১৭ মার্চ, ২০২০"}),
        ("zh", {"2020年3月17日", "2020年3月17日星期二"}),
        ("ko", {"2020년 3월 17일"}),
        ("vi", {"17 tháng 3, 2020"}),
    ],
)
def test_dates_are_written_as_people_write_them(forms, language, expected):
    assert expected <= texts(forms, language, "2020-03-17")


def test_capitals_follow_the_language(forms):
    assert "17 NİSAN 2020" in texts(forms, "tr", "2020-04-17")
    assert not any(text.isupper() for text in texts(forms, "el", "2020-04-17"))


def test_ordinals_have_their_endings(forms):
    endings = {}
    for number in range(1, 32):
        for text in texts(forms, "en", f"2020-01-{number:02}"):
            if found := re.match(r"January (\d+)(\w\w),", text):
                endings[int(found[1])] = found[2]
    odd = {1: "st", 21: "st", 31: "st", 2: "nd", 22: "nd", 3: "rd", 23: "rd"}
    assert endings == {number: odd.get(number, "th") for number in range(1, 32)}


def test_numbers_in_doubt_are_left_out(forms):
    def numeric(language, date):
        return {t for t in texts(forms, language, date) if not re.search("[a-zA-Z]", t)}

    assert numeric("en_GB", "2020-03-04") == {"2020-03-04"}
    assert numeric("de", "2020-04-04") == {"04.04.2020", "4.4.2020"}
    assert numeric("de", "2020-03-13") == {"13.03.2020", "13.3.2020"}
    assert numeric("ja", "2020-03-04") >= {"2020/3/4", "2020/03/04", "2020年3月4日"}


def test_every_text_has_a_year_of_four_digits(forms):
    date = day("2068-05-23")
    for language in forms:
        for text in texts(forms, language, date.isoformat()):
            digits = "".join(
                str(unicodedata.digit(c)) if c.isdigit() else c for c in text
            )
            assert re.search(r"(?<!\d)2068(?!\d)", digits), text


def test_no_text_means_two_days(forms):
    """All texts of all languages for each day of a year, case and marks left aside."""
    meaning, date = {}, day("2004-01-01")
    while date.year == 2004:
        for language in forms:
            for text in texts(forms, language, date.isoformat()):
                assert meaning.setdefault(loose(text), date) == date, text
        date += datetime.timedelta(days=1)
    assert len(meaning) > 366 * 100


def test_a_word_that_is_two_months_is_left_out():
    """The Croatian "listopada" is October, the Polish one November."""
    both = written_forms(["pl", "hr"])
    assert "17 listopada 2020" in texts(written_forms(["pl"]), "pl", "2020-11-17")
    for language, month in (("pl", 11), ("hr", 10)):
        found = texts(both, language, f"2020-{month}-17")
        assert found and not any("listopad" in text.lower() for text in found)


def test_there_are_many_languages_and_scripts():
    splits = make_dates(seed=3, train=3_000, validation=20, test=20)
    letters = {c for text in splits.train.sources for c in text if c.isalpha()}
    scripts = {unicodedata.name(c).split(" ")[0] for c in letters}
    assert len(LANGUAGES) >= 20
    assert scripts >= {"LATIN", "CYRILLIC", "GREEK", "ARABIC", "HEBREW", "HANGUL"}
    assert scripts >= {"DEVANAGARI", "BENGALI", "THAI", "CJK", "GEORGIAN", "ARMENIAN"}


def test_the_days_of_the_parts_are_different():
    splits = datasets.load_task("dates", seed=3)
    parts = splits.train, splits.validation, splits.test
    assert [len(part) for part in parts] == [50_000, 1_000, 2_000]
    days = [set(part.targets) for part in parts]
    assert len(days[1]) == 1_000 and len(days[2]) == 2_000
    assert not (days[0] & days[1] or days[0] & days[2] or days[1] & days[2])
    years = collections.Counter(day(text).year for text in splits.train.targets)
    assert set(years) == set(range(1900, 2100))
    again = datasets.load_task("dates", seed=3)
    assert splits.train.sources == again.train.sources
    assert splits.test.sources == again.test.sources
    assert set(datasets.load_task("dates", seed=5).test.targets) != days[2]


def test_what_cannot_be_made_is_refused(monkeypatch):
    with pytest.raises(ValueError, match=r"73049 days are in reach.*test=73048"):
        make_dates(test=73_048)
    with pytest.raises(ValueError, match="1 date or more"):
        make_dates(train=0)
    monkeypatch.setitem(sys.modules, "babel", None)
    with pytest.raises(ModuleNotFoundError, match="pip install babel"):
        written_forms()
