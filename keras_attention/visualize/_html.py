"""A text as an HTML page or fragment: each token shaded by its attention weight."""

import re
from html import escape

from keras_attention.visualize._checks import check_titles
from keras_attention.visualize._colors import (
    DARK,
    LIGHT,
    readable_ink,
    shade,
    theme_for,
)
from keras_attention.visualize._spans import NOT_READ, NOTE, split_text

LEVELS = 20

_PAGE = """\
<!DOCTYPE html>
<html lang="">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{head}</title>
<style>
{style}
</style>
</head>
<body>
<main>
{heading}<div class="text" dir="auto">{text}</div>
<div class="legend">{legend}</div>
{note}</main>
</body>
</html>
"""

_STYLE = """\
* { box-sizing: border-box; }
body { margin: 0; padding: 2.5rem 1.25rem; background: var(--paper); color: var(--ink);
  font-family: system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
main { max-width: 46rem; margin: 0 auto; }
h1 { font-size: 1.5rem; line-height: 1.3; font-weight: 600; margin: 0 0 .25rem; }
.subtitle { color: var(--faint); margin: 0 0 1.5rem; }
.text { font-size: 1.125rem; line-height: 2; white-space: pre-wrap;
  overflow-wrap: anywhere; }
.t { padding: .2em .16em; margin: 0 -.06em; border-radius: .28em;
  -webkit-box-decoration-break: clone; box-decoration-break: clone; }
.cut { color: var(--faint); text-decoration: underline dotted;
  text-underline-offset: .3em; }
.legend { display: flex; flex-wrap: wrap; gap: .4rem .6rem; align-items: center;
  margin-top: 2rem; font-size: .8125rem; color: var(--faint); }
.bar { width: 10rem; height: .6rem; border-radius: .3rem; border: 1px solid var(--rule);
  background: linear-gradient(to right, var(--ramp)); }
.legend .cut { margin-left: 1rem; }
.note { font-size: .8125rem; color: var(--faint); margin: .75rem 0 0; }
@media print { body { padding: 0; } .text { font-size: 11pt; }
  * { -webkit-print-color-adjust: exact; print-color-adjust: exact; } }"""

_FRAGMENT = """\
<div style="background:{theme.paper};color:{theme.ink};padding:16px 20px;\
max-width:46em;border:1px solid {theme.rule};border-radius:8px;\
font-family:system-ui,sans-serif;text-align:start">{heading}\
<div dir="auto" style="font-size:16px;line-height:2;white-space:pre-wrap;\
overflow-wrap:anywhere">{text}</div>\
<div style="{small}">0<span style="display:inline-block;width:140px;height:8px;\
margin:0 8px;border-radius:4px;border:1px solid {theme.rule};\
background:linear-gradient(to right,{ramp})"></span>\
{largest}{unread}</div>{note}</div>"""


def highlight_html(
    text, offsets, weights, *, title=None, subtitle=None, cut=(), note=NOTE
):
    """Returns a whole HTML page of a text with its tokens shaded by weight.

    The page needs nothing else: no network, no script. It is light or dark as the
    reader's system is, and light on paper. Each token shows its weight under the
    pointer; parts that the model did not read are grey with a dotted line. Whatever
    the strings hold, they are shown as text.

    Args:
        text: string.
        offsets: N pairs `(start, end)`, the characters of each token, sorted and apart.
        weights: array-like of N weights, shape `(N,)` or `(N, 1)`, without padding.
        title: string or None.
        subtitle: string under the title, such as the prediction, or None.
        cut: pairs `(start, end)` of characters that the model did not read.
        note: the footnote; None leaves it out.

    Returns:
        A string; write it to a file in UTF-8.

    Raises:
        ValueError: pairs outside the text, unsorted or overlapping; another number of
            weights; weights that are negative or not finite; a weight on a cut part.
        TypeError: `text`, `title`, `subtitle` or `note` is not a string.

    Example:

    >>> from keras_attention.visualize import highlight_html
    >>> page = highlight_html("A superb film.", [(0, 1), (2, 8)], [0.1, 0.9])
    >>> page.splitlines()[0]
    '<!DOCTYPE html>'
    >>> '<span class="t w20" title="weight 0.9">superb</span>' in page
    True
    """
    check_titles(title=title, subtitle=subtitle, note=note)
    passage = split_text(text, offsets, weights, cut)
    heading = f"<h1>{shown(title)}</h1>\n" if title else ""
    heading += f'<p class="subtitle">{shown(subtitle)}</p>\n' if subtitle else ""
    unread = f'<span class="cut">{NOT_READ}</span>' if passage.has_cut else ""
    return _PAGE.format(
        head=shown(title or "Attention"),
        style=_page_style(),
        heading=heading,
        text=_spans(passage, _by_class),
        legend=f'<span>0</span><span class="bar"></span>'
        f"<span>{_largest(passage)}</span>{unread}",
        note=f'<p class="note">{shown(note)}</p>\n' if note else "",
    )


