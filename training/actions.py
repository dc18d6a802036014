"""What the commands of the command line do: each a thin shell over a function.

Nothing heavy is imported before it is needed.
"""

import dataclasses
import pathlib
import sys

from training import config as configs
from training.options import from_options
from training.seq2seq_config import Seq2SeqConfig
from training.terminal import console, print_json, read_texts, show

# Options of the commands that only some models, or some ways to write, take.
OF_CLASSIFIERS = ("text_column", "label_column", "data_dir")
OF_TRANSLATORS = ("task", "metric", "source_column", "target_column", "num_beams")
OF_SEARCH = ("num_beams", "length_penalty", "coverage_penalty", "min_length")
OF_SAMPLES = ("temperature", "top_k", "top_p")


def run_list(options):
    """Prints the table of models."""
    import zoo

    models = zoo.list_models()
    if options.json:
        print_json(list(models))
    else:
        console().print(models.to_rich())


def run_predict(options):
    """Prints a label and its probability for each text."""
    texts = read_texts(options)
    import zoo

    clf = _loaded(zoo.load(options.model), zoo.SentimentClassifier, options.model)
    for prediction in clf.predict(texts, batch_size=options.batch_size):
        if options.json:
            print_json(dataclasses.asdict(prediction))
        else:
            cut = prediction.words_cut
            note = f"\t(first {cut:,} words not read)" if cut else ""
            print(f"{prediction.label}\t{prediction.score:.3f}{note}")


def run_translate(options):
    """Prints what a model of two texts writes for each text."""
    texts = read_texts(options)
    if options.json and options.alignment:
        raise ValueError("--alignment is in what --json prints. Leave it out.")
    if options.png and len(texts) != 1:
        raise ValueError(f"--png takes one text. Received: {len(texts)} texts.")
    import zoo

    translator = _loaded(zoo.load(options.model), zoo.Translator, options.model)
    common = ("num_return", "max_length", "copy_unknown", "batch_size")
    if options.sample is None:
        _refuse_options(options, OF_SAMPLES, "--sample")
        found = translator.translate(texts, **_given(options, (*common, *OF_SEARCH)))
    else:
        _refuse_options(options, OF_SEARCH, "a search, without --sample")
        given = _given(options, (*common, *OF_SAMPLES))
        found = translator.sample(texts, seed=options.sample, **given)
    for row in found:
        for translation in row if options.num_return > 1 else [row]:
            if options.json:
                print_json(translation.to_dict())
                continue
            score = f"\t{translation.score:.3f}" if options.num_return > 1 else ""
            pairs = f"\t{translation.to_pharaoh()}" if options.alignment else ""
            print(f"{translation.text}{score}{pairs}")
            if translation.tokens_cut:
                cut = f"its last {translation.tokens_cut:,} tokens were not read"
                print(f"{translation.source[:40]!r} ...: {cut}", file=sys.stderr)
    if options.png:
        first = found[0][0] if options.num_return > 1 else found[0]
        first.plot(options.png)


def run_explain(options):
    """Shows each text with its words shaded by the attention on them."""
    texts = read_texts(options)
    if (options.png or options.html) and len(texts) != 1:
        raise ValueError(
            f"--png and --html take one text. Received: {len(texts)} texts."
        )
    import zoo

    clf = _loaded(zoo.load(options.model), zoo.SentimentClassifier, options.model)
    for text in texts:
        explanation = clf.explain(text)
        if options.json:
            print_json(explanation.to_dict())
        else:
            show(explanation, options.top)
        if options.png:
            explanation.plot(options.png)
        if options.html:
            explanation.to_html(options.html)


def run_train(options):
    """Trains one model; prints where the run is and what it reached."""
    config = from_options(configs.SentimentConfig, options)
    from training.sentiment import train

    metrics = train(config)
    if options.json:
        print_json({"out": config.out, **metrics})
        return
    for part in ("validation", "test"):
        if metrics[part]:
            print(f"{part} accuracy: {metrics[part]['accuracy']:.2%}")
    print(_how_to_use(config.out))


