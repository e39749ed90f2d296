"""The dataset server, as MCP clients see it.

To a gateway that has given it a spool it names files there. All others get small tables as text,
and a link to the whole of larger ones, which they can read as a resource.
"""

import base64
import json
from collections.abc import Mapping
from importlib.metadata import version
from typing import Any

import mcp_types as types
from mcp import MCPError
from mcp.server.lowlevel import Server

from divingbell import logs
from divingbell.datasets import definitions
from divingbell.datasets.datasets import Datasets, Table
from divingbell.datasets.sealed_reader import Unanswered
from divingbell.datasets.spool import Spool
from divingbell.errors import DivingbellError
from divingbell.gateway.spooled_tables import TABLE

log = logs.logger("divingbell")

NAME = "divingbell-datasets"
MAX_TEXT = 8_000
"""Characters of a table that is given as text."""
MAX_SQL = 200_000
MAX_COLUMNS = 10_000
MAX_LINKED = 16 << 20
"""Bytes of a file that is read as a resource: it is one message."""
SCHEME = "dataset-table://"
PARQUET = "application/vnd.apache.parquet"

Arguments = Mapping[str, Any]


class DatasetServer:
    """Answers clients; with `names_files` it tells the gateway that started it of files."""

    def __init__(self, datasets: Datasets, spool: Spool, *, names_files: bool) -> None:
        self._datasets = datasets
        self._spool = spool
        self._names_files = names_files
        self.server: Server[Any] = Server(
            NAME,
            version=version("divingbell"),
            instructions=definitions.INSTRUCTIONS,
            on_list_tools=self._list_tools,
            on_call_tool=self._call_tool,
            on_list_resources=self._list_resources,
            on_read_resource=self._read_resource,
        )

    async def _list_tools(self, context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=definitions.tools())

    async def _call_tool(
        self, context: Any, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        try:
            return await self._answer(params.name, params.arguments or {})
        except DivingbellError as error:
            words = str(error)
        except Exception:
            log.exception("%s failed", params.name)
            words = "the dataset server failed; its log says why"
        return types.CallToolResult(content=[types.TextContent(text=words)], is_error=True)

    async def _answer(self, name: str, given: Arguments) -> types.CallToolResult:
        if name == definitions.LIST:
            return _structured(await self._datasets.listed())
        if name == definitions.DESCRIBE:
            return _structured(await self._datasets.describe(_text(given, "name")))
        if name == definitions.IMPORT:
            table = await self._datasets.import_table(
                _text(given, "name"),
                _texts(given, "columns"),
                _text(given, "where") if given.get("where") is not None else None,
                _count(given, "sample", 1),
                _count(given, "limit", 0),
            )
        elif name == definitions.QUERY:
            table = await self._datasets.query(_text(given, "sql"), _parameters(given))
        else:
            raise Unanswered(f"there is no tool {name[:80]!r}")
        return self._shown(table)

    def _shown(self, table: Table) -> types.CallToolResult:
        """Return a table as its reader can take it."""
        size = f"{table.rows:,} rows × {len(table.columns):,} columns"
        shown, rows = _fitting(table.preview)
        content: list[types.ContentBlock] = []
        if rows >= table.rows:
            content.append(types.TextContent(text=f"{size}:\n{shown}"))
        else:
            words = f"{size}, of which these are the first {rows:,}:\n{shown}"
            if table.size > MAX_LINKED:
                words += "\nAll of it is too large for a message: ask for less."
            content.append(types.TextContent(text=words))
            if table.size <= MAX_LINKED:
                content.append(_link(table, size))
        if table.remark:
            content.append(types.TextContent(text=table.remark))
        return types.CallToolResult(content=content, _meta=self._named(table))

    def _named(self, table: Table) -> dict[str, Any] | None:
        if not self._names_files:
            return None
        return {
            TABLE: {
                "file": table.path.name,
                "rows": table.rows,
                "columns": len(table.columns),
                "memory": table.memory,
                "remark": table.remark,
            }
        }

    async def _list_resources(self, context: Any, params: Any) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=[])  # they are known from results only

    async def _read_resource(
        self, context: Any, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        path = self._spool.find(uri.removeprefix(SCHEME)) if uri.startswith(SCHEME) else None
        if path is None or path.stat().st_size > MAX_LINKED:
            words = "that table is not there any more: call the tool again"
            raise MCPError(code=types.INVALID_PARAMS, message=words)
        blob = base64.b64encode(path.read_bytes()).decode()
        content = types.BlobResourceContents(uri=uri, mime_type=PARQUET, blob=blob)
        return types.ReadResourceResult(contents=[content])


def _link(table: Table, size: str) -> types.ResourceLink:
    return types.ResourceLink(
        uri=f"{SCHEME}{table.path.stem}",
        name="table.parquet",
        description=f"The whole table, {size}.",
        mime_type=PARQUET,
        size=table.size,
    )


def _fitting(preview: str) -> tuple[str, int]:
    """Return as many lines of a table as fit, and how many rows those are, about."""
    lines = preview.splitlines()
    shown, used = [], 0
    for line in lines:
        used += len(line) + 1
        if used > MAX_TEXT:
            break
        shown.append(line)
    return "\n".join(shown), max(0, len(shown) - 1)


def _structured(value: dict[str, Any]) -> types.CallToolResult:
    content = types.TextContent(text=json.dumps(value, ensure_ascii=False))
    return types.CallToolResult(content=[content], structured_content=value)


def _text(given: Arguments, name: str) -> str:
    value = given.get(name)
    if type(value) is not str or not value.strip() or len(value) > MAX_SQL or "\0" in value:
        raise Unanswered(f"{name} must be a text that is not empty")
    return value


def _texts(given: Arguments, name: str) -> list[str] | None:
    value = given.get(name)
    if value is None:
        return None
    if not isinstance(value, list) or not all(type(each) is str for each in value):
        raise Unanswered(f"{name} must be a list of texts")
    return value[:MAX_COLUMNS]


def _count(given: Arguments, name: str, least: int) -> int | None:
    value = given.get(name)
    if value is None:
        return None
    if type(value) is not int or not least <= value < 1 << 40:
        raise Unanswered(f"{name} must be a whole number, {least} or more")
    return value


def _parameters(given: Arguments) -> list[Any] | dict[str, Any] | None:
    value = given.get("parameters")
    if value is None or isinstance(value, list | dict):
        return value
    raise Unanswered("parameters must be a list, or an object of names and values")