def highlight_fragment(
    text, offsets, weights, *, title=None, cut=(), note=NOTE, dark=False
):
    """Returns the same as a `<div>` whose styles are all its own, for notebooks.

    It has its own ground, so it reads well in a light and in a dark notebook, and it
    changes nothing outside itself: use it in a `_repr_html_`.

    Args:
        text: string.
        offsets: N pairs `(start, end)`, the characters of each token, sorted and apart.
        weights: array-like of N weights, shape `(N,)` or `(N, 1)`, without padding.
        title: string or None.
        cut: pairs `(start, end)` of characters that the model did not read.
        note: the footnote; None leaves it out.
        dark: True for light text on a dark ground.

    Returns:
        A string.

    Raises:
        ValueError, TypeError: as `highlight_html`.

    Example:

    >>> from keras_attention.visualize import highlight_fragment
    >>> highlight_fragment("superb", [(0, 6)], [0.9]).startswith("<div style=")
    True
    """
    check_titles(title=title, note=note)
    theme = theme_for(dark)
    passage = split_text(text, offsets, weights, cut)
    small = f"font-size:12px;line-height:1.5;color:{theme.faint};margin-top:10px"
    large = "font-size:17px;font-weight:600;margin-bottom:6px"
    unread = f'<span style="margin-left:20px;{_cut_style(theme)}">{NOT_READ}</span>'
    return _FRAGMENT.format(
        theme=theme,
        small=small,
        ramp=",".join(theme.ramp),
        heading=f'<div style="{large}">{shown(title)}</div>' if title else "",
        text=_spans(passage, _by_style(theme)),
        largest=_largest(passage),
        unread=unread if passage.has_cut else "",
        note=f'<div style="{small}">{shown(note)}</div>' if note else "",
    )


def _spans(passage, attributes):
    """Returns the text, each token and cut part in a span with `attributes(span)`."""
    parts = []
    for span in passage.spans:
        text = shown(span.text)
        if span.kind == "between":
            parts.append(text)
            continue
        tip = NOT_READ if span.kind == "cut" else f"weight {span.weight:.3g}"
        parts.append(f'<span {attributes(span)} title="{tip}">{text}</span>')
    return "".join(parts)


def _by_class(span):
    if span.kind == "cut":
        return 'class="cut"'
    return f'class="t w{round(LEVELS * span.share)}"'


def _by_style(theme):
    def attributes(span):
        if span.kind == "cut":
            return f'style="{_cut_style(theme)}"'
        return (
            f'style="{_level_style(span.share, theme)};padding:3px 2px;'
            'margin:0 -1px;border-radius:4px"'
        )

    return attributes


def _cut_style(theme):
    return f"color:{theme.faint};text-decoration:underline dotted"


def _level_style(share, theme):
    color = shade(share, theme)
    return f"background:{color};color:{readable_ink(color) if share else theme.ink}"


def _page_style():
    dark = _theme_style(DARK)
    return (
        f"{_theme_style(LIGHT)}\n@media screen and (prefers-color-scheme: dark) {{\n"
        f"{dark}\n}}\n{_STYLE}"
    )


def _theme_style(theme):
    names = ("paper", "ink", "faint", "rule")
    colors = " ".join(f"--{name}: {getattr(theme, name)};" for name in names)
    rules = [f":root {{ {colors} --ramp: {', '.join(theme.ramp)}; }}"]
    for level in range(LEVELS + 1):
        rules.append(f".w{level} {{ {_level_style(level / LEVELS, theme)} }}")
    return "\n".join(rules)


def _largest(passage):
    if not passage.largest:
        return "all weights are 0"
    return f"largest weight: {passage.largest:.3g} ({shown(passage.largest_text)})"


def shown(text):
    """Escapes `text` for HTML."""
    return escape(printable(text))


def printable(text):
    """Returns `text`; characters that HTML does not allow become U+FFFD."""
    return re.sub(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
