"""Tables that are results of tools: files that are put into a session for its code to load."""

import secrets
from collections.abc import Callable

from divingbell.errors import FileRefused, ToolFailed
from divingbell.gateway.spooled_tables import SpooledTable
from divingbell.models import MB, Limits
from divingbell.session.base import FilesHandle

WHILE_LOADED = 2
"""How many times its size a table takes while it is loaded. Measured: 1.8 for one of 117 MB, half
of whose columns are texts."""


class TableDelivery:
    """The way of tables into one session."""

    def __init__(self, files: FilesHandle, limits: Callable[[], Limits]) -> None:
        self._files = files
        self._limits = limits

    async def put(self, name: str, table: SpooledTable) -> str:
        """Put a table into the workspace; return its path, which whoever loads it removes.

        Raises:
            ToolFailed: it would not fit into the session's memory, or its disk.
        """
        needed, there = WHILE_LOADED * table.memory + table.size, self._limits().memory
        if needed > there:
            raise ToolFailed(
                f"{name}: the table has {table.rows:,} rows × {table.columns:,} columns and would "
                f"take about {needed // MB:,} MB while it is loaded, of {there // MB:,} MB that "
                "the session has. Ask for fewer columns (columns=[…]), fewer rows (where=…, "
                "sample=…, limit=…), or let query_dataset group and sum",
                "tool_limit",
            )
        path = f".table-{secrets.token_hex(8)}"
        try:
            await self._files.put(path, table)
        except FileRefused as error:
            raise ToolFailed(
                f"{name}: the table has {table.size:,} bytes, and the session's disk can't take "
                f"it: {error}. Remove files, or ask for less",
                "tool_limit",
            ) from None
        return path
