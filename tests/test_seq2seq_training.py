"""Runs that train models of two texts, on pairs that the tests make."""

import csv
import dataclasses
import json

import keras
import numpy as np
import pytest
import tensorflow as tf

import zoo
from tests.killed_runs import check_same_end, kill_in_the_second_epoch
from training import epochs, optimization, run_folder, seq2seq
from training.datasets import Pairs, load_task
from training.optimization import fit_epoch
from training.pair_ids import spread
from training.scheduled_sampling import ScheduledSampling
from training.seq2seq import Seq2SeqRun, train, usual_epochs
from training.seq2seq_config import Seq2SeqConfig
from training.seq2seq_evaluate import ForcedMeasures, evaluate
from training.seq2seq_start import make_tokenizers, read_pairs, starting_translator
from training.seq2seq_tasks import MODELS, TASKS
from training.ship import ship
from zoo.weight_files import sha256

WORDS = {"red": "rouge", "cat": "chat", "big": "grand", "dog": "chien", "sun": "soleil"}
QUICK = {
    "embedding_dim": 16,
    "batch_tokens": 60,
    "learning_rate": 0.01,
    "validation_sentences": 10,
    "num_beams": 2,
    "epochs": 2,
    "tokens": "words",
    "metric": "exact",
}
SIZES = {
    "bahdanau": {"units": 16, "attention_units": 8},
    "luong": {"units": 16},
    "transformer": {"num_heads": 2, "intermediate_dim": 32, "num_layers": 1},
}


