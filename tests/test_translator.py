"""Text in, text and alignments out: the pipeline of the models of two texts."""

import copy
import dataclasses
import gc
import logging
import pickle
import threading
import weakref

import keras
import numpy as np
import pytest

import zoo
from keras_attention import attention_submodel
from tests.layers.references import to_numpy
from tests.memory import resident
from zoo.decoding import Decoder, EnsembleStepper, beam_search
from zoo.stepping import stepper_for
from zoo.tokens import END_ID, START_ID, UNKNOWN_ID, SequenceTokenizer
from zoo.translator import Translator

ENGLISH = ["the cat sat", "a dog ran home", "the sun is warm", "it rains", "go"]
FRENCH = ["le chat dort", "un chien court", "le soleil brille", "il pleut", "va"]
SIZES = {"embedding_dim": 12, "dropout": 0.3}
MAKE = {
    "bahdanau": lambda **sizes: zoo.seq2seq_bahdanau(
        units=7, attention_units=5, **SIZES, **sizes
    ),
    "luong": lambda **sizes: zoo.seq2seq_luong(units=7, cell="lstm", **SIZES, **sizes),
    "luong without feeding": lambda **sizes: zoo.seq2seq_luong(
        units=7, num_layers=2, input_feeding=False, **SIZES, **sizes
    ),
    "dot": lambda **sizes: zoo.seq2seq_luong(units=8, score="dot", **SIZES, **sizes),
    "local": lambda **sizes: zoo.seq2seq_luong(
        units=7, local="monotonic", window=2, **SIZES, **sizes
    ),
    "transformer": lambda **sizes: zoo.seq2seq_transformer(
        num_heads=2, num_layers=2, intermediate_dim=20, **SIZES, **sizes
    ),
}
# Ten bridges, and one vocabulary: slow to compile, so for replays alone.
DEEP = {
    "deep": lambda **sizes: zoo.seq2seq_bahdanau(
        units=4, attention_units=5, num_layers=5, cell="lstm", **SIZES, **sizes
    ),
    "one embedding": lambda **sizes: zoo.seq2seq_transformer(
        num_heads=2, intermediate_dim=20, share_embeddings=True, **SIZES, **sizes
    ),
}
TEXTS = ["the cat", "a", "the sun is home it rains", "go home", "it", "warm dog sat a"]


def make_translator(kind, seed=0, tokens="words"):
    """A pipeline with random weights, larger than usual so that its words differ."""
    keras.utils.set_random_seed(seed)
    source = SequenceTokenizer.train(ENGLISH, tokens)
    target = SequenceTokenizer.train(FRENCH, tokens)
    if kind == "one embedding":
        source = target = SequenceTokenizer.train(ENGLISH + FRENCH, tokens)
    model = {**MAKE, **DEEP}[kind](
        source_vocabulary_size=source.vocabulary_size,
        target_vocabulary_size=target.vocabulary_size,
    )
    rng = np.random.default_rng(seed)
    for weight in model.trainable_variables:
        if len(weight.shape) > 1:
            weight.assign(rng.normal(0, 0.6, weight.shape))
    return Translator(model, source, target, maxlen=16)


@pytest.fixture(scope="module")
def translators():
    return {kind: make_translator(kind) for kind in MAKE}


def replayed(translator, both, translation):
    """Its log-probability and attention by teacher forcing, alone and unpadded.

    `both` is the attention sub-model of the translator's model.
    """
    source = translator.source_tokenizer.encode(translation.source)
    ids = translator.target_tokenizer.encode(translation.text)
    assert translator.target_tokenizer.pieces(ids) == translation.target_tokens
    labels = [*ids, END_ID] if translation.finished else ids
    inputs = [START_ID, *ids][: len(labels)]
    logits, maps = both([np.array([source]), np.array([inputs])], training=False)
    logits = keras.ops.convert_to_numpy(logits)[0].astype("float64")
    logs = (
        logits - np.log(np.exp(logits - logits.max(-1, keepdims=True)).sum(-1))[:, None]
    )
    logs -= logits.max(-1, keepdims=True)
    total = sum(logs[step, label] for step, label in enumerate(labels))
    return total, shown(maps)[: len(labels)]


