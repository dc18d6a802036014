"""Puts the model of a finished run into the zoo: small weights, and their registry row.

    python -m training.ship runs/compare/imdb_bilstm_attention-0
    python -m training.ship runs/dates --name dates_local

Writes zoo/weights/NAME.weights.h5 as float16, and the tokenizers of a model of two
texts, and prints what zoo/entries.py must say of them. The card is written by hand
from the runs' metrics.json.
"""

import argparse
import dataclasses
import pathlib
import tempfile

import zoo
from zoo import registry
from zoo.files import read_json, write_by
from zoo.seq2seq_architecture import architecture_of
from zoo.weight_files import save_half, sha256


def ship(run, name=None, folder=registry.WEIGHTS_FOLDER, replace=False):
    """Copies a run's weights into the package.

    Args:
        run: The folder of a finished run.
        name: What the model is to be called; by default as the run calls it.
        folder: Where to write to.
        replace: Whether weights and tokenizers of that name may be written over.

    Returns:
        What the registry must say: a dictionary.

    Raises:
        ValueError: if there are weights of that name, or tokenizers that others need,
            or the model is none of the zoo's factories.
    """
    run, folder = pathlib.Path(run).expanduser(), pathlib.Path(folder)
    pipeline = zoo.load(run)
    metrics = read_json(run / "metrics.json")
    name = name or pipeline.name
    path = folder / f"{name}.weights.h5"
    if path.exists() and not replace:
        raise ValueError(
            f"There are weights called '{name}' in {folder}. Give another name by "
            "--name, or say --replace."
        )
    is_translator = isinstance(pipeline, zoo.Translator)
    if is_translator:
        architecture = architecture_of(pipeline.model)
        tokenizers = _tokenizer_files(pipeline, name, folder)
        _check_tokenizers_free(tokenizers, path.name, replace)
    save_half(pipeline.model, path)
    row = {
        "file": path.name,
        "sha256": sha256(path),
        "parameters": pipeline.model.count_params(),
        "maxlen": pipeline.maxlen,
    }
    if is_translator:
        for file in tokenizers.values():
            write_by(file.path, file.save)
        row["tokenizers"] = {
            role: (file.path.name, file.digest) for role, file in tokenizers.items()
        }
        row["architecture"] = architecture
        row["length_ratio"] = pipeline.length_ratio
    else:
        row["labels"] = pipeline.labels
    return {**row, "measured": metrics["test"] or metrics["validation"]}


@dataclasses.dataclass(frozen=True)
class _File:
    """A tokenizer as a file: where it goes, what it holds."""

    path: pathlib.Path
    content: bytes
    digest: str

    def save(self, path):
        """Writes what it holds."""
        path.write_bytes(self.content)


def _tokenizer_files(translator, name, folder):
    """The file of each side's tokenizer; one that is there under any name is taken."""
    sides = {
        "source": translator.source_tokenizer,
        "target": translator.target_tokenizer,
    }
    own = {role: folder / f"{name}.{role}.tokenizer.json" for role in sides}
    others = set(folder.glob("*.tokenizer.json")) - set(own.values())
    known, files = {sha256(path): path for path in sorted(others)}, {}
    for role, tokenizer in sides.items():
        with tempfile.TemporaryDirectory() as place:
            saved = pathlib.Path(place) / "tokenizer.json"
            tokenizer.save(saved)
            content, digest = saved.read_bytes(), sha256(saved)
        files[role] = _File(known.setdefault(digest, own[role]), content, digest)
    return files


def _check_tokenizers_free(files, weights, replace):
    """Refuses to write over another tokenizer, above all one that other weights need.

    Args:
        files: `_File`s by role.
        weights: File name of the weights that they are for.
        replace: Whether a tokenizer that no other weights need may be written over.
    """
    rows = [row for entry in registry.ENTRIES for row in entry.weights.values()]
    for file in files.values():
        if not file.path.exists() or sha256(file.path) == file.digest:
            continue
        needed = [
            row.file
            for row in rows
            if row.file != weights and file.path.name in dict(row.tokenizers.values())
        ]
        if needed or not replace:
            whose = f" (that of {', '.join(needed)})" if needed else ""
            advice = "" if needed else ", or say --replace"
            raise ValueError(
                f"There is another tokenizer called '{file.path.name}'{whose} in "
                f"{file.path.parent}. Give another name by --name{advice}."
            )


def main(arguments=None):
    """The command line: prints the row."""
    parser = argparse.ArgumentParser(
        prog="python -m training.ship", description=__doc__.split("\n")[0]
    )
    parser.add_argument("run", help="folder of a finished run")
    parser.add_argument("--name", help="what the model is to be called [as the run]")
    parser.add_argument(
        "--replace", action="store_true", help="write over such weights"
    )
    options = parser.parse_args(arguments)
    try:
        row = ship(options.run, options.name, replace=options.replace)
    except (ValueError, OSError) as error:
        parser.error(str(error))
    for key, value in row.items():
        print(f"{key} = {value!r}")


if __name__ == "__main__":
    main()
