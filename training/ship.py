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

import zoo
from training.seq2seq_config import Seq2SeqConfig
from zoo import registry, seq2seq
from zoo.files import read_json, write_by
from zoo.seq2seq_sizes import DEFAULTS
from zoo.weight_files import save_half, sha256


def ship(run, name=None, folder=registry.WEIGHTS_FOLDER, replace=False):
    """Copies a run's weights into the package.

    Args:
        run: The folder of a finished run.
        name: What the model is to be called; by default as the run calls it.
        folder: Where to write to.
        replace: Whether weights of that name may be written over.

    Returns:
        What the registry must say: a dictionary.

    Raises:
        ValueError: if there are weights of that name, or the run's options do not make
            a model of the run's size.
    """
    pipeline = zoo.load(run)
    metrics = read_json(pathlib.Path(run) / "metrics.json")
    folder, name = pathlib.Path(folder), name or pipeline.name
    path = folder / f"{name}.weights.h5"
    if path.exists() and not replace:
        raise ValueError(
            f"There are weights called '{name}' in {folder}. Give another name by "
            "--name, or say --replace."
        )
    is_translator = isinstance(pipeline, zoo.Translator)
    architecture = _architecture(run, pipeline) if is_translator else None
    save_half(pipeline.model, path)
    row = {
        "file": path.name,
        "sha256": sha256(path),
        "parameters": pipeline.model.count_params(),
        "maxlen": pipeline.maxlen,
    }
    if is_translator:
        row["tokenizers"] = _ship_tokenizers(pipeline, name, folder)
        row["architecture"] = architecture
    else:
        row["labels"] = pipeline.labels
    return {**row, "measured": metrics["test"] or metrics["validation"]}


def _architecture(run, translator):
    """The arguments of the factory that made a run's model of two texts."""
    begun = read_json(pathlib.Path(run) / "config.json")["training"]
    names = {field.name for field in dataclasses.fields(Seq2SeqConfig)}
    options = {key: value for key, value in begun.items() if key in names}
    config = Seq2SeqConfig(**options, out=str(run))
    if config.weights:  # they decided the sizes
        if not pathlib.Path(config.weights).is_dir():
            return next(
                iter(registry.find(config.weights).weights.values())
            ).architecture
        return _architecture(config.weights, translator)
    factory = f"seq2seq_{config.model}"
    architecture = {
        **DEFAULTS[factory],
        "source_vocabulary_size": translator.source_tokenizer.vocabulary_size,
        "target_vocabulary_size": translator.target_tokenizer.vocabulary_size,
        "share_embeddings": config.of_task.joint,
        **config.architecture,
    }
    again = seq2seq.FACTORIES[factory](**architecture).count_params()
    if again != translator.model.count_params():
        raise ValueError(
            f"The options of '{run}' make a model of {again:,} parameters. Its model "
            f"has {translator.model.count_params():,}: it was made by other code."
        )
    return architecture


def _ship_tokenizers(translator, name, folder):
    """Writes the tokenizers of both sides; equal ones are one file."""
    sides = {
        "source": translator.source_tokenizer,
        "target": translator.target_tokenizer,
    }
    known = {sha256(path): path for path in sorted(folder.glob("*.tokenizer.json"))}
    rows = {}
    for role, tokenizer in sides.items():
        path = folder / f"{name}.{role}.tokenizer.json"
        write_by(path, tokenizer.save)
        digest = sha256(path)
        if known.setdefault(digest, path) != path:
            path.unlink()
        rows[role] = (known[digest].name, digest)
    return rows


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