def shown(maps):
    """The map (T, S) that a pipeline shows of those of one source, by name."""
    cross = [name for name in maps if "cross_attention" in name]
    weights = to_numpy(maps[max(cross) if cross else "decoder/attention"])[0]
    return weights.mean(axis=0) if weights.ndim == 3 else weights


# ---- a result is the model's own


@pytest.mark.parametrize(
    ("kind", "num_beams"),
    [*((kind, count) for kind in MAKE for count in (1, 4)), *((x, 4) for x in DEEP)],
)
def test_replaying_a_result_gives_its_score_and_its_attention(
    translators, kind, num_beams
):
    translator = translators[kind] if kind in MAKE else make_translator(kind)
    found = translator.translate(TEXTS, num_beams=num_beams, num_return=num_beams)
    found = found if num_beams > 1 else [[one] for one in found]
    both = attention_submodel(translator.model)
    for row in found:
        for translation in row:
            total, weights = replayed(translator, both, translation)
            assert translation.log_probability == pytest.approx(total, abs=1e-3)
            length = len(translation.target_tokens) + translation.finished
            assert translation.score == pytest.approx(total / length, abs=1e-4)
            shape = len(translation.target_tokens), len(translation.source_tokens)
            np.testing.assert_allclose(
                translation.alignment, weights[: shape[0]], atol=1e-5
            )
            assert translation.alignment.shape == shape


@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_a_text_gets_the_same_alone_and_among_others(translators, kind):
    translator = translators[kind]
    together = translator.translate(TEXTS, num_beams=3)
    for text, one in zip(TEXTS, together, strict=True):
        (alone,) = translator.translate([text], num_beams=3)
        assert (alone.text, alone.source) == (one.text, text)
        assert alone.score == pytest.approx(one.score, abs=1e-5)
        np.testing.assert_allclose(alone.alignment, one.alignment, atol=1e-5)


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_beams_are_sorted_differ_and_the_best_does_not_depend_on_their_number(
    translators, kind
):
    translator = translators[kind]
    several = translator.translate(TEXTS, num_beams=4, num_return=3)
    best = translator.translate(TEXTS, num_beams=4)
    for row, one in zip(several, best, strict=True):
        ranks = [(t.finished, t.score) for t in row]  # what was cut comes last
        assert ranks == sorted(ranks, reverse=True)
        assert len({tuple(t.target_tokens) for t in row}) == 3
        assert row[0].text == one.text


def test_weights_that_change_later_count(translators):
    translator = make_translator("luong", seed=1)
    before = translator.translate(["the cat"], num_beams=2)[0]
    translator.model.set_weights(make_translator("luong", seed=2).model.get_weights())
    after = translator.translate(["the cat"], num_beams=2)[0]
    fresh = make_translator("luong", seed=2).translate(["the cat"], num_beams=2)[0]
    assert after.score == pytest.approx(fresh.score, abs=1e-5)
    assert after.score != pytest.approx(before.score, abs=1e-5)


# ---- nothing of a call is kept


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_one_text_then_another_then_the_first_again(translators, kind):
    translator = translators[kind]
    first = translator.translate(TEXTS[:2], num_beams=2)
    translator.translate(TEXTS[2:], num_beams=2)
    again = translator.translate(TEXTS[:2], num_beams=2)
    for one, other in zip(first, again, strict=True):
        assert one.text == other.text
        np.testing.assert_array_equal(one.alignment, other.alignment)


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_two_threads_may_use_one(translators, kind):
    translator = translators[kind]
    expected = [translator.translate([text], num_beams=2)[0] for text in TEXTS]
    results = {}

    def work(number):
        for place, text in enumerate(TEXTS):
            results[number, place] = translator.translate([text], num_beams=2)[0]

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for (_, place), translation in results.items():
        assert translation.text == expected[place].text
        assert translation.score == expected[place].score
    assert len(results) == 2 * len(TEXTS)


