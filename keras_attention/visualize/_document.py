"""Puts data, styles and script into one HTML document that lets nothing else in."""

import json
from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from string import Template

from keras_attention.visualize._colors import DARK, LIGHT, readable_ink, shade
from keras_attention.visualize._html import LEVELS, shown
from keras_attention.visualize._packing import STEPS

# The one script and the one style sheet, by their hashes; no request to anywhere.
_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'"
)


def document(data, texts, title, subtitle, note):
    """Returns the document, a string.

    Args:
        data: plain types, read by the script; of them `step` is said in words.
        texts: the packed maps, a string each.
        title: string or None.
        subtitle: string or None.
        note: string or None.
    """
    script, style = _part("_page.js"), _style()
    return Template(_part("_page.html")).substitute(
        policy=_POLICY.format(script=_hash(script), style=_hash(style)),
        head=shown(title or "Attention"),
        style=style,
        title=shown(title or "Attention"),
        subtitle=_paragraph("subtitle", subtitle),
        note=_paragraph("note", note),
        precision=_precision(data["step"]),
        data=as_json(data),
        maps="\n".join(
            f'<script type="text/plain" id="map-{at}">{text}</script>'
            for at, text in enumerate(texts)
        ),
        script=script,
    )


def _part(name):
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _paragraph(kind, text):
    return f'<p class="{kind}" dir="auto">{shown(text)}</p>' if text else ""


def _precision(step):
    if step == STEPS[0]:
        return f"Weights are rounded to {_decimal(step)}."
    return (
        f"Weights are rounded to steps of {_decimal(step)}, so that the file stays "
        f"under 15 MB; those under {_decimal(step / 2)} show as 0."
    )


def _decimal(number):
    return f"{number:f}".rstrip("0")


def as_json(data):
    """Returns JSON that no HTML parser takes for markup."""
    text = json.dumps(data, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _hash(text):
    """Returns the name of a script or a style by which a policy lets it in."""
    return "sha256-" + b64encode(sha256(text.encode("utf-8")).digest()).decode("ascii")


def _style():
    """Returns the style sheet: two sets of colours, and the rules that use them."""
    levels = range(LEVELS + 1)
    return "\n".join(
        [
            f":root {{ {_variables(LIGHT)} }}",
            "@media screen and (prefers-color-scheme: dark) {",
            f':root:not([data-theme="light"]) {{ {_variables(DARK)} }}',
            "}",
            "@media screen {",
            f':root[data-theme="dark"] {{ {_variables(DARK)} }}',
            "}",
            *(
                f".w{n} {{ background: var(--w{n}); color: var(--i{n}); }}"
                for n in levels
            ),
            _part("_page.css"),
        ]
    )


def _variables(theme):
    """Returns a theme as declarations: `--w7` is the seventh shade, `--i7` its ink."""
    values = {name: getattr(theme, name) for name in ("paper", "ink", "faint", "rule")}
    values["ramp"] = ", ".join(theme.ramp)
    for level in range(LEVELS + 1):
        color = shade(level / LEVELS, theme)
        values[f"w{level}"] = color
        values[f"i{level}"] = readable_ink(color) if level else theme.ink
    scheme = "dark" if theme is DARK else "light"
    declared = [f"--{name}: {value};" for name, value in values.items()]
    return " ".join([f"color-scheme: {scheme};", *declared])