def make_pairs(path, rows=300):
    """Phrases of one to four words -> the same words in French, last word first."""
    rng = np.random.default_rng(0)
    lines = []
    while len(lines) < rows:
        words = rng.choice(list(WORDS), rng.integers(1, 5))
        lines.append(
            f"{' '.join(words)}\t{' '.join(WORDS[word] for word in words[::-1])}\n"
        )
    path.write_text("".join(lines), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    return make_pairs(tmp_path_factory.mktemp("data") / "pairs.tsv")


def config(pairs, out, model="luong", **options):
    options = {**QUICK, **SIZES[model], **options}
    if options.get("weights"):  # they decide the sizes
        for name in ("embedding_dim", "tokens", *SIZES[model]):
            del options[name]
    return Seq2SeqConfig(task=str(pairs), model=model, out=str(out), **options)


@pytest.fixture(scope="module")
def runs(pairs, tmp_path_factory):
    """A finished run of each model: {model: (folder, metrics)}."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        model: (
            folder / model,
            train(config(pairs, folder / model, model, epochs=8), progress=False),
        )
        for model in MODELS
    }


# ---- what a run leaves


@pytest.mark.parametrize("model", MODELS)
def test_a_run_learns_and_leaves_every_file(runs, model):
    folder, metrics = runs[model]
    assert metrics["validation"]["accuracy"] > 0.45  # of tokens; 0.2 is chance
    assert metrics["validation"]["perplexity"] == pytest.approx(
        np.exp(metrics["validation"]["loss"])
    )
    assert 0 <= metrics["test"]["exact"] <= 1
    expected = """config.json model.keras model.weights.h5 attention.keras card.md
    source.tokenizer.json target.tokenizer.json history.csv metrics.json
    plots/history.png plots/alignment-1.png plots/epoch-001.png plots/epoch-008.png"""
    for name in expected.split():
        assert (folder / name).stat().st_size > 0, name
    assert not list(folder.rglob("tmp.*"))
    assert not (folder / run_folder.CHECKPOINTS).exists()
    with open(folder / "history.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == [str(i) for i in range(1, 9)]
    best = max(float(row["val_exact"]) for row in rows)
    assert metrics["validation"]["exact"] == pytest.approx(best)


@pytest.mark.parametrize("model", MODELS)
def test_the_run_loads_as_a_pipeline(runs, pairs, model):
    folder, metrics = runs[model]
    translator = zoo.load(folder)
    assert translator.name == f"pairs_{model}"
    assert translator.model.count_params() == metrics["parameters"]
    test = load_task(str(pairs)).test
    again = evaluate(translator, test, "exact", num_beams=2)
    assert again == metrics["test"]


@pytest.mark.parametrize("model", MODELS)
def test_the_attention_model_is_the_models_own(runs, model):
    folder, _ = runs[model]
    translator = zoo.load(folder)
    both = keras.saving.load_model(folder / "attention.keras", safe_mode=True)
    inputs = [np.array([[5, 6, 7]]), np.array([[1, 5]])]
    logits, maps = both.predict(inputs, verbose=0)
    expected = translator.model.predict(inputs, verbose=0)
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    name = {"transformer": "decoder_1/cross_attention"}.get(model, "decoder/attention")
    assert maps[name].shape[-2:] == (2, 3)
    np.testing.assert_allclose(maps[name].sum(axis=-1), 1, atol=1e-5)


def test_the_weights_file_fits_the_factory(runs):
    folder, _ = runs["transformer"]
    translator = zoo.load(folder)
    model = zoo.seq2seq_transformer(
        weights=str(folder / "model.weights.h5"),
        source_vocabulary_size=translator.source_tokenizer.vocabulary_size,
        target_vocabulary_size=translator.target_tokenizer.vocabulary_size,
        embedding_dim=16,
        **SIZES["transformer"],
    )
    inputs = [np.array([[5, 6, 7]]), np.array([[1, 5]])]
    np.testing.assert_array_equal(
        model.predict(inputs, verbose=0), translator.model.predict(inputs, verbose=0)
    )


def test_the_card_names_command_metric_and_versions(runs):
    folder, metrics = runs["luong"]
    card = (folder / "card.md").read_text(encoding="utf-8")
    assert f"{metrics['test']['exact']:.2%}" in card
    assert "python -m training seq2seq --task" in card
    assert f"keras {keras.__version__}" in card


# ---- killed, resumed, stopped


@pytest.mark.parametrize("more", [{}, {"scheduled_sampling": 0.5}], ids=str)
def test_a_run_killed_in_its_second_epoch_ends_like_one_left_alone(
    pairs, runs, sampled_run, tmp_path, more
):
    folder = tmp_path / "killed"
    options = {**QUICK, **SIZES["luong"], "epochs": 8, **more}
    words = ["seq2seq", "--model", "luong", "--task", str(pairs)]
    kill_in_the_second_epoch(words, options, folder, tmp_path)
    plan = config(pairs, folder, epochs=8, resume=True, **more)
    resumed = train(plan, progress=False)
    alone_folder, alone = sampled_run if more else runs["luong"]
    check_same_end(resumed, alone, folder, alone_folder)


@pytest.fixture(scope="module")
def sampled_run(pairs, tmp_path_factory):
    """A finished run with scheduled sampling: (folder, metrics)."""
    folder = tmp_path_factory.mktemp("sampled") / "run"
    plan = config(pairs, folder, epochs=8, scheduled_sampling=0.5)
    return folder, train(plan, progress=False)


def test_muon_goes_on_where_it_was_stopped(pairs, tmp_path, monkeypatch):
    plan = config(pairs, tmp_path / "alone", "transformer", optimizer="muon")
    alone = train(plan, progress=False)
    plan = dataclasses.replace(plan, out=str(tmp_path / "stopped"))

    def stop(model, seed, epoch):
        if epoch == 1:
            raise KeyboardInterrupt
        optimization.reseed(model, seed, epoch)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(epochs, "reseed", stop)
        train(plan, progress=False)
    resumed = train(dataclasses.replace(plan, resume=True), progress=False)
    check_same_end(resumed, alone, tmp_path / "stopped", tmp_path / "alone")


@pytest.mark.parametrize("file", ["best.npz", "last.weights.h5", "state.json"])
def test_a_damaged_checkpoint_is_refused_by_name(pairs, tmp_path, monkeypatch, file):
    def stop(run):
        raise KeyboardInterrupt

    plan = config(pairs, tmp_path / "run", epochs=1)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(seq2seq.Seq2SeqRun, "metrics", stop)
        train(plan, progress=False)
    path = tmp_path / "run" / "checkpoints" / "epoch-0001" / file
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"epoch-0001' cannot be read.*begin this one"):
        train(dataclasses.replace(plan, resume=True), progress=False)


def test_a_finished_run_is_not_trained_again(pairs, runs):
    folder, metrics = runs["luong"]
    left = folder / run_folder.CHECKPOINTS  # by a run killed after its last file
    (left / "epoch-0008").mkdir(parents=True)
    again = train(config(pairs, folder, epochs=8, resume=True), progress=False)
    assert again == json.loads((folder / "metrics.json").read_text())
    assert again["validation"] == metrics["validation"]
    assert not left.exists()


def test_it_stops_when_nothing_gets_better(pairs, tmp_path):
    plan = config(pairs, tmp_path / "run", epochs=9, learning_rate=0.0, patience=2)
    metrics = train(plan, progress=False)
    assert (metrics["epochs"], metrics["best_epoch"]) == (3, 1)


@pytest.mark.parametrize(
    ("metric", "values", "losses", "best"),
    [
        ("wer", (0.5, 0.2, 0.4), (1, 2, 3), 2),
        ("pronunciation", (0.5, 0.4, 0.2), (1, 2, 3), 3),
        ("exact", (0.5, 0.2, 0.4), (3, 2, 1), 1),
        ("chrf", (20.0, 50.0, 50.0), (1, 3, 2), 3),  # of equal ones, the least loss
        ("bleu", (0.0, 0.0, float("nan")), (1, 2, 0), 1),
    ],
)
def test_the_metric_says_which_epoch_is_best(
    pairs, tmp_path, metric, values, losses, best
):
    plan = config(pairs, tmp_path, metric=metric, patience=1)
    parts = read_pairs(plan)
    run = Seq2SeqRun(
        plan, tmp_path, starting_translator(plan, parts.train), parts, False
    )
    name = {"pronunciation": "val_wer"}.get(metric, f"val_{metric}")
    run.history = [
        {name: value, "val_loss": loss}
        for value, loss in zip(values, losses, strict=True)
    ]
    assert run.best_epoch == best
    assert run.is_out_of_patience == (best < 3)


def test_going_on_from_a_run_keeps_its_tokenizers(pairs, runs, tmp_path):
    folder, metrics = runs["transformer"]
    plan = config(
        pairs,
        tmp_path / "run",
        "transformer",
        weights=str(folder),
        epochs=1,
        learning_rate=0.0,
        average=0.0,
    )
    went_on = train(plan, progress=False)
    assert went_on["validation"]["loss"] == pytest.approx(
        metrics["validation"]["loss"], rel=1e-5
    )
    one, other = zoo.load(folder), zoo.load(tmp_path / "run")
    text = "red dog"
    assert one.source_tokenizer.encode(text) == other.source_tokenizer.encode(text)


def test_the_terminal_is_given_back_when_a_run_is_interrupted(pairs, tmp_path):
    class Interrupt(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            raise KeyboardInterrupt

    plan = config(pairs, tmp_path / "run")
    parts = read_pairs(plan)
    run = Seq2SeqRun(plan, tmp_path, starting_translator(plan, parts.train), parts)
    bars, make = [], optimization.EpochBar
    whole = run.model.fit

    def fit(*args, callbacks, **options):
        bars.extend(each for each in callbacks if isinstance(each, make))
        return whole(*args, callbacks=[*callbacks, Interrupt()], **options)

    run.model.fit = fit
    with pytest.raises(KeyboardInterrupt):
        fit_epoch(run.model, run.data(0), "epoch")
    (bar,) = bars
    assert not bar.bar.live.is_started


# ---- what is learned


def test_the_loss_on_random_targets_is_not_under_that_of_a_guess(tmp_path):
    """A decoder that saw the token it is to write would come far below."""
    rng = np.random.default_rng(0)
    letters = list("abcdefgh")
    lines = [
        "\t".join(" ".join(rng.choice(letters, 6)) for _ in range(2)) + "\n"
        for _ in range(400)
    ]
    data = tmp_path / "random.tsv"
    data.write_text("".join(lines))
    for model in ("bahdanau", "transformer"):
        out = tmp_path / model
        metrics = train(config(data, out, model, epochs=4), progress=False)
        # six letters of eight, then an end that is always there: its loss is near 0
        assert metrics["validation"]["loss"] > 0.98 * 6 * np.log(8) / 7


def test_forced_measures_do_not_depend_on_padding_or_batch(runs, pairs):
    translator = zoo.load(runs["transformer"][0])
    part = load_task(str(pairs)).test
    ids = [
        [tokenizer.encode(text) for text in texts]
        for tokenizer, texts in (
            (translator.source_tokenizer, part.sources),
            (translator.target_tokenizer, part.targets),
        )
    ]
    together = ForcedMeasures(translator.model)(*ids)
    total = right = count = 0.0
    for source, target in zip(*ids, strict=True):
        logits = translator.model.predict(
            [np.array([source]), np.array([[1, *target]])], verbose=0
        )[0].astype("float64")
        chances = np.exp(logits - logits.max(-1, keepdims=True))
        chances /= chances.sum(-1, keepdims=True)
        for step, label in enumerate([*target, 3]):
            total -= np.log(chances[step, label])
            right += chances[step].argmax() == label
            count += 1
    assert together["loss"] == pytest.approx(total / count, rel=1e-4)
    assert together["perplexity"] == pytest.approx(np.exp(total / count), rel=1e-4)
    assert together["accuracy"] == pytest.approx(right / count, abs=1.5 / count)


def test_scheduled_sampling_feeds_guesses_but_never_in_the_place_of_start_or_pad():
    inner = zoo.seq2seq_luong(
        source_vocabulary_size=11, target_vocabulary_size=13, units=5, embedding_dim=4
    )
    model = ScheduledSampling(inner)
    sources = np.array([[5, 6, 7], [8, 9, 0]])
    targets = np.array([[1, 5, 6, 7], [1, 8, 0, 0]])
    guesses = np.array(model.guesses(sources, targets))
    written = inner.predict([sources, targets], verbose=0)[..., 2:].argmax(-1) + 2
    np.testing.assert_array_equal(guesses[:, 1:], written[:, :-1])
    np.testing.assert_array_equal(guesses[:, 0], [1, 1])
    np.testing.assert_array_equal(model.mix(targets, guesses), targets)
    model.share.assign(1.0)
    mixed = np.array(model.mix(targets, guesses))
    np.testing.assert_array_equal(mixed, np.where(targets == 0, 0, guesses))


@pytest.mark.parametrize(
    ("model", "option"),
    [
        ("bahdanau", {"attention_units": 5}),
        ("transformer", {"num_heads": 4}),
        ("transformer", {"intermediate_dim": 20}),
    ],
)
def test_sizes_reach_the_model(pairs, tmp_path, model, option):
    ((name, value),) = option.items()
    plan = config(pairs, tmp_path / "run", model, **option)
    built = starting_translator(plan, read_pairs(plan).train).model
    config_of = json.dumps(built.get_config())
    key = "units" if name == "attention_units" else name
    assert f'"{key}": {value}' in config_of


def test_scheduled_sampling_changes_what_is_learned(runs, sampled_run):
    _, metrics = sampled_run
    assert metrics["validation"]["loss"] != runs["luong"][1]["validation"]["loss"]
    assert metrics["validation"]["accuracy"] > 0.5


OPTIONS = [
    {"embedding_dim": 12},
    {"num_layers": 2},
    {"units": 12},
    {"cell": "lstm"},
    {"score": "dot"},
    {"local": "monotonic", "window": 2},
    {"no_input_feeding": True},
    {"batch_tokens": 40},
    {"optimizer": "muon"},
    {"learning_rate": 0.005},
    {"schedule": "constant"},
    {"schedule": "inverse_sqrt"},
    {"warm_up": 0.5},
    {"clip_norm": 0.01},
    {"dropout": 0.5},
    {"label_smoothing": 0.3},
    {"average": 0.0},
    {"tokens": "characters"},
    {"tokens": "bpe", "vocabulary_size": 22},
    {"epochs": 3},
    {"maxlen": 2},
    {"seed": 5},
]
HAVE_A_TEST_OF_THEIR_OWN = {
    *("task", "model", "out", "data", "resume", "weights", "metric"),
    *("source_column", "target_column", "validation_sentences", "num_beams"),
    *("num_heads", "intermediate_dim", "attention_units"),
    *("scheduled_sampling", "bfloat16", "patience", "lowercase", "teacher"),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "option", OPTIONS, ids=lambda option: "-".join(map(str, next(iter(option.items()))))
)
def test_no_option_does_nothing(base, pairs, tmp_path, option):
    assert loss_after_an_epoch(config(pairs, tmp_path, **option)) != base


@pytest.fixture(scope="module")
def base(pairs, tmp_path_factory):
    """What the model without any of those options reaches, the same each time."""
    plan = config(pairs, tmp_path_factory.mktemp("base"))
    loss = loss_after_an_epoch(plan)
    assert loss_after_an_epoch(plan) == loss
    return loss


def loss_after_an_epoch(plan):
    """A part of a run, for it to be quick: nothing is decoded or written."""
    keras.utils.set_random_seed(plan.seed)
    parts = read_pairs(plan)
    translator = starting_translator(plan, parts.train)
    run = Seq2SeqRun(plan, plan.out, translator, parts, progress=False)
    fit_epoch(run.model, run.data(0), "", progress=False)
    return run.forced(*run.validation_ids)["loss"]


def test_every_option_is_among_those_that_do_something():
    tried = {name for option in OPTIONS for name in option}
    fields = {field.name for field in dataclasses.fields(Seq2SeqConfig)}
    assert fields == tried | HAVE_A_TEST_OF_THEIR_OWN


# ---- what is taken where nothing is said


@pytest.mark.parametrize(
    ("model", "given", "optimizer", "rate", "dropout"),
    [
        ("transformer", {}, "muon", 4e-3, 0.2),
        ("transformer", {"optimizer": "adam"}, "adam", 1e-3, 0.2),
        ("transformer", {"learning_rate": 0.002}, "muon", 0.002, 0.2),
        ("bahdanau", {}, "adam", 1e-3, 0.1),
        ("bahdanau", {"optimizer": "muon", "dropout": 0.3}, "muon", 4e-3, 0.3),
    ],
)
def test_the_rate_that_is_left_out_is_one_for_the_optimizer(
    model, given, optimizer, rate, dropout
):
    plan = Seq2SeqConfig(task="g2p", model=model, out="x", **given)
    assert plan.setting("optimizer") == optimizer
    assert plan.setting("learning_rate") == pytest.approx(rate)
    assert plan.setting("dropout") == dropout


def test_a_run_keeps_what_its_task_decided(monkeypatch):
    """Or a later version would resume it with other defaults."""
    plan = Seq2SeqConfig(task="g2p", model="transformer", out="x")
    kept = plan.options
    decided = {"optimizer": "muon", "learning_rate": 4e-3, "epochs": 36, "dropout": 0.2}
    assert {name: kept[name] for name in decided} == decided
    assert kept["units"] is None and kept["num_heads"] == 4
    changed = dataclasses.replace(TASKS["g2p"], transformer={"dropout": 0.7})
    monkeypatch.setitem(TASKS, "g2p", changed)
    assert plan.options["dropout"] == 0.7
    again = Seq2SeqConfig(**kept, out="x")
    assert again.options == kept and again.architecture["dropout"] == 0.2


def test_what_weights_decide_is_not_kept_as_the_tasks():
    plan = Seq2SeqConfig(task="g2p", model="luong", out="x", weights="begun")
    kept = plan.options
    assert {kept[name] for name in ("units", "embedding_dim", "dropout")} == {None}
    assert kept["learning_rate"] == 1e-3
    assert Seq2SeqConfig(**kept, out="x").options == kept


# ---- options that cannot be


@pytest.mark.parametrize(
    "options, message",
    [
        ({"model": "rnn"}, "`model` must be one of bahdanau, luong, transformer"),
        ({"model": "loung"}, "Received: 'loung'. Did you mean 'luong'"),
        ({"units": 8, "model": "transformer"}, "`units` has no effect with a trans"),
        ({"num_heads": 2}, "`num_heads` has no effect with the model luong"),
        ({"attention_units": 2}, "`attention_units` has no effect"),
        ({"tokens": "words"}, "`tokens` has no effect with the task reverse"),
        ({"optimizer": "moun"}, "adam, muon. Received: 'moun'. Did you mean 'muon'"),
        ({"schedule": "linear"}, "`schedule` must be one of cosine"),
        ({"vocabulary_size": 99}, "`vocabulary_size` has no effect"),
        ({"epochs": 0}, "`epochs` must be at least 1"),
        ({"epochs": 2.5}, "`epochs` must be an integer. Received: 2.5"),
        ({"seed": True}, "`seed` must be an integer. Received: True"),
        ({"learning_rate": "fast"}, "`learning_rate` must be a number"),
        ({"learning_rate": float("inf")}, "`learning_rate` must be at least 0"),
        ({"weights": " "}, "`weights` is empty"),
        ({"weights": "x", "units": 8}, "`units` has no effect with `weights`"),
        ({"weights": "x", "num_layers": 0}, "`num_layers` must be at least 1"),
        ({"weights": "x", "lowercase": True}, "`lowercase` has no effect"),
    ],
)
def test_options_that_cannot_be_are_refused(options, message):
    options = {"task": "reverse", "model": "luong", "out": "x", **options}
    with pytest.raises(ValueError, match=message):
        Seq2SeqConfig(**options)


def test_a_start_of_another_model_is_refused(pairs, runs, tmp_path):
    folder, _ = runs["transformer"]
    plan = config(pairs, tmp_path / "run", "luong", weights=str(folder))
    with pytest.raises(
        ValueError, match=r"called seq2seq_transformer\. Say the --model"
    ):
        train(plan, progress=False)


def test_a_start_may_be_a_saved_pipeline_or_a_model_of_the_zoo(pairs, runs, tmp_path):
    zoo.load(runs["luong"][0]).save(tmp_path / "saved")
    for start in (str(tmp_path / "saved"), "reverse_luong"):
        plan = config(pairs, tmp_path / "run", "luong", weights=start, maxlen=9)
        translator = starting_translator(plan, read_pairs(plan).train)
        before = zoo.load(start)
        for one, other in zip(
            translator.model.get_weights(), before.model.get_weights(), strict=True
        ):
            np.testing.assert_array_equal(one, other)
        assert (translator.name, translator.maxlen) == ("pairs_luong", 9)


def test_a_run_from_a_saved_pipeline_is_shipped(pairs, runs, tmp_path):
    saved = tmp_path / "saved"
    zoo.load(runs["luong"][0]).save(saved)
    plan = config(pairs, tmp_path / "run", weights=str(saved), epochs=1)
    train(plan, progress=False)
    saved.rename(tmp_path / "elsewhere")
    first = ship(runs["luong"][0], "first", tmp_path)["architecture"]
    assert ship(plan.out, "further", tmp_path)["architecture"] == first


@pytest.mark.parametrize("model", ["luong", "transformer"])
def test_a_start_may_have_another_dropout(pairs, runs, tmp_path, model):
    folder, _ = runs[model]
    plan = config(pairs, tmp_path / "run", model, weights=str(folder), dropout=0.4)
    begun, changed = zoo.load(folder), starting_translator(plan, None)
    for one, other in zip(
        begun.model.get_weights(), changed.model.get_weights(), strict=True
    ):
        np.testing.assert_array_equal(one, other)
    factory = zoo.seq2seq.FACTORIES[f"seq2seq_{model}"]
    sizes = {**SIZES[model], "embedding_dim": QUICK["embedding_dim"]}
    made = factory(
        weights=None,
        source_vocabulary_size=begun.source_tokenizer.vocabulary_size,
        target_vocabulary_size=begun.target_tokenizer.vocabulary_size,
        dropout=0.4,
        **sizes,
    )
    rates = [rate for layer in made.layers for rate in dropouts(layer)]
    assert 0.4 in rates
    assert [r for layer in changed.model.layers for r in dropouts(layer)] == rates
    texts = [each.translate(["red cat"])[0].text for each in (begun, changed)]
    assert texts[0] == texts[1]


def dropouts(layer):
    """What a layer's settings say of dropout."""
    settings = layer.get_config()
    return [settings[name] for name in ("rate", "dropout") if name in settings]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "luong", "score": "foo"}, "`score` must be one of dot"),
        ({"model": "luong", "local": "monotonic"}, "`local` and `window` go together"),
        ({"model": "transformer", "num_heads": 7}, "`num_heads` must divide"),
    ],
)
def test_sizes_that_cannot_be_are_refused_before_data_is_read(options, message):
    plan = Seq2SeqConfig(task="en-fr", data="not there", out="x", **options)
    with pytest.raises(ValueError, match=message):
        train(plan, progress=False)


