"""DuckDB, made to start no threads unless it is told to: its default is eight for reading alone.

An interpreter with threads can't be copied, so that all its variables would be lost with it. Who
wants more says so: `duckdb.connect(config={"threads": 2})`.
"""

import functools
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

MODULE = "duckdb"
CONFIG = {"threads": 1, "async_threads": 0}
NO_BAR = "SET enable_progress_bar = false"
"""A bar is for a terminal: in the output of a cell it is many lines."""
_DEFAULT = ":default:"


def install() -> None:
    """Have connections begin so. Done in the zygote, which may have loaded it already."""
    if MODULE in sys.modules:
        _calm(sys.modules[MODULE])
    else:
        sys.meta_path.insert(0, _Finder())


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != MODULE:
            return None
        found = PathFinder.find_spec(name, path)
        if found is not None and found.loader is not None:
            found.loader = _Calming(found.loader)
        return found


class _Calming(Loader):
    """Loads the module as its own loader does, and changes the way it connects."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _calm(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)  # whoever asks for its source or its files


def _calm(module: Any) -> None:
    plain = module.connect

    @functools.wraps(plain)
    def connect(database: Any = ":memory:", read_only: bool = False, config: Any = None) -> Any:
        if database == _DEFAULT:
            return plain(database, read_only, config or {})
        connection = plain(database, read_only, CONFIG | (config or {}))
        connection.execute(NO_BAR)
        return connection

    module.connect = connect
    # What duckdb.sql and the like use; without this they would start the threads.
    module.set_default_connection(connect())
