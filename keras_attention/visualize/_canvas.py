"""What the matplotlib drawings share: a figure without pyplot, a ruler, saving."""

from io import BytesIO

from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from keras_attention.visualize._paths import checked_path, write_whole

POINTS = 72  # points in an inch
DPI = 150
# Dates are left out, so that the same drawing gives the same file.
_UNDATED = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


class Drawing(Figure):
    """A matplotlib figure outside pyplot that shows itself in a notebook."""

    def _repr_png_(self):
        return _file(self, ".png")


def _new_figure(width, height, theme):
    """Returns an empty figure of `width` x `height` points."""
    figure = Drawing(
        figsize=(width / POINTS, height / POINTS),
        dpi=DPI,
        facecolor=theme.paper,
        layout="none",
    )
    FigureCanvasAgg(figure)
    return figure


def point_axes(figure):
    """Returns axes over all of `figure`, in points from its top left corner."""
    width, height = POINTS * figure.get_size_inches()
    axes = figure.add_axes([0, 0, 1, 1])
    axes.set(xlim=(0, width), ylim=(height, 0), autoscale_on=False)
    axes.set_axis_off()
    return axes


def colormap(theme):
    """Returns the theme's ramp as a matplotlib colour map."""
    return LinearSegmentedColormap.from_list("attention", theme.ramp)


def check_path(path):
    """Returns `path` as a `Path` (or None), if a picture can be written there."""
    return checked_path(path, tuple(_UNDATED))


def save_figure(figure, path):
    """Writes `figure` to `path`, if there is one, in the format of its suffix."""
    if path is not None:
        write_whole(path, _file(figure, path.suffix.lower()))


def _file(figure, suffix):
    """Returns `figure` as the bytes of a file of that suffix."""
    stream = BytesIO()
    figure.savefig(
        stream,
        format=suffix[1:],
        facecolor=figure.get_facecolor(),
        metadata=_UNDATED[suffix],
    )
    return stream.getvalue()


def text_style(fonts, size, color):
    """Returns text properties under which a string is drawn exactly as it is.

    They are given with every text, so that no global setting (TeX, a style sheet) and
    no `$` changes what is drawn.
    """
    return {
        "fontfamily": fonts.families,
        "fontsize": size,
        "color": color,
        "parse_math": False,
        "usetex": False,
    }


class Ruler:
    """Measures text as it will be drawn, in points."""

    def __init__(self, fonts):
        self.fonts = fonts
        self._renderer = RendererAgg(8, 8, DPI)

    def width(self, text, size):
        """Returns the width of one line of text."""
        if not text:
            return 0.0
        properties = FontProperties(family=self.fonts.families, size=size)
        width, _, _ = self._renderer.get_text_width_height_descent(
            text, properties, ismath=False
        )
        return width * POINTS / DPI

    def fit(self, text, size, limit):
        """Returns how many first characters (at least one) fit into `limit`."""
        low, high = 1, max(1, len(text))
        while low < high:
            middle = (low + high + 1) // 2
            if self.width(text[:middle], size) <= limit:
                low = middle
            else:
                high = middle - 1
        return low

    def shorten(self, text, size, limit):
        """Returns `text`, or as much of it as fits into `limit`, with an ellipsis."""
        if self.width(text, size) <= limit:
            return text
        mark = "\N{HORIZONTAL ELLIPSIS}"
        return text[: self.fit(text, size, limit - self.width(mark, size))] + mark

    def wrap(self, text, size, limit):
        """Returns `text` as lines that fit into `limit`; words longer than it break."""
        lines, line = [], ""
        for word in text.split():
            longer = f"{line} {word}" if line else word
            if self.width(longer, size) <= limit:
                line = longer
                continue
            if line:
                lines.append(line)
            while self.width(word, size) > limit:
                count = self.fit(word, size, limit)
                if count >= len(word):
                    break
                lines.append(word[:count])
                word = word[count:]
            line = word
        return [*lines, line] if line else lines


def headed_figure(width, height, title, notes, ruler, margin, theme):
    """Makes a figure with a title, notes under it, and `height` points of room.

    Args:
        width: of the figure, in points.
        height: of the room under the heading, the margin at the bottom included.
        title: string or None.
        notes: string; "" for none.
        ruler: a `Ruler`.
        margin: points.
        theme: a `Theme`.

    Returns:
        The figure, and the place in points where the room begins.
    """
    lines = _heading(title, notes, ruler, width - 2 * margin, theme)
    top = margin + sum(1.4 * size for _, size, _ in lines) + (10 if lines else 0)
    figure = _new_figure(width, top + height, theme)
    at = margin
    for line, size, color in lines:
        style = text_style(ruler.fonts, size, color)
        figure.text(margin / width, 1 - at / (top + height), line, va="top", **style)
        at += 1.4 * size
    return figure, top


def _heading(title, notes, ruler, limit, theme):
    """Returns the lines of a title and of the notes under it: (text, size, color)."""
    blocks = ((title or "", 15, theme.ink), (notes, 9, theme.faint))
    return [
        (line, size, color)
        for text, size, color in blocks
        for given in text.splitlines()
        for line in ruler.wrap(ruler.fonts.drawn(given), size, limit)
    ]