def test_a_limit_that_leaves_nothing_is_refused(pairs, tmp_path):
    plan = config(pairs, tmp_path / "run", tokens="characters", maxlen=1)
    with pytest.raises(ValueError, match="All targets of the train part are over 1"):
        train(plan, progress=False)
    assert not (tmp_path / "run").exists()


def test_a_loss_that_is_no_number_ends_the_run_in_a_sentence(pairs, tmp_path):
    plan = config(pairs, tmp_path / "run", learning_rate=2e38, clip_norm=0.0, epochs=3)
    with pytest.raises(ValueError, match=r"The loss is nan in epoch .*smaller"):
        train(plan, progress=False)
    assert not (tmp_path / "run" / "metrics.json").exists()


def test_columns_reach_the_data(tmp_path):
    path = tmp_path / "pairs.csv"
    rows = [f"{i},red {i},rouge {i}" for i in range(40)]
    path.write_text("id,english,french\n" + "\n".join(rows), encoding="utf-8")
    columns = {"source_column": "french", "target_column": "english"}
    parts = read_pairs(config(path, tmp_path / "run", **columns))
    assert parts.train.sources[0].startswith("rouge")
    assert parts.train.targets[0].startswith("red")


def test_lower_case_is_for_training_and_use(tmp_path):
    path = make_pairs(tmp_path / "pairs.tsv", rows=60)
    path.write_text(path.read_text().title(), encoding="utf-8")
    plan = config(path, tmp_path / "run", lowercase=True)
    translator = starting_translator(plan, read_pairs(plan).train)
    for tokenizer in (translator.source_tokenizer, translator.target_tokenizer):
        assert tokenizer.lowercase
    assert translator.source_tokenizer.encode("RED Red red") == (
        3 * translator.source_tokenizer.encode("red")
    )