def test_texts_of_many_lengths_bring_no_warning_of_the_backend(caplog):
    """TensorFlow's: "5 out of the last 5 calls ... triggered tf.function retracing"."""
    translator = make_translator("luong")
    logger = logging.getLogger("tensorflow")
    propagates, logger.propagate = logger.propagate, True
    try:
        for length in (1, 17, 33, 65, 129, 257):
            translator.translate(["the cat"], num_beams=1, max_length=length)
    finally:
        logger.propagate = propagates
    assert len(translator._decoders) == 6
    assert [record.getMessage() for record in caplog.records] == []


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
@pytest.mark.parametrize("kind", ["bahdanau", "luong", "transformer"])
def test_models_of_16_bits_decode(kind, policy):
    if policy == "float16" and keras.backend.backend() != "tensorflow":
        pytest.skip("JAX and PyTorch make no orthogonal kernels of float16 on a CPU")
    keras.config.set_dtype_policy(policy)
    try:
        translator = make_translator(kind)
    finally:
        keras.config.set_dtype_policy("float32")
    for found in translator.translate(TEXTS[:3], num_beams=2):
        assert np.isfinite(found.score) and np.isfinite(found.alignment).all()
        sums = found.alignment.astype("float64").sum(axis=1)
        np.testing.assert_allclose(sums, 1, atol=1e-2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_many_lengths_make_few_traces(kind, monkeypatch):
    if keras.backend.backend() == "torch":
        pytest.skip("nothing is compiled on PyTorch")
    translator = make_translator(kind)
    translator.maxlen = 64
    passes = []  # of Python through a step: of a trace the first step, and all others

    class Counted(type(stepper_for(translator.model, 16))):
        def next_token(self, state, token, memory):
            passes.append(tuple(token.shape))
            return super().next_token(state, token, memory)

    monkeypatch.setattr(
        "zoo.translator.stepper_for",
        lambda model, room: Counted(*(model, room)[: 1 + (kind == "transformer")]),
    )
    rng = np.random.default_rng(0)
    words = " ".join(ENGLISH).split()
    for number in range(60):
        texts = [
            " ".join(rng.choice(words, rng.integers(1, 31)))
            for _ in range(1 + number % 3)
        ]
        translator.translate(texts, num_beams=2)
    assert len(translator._decoders) <= 4
    assert len(passes) <= (10 if keras.backend.backend() == "tensorflow" else 20)


@pytest.mark.slow
def test_memory_stays_flat_over_hundreds_of_calls():
    """F45."""
    if keras.backend.backend() == "torch":
        pytest.skip("not compiled on PyTorch, so hundreds take long")
    translator = make_translator("luong")
    alignments = []

    def write(calls):
        for _ in range(calls):
            for text in TEXTS:
                (found,) = translator.translate([text], num_beams=3)
                alignments.append(weakref.ref(found.alignment))

    write(20)
    before = resident()
    write(50)
    gc.collect()
    assert resident() - before < 10e6
    assert sum(kept() is not None for kept in alignments) <= 1  # `found`'s


# ---- texts of all kinds


@pytest.mark.parametrize("num_beams", [1, 3])
def test_empty_texts_give_empty_texts_in_their_places(translators, num_beams):
    translator = translators["transformer"]
    texts = ["the cat", "", "go", "   ", "\n\u00a0"]
    found = translator.translate(texts, num_beams=num_beams)
    assert [t.source for t in found] == texts
    for place in (1, 3, 4):
        assert (found[place].text, found[place].target_tokens) == ("", [])
        assert found[place].alignment.size == 0
        assert found[place].to_pharaoh() == ""
    (alone,) = translator.translate(["go"], num_beams=num_beams)
    assert found[2].text == alone.text
    assert translator.translate([""], num_beams=num_beams)[0].text == ""
    assert translator.translate([], num_beams=num_beams) == []
    both = translator.translate(["", "go"], num_beams=3, num_return=2)
    assert [len(row) for row in both] == [2, 2]
    with pytest.raises(ValueError, match=r"model read nothing of ''\. Translate a"):
        found[1].plot()
    wrote_nothing = dataclasses.replace(
        alone, text="", target_tokens=[], alignment=alone.alignment[:0]
    )
    with pytest.raises(ValueError, match=r"model wrote nothing for 'go'\. Train"):
        wrote_nothing.plot()


@pytest.mark.parametrize("tokens", ["words", "characters", "bpe"])
def test_words_that_were_never_seen_do_not_stop_it(tokens):
    translator = make_translator("luong", tokens=tokens)
    translator.maxlen = 64
    texts = [
        "the xyzzy cat",
        "désolé xyzzy !",
        "日本 🙂",
        "<unk> [UNK] <pad> </s>",
        "  a  b ",
    ]
    for text, found in zip(texts, translator.translate(texts), strict=True):
        assert found.source == text
        joined = "".join(found.source_tokens)
        assert joined.replace(" ", "") == text.replace(" ", "")
        ids = translator.source_tokenizer.encode(text)
        assert not set(ids) & {0, START_ID, END_ID}


@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_what_a_person_typed_stands_at_the_plot_whatever_it_is(translators, kind):
    """Words that the tokenizer does not know, or that look like control tokens."""
    typed = ["désolé", "xyzzy", "[UNKNOWN]", "<pad>", "мир", "$2_3$", "[END]"]
    (found,) = translators[kind].translate(["  ".join(typed)], min_length=3)
    assert found.source_tokens == typed
    axes = found.plot().axes[0]
    labels = [text.get_text().replace("\\$", "$") for text in axes.get_xticklabels()]
    assert labels == typed


@pytest.mark.parametrize("kind", ["bahdanau", "transformer"])
def test_the_coverage_penalty_is_that_of_the_alignment(translators, kind):
    """Wu et al. (2016), equation 14, of what the result itself says."""
    translator, beta = translators[kind], 0.7
    both = attention_submodel(translator.model)
    options = {"num_beams": 3, "num_return": 3}
    (row,) = translator.translate(["the sun"], coverage_penalty=beta, **options)
    (plain,) = translator.translate(["the sun"], **options)
    assert [t.score for t in row] != [t.score for t in plain]
    for found in row:
        total, weights = replayed(translator, both, found)
        covered = weights.sum(axis=0)  # over all steps, that of the end too
        expected = total / len(weights) + beta * np.log(np.minimum(covered, 1)).sum()
        assert found.score == pytest.approx(expected, rel=1e-3)


def test_unknown_words_are_copied_where_asked():
    """A model that writes nothing but unknown words, and looks where it looks."""
    translator = make_translator("bahdanau")
    embedding = translator.model.get_layer("target_embedding")
    table = np.zeros(embedding.embeddings.shape, "float32")
    embedding.embeddings.assign(table)
    found = translator.translate(["the xyzzy ran"], num_beams=1, max_length=3)[0]
    assert found.target_tokens == ["[UNKNOWN]"] * 3  # of equal logits, the lowest id
    assert found.text == "[UNKNOWN] [UNKNOWN] [UNKNOWN]"
    copied = translator.translate(
        ["the xyzzy ran"], num_beams=1, max_length=3, copy_unknown=True
    )[0]
    places = found.alignment.argmax(axis=1)
    expected = [["the", "xyzzy", "ran"][place] for place in places]
    assert copied.text == " ".join(expected)
    assert copied.target_tokens == found.target_tokens


def test_where_the_model_looked_at_nothing_nothing_is_copied():
    """A local window that has left the source: rows of zeros."""
    translator = make_translator("local")
    embedding = translator.model.get_layer("target_embedding")
    embedding.embeddings.assign(np.zeros(embedding.embeddings.shape, "float32"))
    (found,) = translator.translate(
        ["the xyzzy"], num_beams=1, max_length=6, copy_unknown=True
    )
    seen = found.alignment.any(axis=1)
    assert seen.tolist() == [True] * 4 + [False] * 2  # the window is 2 to either side
    words = found.text.split()
    assert words[4:] == ["[UNKNOWN]"] * 2 and "[UNKNOWN]" not in words[:4]


def test_the_usual_limit_is_what_the_targets_need(tmp_path):
    translator = make_translator("bahdanau")
    embedding = translator.model.get_layer("target_embedding")
    embedding.embeddings.assign(np.zeros(embedding.embeddings.shape, "float32"))
    texts = ["go", "the cat sat"]  # it never comes to an end

    def written(translator):
        found = translator.translate(texts, num_beams=1)
        return [len(one.target_tokens) for one in found]

    assert written(translator) == [2 * 1 + 16, 2 * 3 + 16]
    translator.length_ratio = 4.5
    assert written(translator) == [5 + 16, 14 + 16]
    translator.save(tmp_path / "saved")
    assert written(zoo.load(tmp_path / "saved")) == [5 + 16, 14 + 16]
    assert copy.deepcopy(translator).length_ratio == 4.5


def test_a_source_over_the_limit_is_cut_and_says_so(translators):
    translator = translators["luong"]
    (found,) = translator.translate(["cat " * 20], num_beams=1)
    assert found.tokens_cut == 4
    assert len(found.source_tokens) == found.alignment.shape[1] == 16


def test_what_is_no_list_of_texts_is_refused(translators):
    with pytest.raises(TypeError, match="Put it into a list"):
        translators["luong"].translate("the cat")
    with pytest.raises(TypeError, match="item 1"):
        translators["luong"].translate(["the cat", None])


@pytest.mark.parametrize(
    "options, message",
    [
        ({"num_beams": 0}, "`num_beams` must be an integer of at least 1"),
        ({"num_beams": 2, "num_return": 3}, "`num_return` must be at most"),
        ({"batch_size": 0}, "`batch_size` must be an integer of at least 1"),
        ({"batch_size": -1}, "`batch_size` must be an integer of at least 1"),
        ({"max_length": 0}, "`max_length` must be an integer of at least 1"),
        ({"max_length": 2, "min_length": 3}, "`max_length` must be .* at least 3"),
        ({"min_length": -1}, "`min_length` must be an integer of at least 0"),
        ({"length_penalty": float("nan")}, "`length_penalty` must be a finite"),
        ({"coverage_penalty": -1}, "`coverage_penalty` must be a finite"),
    ],
)
@pytest.mark.parametrize("texts", [["the cat"], [""], []])
def test_options_that_cannot_be_are_refused_whatever_the_texts(
    translators, options, message, texts
):
    with pytest.raises(ValueError, match=message):
        translators["luong"].translate(texts, **options)


@pytest.mark.parametrize("seed", [-1, 1.5, 2**31])
def test_a_seed_that_is_none_is_refused(translators, seed):
    with pytest.raises(ValueError, match="`seed` must be"):
        translators["luong"].sample(["the cat"], seed=seed)


def test_a_tokenizer_of_another_model_is_refused(translators):
    model = translators["luong"].model
    target = translators["luong"].target_tokenizer
    foreign = SequenceTokenizer.train(["a b c d"], "words")
    with pytest.raises(ValueError, match="`source_tokenizer` must be that of"):
        Translator(model, foreign, target)
    other = SequenceTokenizer.train(["a b"], "words")
    with pytest.raises(ValueError, match="`target_tokenizer` must be that of"):
        Translator(model, other, other)
    with pytest.raises(ValueError, match="`maxlen` must be"):
        tokenizer = translators["luong"].target_tokenizer
        Translator(model, translators["luong"].source_tokenizer, tokenizer, maxlen=0)


def test_fewer_hypotheses_than_asked_are_fewer_translations(translators):
    found = translators["luong"].translate(
        ["the"], num_beams=30, num_return=30, max_length=1
    )
    assert 1 <= len(found[0]) < 30
    assert all(np.isfinite(translation.score) for translation in found[0])


def test_a_least_length_over_the_usual_limit_is_kept(translators):
    (found,) = translators["luong"].translate(["the"], num_beams=2, min_length=40)
    assert len(found.target_tokens) + found.finished >= 40


def test_samples_and_beams_are_scored_alike(translators):
    (found,) = translators["luong"].sample(["the cat"], seed=1)
    length = len(found.target_tokens) + found.finished
    assert found.score == pytest.approx(found.log_probability / length, rel=1e-5)


def test_few_compiled_searches_are_kept():
    translator = make_translator("luong")
    for number in range(20):
        translator.translate(["go"], num_beams=1, length_penalty=number / 10)
    assert len(translator._decoders) <= 16


def test_no_control_token_is_ever_written(translators):
    for kind in ("luong", "transformer"):
        found = translators[kind].sample(TEXTS * 4, seed=0, num_return=3)
        pieces = {p for row in found for t in row for p in t.target_tokens}
        assert not pieces & {"[PAD]", "[START]", "[END]"}


# ---- samples, bounds, files


def test_samples_follow_the_seed(translators):
    translator = translators["transformer"]
    once, again = (translator.sample(TEXTS, seed=3, num_return=2) for _ in range(2))
    other = translator.sample(TEXTS, seed=4, num_return=2)

    def texts(rows):
        return [[t.text for t in row] for row in rows]

    assert texts(once) == texts(again)
    assert texts(once) != texts(other)
    for size in (1, 4):  # batches hold texts of like lengths, not neighbours
        batched = translator.sample(TEXTS, seed=3, num_return=2, batch_size=size)
        assert texts(batched) == texts(once)
    twice = translator.sample(TEXTS[:1] * 8, seed=3)
    assert len({one.text for one in twice}) > 1  # each place draws its own


def test_of_the_most_probable_token_alone_a_sample_is_greedy_search(translators):
    translator = translators["transformer"]
    greedy = [one.text for one in translator.translate(TEXTS, num_beams=1)]
    for only in ({"top_p": 1e-6}, {"top_k": 1}, {"temperature": 1e-6}):
        drawn = translator.sample(TEXTS, seed=0, **only)
        assert [one.text for one in drawn] == greedy
    assert translator.sample(["", ""], seed=0)[1].text == ""


def test_models_of_several_kinds_choose_each_token_together(translators):
    """The score is the log of the mean of the probabilities of both, step by step."""
    kinds = [translators[kind] for kind in ("luong", "transformer")]
    steppers = [stepper_for(translator.model, 12) for translator in kinds]
    decode = Decoder(
        EnsembleStepper(steppers),
        beam_search,
        num_beams=3,
        max_length=12,
        length_penalty=0.0,
    )
    source = np.array([kinds[0].source_tokenizer.encode("the sun is home")])
    found = decode(source)
    labels = found.ids[0, 0, : found.lengths[0, 0]]
    inputs = np.array([[START_ID, *labels[:-1]]])
    chances, maps = [], []
    for translator in kinds:
        logits, looked = attention_submodel(translator.model)([source, inputs])
        chances.append(to_numpy(keras.ops.softmax(logits))[0])
        maps.append(shown(looked))
    total = np.log(np.mean(chances, axis=0))[range(len(labels)), labels].sum()
    assert found.log_probabilities[0, 0] == pytest.approx(total, abs=1e-3)
    together = found.attention[0, 0, : len(labels)]
    np.testing.assert_allclose(together, np.mean(maps, axis=0), atol=1e-5)


def test_bounds_of_length_hold(translators):
    for kind in ("luong", "transformer"):
        found = translators[kind].translate(TEXTS, min_length=3, max_length=4)
        for translation in found:
            length = len(translation.target_tokens) + translation.finished
            assert 3 <= length <= 4


@pytest.mark.parametrize("kind", MAKE)
def test_a_saved_pipeline_loads_and_writes_the_same(translators, kind, tmp_path):
    translator = translators[kind]
    translator.save(tmp_path / "saved")
    loaded = zoo.load(tmp_path / "saved")
    for one, other in zip(
        translator.translate(TEXTS), loaded.translate(TEXTS), strict=True
    ):
        assert one.text == other.text
        np.testing.assert_allclose(one.alignment, other.alignment, atol=1e-6)
    (tmp_path / "saved" / "target.tokenizer.json").unlink()
    with pytest.raises(FileNotFoundError, match=r"no target\.tokenizer\.json"):
        zoo.load(tmp_path / "saved")


def test_a_save_that_is_broken_off_leaves_no_mixture(tmp_path, monkeypatch):
    """New weights with the tokenizers of another model would write nonsense."""
    folder = tmp_path / "saved"
    make_translator("luong").save(folder)

    def broken(tokenizer, path):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(SequenceTokenizer, "save", broken)
        with pytest.raises(KeyboardInterrupt):
            make_translator("luong", seed=1).save(folder)
    with pytest.raises(ValueError, match="not that of a saved model"):
        zoo.load(folder)
    (folder / "config.json").write_text("{")  # a damaged one is replaced
    make_translator("luong", seed=1).save(folder)
    with pytest.raises(TypeError, match="not JSON serializable"):
        make_translator("luong").save(folder, more={1, 2})
    assert zoo.load(folder).translate(["go"])


@pytest.mark.parametrize(
    "content", ["[]", '{"pipeline": [], "name": "a", "maxlen": 3}']
)
def test_a_config_that_is_none_is_refused_by_name(translators, tmp_path, content):
    translators["luong"].save(tmp_path / "saved")
    (tmp_path / "saved" / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"config\.json' is not that of a saved model"):
        zoo.load(tmp_path / "saved")


def test_no_encoder_takes_cudnn_which_refuses_texts_of_padding_alone(
    translators, tmp_path
):
    translators["luong without feeding"].save(tmp_path / "saved")
    for pipeline in (
        translators["luong without feeding"],
        zoo.load(tmp_path / "saved"),
    ):
        for number in (1, 2):
            encoder = pipeline.model.get_layer(f"encoder_{number}")
            for layer in (encoder.forward_layer, encoder.backward_layer):
                assert layer.use_cudnn is False


@pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda pipeline: pickle.loads(pickle.dumps(pipeline))]
)
@pytest.mark.parametrize("kind", ["luong", "transformer"])
def test_a_copied_pipeline_writes_the_same(translators, kind, again):
    translator = translators[kind]
    written = translator.translate(TEXTS)
    copied = again(translator)
    assert copied.model is not translator.model
    assert (copied.name, copied.maxlen) == (translator.name, translator.maxlen)
    for one, other in zip(written, copied.translate(TEXTS), strict=True):
        assert one.text == other.text
        assert one.score == pytest.approx(other.score, abs=1e-5)


