"""Two colour themes, one scale of shades for every drawing, and readable ink on it."""

from typing import NamedTuple

import numpy as np


class Theme(NamedTuple):
    """The colours of a drawing.

    `ramp` goes from the paper's colour (weight 0) to the strongest one (the largest
    weight). Its luminance only falls (light) or only rises (dark), so that it reads the
    same in grey and with any kind of colour vision.
    """

    paper: str
    ink: str
    faint: str
    rule: str
    ramp: tuple


LIGHT = Theme(
    paper="#ffffff",
    ink="#1c1e21",
    faint="#6b7076",
    rule="#d5d8dc",
    ramp=("#ffffff", "#ffefc2", "#fec455", "#f18a1c", "#c34a06", "#7f2704"),
)
DARK = Theme(
    paper="#14171b",
    ink="#e9eaec",
    faint="#92979e",
    rule="#3a3f46",
    ramp=("#14171b", "#3a2714", "#7a420f", "#c4720f", "#f5a637", "#ffe3a6"),
)


def theme_for(dark):
    """Returns the dark or the light theme."""
    return DARK if dark else LIGHT


def shade(share, theme):
    """Returns the colour `"#rrggbb"` of a share (0 to 1) of the largest weight.

    >>> shade(0.0, LIGHT), shade(1.0, LIGHT)
    ('#ffffff', '#7f2704')
    """
    stops = np.array([_channels(color) for color in theme.ramp])  # (stops, 3)
    places = np.linspace(0.0, 1.0, len(stops))
    rgb = [np.interp(share, places, stops[:, channel]) for channel in range(3)]
    return "#" + "".join(f"{round(255 * value):02x}" for value in rgb)


def contrast(first, second):
    """Returns the contrast ratio of two colours, 1 to 21 (WCAG 2.2, section 1.4.3)."""
    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def luminance(color):
    """Returns the relative luminance of `"#rrggbb"`, 0 (black) to 1 (white)."""
    linear = [
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in _channels(color)
    ]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def readable_ink(background):
    """Returns black or white, whichever stands out more on `background`.

    One of the two always has a contrast above 4.5, the limit for small text.
    """
    return max(("#000000", "#ffffff"), key=lambda ink: contrast(ink, background))


def _channels(color):
    return [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
