"""What the tests of the README and of docs/ share: code blocks, links, headings."""

import pathlib
import re

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