def test_the_alignment_as_pharaoh_text_and_as_a_picture(translators, tmp_path):
    (found,) = translators["luong"].translate(["the sun is warm"], min_length=3)
    pairs = [tuple(map(int, pair.split("-"))) for pair in found.to_pharaoh().split()]
    assert [target for _, target in pairs] == list(range(len(found.target_tokens)))
    assert [s for s, _ in pairs] == found.alignment.argmax(axis=1).tolist()
    figure = found.plot(tmp_path / "map.png")
    labels = [label.get_text() for label in figure.axes[0].get_xticklabels()]
    assert labels == ["the", "sun", "is", "warm"]
    assert (tmp_path / "map.png").stat().st_size > 0
    figure = found.plot(tmp_path / "lines.svg", kind="alignment", threshold=0)
    words = [text.get_text() for text in figure.axes[0].texts if text.get_gid()]
    assert words == found.source_tokens + found.target_tokens
    assert (tmp_path / "lines.svg").stat().st_size > 0
    with pytest.raises(ValueError, match=r'"heatmap" or "alignment".*\'lines\''):
        found.plot(kind="lines")
    assert found.to_dict()["alignment"] == found.alignment.tolist()


def test_a_notebook_shows_the_alignment_and_of_nothing_no_picture(translators):
    (found,) = translators["luong"].translate(["the sun is warm"], min_length=3)
    (empty,) = translators["luong"].translate([""])
    assert found._repr_png_() == found.plot()._repr_png_()
    assert empty._repr_png_() is None


