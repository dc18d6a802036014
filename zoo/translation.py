"""Translation: what a model wrote for a text, and where it looked for each token."""

import dataclasses

import numpy as np

from keras_attention import visualize


@dataclasses.dataclass(frozen=True, eq=False)
class Translation:
    """What a model wrote for one source text.

    Attributes:
        text: What it wrote.
        score: What the search ranks by, those that came to an end first: the
            log-probability by length, and maybe less a coverage penalty; the higher the
            better.
        log_probability: The log-probability of the whole text, the end included.
        source: The source text as given.
        source_tokens: The tokens read, as typed.
        target_tokens: The tokens written, without the end.
        alignment: Array (target tokens, source tokens): row t is the attention while
            token t was written; it sums to 1, or under 1 where the layer's rows do.
        finished: Whether it came to an end before the limit of length.
        tokens_cut: How many tokens of the source were over the model's limit and were
            not read; they stand at its end.
        model_name: Name of the model.
    """

    text: str
    score: float
    log_probability: float
    source: str
    source_tokens: list[str]
    target_tokens: list[str]
    alignment: np.ndarray = dataclasses.field(repr=False)
    finished: bool = True
    tokens_cut: int = 0
    model_name: str = ""

    def to_pharaoh(self):
        """The alignment as Pharaoh text: "0-0 1-2", source and target places from 0.

        Each target token is tied to the source token it looked at most; one that looked
        at nothing is left out. The places are those of `source_tokens` and
        `target_tokens`: of a model of subwords, not those of words.
        """
        if not self.alignment.size:
            return ""
        return " ".join(
            f"{row.argmax()}-{target}"
            for target, row in enumerate(self.alignment)
            if row.any()
        )

    def to_dict(self):
        """Plain types, for JSON."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return {**fields, "alignment": self.alignment.tolist()}

    def plot(self, path=None, *, kind="heatmap", **options):
        """The alignment as a picture.

        Args:
            path: Where to write it too: .png, .svg or .pdf.
            kind: "heatmap", a row a target token and a column a source token, or
                "alignment", the tokens in two rows that are joined by lines.
            **options: Of the function of that name in `keras_attention.visualize`, such
                as `dark=True`.

        Raises:
            ValueError: if nothing was read or written, so that there is no map; for
                another kind; and as the function does.
        """
        if kind not in ("heatmap", "alignment"):
            raise ValueError(
                f'`kind` must be "heatmap" or "alignment". Received: {kind!r}.'
            )
        self._check_alignment()
        options.setdefault("title", self.text)
        source, target = self.source_tokens, self.target_tokens
        if kind == "alignment":
            return visualize.alignment(
                source, target, self.alignment, path=path, **options
            )
        return visualize.heatmap(self.alignment, target, source, path=path, **options)

    def to_page(self, path=None, **options):
        """The alignment as one HTML page to explore, that needs no network.

        Args:
            path: Where to write it too: .html.
            **options: Of `keras_attention.visualize.page`, such as `title="..."`.

        Returns:
            The page, a string.

        Raises:
            ValueError: if nothing was read or written, so that there is no map.
        """
        return visualize.page(self, path, **options)

    def attention_maps(self):
        """What `keras_attention.visualize.page` draws of it, by argument name."""
        self._check_alignment()
        return {
            "weights": self.alignment,
            "rows": self.target_tokens,
            "columns": self.source_tokens,
            "title": self.text,
            "subtitle": self.source,
        }

    def _repr_png_(self):
        return self.plot()._repr_png_() if self.alignment.size else None

    def _check_alignment(self):
        if not self.alignment.size:
            nothing, remedy = (
                ("wrote nothing for", "Train the model for longer, or try another text")
                if self.source_tokens
                else ("read nothing of", "Translate a text with words in it")
            )
            raise ValueError(
                "A plot needs at least one token on either side. Received: a "
                f"translation whose model {nothing} {self.source!r}. {remedy}."
            )