def test_a_word_is_pronounced_in_any_case(tmp_path):
    plan = Seq2SeqConfig(task="g2p", model="transformer", out=str(tmp_path))
    source, target = make_tokenizers(plan, Pairs(["ABBA"], ["AE B AH"], "-"))
    assert source.encode("ABBA") == source.encode("abba")
    assert source.decode(source.encode("AbbA")) == "abba"
    assert target.decode(target.encode("AE B AH")) == "AE B AH"


def test_sources_to_decode_come_from_all_over_the_part():
    sources = [str(i) for i in range(1000)]
    chosen, references = spread(sources, [[s] for s in sources], 100)
    numbers = [int(source) for source in chosen]
    assert len(set(numbers)) == 100 and (numbers[0], numbers[-1]) == (0, 999)
    assert max(np.diff(numbers)) <= 11
    assert references == [[source] for source in chosen]
    assert spread(sources[:3], [[]] * 3, 100)[0] == sources[:3]


def test_few_pairs_are_read_more_often():
    assert [usual_epochs(steps) for steps in (1, 40, 1000)] == [100, 50, 10]


@pytest.mark.slow
def test_a_word_never_seen_is_copied_from_where_the_model_looked(tmp_path):
    """Rare words are unknown on both sides in training too: --vocabulary-size.

    By Luong's attention: of Bahdanau's, about a third of the words were looked at one
    place off, where the encoder's states know of them too.
    """
    rng = np.random.default_rng(0)

    def pair(name):
        words = [*rng.choice(list(WORDS), 3)]
        place = rng.integers(3)
        targets = [WORDS[word] for word in words]
        words[place] = targets[place] = name
        return " ".join(words), " ".join(targets)

    path = tmp_path / "names.tsv"
    rows = ["\t".join(pair(f"name{number}")) for number in range(1500)]
    path.write_text("\n".join(rows) + "\n", encoding="utf-8")
    plan = config(
        path,
        tmp_path / "run",
        "luong",
        vocabulary_size=9,
        epochs=12,
        embedding_dim=24,
        units=24,
        batch_tokens=200,
    )
    train(plan, progress=False)
    pairs = [pair(name) for name in ["Zoë", "日本", *map(str, range(48))]]
    texts, expected = map(list, zip(*pairs, strict=True))
    found = zoo.load(tmp_path / "run").translate(texts, copy_unknown=True)
    pairs = zip(found, expected, strict=True)
    right = np.mean([one.text == text for one, text in pairs])
    assert right > 0.8  # a place by chance: 1/3