def run_train_seq2seq(options):
    """Trains one model of two texts; prints where the run is and what it reached."""
    config = from_options(Seq2SeqConfig, options)
    from training.seq2seq import train
    from training.seq2seq_cards import NAMES, shown

    metrics = train(config)
    if options.json:
        print_json({"out": config.out, **metrics})
        return
    for part in ("validation", "test"):
        for name, value in metrics[part].items():
            if name in NAMES:
                print(f"{part} {NAMES[name]}: {shown(name, value)}")
    print(_how_to_use(config.out))


def _how_to_use(out):
    """A name of the zoo alone would load the model of that name."""
    path = out if pathlib.Path(out).name != out else f"./{out}"
    return f"The run is in {out}. Use it: zoo.load({path!r})"


def run_evaluate(options):
    """Prints how good a model is on the test part of a source, or on a file."""
    import zoo

    pipeline = zoo.load(options.model)
    if isinstance(pipeline, zoo.Translator):
        _evaluate_translator(pipeline, options)
    else:
        _evaluate_classifier(pipeline, options)


def _evaluate_classifier(clf, options):
    """Accuracy and cross-entropy on labelled texts."""
    from training.evaluate import evaluate_source

    _refuse_options(options, OF_TRANSLATORS, f"a model of two texts, not {clf.name}")
    measured = evaluate_source(
        clf, options.data or "tfds", **_given(options, OF_CLASSIFIERS)
    )
    if options.json:
        print_json(measured)
        return
    print(f"accuracy: {measured['accuracy']:.2%} on {measured['texts']:,} texts")
    print(f"cross-entropy: {measured['loss']:.4f} nats")
    for name, of_class in measured["classes"].items():
        print(
            f"{name}: precision {of_class['precision']:.2%}, recall "
            f"{of_class['recall']:.2%}, {of_class['texts']:,} texts"
        )


def _evaluate_translator(translator, options):
    """The metric of a task on its test part, or of a file of pairs."""
    from training.datasets.pair_files import print_line_1
    from training.seq2seq_cards import NAMES, shown
    from training.seq2seq_evaluate import evaluate_task
    from training.seq2seq_tasks import TASKS
    from zoo.registry import names

    _refuse_options(options, OF_CLASSIFIERS, f"a classifier, not {translator.name}")
    if options.task is None:
        raise ValueError(
            f"{translator.name} is a model of two texts: say on what to measure it by "
            "--task reverse, dates, g2p, en-fr or a file of pairs."
        )
    given = _given(options, ("data", *OF_TRANSLATORS))
    run = None if options.model in names() else options.model
    measured = evaluate_task(translator, **given, run=run)
    if options.task not in TASKS:
        print_line_1(options.task, options.source_column, options.target_column)
    if measured["part"] == "test" and options.task not in TASKS:
        note = "the model was trained on this file: its test part alone is measured"
        print(note, file=sys.stderr)
    if options.json:
        print_json(measured)
        return
    for name, value in measured.items():
        if name in NAMES:
            print(f"{NAMES[name]}: {shown(name, value)}")
    print(f"{measured['sources']:,} sources, {measured['num_beams']} beams")
    if "signature" in measured:
        print(f"signature: {measured['signature']}")


def run_compare(options):
    """Trains with and without attention; prints the table."""
    config = from_options(configs.SentimentConfig, options, name=configs.MODELS[0])
    from training.compare import compare, table

    rows = compare(config, options.seeds)
    if options.json:
        print_json(rows)
    else:
        print(table(rows), end="")


def run_demo(options):
    """Runs the demonstration."""
    from training.demo import demo

    demo(options.out, show)


# ---- options


def _given(options, names):
    """The options that were on the line, by name."""
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _refuse_options(options, names, why):
    """No option is silently without effect."""
    for name in _given(options, names):
        flag = "--" + name.replace("_", "-")
        raise ValueError(f"{flag} is for {why}. Leave it out.")


def _loaded(pipeline, kind, name):
    """A pipeline of the kind that a command needs, or an error that says which."""
    if isinstance(pipeline, kind):
        return pipeline
    other = "translate" if kind.__name__ == "SentimentClassifier" else "explain"
    raise ValueError(
        f"This command takes a {kind.__name__}. Received: '{name}', a "
        f"{type(pipeline).__name__}. Use the command {other}, or another --model."
    )
