"""What the command line reads and prints: texts in, shaded texts and JSON out.

Nothing heavy is imported before it is needed.
"""

import json
import pathlib
import sys


def read_texts(options):
    """The texts of the line, of a file, or of standard input: one a line."""
    if options.texts and options.file:
        raise ValueError("Give texts or --file, not both.")
    if options.texts:
        return options.texts
    from training.datasets.text_files import read_text, split_lines

    if options.file:
        return split_lines(read_text(pathlib.Path(options.file).expanduser()))
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
    terminal = console()
    colour = "green" if explanation.label == "positive" else "red"
    colour = colour if explanation.label in ("positive", "negative") else "cyan"
    style = f"bold {colour}"
    terminal.print(explanation.summary, style=style, highlight=False, markup=False)
    terminal.print(explanation.to_terminal())
    words = ", ".join(f"{word} {weight:.3f}" for word, weight in explanation.top(top))
    terminal.print(f"looked most at: {words or 'nothing'}\n", style="dim", markup=False)


def console():
    """Where tables and shaded texts are printed."""
    from rich.console import Console

    return Console()


def print_json(value):
    """Prints a value on one line, for programs."""
    print(json.dumps(value, ensure_ascii=False))
