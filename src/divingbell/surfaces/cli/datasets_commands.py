"""The commands of `divingbell datasets` and their options."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from divingbell.surfaces.cli.serve_options import DatasetOptions

datasets = App(
    name="datasets",
    help="Files of a folder as tables, for MCP clients: CSV, JSON lines, Parquet, Excel, SQLite.",
    help_epilogue="",
)


@datasets.command(name="serve")
def datasets_serve(
    folder: Annotated[Path, Parameter(help="The folder with the files; they are only read.")],
    /,
    *,
    options: DatasetOptions = DatasetOptions(),  # noqa: B008
) -> int:
    """Be an MCP server for the datasets of a folder, over stdin and stdout or over HTTP."""
    from divingbell.surfaces.cli import dataset_serving
    from divingbell.surfaces.cli.terminal import signals

    settings = options.load()
    return signals.run(lambda _: dataset_serving.serve(folder, options, settings))
