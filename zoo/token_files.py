"""The JSON file of a SequenceTokenizer: written, read, and refused if it is another."""

import json
import pathlib

KINDS = ("bpe", "characters", "words")
FORMAT = "keras-attention-zoo sequence tokenizer 1"
PARTS = ("kind", "tokens", "merges", "lowercase")


def write_tokens(path, **parts):
    """Writes `PARTS` to a file that `read_tokens` reads."""
    text = json.dumps({"format": FORMAT} | parts, ensure_ascii=False, indent=0)
    pathlib.Path(path).expanduser().write_text(
        text + "\n", encoding="utf-8", newline="\n"
    )


def read_tokens(path):
    """The parts in a file that `write_tokens` wrote, as a dict with the keys `PARTS`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if the file is another, or a part is missing, by the file's name.
    """
    path = pathlib.Path(path).expanduser()
    if not path.is_file():
        raise FileNotFoundError(
            f"There is no tokenizer file '{path}'. Expected: a file that "
            "SequenceTokenizer.save wrote. Check the path."
        )
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from None
    if not isinstance(saved, dict) or saved.get("format") != FORMAT:
        raise ValueError(
            f"'{path}' holds a tokenizer of another kind, or none. Expected: a file "
            f"that SequenceTokenizer.save wrote, with the format {FORMAT!r}. Load it "
            "with the class that wrote it."
        )
    missing = [part for part in PARTS if part not in saved]
    if missing:
        raise damaged(path, f"{', '.join(missing)} missing")
    return {part: saved[part] for part in PARTS}


def damaged(path, error):
    """The ValueError for a file that cannot be used, to raise."""
    return ValueError(
        f"'{path}' is not a tokenizer file, or it is damaged: {error}. Copy it again, "
        "or train the tokenizer again."
    )


def check_kind(kind):
    """Refuses a kind that there is not.

    Raises:
        ValueError: if `kind` is not one of `KINDS`.
    """
    if kind not in KINDS:
        raise ValueError(
            f"`kind` must be one of {', '.join(map(repr, KINDS))}. Received: {kind!r}. "
            'Choose "bpe" for sentences.'
        )


def check_tokens(kind, tokens, merges):
    """Refuses tokens and merges that do not fit together.

    Raises:
        ValueError: another kind; no token, or one that stands twice or is not a string
            of that kind; a merge whose parts or whole are not tokens.
    """
    check_kind(kind)
    strings = all(isinstance(token, str) and token for token in tokens)
    if not tokens or not strings or len(set(tokens)) != len(tokens):
        raise ValueError(
            "`tokens` must be different strings, one at least and none empty"
        )
    if kind == "characters" and any(len(token) != 1 for token in tokens):
        raise ValueError('`tokens` of the kind "characters" must be single characters')
    if kind == "words" and any(" " in token for token in tokens):
        raise ValueError('`tokens` of the kind "words" must have no blank inside')
    if kind == "bpe" and not any(len(token) == 1 for token in tokens):
        raise ValueError('`tokens` of the kind "bpe" must hold single characters too')
    if merges and kind != "bpe":
        raise ValueError(f'`merges` are for the kind "bpe". Received: {kind!r}')
    known = set(tokens)
    for pair in merges:
        if len(pair) != 2 or not {*pair, "".join(pair)} <= known:
            raise ValueError(
                "`merges` must be pairs of `tokens` that join to one of them. "
                f"Received: {pair!r}"
            )
