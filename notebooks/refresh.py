"""Runs the notebooks from top to bottom and writes what they give into them.

python notebooks/refresh.py [NAME.ipynb ...] [--set 'DATA="reviews.csv"' ...]
"""

import argparse
import ast
import pathlib
import re

import nbformat
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parent
SECONDS = 600  # what a cell may take where other work runs too


def run(notebook, folder, parameters=None):
    """Runs a notebook; its outputs are in it afterwards.

    Args:
        notebook: An `nbformat` notebook.
        folder: Where its kernel works.
        parameters: Values by name, set after the cell with the tag "parameters" in the
            place of its own; that cell must set each of them. What they set is not
            kept in the notebook.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
        ValueError: for a parameter that the notebook does not have.
    """
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    if not parameters:
        client.execute()
        return
    place, cell = _cell_that_sets(parameters, notebook)
    notebook.cells.insert(place, cell)
    client.execute()
    del notebook.cells[place]


def _cell_that_sets(parameters, notebook):
    places, known = [], []
    for place, cell in enumerate(notebook.cells):
        if "parameters" in cell.metadata.get("tags", []):
            places.append(place)
            known += re.findall(r"^(\w+) = ", cell.source, flags=re.M)
    absent = sorted(set(parameters) - set(known))
    if absent:
        raise ValueError(
            f'`parameters` must be set by the cell with the tag "parameters": {known}. '
            f"Received: {absent}. Name one of them, or set it in that cell first."
        )
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    return places[-1] + 1, nbformat.v4.new_code_cell("\n".join(lines))


def tidy(notebook):
    """Takes out what differs from run to run, and what libraries log as they load."""
    code = (cell for cell in notebook.cells if cell.cell_type == "code")
    for number, cell in enumerate(code, start=1):
        cell.metadata.pop("execution", None)
        cell.execution_count = number
        cell.outputs = _joined(o for o in cell.outputs if o.get("name") != "stderr")
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = number
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}


def _joined(outputs):
    """What was printed in several goes becomes one output."""
    joined = []
    for output in outputs:
        if joined and joined[-1].output_type == output.output_type == "stream":
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def refresh(path, parameters=None):
    """Runs the notebook in a file and writes it back."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent, parameters)
    tidy(notebook)
    nbformat.write(notebook, path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("paths", nargs="*", type=pathlib.Path, metavar="NAME.ipynb")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of the cell of parameters, in Python's notation; the file keeps its own",
    )
    arguments = parser.parse_args()
    pairs = (text.partition("=")[::2] for text in arguments.set)
    parameters = {name: ast.literal_eval(value) for name, value in pairs}
    for path in arguments.paths or sorted(FOLDER.glob("*.ipynb")):
        refresh(path, parameters)
        print(path)


if __name__ == "__main__":
    main()
