"""Finds fonts for the characters of a text, and marks what no font can draw."""

import unicodedata
import warnings
from typing import NamedTuple

from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font

from keras_attention.visualize._spans import SIGNS

# Fonts that claim glyphs they do not have: boxes for everything, letters in the places
# of mathematical signs, or colour pictures that matplotlib draws as nothing.
_UNFIT = ("last resort", "adobe blank", "cm", "stixnonuni", "stixsize", "dejavu math")

MOST_NAMED = 8  # characters that one warning names


class Fonts(NamedTuple):
    """A list of font families, and the characters that none of them has."""

    families: list
    missing: frozenset

    def drawn(self, text):
        """Returns `text` with a visible mark for every character without a glyph.

        A line break and a tab become arrows, everything else its code: `<U+1F642>`.
        """
        for character, sign in SIGNS.items():
            text = text.replace(character, sign)
        parts, codes = [], []
        for character in text:
            if character in self.missing or unicodedata.category(character) == "Cc":
                if not _is_invisible(character):
                    codes.append(f"U+{ord(character):04X}")
                continue
            parts += [_code_mark(codes), character]
            codes = []
        return "".join([*parts, _code_mark(codes)])


def fonts_for(texts):
    """Chooses fonts that are present on this system for all characters of `texts`.

    Warns once, naming the characters, where no font has a glyph. The warning points to
    the caller of the function that draws.

    Args:
        texts: strings.

    Returns:
        `Fonts`, with matplotlib's own default family first.
    """
    wanted = {character for text in texts for character in text if _needs(character)}
    families = []
    for family, font in _candidates():
        found = {each for each in wanted if font.get_char_index(ord(each))}
        if found or not families:
            families.append(family)
        wanted -= found
        if not wanted:
            break
    visible = sorted(each for each in wanted if not _is_invisible(each))
    if visible:
        warnings.warn(_missing_message(visible), UserWarning, stacklevel=3)
    return Fonts(families, frozenset(wanted))


def _candidates():
    """Yields (family, font), the default first, then sans-serif ones, then others."""
    default = get_font(findfont(FontProperties())).family_name
    first = [default, "DejaVu Sans"]
    upright = [each for each in fontManager.ttflist if each.style == "normal"]
    names = {each.name for each in upright if each.weight in (400, "normal", "regular")}
    names = [name for name in names.difference(first) if not _is_unfit(name.lower())]
    for name in first + sorted(names, key=lambda name: ("Sans" not in name, name)):
        try:
            path = findfont(FontProperties(family=[name]), fallback_to_default=False)
            font = get_font(path)
        except (OSError, RuntimeError, ValueError):
            continue  # a font file that was removed, or that matplotlib cannot read
        if font.scalable:
            yield name, font


def _is_unfit(name):
    return name.startswith(_UNFIT) or "color" in name


def _needs(character):
    return not character.isspace() and unicodedata.category(character) != "Cc"


def _is_invisible(character):
    """Joiners and variation selectors: without a font for them nothing is lost."""
    return unicodedata.category(character) == "Cf" or "\ufe00" <= character <= "\ufe0f"


def _code_mark(codes):
    return "<" + " ".join(codes) + ">" if codes else ""


def _missing_message(characters):
    named = characters[:MOST_NAMED]
    names = ", ".join(f"'{_safe(each)}' (U+{ord(each):04X})" for each in named)
    others = len(characters) - len(named)
    more = f" and {others} more" if others else ""
    return (
        f"No font on this system can draw {names}{more}. They are drawn as "
        "their codes. Install a font that has them, such as one of the Noto fonts, or "
        "name its file to matplotlib.font_manager.fontManager.addfont."
    )


def _safe(character):
    return character.encode("utf-8", "backslashreplace").decode("utf-8")
