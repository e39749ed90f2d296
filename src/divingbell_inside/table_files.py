"""Tables as files of a known format: Parquet, Arrow and CSV, made and read in the session.

DuckDB reads and writes Parquet, because pyarrow is not in the default profile. It runs with one
thread, which is ours: a process with more could not be copied. Left alone it starts eight more for
what it reads.
"""

import importlib.util
import warnings
from typing import Any

from divingbell_inside import columns, single_threaded
from divingbell_inside.columns import NotHeld


def read(path: str, kind: str) -> Any:
    """Return the DataFrame of a file.

    Raises:
        NotHeld: a package is missing.
        Exception: whatever the reader raises for a file that is none.
    """
    pandas = columns.library("pandas")
    if kind == "csv":
        return pandas.read_csv(path)
    if kind == "arrow":
        _need_arrow()
        return pandas.read_feather(path)
    with _database() as database, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pandas' own, about what DuckDB does
        return database.execute("SELECT * FROM read_parquet(?)", [path]).df()


def write(table: Any, path: str, kind: str) -> None:
    """Write a DataFrame or a Series of pandas or polars as a file, without its index.

    Raises:
        NotHeld: it is no table, or a package is missing.
        Exception: whatever the writer raises for a column that the format can't hold.
    """
    home = type(table).__module__.partition(".")[0]
    if type(table).__name__ not in ("DataFrame", "Series") or home not in ("pandas", "polars"):
        raise NotHeld("the value is no table: make a DataFrame of it first, or leave out format")
    frame = table if type(table).__name__ == "DataFrame" else table.to_frame()
    if home == "polars":
        {"csv": frame.write_csv, "arrow": frame.write_ipc, "parquet": frame.write_parquet}[kind](
            path
        )
    elif kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "arrow":
        _need_arrow()
        frame.reset_index(drop=True).to_feather(path)
    else:
        with _database() as database:
            database.register("passed", frame)
            database.execute(f"COPY passed TO '{path}' (FORMAT parquet)")


def _need_arrow() -> None:
    if importlib.util.find_spec("pyarrow") is None:
        raise NotHeld(
            "the format arrow needs pyarrow in the session, which is not there: add it to the "
            'setting packages, or use format="parquet"'
        )


def _database() -> Any:
    return columns.library("duckdb").connect(config=single_threaded.CONFIG)