# ---- the encoder's states


@pytest.mark.parametrize("num_layers", [1, 2])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_the_bridge_takes_both_directions_last_states(cell, num_layers):
    """Of every layer of the encoder, for the same layer of the decoder."""
    model = layered(cell, num_layers)
    states = {"gru": 1, "lstm": 2}[cell]
    first = states * (num_layers - 1)
    bridges = [model.get_layer(f"bridge_{first + n + 1}") for n in range(states)]
    inputs = keras.Model(model.inputs[0], [bridge.input for bridge in bridges])
    encoder = model.get_layer(f"encoder_{num_layers}")
    ids = np.array([[5, 6, 7, 0]])

    def joined():
        found = inputs.predict(ids, verbose=0)
        return np.stack(found if states > 1 else [found])  # (states, 1, 2 x units)

    before = joined()
    assert before.shape == (states, 1, 10)
    for direction, half in (("backward_layer", 1), ("forward_layer", 0)):
        layer = getattr(encoder, direction)
        kept = layer.get_weights()
        layer.set_weights([np.zeros_like(weight) for weight in kept])
        silent = joined().reshape(states, 2, 5)
        assert (silent[:, half] == 0).all()
        assert (silent[:, 1 - half] == before.reshape(states, 2, 5)[:, 1 - half]).all()
        assert (silent[:, 1 - half] != 0).all()
        layer.set_weights(kept)


