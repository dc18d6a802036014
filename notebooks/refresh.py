"""Runs the notebooks from top to bottom and writes what they give into them.

python notebooks/refresh.py [NAME.ipynb ...]
"""

import pathlib
import sys

import nbformat
from nbclient import NotebookClient

FOLDER = pathlib.Path(__file__).parent
SECONDS = 180  # what a notebook may take


def run(notebook, folder, parameters=None):
    """Runs a notebook; its outputs are in it afterwards.

    Args:
        notebook: An `nbformat` notebook.
        folder: Where its kernel works.
        parameters: Values by name, set after the cell with the tag "parameters" in the
            place of its own; that cell must set each of them.

    Raises:
        nbclient.exceptions.CellExecutionError: if a cell fails.
        ValueError: for a parameter that the notebook does not have.
    """
    if parameters:
        notebook.cells.insert(*_cell_that_sets(parameters, notebook))
    client = NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()


def _cell_that_sets(parameters, notebook):
    tagged = ("parameters" in cell.metadata.get("tags", []) for cell in notebook.cells)
    place = next(i for i, is_tagged in enumerate(tagged) if is_tagged)
    source = notebook.cells[place].source
    absent = [name for name in parameters if f"{name} = " not in source]
    if absent:
        raise ValueError(f"The cell of parameters does not set {absent}: {source!r}.")
    lines = [f"{name} = {value!r}" for name, value in parameters.items()]
    return place + 1, nbformat.v4.new_code_cell("\n".join(lines))


def tidy(notebook):
    """Takes out what differs from run to run, and what libraries log as they load."""
    for cell in notebook.cells:
        if cell.cell_type != "code":
            continue
        cell.metadata.pop("execution", None)
        cell.outputs = _joined(o for o in cell.outputs if o.get("name") != "stderr")
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


def refresh(path):
    """Runs the notebook in a file and writes it back."""
    notebook = nbformat.read(path, as_version=4)
    run(notebook, path.parent)
    tidy(notebook)
    nbformat.write(notebook, path)


if __name__ == "__main__":
    chosen = [pathlib.Path(name) for name in sys.argv[1:]]
    for path in chosen or sorted(FOLDER.glob("*.ipynb")):
        refresh(path)
        print(path)
