"""The command line: what its words mean. What the commands do is in `actions`.

Nothing heavy is imported before the words on the line are understood, so that --help
is quick.
"""

import argparse
import contextlib
import os
import sys

from training import actions
from training import config as configs
from training.options import add_options
from training.seq2seq_config import Seq2SeqConfig

DEFAULT_MODEL = "imdb_bilstm_attention"
OUT_OF_MEMORY = (
    "there is not enough memory for this. Take smaller batches (--batch-tokens, "
    "--batch-size) or a smaller model (--units, --embedding-dim, --num-layers)."
)
TRANSLATE_OPTIONS = (  # those without a default here: the pipeline has its own
    ("--num-beams", int, "hypotheses of a text; 1 is greedy search [5]"),
    ("--length-penalty", float, "over 0 favours the long [1.0]"),
    ("--coverage-penalty", float, "over 0 favours what looked at all [0.0]"),
    ("--min-length", int, "least number of tokens, the end counted [0]"),
    ("--max-length", int, "greatest number of tokens [by the source's: 2 x it + 16]"),
    ("--sample", int, "draw at random by this seed instead of searching"),
    ("--temperature", float, "of --sample: under 1 is bolder in what is likely [1.0]"),
    ("--top-k", int, "of --sample: draw among the k likeliest [all]"),
    ("--top-p", float, "of --sample: draw among the likeliest of this share [all]"),
)
EVALUATE_HELP = {  # where an option means another thing than in training
    "data": "classifiers: tfds or keras (IMDB), a folder in aclImdb layout, or a "
    ".csv/.tsv file [tfds]; g2p and en-fr: folder or file of the data",
    "metric": "for a file of pairs: chrf, exact, bleu, wer, or pronunciation (targets "
    "are the phones of a word) [that of the run, else chrf]",
    "num_beams": "hypotheses of a text; 1 is greedy search [5]",
}


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
    except Exception as error:
        if not is_out_of_memory(error) or os.environ.get("ATTENTION_ZOO_TRACEBACK"):
            raise
        print(f"attention-zoo: {OUT_OF_MEMORY}", file=sys.stderr)
        return 2
    return 0


def is_out_of_memory(error):
    """Whether a backend ran out of memory; each has an error of its own for it."""
    words = f"{type(error).__name__} {error}"
    marks = ("ResourceExhausted", "RESOURCE_EXHAUSTED", "not enough memory")
    return isinstance(error, MemoryError) or any(mark in words for mark in marks)


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
        _translate,
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
    parser = _command(commands, "list", actions.run_list, "show what the zoo holds")
    _add_json(parser)


def _predict(commands):
    parser = _command(commands, "predict", actions.run_predict, "classify texts")
    _add_texts(parser)
    parser.add_argument("--batch-size", type=int, default=128, metavar="INT")


def _translate(commands):
    help = "write a text for each text, by a model of two texts"
    parser = _command(commands, "translate", actions.run_translate, help)
    _add_texts(parser, default=None)
    help = "translations of each text [1]"
    parser.add_argument("--num-return", type=int, default=1, metavar="INT", help=help)
    parser.add_argument("--batch-size", type=int, default=32, metavar="INT")
    for flag, kind, help in TRANSLATE_OPTIONS:
        parser.add_argument(flag, type=kind, metavar=kind.__name__.upper(), help=help)
    help = "print which source token each token looked at, as 0-0 1-2"
    parser.add_argument("--alignment", action="store_true", help=help)
    help = "write source words in the place of unknown ones"
    parser.add_argument("--copy-unknown", action="store_true", help=help)
    help = "write the alignment of one text as a picture"
    parser.add_argument("--png", metavar="FILE", help=help)


def _explain(commands):
    help = "classify texts and show the attention on their words"
    parser = _command(commands, "explain", actions.run_explain, help)
    _add_texts(parser)
    parser.add_argument("--top", type=int, default=5, metavar="INT", help="words [5]")
    parser.add_argument("--png", metavar="FILE", help="write the picture of one text")
    parser.add_argument("--html", metavar="FILE", help="write the page of one text")


def _train(commands):
    help = "train a model of the zoo"
    parser = _command(commands, "train", None, help)
    names = parser.add_subparsers(title="models", required=True, metavar="NAME")
    for name in configs.MODELS:
        parser = _command(
            names, name, actions.run_train, f"train {name} on labelled texts"
        )
        parser.set_defaults(name=name)
        add_options(parser, configs.SentimentConfig, leave_out=("name",))
        _add_json(parser)
    help = "train a model of two texts on pairs: bahdanau, luong or transformer"
    parser = _command(names, "seq2seq", actions.run_train_seq2seq, help)
    add_options(parser, Seq2SeqConfig)
    _add_json(parser)


def _evaluate(commands):
    help = "measure a model on the test part of a source, or on a file"
    parser = _command(commands, "evaluate", actions.run_evaluate, help)
    _add_model(parser)
    for config, only in (
        (configs.SentimentConfig, ("data", *actions.OF_CLASSIFIERS)),
        (Seq2SeqConfig, actions.OF_TRANSLATORS),
    ):
        add_options(parser, config, only=only, optional=True, help=EVALUATE_HELP)
    _add_json(parser)


def _compare(commands):
    help = "train with and without attention over several seeds; print the table"
    parser = _command(commands, "compare", actions.run_compare, help)
    parser.add_argument("--seeds", type=int, default=3, metavar="INT", help="[3]")
    leave_out = ("name", "resume", "out")
    add_options(parser, configs.SentimentConfig, leave_out=leave_out)
    parser.add_argument("--out", default="runs/compare", metavar="STR")
    _add_json(parser)


def _demo(commands):
    help = "classify a few reviews; show the attention; write a picture and a page"
    parser = _command(commands, "demo", actions.run_demo, help)
    parser.add_argument("--out", default="demo", metavar="FOLDER", help="[demo]")


def _add_model(parser, default=DEFAULT_MODEL):
    shown = f" [{default}]" if default else ""
    parser.add_argument(
        "--model",
        default=default,
        required=default is None,
        metavar="NAME",
        help=f"a name of the list, or a folder of a run{shown}",
    )


def _add_json(parser):
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def _add_texts(parser, default=DEFAULT_MODEL):
    _add_model(parser, default)
    parser.add_argument(
        "texts",
        nargs="*",
        metavar="TEXT",
        help="texts, after -- if one begins with -; none: standard input",
    )
    parser.add_argument("--file", metavar="FILE", help="a file of texts, one a line")
    _add_json(parser)


if __name__ == "__main__":
    sys.exit(main())
