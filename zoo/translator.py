"""Translator: text in, text and alignments out, by any model of two texts."""

import threading

import numpy as np

from zoo.checks import check_integer, check_number
from zoo.decoding import Decoder, beam_search, sample
from zoo.decoding.arguments import check_num_return, check_sampling, check_seed
from zoo.padding import padded
from zoo.saving import save_pipeline
from zoo.sources import (
    COMPILES_EACH_SHAPE,
    LENGTH_RATIO,
    batches,
    extra_rows,
    read_sources,
    room_for,
)
from zoo.stepping import stepper_for
from zoo.tokens import UNKNOWN, UNKNOWN_ID
from zoo.translation import Translation

PIPELINE = "translation"
SOURCE_STEP = 8  # sources are padded to a multiple of this, so shapes are few
MOST_DECODERS = 16  # the oldest makes room: each keeps a compiled graph


class Translator:
    """Writes a text for a text: a model with the tokenizers of its two sides.

    Make one with `zoo.load`.

    Args:
        model: A `keras.Model` from [source_ids (B, S), target_ids (B, T)] to logits
            (B, T, V), such as `zoo.seq2seq_transformer` makes.
        source_tokenizer: The `zoo.tokens.SequenceTokenizer` of the sources.
        target_tokenizer: That of the targets; it may be the same object.
        maxlen: Number of tokens a source is cut to; its beginning is kept.
        name: What it was made from.
        length_ratio: How many tokens it may write for one that it reads, and 16 more,
            where `max_length` is left out. A run takes what its targets need.
    """

    def __init__(
        self,
        model,
        source_tokenizer,
        target_tokenizer,
        maxlen=256,
        name=None,
        length_ratio=LENGTH_RATIO,
    ):
        self._model = model
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer
        self.maxlen = check_integer("maxlen", maxlen, 1)
        self.name = name or model.name
        self.length_ratio = check_number("length_ratio", length_ratio, 0)
        self._decoders = {}  # compiled searches, by all that decides what they do
        self._lock = threading.Lock()
        _check_tokenizer("target", target_tokenizer, model.output_shape[-1])
        layers = {layer.name: layer for layer in model.layers}
        shared = layers.get("target_embedding")  # if the texts have one vocabulary
        embedding = layers.get("source_embedding", shared)
        if embedding is not None:
            _check_tokenizer("source", source_tokenizer, embedding.input_dim)

    @property
    def model(self):
        """The `keras.Model`. For another one make another pipeline."""
        return self._model

    def __repr__(self):
        return (
            f"Translator('{self.name}', maxlen={self.maxlen}, "
            f"{self.model.count_params():,} parameters)"
        )

    def __reduce__(self):
        """Pickled and copied as what it was made of: searches are compiled anew."""
        made_of = self._model, self.source_tokenizer, self.target_tokenizer
        return type(self), (*made_of, self.maxlen, self.name, self.length_ratio)

    # ---- text to text

    def translate(
        self,
        texts,
        *,
        num_beams=5,
        num_return=1,
        length_penalty=1.0,
        coverage_penalty=0.0,
        min_length=0,
        max_length=None,
        copy_unknown=False,
        batch_size=32,
    ):
        """Writes the most probable text that beam search finds for each source.

        Args:
            texts: Any iterable of strings.
            num_beams: Number of hypotheses grown for a source; 1 is greedy search.
            num_return: Number of translations returned for each, the best first.
            length_penalty: alpha of `zoo.decoding.length_divisor`, rule "average": 0
                ranks by probability, which favours the short; 1 by its mean a token.
            coverage_penalty: beta of Wu et al. (2016), equation 14: how much to favour
                what looked at all of the source.
            min_length: Least number of tokens written, the end counted.
            max_length: Greatest number of them; by default length_ratio (2, or what
                a run's targets need) x source tokens + 16, at most 512 or `maxlen`.
            copy_unknown: Whether an unknown token is replaced by the source token that
                it looked at most, if at any: Luong et al. (2015), "Addressing the Rare
                Word Problem", section 3.3.
            batch_size: Number of sources computed at once.

        Returns:
            A list of `Translation`, one a text, in order; with num_return over 1 a list
            of lists, which hold fewer where the search found fewer. An empty text gives
            an empty text.

        Raises:
            TypeError: if `texts` is one string, or an item is not a string.
            ValueError: for numbers out of range.
        """
        num_beams = check_integer("num_beams", num_beams, 1, "1 is greedy search.")
        num_return = check_num_return(num_return, num_beams)
        options = {
            "num_beams": num_beams,
            "num_return": num_return,
            "length_penalty": check_number("length_penalty", length_penalty, 0),
            "length_rule": "average",
            "coverage_penalty": check_number("coverage_penalty", coverage_penalty, 0),
            "min_length": check_integer("min_length", min_length, 0),
        }
        found = self._search(
            texts, beam_search, options, max_length, copy_unknown, batch_size
        )
        return [row[0] for row in found] if num_return == 1 else found

    def sample(
        self,
        texts,
        *,
        seed,
        num_return=1,
        temperature=1.0,
        top_k=None,
        top_p=None,
        max_length=None,
        copy_unknown=False,
        batch_size=32,
    ):
        """Texts drawn at random by the model's probabilities.

        Args:
            texts: Any iterable of strings.
            seed: Integer. The same gives the same texts for the same list, whatever the
                batch size; each place of the list draws its own.
            num_return: Number of samples of each source.
            temperature, top_k, top_p: Of `zoo.decoding.sample`.
            max_length, copy_unknown, batch_size: Of `translate`.

        Returns:
            As `translate`.
        """
        seed = check_seed(seed)
        check_sampling(temperature, top_k, top_p)
        options = {
            "num_return": check_integer("num_return", num_return, 1),
            "length_penalty": 1.0,
            "length_rule": "average",
            "min_length": 0,
            "temperature": temperature,
            "top_k": top_k,
            "top_p": top_p,
        }
        found = self._search(
            texts, sample, options, max_length, copy_unknown, batch_size, seed
        )
        return [row[0] for row in found] if num_return == 1 else found

    def save(self, folder, **more):
        """Writes the pipeline into a folder, for `zoo.load(folder)`.

        Args:
            folder: Made if it is not there.
            **more: Plain types to keep in its config.json too.
        """
        config = {
            "pipeline": PIPELINE,
            "name": self.name,
            "maxlen": self.maxlen,
            "length_ratio": self.length_ratio,
        }
        tokenizers = {
            "source.tokenizer.json": self.source_tokenizer,
            "target.tokenizer.json": self.target_tokenizer,
        }
        save_pipeline(folder, self.model, tokenizers, {**config, **more})

    # ---- between texts and arrays

    def _search(
        self, texts, search, options, max_length, copy_unknown, batch_size, seed=None
    ):
        """A list of num_return translations for each text."""
        check_integer("batch_size", batch_size, 1)
        if max_length is not None:
            least = max(1, options["min_length"])
            max_length = check_integer("max_length", max_length, least)
        sources = read_sources(
            texts,
            self.source_tokenizer,
            self.maxlen,
            self.length_ratio,
            least=options["min_length"],
            most=max_length,
        )
        count = options["num_return"]
        results = [[self._empty(source)] * count for source in sources]
        for places in batches(sources, batch_size):
            batch = [sources[i] for i in places]
            found = self._run(search, options, batch, seed, places)
            for row, (place, source) in enumerate(zip(places, batch, strict=True)):
                results[place] = [
                    self._translation(source, found, row, n, copy_unknown)
                    for n in range(count)
                    if n == 0 or found.lengths[row, n]  # there may be fewer
                ]
        return results

    def _run(self, search, options, batch, seed, places):
        """The `Hypotheses` of a batch of sources, and maybe of more rows after them."""
        more = extra_rows(len(batch))
        batch, places = [*batch, *batch[:1] * more], [*places, *places[:1] * more]
        ids = padded([source.ids for source in batch], SOURCE_STEP)
        if COMPILES_EACH_SHAPE:
            ids = np.pad(ids, ((0, 0), (0, room_for(ids.shape[1]) - ids.shape[1])))
        limits = np.array([source.limit for source in batch])
        decoder = self._decoder(search, room_for(limits.max()), options)
        if seed is None:
            return decoder(ids, limits)
        return decoder(ids, limits, seed=seed, sentence_ids=np.array(places))

    def _decoder(self, search, max_length, options):
        key = (search, max_length, *sorted(options.items()))
        with self._lock:
            if key not in self._decoders:
                while len(self._decoders) >= MOST_DECODERS:
                    del self._decoders[next(iter(self._decoders))]
                stepper = stepper_for(self.model, max_length)
                self._decoders[key] = Decoder(
                    stepper, search, max_length=max_length, **options
                )
            return self._decoders[key]

    def _translation(self, source, found, row, number, copy_unknown):
        """One hypothesis as text, its alignment cut to what was read and written."""
        finished = bool(found.finished[row, number])
        length = int(found.lengths[row, number])
        ids = found.ids[row, number, : length - 1 if finished else length]
        alignment = found.attention[row, number, : len(ids), : len(source.ids)]
        copies = None
        if copy_unknown:  # but where it looked at nothing, as a local window may
            copies = [
                source.tokens[row.argmax()] if row.any() else UNKNOWN
                for row in alignment[ids == UNKNOWN_ID]
            ]
        return Translation(
            text=self.target_tokenizer.decode(ids, copies),
            score=float(found.scores[row, number]),
            log_probability=float(found.log_probabilities[row, number]),
            source=source.text,
            source_tokens=source.tokens,
            target_tokens=self.target_tokenizer.pieces(ids),
            alignment=np.array(alignment),
            finished=finished,
            tokens_cut=source.tokens_cut,
            model_name=self.name,
        )

    def _empty(self, source):
        """What is written for a source without tokens: nothing."""
        return Translation(
            text="",
            score=0.0,
            log_probability=0.0,
            source=source.text,
            source_tokens=[],
            target_tokens=[],
            alignment=np.zeros((0, 0), "float32"),
            model_name=self.name,
        )


def _check_tokenizer(side, tokenizer, ids):
    """Refuses a tokenizer whose ids are not those of the model."""
    if tokenizer.vocabulary_size != ids:
        raise ValueError(
            f"`{side}_tokenizer` must be that of the model's {side}s, which has {ids} "
            f"ids. Received: a tokenizer of {tokenizer.vocabulary_size}. Give the one "
            "that was saved with the model."
        )
