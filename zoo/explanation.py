"""Explanation: one text, its label, and a weight for every word the model read."""

import dataclasses

from keras_attention import visualize
from zoo.files import write_text


@dataclasses.dataclass(frozen=True)
class Explanation:
    """What a classifier says of a text, and where its attention lay.

    Attributes:
        text: The text as given.
        label: The most probable class.
        score: Its probability.
        probabilities: Probability by class name.
        tokens: The words read, as typed: `text[start:end]` for each offset.
        offsets: (start, end) of each word in the text, in characters.
        weights: A weight for each word, at least 0; they sum to 1 (to 0 for a text
            without words).
        words_cut: How many words at the beginning were over the model's limit and
            were not read.
        model_name: Name of the model.
    """

    text: str
    label: str
    score: float
    probabilities: dict[str, float]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    weights: list[float]
    words_cut: int = 0
    model_name: str = ""

    @property
    def cut(self):
        """The spans of characters that were not read: [] or [(0, end)]."""
        if not self.words_cut:
            return []
        return [(0, self.offsets[0][0] if self.offsets else len(self.text))]

    @property
    def summary(self):
        """One line: label, probability, and what was cut off."""
        line = f"{self.label} ({self.score:.1%})"
        if self.words_cut:
            line += f", the first {self.words_cut:,} words not read"
        return line

    def top(self, count=5):
        """The words with the greatest weights: [(word, weight), ...], greatest first.

        A word that stands in several places is listed for each.
        """
        order = sorted(range(len(self.tokens)), key=lambda i: -self.weights[i])
        return [(self.tokens[i], self.weights[i]) for i in order[:count]]

    def to_dict(self):
        """Plain types, for JSON."""
        return dataclasses.asdict(self)

    def plot(self, path=None, **options):
        """The text with each word shaded by its weight, as a matplotlib Figure.

        Args:
            path: Where to write it too: .png, .svg or .pdf.
            **options: Of `keras_attention.visualize.highlight`, such as
                `dark=True`.
        """
        options.setdefault("title", self.summary)
        return visualize.highlight(
            self.text, self.offsets, self.weights, cut=self.cut, path=path, **options
        )

    def to_html(self, path=None):
        """The text with each word shaded, as one HTML page that needs no network.

        Args:
            path: Where to write it too.

        Returns:
            The page, a string.
        """
        page = visualize.highlight_html(
            self.text,
            self.offsets,
            self.weights,
            cut=self.cut,
            title=self.summary,
            subtitle=self.model_name,
        )
        if path is not None:
            write_text(path, page)
        return page

    def to_page(self, path=None, **options):
        """The words as one HTML page to explore, that needs no network.

        Args:
            path: Where to write it too: .html.
            **options: Of `keras_attention.visualize.page`, such as `title="..."`.

        Returns:
            The page, a string.

        Raises:
            ValueError: if the text has no words, so that there is nothing to look at.
        """
        return visualize.page(self, path, **options)

    def attention_maps(self):
        """What `keras_attention.visualize.page` draws of it, by argument name."""
        if not self.tokens:
            raise ValueError(
                "A page needs at least one word. Received: an explanation of "
                f"{self.text!r}. Explain a text with words in it."
            )
        return {
            "weights": [self.weights],
            "rows": ["the model"],
            "columns": self.tokens,
            "title": self.summary,
            "subtitle": self.model_name,
        }

    def to_terminal(self):
        """The text with each word shaded, as a rich Text for `rich.print`."""
        return visualize.highlight_terminal(
            self.text, self.offsets, self.weights, cut=self.cut
        )

    def _repr_html_(self):
        return visualize.highlight_fragment(
            self.text,
            self.offsets,
            self.weights,
            cut=self.cut,
            title=self.summary,
        )