def test_pairs_with_targets_over_the_limit_are_left_out(tmp_path):
    data = make_pairs(tmp_path / "pairs.tsv", rows=60)
    with open(data, "a", encoding="utf-8") as file:
        file.writelines(f"red {'big ' * n}\t{'grand ' * 300}\n" for n in range(1, 40))
    plan = config(data, tmp_path / "run", epochs=1)
    parts = read_pairs(plan)
    run = Seq2SeqRun(
        plan, tmp_path, starting_translator(plan, parts.train), parts, False
    )
    assert len(run.train_ids[0]) == len(run.train_ids[1]) < len(parts.train)
    assert max(map(len, run.train_ids[1])) <= 256


def test_targets_much_longer_than_their_sources_are_decoded_to_their_ends(tmp_path):
    """Cut at 2 x source + 16 tokens, exact match would be 0 in every epoch."""
    rng, lines = np.random.default_rng(0), []
    while len(lines) < 80:
        words = rng.choice(list(WORDS), 2)
        lines.append(f"{words[0]}{len(lines)}\t{' '.join([*words] * 15)}\n")
    path = tmp_path / "long.tsv"
    path.write_text("".join(lines))
    metrics = train(config(path, tmp_path / "run", epochs=1), progress=False)
    translator = zoo.load(tmp_path / "run")
    assert translator.length_ratio == 30 + 1 - 16
    assert metrics["test"]["sources"] > 0
    assert ship(tmp_path / "run", folder=tmp_path)["length_ratio"] == 15
    short = make_pairs(tmp_path / "short.tsv")
    further = config(short, tmp_path / "second", weights=str(tmp_path / "run"))
    start = starting_translator(further, read_pairs(further).train)
    assert start.length_ratio == 15