@pytest.mark.parametrize("num_layers", [1, 3])
@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_each_state_of_the_decoder_comes_from_both_directions_of_its_own(
    cell, num_layers
):
    """F27: h of both directions to h, c of both to c, layer by layer; by hand."""
    model = layered(cell, num_layers)
    encoders = [model.get_layer(f"encoder_{n + 1}") for n in range(num_layers)]
    memory = model.get_layer("memory").output
    read = keras.Model(model.inputs[0], [memory, [x.output[1:] for x in encoders]])
    sources, targets = np.array([[5, 6, 7, 0]]), np.array([[1, 4, 9]])
    memory, lasts = read(sources)
    states = []
    for last in lasts:
        last = [to_numpy(state) for state in last]
        forward, backward = last[: len(last) // 2], last[len(last) // 2 :]
        for pair in zip(forward, backward, strict=True):  # h, and of an LSTM c
            kernel, bias = model.get_layer(f"bridge_{len(states) + 1}").get_weights()
            states.append(np.tanh(np.concatenate(pair, axis=-1) @ kernel + bias))
    embed = model.get_layer("target_embedding")
    outputs, _ = model.get_layer("decoder")(
        embed(targets), memory, memory_mask=sources != 0, initial_state=states
    )
    want = to_numpy(embed(outputs, reverse=True))
    np.testing.assert_allclose(to_numpy(model([sources, targets])), want, atol=1e-5)
    mixed = [states[-1], *states[1:-1], states[0]]
    if len(states) > 1:  # the numbers tell one state from another
        outputs, _ = model.get_layer("decoder")(
            embed(targets), memory, memory_mask=sources != 0, initial_state=mixed
        )
        assert np.abs(to_numpy(embed(outputs, reverse=True)) - want).max() > 1e-3


def layered(cell, num_layers):
    return zoo.seq2seq_luong(
        source_vocabulary_size=11,
        target_vocabulary_size=13,
        units=5,
        embedding_dim=4,
        cell=cell,
        num_layers=num_layers,
    )


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ({"score": "dot", "units": 7}, "`units` must be even with score='dot'"),
        ({"score": "product"}, "`score` must be one of dot, scaled_dot, general"),
        ({"cell": "rnn"}, "`cell` must be one of gru, lstm. Received: 'rnn'"),
        ({"units": 7.5}, "`units` must be an integer of at least 1"),
        ({"units": True}, "`units` must be an integer of at least 1"),
        ({"source_vocabulary_size": 4}, "must be an integer of at least 5"),
        ({"dropout": "some"}, "`dropout` must be 0 <= dropout < 1"),
        ({"dropout": 1}, "`dropout` must be 0 <= dropout < 1"),
        ({"share_embeddings": "yes"}, "`share_embeddings` must be one of True, False"),
        ({"share_embeddings": True, "units": 4}, None),
        ({"units": np.int64(6), "dropout": np.float32(0.25)}, None),
        ({"local": "monotonic"}, "`local` and `window` go together"),
        ({"local": "global", "window": 3}, "`local` must be one of None, monotonic"),
        ({"window": 0, "local": "monotonic"}, "`window` must be an integer"),
    ],
)
def test_sizes_that_cannot_be_are_refused_by_name(sizes, message):
    if message is None:
        assert zoo.seq2seq_luong(**sizes).count_params() > 0
        return
    with pytest.raises(ValueError, match=message):
        zoo.seq2seq_luong(**sizes)


def test_an_unknown_model_is_refused_by_name():
    inputs = [keras.Input((None,), dtype="int32") for _ in range(2)]
    x = keras.layers.Embedding(9, 4)(inputs[1])
    tokenizer = SequenceTokenizer.train(ENGLISH, "words")
    logits = keras.layers.Dense(tokenizer.vocabulary_size)(x)
    model = keras.Model(inputs, logits, name="plain")
    translator = Translator(model, tokenizer, tokenizer)
    with pytest.raises(ValueError, match="'plain' cannot be decoded"):
        translator.translate(["the cat"])


def test_unknown_id_is_what_the_tokenizer_gives():
    assert SequenceTokenizer.train(ENGLISH, "words").encode("zzz") == [UNKNOWN_ID]
