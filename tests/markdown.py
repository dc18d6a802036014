"""What the tests of texts share: their code blocks, commands, links and headings."""

import pathlib
import re
import shlex

from training.__main__ import COMMANDS

ROOT = pathlib.Path(__file__).parents[1]


def blocks(text, language):
    """The code blocks of a language: a list of (line before the code, code)."""
    found = re.finditer(rf"^```{language}\n(.*?)^```", text, flags=re.DOTALL | re.M)
    return [(text.count("\n", 0, match.start(1)), match[1]) for match in found]


def run_python(path):
    """Runs a file's Python blocks in order, in one namespace, which it returns."""
    names = {"__name__": "__main__"}
    for line, code in blocks(path.read_text(encoding="utf-8"), "python"):
        # Empty lines before the code, so that a traceback names the file's own line.
        exec(compile("\n" * line + code, str(path), "exec"), names)
    return names


def commands(text):
    """The commands of `attention-zoo` in a text: a list of their arguments.

    Those that cannot be parsed as they stand are left out: a usage with NAME, `--help`,
    and a command that is only named.
    """
    program = r"((?:attention-zoo|python -m training) "
    text = text.replace("\\\n", " ")
    lines = re.findall(rf"^(?:\$ | {{4}}){program}.+)", text, flags=re.M)
    lines += re.findall(rf"`{program}[^`]+)`", text)
    found = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if words[0] == "attention-zoo":
            words = words[1:]
        else:
            words = words[3:] if words[3] in COMMANDS else ["train", *words[3:]]
        if len(words) > 1 and not {"NAME", "--help"} & set(words):
            found.append(words)
    return found


def broken_links(path):
    """The links of a file to files, and to headings of Markdown files, that are not."""
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        target, _, heading = link.partition("#")
        file = path.parent / target if target else path
        if not file.exists() or (heading and heading not in headings(file)):
            broken.append(link)
    return broken


def headings(path):
    """The anchors of a Markdown file's headings, as GitHub spells them."""
    text = path.read_text(encoding="utf-8")
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.M)
    titles = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", t.lower()).replace(" ", "-") for t in titles}
