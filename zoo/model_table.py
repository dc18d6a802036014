"""zoo.list_models(): what the registry holds, as a table that shows itself."""

import io

from zoo.registry import ENTRIES, WEIGHTS_FOLDER

HIDDEN = ("weights", "data", "licence")  # in the rows, not in the picture of 80 columns


class ModelTable(list):
    """A list of dictionaries, a model each, that shows itself as a table."""

    def __repr__(self):
        from rich.console import Console

        text = io.StringIO()
        Console(width=140, file=text).print(self.to_rich())
        return text.getvalue().rstrip()

    def to_rich(self):
        """The table for a rich console; it fits 80 columns."""
        from rich import box
        from rich.table import Table

        table = Table(box=box.SIMPLE_HEAD, header_style="bold", padding=(0, 1, 0, 0))
        columns = [name for name in (self[0] if self else ()) if name not in HIDDEN]
        for column in columns:
            shown = "MB" if column == "megabytes" else column
            least = {"metric": 16, "data": 7}.get(column)
            table.add_column(shown, no_wrap=least is None, min_width=least)
        for row in self:
            table.add_row(*(_cell(column, row[column]) for column in columns))
        return table


def _cell(column, value):
    if column == "parameters":
        return f"{value:,}"
    if column == "megabytes":
        return f"{value:.1f}"
    return str(value)


def list_models():
    """What the zoo holds: a row for each set of trained weights.

    Returns:
        A list of dictionaries with the keys name, weights, task, data, metric (with
        its protocol), parameters, megabytes (of the weights' file), licence.

    Example:

    >>> [row["name"] for row in list_models()][:2]
    ['imdb_bilstm_attention', 'imdb_bilstm']
    """
    return ModelTable(
        {
            "name": entry.name,
            "weights": name,
            "task": entry.task,
            "data": weights.data,
            "metric": weights.metric,
            "parameters": weights.parameters,
            "megabytes": (WEIGHTS_FOLDER / weights.file).stat().st_size / 1e6,
            "licence": weights.licence,
        }
        for entry in ENTRIES
        for name, weights in entry.weights.items()
    )
