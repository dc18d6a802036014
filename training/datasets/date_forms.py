"""The forms in which languages write a date, each of which says which day it means."""

import collections
import dataclasses
import datetime
import re
import unicodedata

# Croatian is not here: its "listopada" is October, the Polish one November.
# fmt: off
LANGUAGES = (
    "en", "en_GB", "fr", "de", "es", "it", "pt", "nl", "sv", "da", "nb", "fi", "et",
    "lv", "lt", "pl", "cs", "sk", "sl", "hu", "ro", "tr", "ru", "uk", "bg", "el",
    "hy", "ka", "he", "ar", "fa", "hi", "bn", "ta", "th", "vi", "id", "zh", "ja",
    "ko", "am",
)
# fmt: on
# Written by people, but not in the CLDR; # is the ending of an ordinal.
EXTRA = {
    "en": ["MMMM d'#', y", "d'#' MMMM y", "d'# of' MMMM y", "MMMM d y", "MMM d y"],
    "en_GB": ["'the' d'# of' MMMM, y", "d-MMM-y", "EEE d'#' MMM y", "y-MM-dd"],
}
ZEROS = {"ar": "\u0660", "fa": "\u06f0", "hi": "\u0966", "bn": "\u09e6", "th": "\u0e50"}
SKELETON = re.compile("y(M{1,4})(E{0,4})d")
FIELDS = re.compile("([yMLdEc])\\1*")
UPPER_I = str.maketrans({"i": "\u0130", "\u0131": "I"})  # Turkish


@dataclasses.dataclass(frozen=True)
class DateForm:
    """One form of one language.

    Args:
        language: string, the CLDR's name of the language.
        pattern: `babel.dates.DateTimePattern`.
        named: whether the month is written as a word or with a word beside it.
        year_first: whether year, month and day stand in this order.
        doubtful: frozenset of the months whose word means another one in another
            language.
    """

    language: str
    pattern: object
    named: bool
    year_first: bool
    doubtful: frozenset

    def decides(self, date):
        """Whether the text says which day is meant, without knowing the language.

        A month as a word does, if it is one month in all languages; so do numbers in
        the order year, month, day. Of 3/4/2020 nobody can tell; 13/4/2020 and
        4/4/2020 are clear.
        """
        if self.named:
            return date.month not in self.doubtful
        return self.year_first or date.day > 12 or date.day == date.month

    def texts(self, date):
        """The date in this form: as the CLDR has it; then in lower case, in capitals
        and in the digits of the script, where these differ.

        Args:
            date: `datetime.date` with a year of four digits.

        Returns:
            list of strings, empty where the form does not say which day is meant.
        """
        if not self.decides(date):
            return []
        text = self.pattern.apply(date, self.language).replace("#", _ordinal(date.day))
        texts = [text, text.lower()]
        if self.language != "el":  # whose capitals drop the accents
            turkish = self.language == "tr"
            texts.append((text.translate(UPPER_I) if turkish else text).upper())
        if self.language in ZEROS:
            zero = ord(ZEROS[self.language])
            texts.append(text.translate({48 + i: zero + i for i in range(10)}))
        return list(dict.fromkeys(texts))


def written_forms(languages=LANGUAGES):
    """{language: list of `DateForm`}, from the data of the CLDR in `babel`.

    Raises:
        ModuleNotFoundError: `babel` is not installed.
    """
    babel = _babel()
    months = {}  # (language, pattern): the words of the twelve months
    for language in languages:
        locale = babel.Locale.parse(language)
        for pattern in _patterns(locale, EXTRA.get(language, ())):
            months[language, pattern] = _months(babel, pattern, language)
    meanings = collections.defaultdict(set)
    for words in months.values():
        for number, word in enumerate(words, 1):
            meanings[_bare(word)].add(number)
    forms = collections.defaultdict(list)
    for (language, pattern), words in months.items():
        doubtful = {n for n, w in enumerate(words, 1) if len(meanings[_bare(w)]) > 1}
        form = DateForm(
            language,
            babel.dates.parse_pattern(pattern),
            named=all(any(map(str.isalpha, word)) for word in words),
            year_first=_order(pattern) == "yMd",
            doubtful=frozenset(doubtful),
        )
        forms[language].append(form)
    return dict(forms)


def _babel():
    try:
        import babel
        import babel.dates
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The dates need the package babel, which is not installed. Install it: pip "
            "install babel.",
            name=error.name,
        ) from error
    return babel


def _order(pattern):
    """The order of year, month and day, such as "yMd"."""
    fields = FIELDS.findall(re.sub("'[^']*'", "", pattern))
    return re.sub("[Ec]", "", "".join(fields)).replace("L", "M")


def _patterns(locale, extra):
    """The patterns of a language that have year, month and day, each once."""
    patterns = [form.pattern for form in locale.date_formats.values()]
    for skeleton, pattern in sorted(locale.datetime_skeletons.items()):
        if SKELETON.fullmatch(skeleton):
            patterns.append(getattr(pattern, "pattern", pattern))
    patterns += extra
    return [p for p in dict.fromkeys(patterns) if "yy" not in p.replace("yyyy", "")]


def _months(babel, pattern, language):
    """How a pattern writes the twelve months, with the sign for month beside them."""
    field = re.search("[ML]+ ?[\u6708\uc6d4]?", pattern).group()  # Chinese and Korean
    dates = [datetime.date(2000, month, 1) for month in range(1, 13)]
    words = babel.dates.parse_pattern(field)
    return [words.apply(date, language) for date in dates]


def _bare(word):
    """A word without its case and the marks beside it: dots, blanks, hyphens."""
    marks = {c for c in word if unicodedata.category(c)[0] in "PSZC"}
    return "".join(c for c in word.casefold() if c not in marks)


def _ordinal(day):
    if day in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
