"""The command line: each command is a thin shell over a function.

Nothing heavy is imported before the words on the line are understood, so that --help
is quick.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import sys

from training import config as configs

DEFAULT_MODEL = "imdb_bilstm_attention"


def main(words=None):
    """Runs one command; returns the exit status.

    Errors of the user's making are one sentence on standard error and the status 2;
    with ATTENTION_ZOO_TRACEBACK=1 in the environment, a traceback.
    """
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # what a terminal cannot show
    options = build_parser().parse_args(words)
    try:
        with silent_libraries():
            import keras  # noqa: F401 - every command needs it
        options.run(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has what it wanted
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except (ValueError, OSError, ModuleNotFoundError) as error:
        if os.environ.get("ATTENTION_ZOO_TRACEBACK"):
            raise
        print(f"attention-zoo: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130
    return 0


@contextlib.contextmanager
def silent_libraries():
    """Keeps what compiled libraries log while they load off the terminal."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


# ---- what the words mean


def build_parser():
    """The parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="attention-zoo",
        description="Trained attention models for Keras 3: use them, look at what "
        "they attend to, train them again or on texts of your own.",
    )
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for add in (
        _list,
        _predict,
        _explain,
        _train,
        _evaluate,
        _compare,
        _demo,
    ):
        add(commands)
    return parser


def _command(commands, name, run, help):
    parser = commands.add_parser(name, help=help, description=help)
    parser.set_defaults(run=run)
    return parser


def _list(commands):
    parser = _command(commands, "list", run_list, "show what the zoo holds")
    _add_json(parser)


def _predict(commands):
    parser = _command(commands, "predict", run_predict, "classify texts")
    _add_texts(parser)
    parser.add_argument("--batch-size", type=int, default=128, metavar="INT")


def _explain(commands):
    help = "classify texts and show the attention on their words"
    parser = _command(commands, "explain", run_explain, help)
    _add_texts(parser)
    parser.add_argument("--top", type=int, default=5, metavar="INT", help="words [5]")
    parser.add_argument("--png", metavar="FILE", help="write the picture of one text")
    parser.add_argument("--html", metavar="FILE", help="write the page of one text")


def _train(commands):
    parser = _command(commands, "train", run_train, "train a model of the zoo")
    parser.add_argument(
        "name", choices=configs.MODELS, metavar="NAME", help="the model"
    )
    configs.add_options(parser, configs.SentimentConfig, leave_out=("name",))
    _add_json(parser)


def _evaluate(commands):
    help = "measure a model on labelled texts: the test part of a source, or a file"
    parser = _command(commands, "evaluate", run_evaluate, help)
    _add_model(parser)
    only = ("data", "text_column", "label_column", "data_dir")
    configs.add_options(parser, configs.SentimentConfig, only=only)
    _add_json(parser)


def _compare(commands):
    help = "train with and without attention over several seeds; print the table"
    parser = _command(commands, "compare", run_compare, help)
    parser.add_argument("--seeds", type=int, default=3, metavar="INT", help="[3]")
    leave_out = ("name", "resume", "out")
    configs.add_options(parser, configs.SentimentConfig, leave_out=leave_out)
    parser.add_argument("--out", default="runs/compare", metavar="STR")
    _add_json(parser)


def _demo(commands):
    help = "classify a few reviews; show the attention; write a picture and a page"
    parser = _command(commands, "demo", run_demo, help)
    parser.add_argument("--out", default="demo", metavar="FOLDER", help="[demo]")


def _add_model(parser):
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        metavar="NAME",
        help=f"a name of the list, or a folder of a run [{DEFAULT_MODEL}]",
    )


def _add_json(parser):
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def _add_texts(parser):
    _add_model(parser)
    parser.add_argument(
        "texts", nargs="*", metavar="TEXT", help="texts; none: standard input"
    )
    parser.add_argument("--file", metavar="FILE", help="a file of texts, one a line")
    _add_json(parser)


# ---- what the commands do


def run_list(options):
    """Prints the table of models."""
    import zoo

    models = zoo.list_models()
    if options.json:
        _print_json(list(models))
    else:
        _console().print(models.to_rich())


def run_predict(options):
    """Prints a label and its probability for each text."""
    texts = read_texts(options)
    import zoo

    clf = zoo.load(options.model)
    for prediction in clf.predict(texts, batch_size=options.batch_size):
        if options.json:
            _print_json(dataclasses.asdict(prediction))
        else:
            cut = prediction.words_cut
            note = f"\t(first {cut:,} words not read)" if cut else ""
            print(f"{prediction.label}\t{prediction.score:.3f}{note}")


def run_explain(options):
    """Shows each text with its words shaded by the attention on them."""
    texts = read_texts(options)
    if (options.png or options.html) and len(texts) != 1:
        raise ValueError(
            f"--png and --html take one text. Received: {len(texts)} texts."
        )
    import zoo

    clf = zoo.load(options.model)
    for text in texts:
        explanation = clf.explain(text)
        if options.json:
            _print_json(explanation.to_dict())
        else:
            show(explanation, options.top)
        if options.png:
            explanation.plot(options.png)
        if options.html:
            explanation.to_html(options.html)


def run_train(options):
    """Trains one model; prints where the run is and what it reached."""
    config = configs.from_options(configs.SentimentConfig, options)
    from training.sentiment import train

    metrics = train(config)
    if options.json:
        _print_json({"out": config.out, **metrics})
        return
    for part in ("validation", "test"):
        if metrics[part]:
            print(f"{part} accuracy: {metrics[part]['accuracy']:.2%}")
    print(f"The run is in {config.out}. Use it: zoo.load({config.out!r})")


def run_evaluate(options):
    """Prints accuracy and cross-entropy on labelled texts."""
    import zoo
    from training.evaluate import evaluate_source

    measured = evaluate_source(
        zoo.load(options.model),
        options.data,
        options.text_column,
        options.label_column,
        data_dir=options.data_dir,
    )
    if options.json:
        _print_json(measured)
        return
    print(f"accuracy: {measured['accuracy']:.2%} on {measured['texts']:,} texts")
    print(f"cross-entropy: {measured['loss']:.4f} nats")
    for name, of_class in measured["classes"].items():
        print(
            f"{name}: precision {of_class['precision']:.2%}, recall "
            f"{of_class['recall']:.2%}, {of_class['texts']:,} texts"
        )


def run_compare(options):
    """Trains with and without attention; prints the table."""
    config = configs.from_options(
        configs.SentimentConfig, options, name=configs.MODELS[0]
    )
    from training.compare import compare, table

    rows = compare(config, options.seeds)
    if options.json:
        _print_json(rows)
    else:
        print(table(rows), end="")


def run_demo(options):
    """Runs the demonstration."""
    from training.demo import demo

    demo(options.out, show)


# ---- reading and printing


def read_texts(options):
    """The texts of the line, of a file, or of standard input: one a line."""
    if options.texts and options.file:
        raise ValueError("Give texts or --file, not both.")
    if options.texts:
        return options.texts
    from training.datasets.text_files import read_text, split_lines

    if options.file:
        return split_lines(read_text(pathlib.Path(options.file)))
    if sys.stdin.isatty():
        print("Type a text a line; end with Ctrl-D.", file=sys.stderr)
    try:
        raw = getattr(sys.stdin, "buffer", None)  # strict, whatever the locale
        text = raw.read().decode("utf-8-sig") if raw else sys.stdin.read()
        return split_lines(text)
    except UnicodeDecodeError as error:
        raise ValueError(
            f"Standard input is not UTF-8 text ({error.reason}, byte {error.start}). "
            "Convert it first, for example with iconv."
        ) from None


def show(explanation, top=5):
    """Prints one explanation to the terminal."""
    console = _console()
    colour = "green" if explanation.label == "positive" else "red"
    colour = colour if explanation.label in ("positive", "negative") else "cyan"
    style = f"bold {colour}"
    console.print(explanation.summary, style=style, highlight=False, markup=False)
    console.print(explanation.to_terminal())
    words = ", ".join(f"{word} {weight:.3f}" for word, weight in explanation.top(top))
    console.print(f"looked most at: {words or 'nothing'}\n", style="dim", markup=False)


def _console():
    from rich.console import Console

    return Console()


def _print_json(value):
    print(json.dumps(value, ensure_ascii=False))


if __name__ == "__main__":
    sys.exit(main())