def test_a_run_is_shipped_small_with_its_tokenizers_and_sizes(runs, tmp_path):
    folder, metrics = runs["luong"]
    told = ship(folder, folder=tmp_path)
    assert told["measured"] == metrics["test"]
    assert told["tokenizers"]["source"][0] == "pairs_luong.source.tokenizer.json"
    model = zoo.seq2seq_luong(
        weights=str(tmp_path / told["file"]), **told["architecture"]
    )
    assert model.count_params() == told["parameters"] == metrics["parameters"]
    for one, other in zip(
        model.get_weights(), zoo.load(folder).model.get_weights(), strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-2)


def test_shipped_weights_are_not_written_over_by_accident(runs, tmp_path):
    folder, _ = runs["luong"]
    (tmp_path / "taken.weights.h5").write_bytes(b"precious")
    with pytest.raises(ValueError, match=r"weights called 'taken'.*--replace"):
        ship(folder, "taken", tmp_path)
    assert (tmp_path / "taken.weights.h5").read_bytes() == b"precious"
    ship(folder, "taken", tmp_path, replace=True)
    assert (tmp_path / "taken.weights.h5").stat().st_size > 1000


def test_no_tokenizer_is_written_over_that_other_weights_need(runs, tmp_path):
    folder, _ = runs["luong"]
    for role in ("source", "target"):
        (tmp_path / f"dates.{role}.tokenizer.json").write_bytes(b"precious")
    for replace in (False, True):
        with pytest.raises(ValueError, match=r"dates_luong.*another name by --name\."):
            ship(folder, "dates", tmp_path, replace)
    assert not list(tmp_path.glob("*.h5"))
    for role in ("source", "target"):
        path = tmp_path / f"dates.{role}.tokenizer.json"
        assert path.read_bytes() == b"precious"
        path.rename(tmp_path / f"mine.{role}.tokenizer.json")
    with pytest.raises(ValueError, match="or say --replace"):
        ship(folder, "mine", tmp_path)
    told = ship(folder, "mine", tmp_path, replace=True)["tokenizers"]
    for role, (file, digest) in told.items():
        assert file == f"mine.{role}.tokenizer.json"
        assert sha256(tmp_path / file) == digest
    again = ship(folder, "more", tmp_path)["tokenizers"]
    assert again == told  # equal ones are one file


