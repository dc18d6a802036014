"""Sequence-level distillation: training pairs whose targets a trained model wrote.

People translate one sentence in many ways, and a small model cannot learn them all.
What a larger model writes is one way, and an easier one: Kim & Rush (2016),
"Sequence-Level Knowledge Distillation", arXiv:1606.07947, section 3.2.
"""

from rich.console import Console
from rich.progress import track

import zoo
from training.datasets import Pairs
from zoo.files import read_json, write_json
from zoo.tokens import UNKNOWN
from zoo.translator import Translator

AT_ONCE = 2_048  # sources between two steps of the progress bar
BATCH_SIZE = 128


def distilled(pairs, teacher, path, progress=True):
    """The same sources, each once, with what the teacher writes for them.

    Args:
        pairs: The training `Pairs`. Their own targets are left out.
        teacher: A model of the zoo or the folder of a run, as `zoo.load` takes it.
        path: A JSON file, {"teacher": name, "targets": {source: target}}. It is written
            with its folder as the teacher goes on, and read if it is there: the teacher
            writes each text once, whatever happens.
        progress: Whether to show a bar, on standard error.

    Returns:
        `Pairs`. A source is left out if the teacher does not read all of it, writes
        nothing or an unknown token for it, or comes to no end: cut, a text would teach
        to stop in the middle.

    Raises:
        ValueError: if the teacher is no model of two texts, or the file was made by
            another teacher or of other sources.
    """
    sources = _each_once(pairs.sources)
    targets = _targets(path, teacher, sources) if path.exists() else {}
    left = [source for source in sources if source not in targets]
    if left:
        translator = _teacher(teacher)
        path.parent.mkdir(parents=True, exist_ok=True)
        for found in _written_by(translator, left, progress):
            targets.update(found)
            write_json(path, {"teacher": str(teacher), "targets": targets})
    return taught(pairs, teacher, path)


def taught(pairs, teacher, path):
    """The same pairs by a file that is there: see `distilled`.

    Raises:
        FileNotFoundError: if there is no such file.
        ValueError: if it was made by another teacher or of other sources.
    """
    sources = _each_once(pairs.sources)
    targets = _targets(path, teacher, sources)
    if len(targets) < len(sources):
        raise ValueError(
            f"'{path}' must hold what the teacher writes for the {len(sources):,} "
            f"sources of the data. It holds {len(targets):,} of them: go on with the "
            "run first, by --resume."
        )
    kept = [source for source in sources if targets[source]]
    return Pairs(
        kept,
        [targets[source] for source in kept],
        f"{pairs.source}, targets by {teacher}",
    )


def _each_once(sources):
    return list(dict.fromkeys(sources))


def _targets(path, teacher, sources):
    """{source: target} of a file, of this teacher and of no others than the sources."""
    written = read_json(path)
    known = isinstance(written, dict) and written.keys() == {"teacher", "targets"}
    if not known or written["teacher"] != str(teacher):
        whose = f"of '{written['teacher']}'" if known else "of no teacher"
        raise ValueError(
            f"'{path}' must hold what '{teacher}' writes. Received: texts {whose}. "
            f"Remove it, for '{teacher}' to write anew."
        )
    targets = written["targets"]
    others = len(targets.keys() - set(sources))
    if others:
        raise ValueError(
            f"'{path}' must hold what the teacher writes for the {len(sources):,} "
            f"sources of the data. It holds {others:,} others. Remove it, for the "
            "teacher to write anew."
        )
    return targets


def _teacher(teacher):
    translator = zoo.load(teacher)
    if not isinstance(translator, Translator):
        raise ValueError(
            f"`teacher` must be a model of two texts. Received: '{teacher}', which is "
            f"{translator.name}, a classifier."
        )
    return translator


def _written_by(translator, sources, progress):
    """{source: target}, some at a time."""
    sources = sorted(sources, key=len)
    parts = track(
        [sources[i : i + AT_ONCE] for i in range(0, len(sources), AT_ONCE)],
        f"{translator.name} writes",
        console=Console(stderr=True),
        disable=not progress,
    )
    for part in parts:
        found = translator.translate(part, num_beams=1, batch_size=BATCH_SIZE)
        yield {each.source: _whole_text(each) for each in found}


def _whole_text(translation):
    """What was written, if all of it and of its source are texts, to their ends."""
    whole = translation.finished and not translation.tokens_cut
    known = UNKNOWN not in translation.target_tokens
    return translation.text if whole and known else ""