def test_a_run_is_shipped_from_a_home_folder_by_the_sizes_of_its_start(
    runs, pairs, tmp_path, monkeypatch
):
    monkeypatch.setenv("HOME", str(runs["luong"][0].parent))
    plan = config(pairs, tmp_path / "further", weights="~/luong", epochs=1, dropout=0.4)
    train(plan, progress=False)
    first = ship("~/luong", "first", tmp_path)["architecture"]
    further = ship(plan.out, "further", tmp_path)["architecture"]
    assert further == {**first, "dropout": 0.4} != first


def test_products_in_bfloat16_learn_nearly_the_same(runs, pairs, tmp_path, monkeypatch):
    name, seen = "auto_mixed_precision_onednn_bfloat16", []
    whole = epochs.fit_epoch

    def fit_epoch(*arguments):
        seen.append(tf.config.optimizer.get_experimental_options()[name])
        return whole(*arguments)

    monkeypatch.setattr(epochs, "fit_epoch", fit_epoch)
    metrics = train(
        config(pairs, tmp_path / "x", epochs=8, bfloat16=True), progress=False
    )
    _, exact = runs["luong"]
    assert metrics["validation"]["loss"] == pytest.approx(
        exact["validation"]["loss"], rel=0.2
    )
    assert seen == [True] * 8
    assert not tf.config.optimizer.get_experimental_options()[name]


@pytest.mark.parametrize("option", [{"bfloat16": True}, {"scheduled_sampling": 0.5}])
def test_options_of_tensorflow_are_refused_elsewhere(
    pairs, tmp_path, monkeypatch, option
):
    monkeypatch.setattr(keras.backend, "backend", lambda: "jax")
    with pytest.raises(ValueError, match=f"{next(iter(option))}` needs .* on jax"):
        train(config(pairs, tmp_path / "x", **option), progress=False)
    assert not (tmp_path / "x").exists()


def test_data_that_is_not_there_is_named(tmp_path):
    plan = Seq2SeqConfig(task="en-fr", model="luong", out=str(tmp_path / "x"))
    with pytest.raises(FileNotFoundError, match="manythings"):
        train(plan, progress=False)
    assert not (tmp_path / "x").exists()
