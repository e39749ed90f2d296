"""Definitions of tools, as servers give them, read into tools: capped, named, and made visible."""

import json
import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from divingbell import logs, text
from divingbell.gateway.catalog import naming
from divingbell.tool import Tool

log = logs.logger("divingbell")

MAX_TOOLS = 2_000
"""Tools of one server; real ones have a few hundred at most."""
MAX_NAME = 256
MAX_DESCRIPTION = 20_000
MAX_SCHEMA = 1 << 20
"""Characters of JSON; a tool with a longer one is called without a check of its arguments."""
MAX_SCANNED = 200_000
"""Characters of a definition's schemas that are searched for what they hide."""
SLICE = 0.001
"""Seconds that a thread reads before it lets others go on."""
PAUSE = 0.00005

Item = TypeVar("Item")
Definition = Mapping[str, Any]
"""A tool as `tools/list` gives it, in the names of the protocol (`inputSchema` …)."""


def tools_of(server: str, package: str, definitions: Iterable[Definition]) -> dict[str, Tool]:
    """Return the tools of a server by their own names. Any thread may.

    Of several with one name the first counts. Too many, and those with too long a name, are left
    out, which the log says.
    """
    kept: dict[str, Definition] = {}
    for definition in giving_way(definitions):
        name = str(definition.get("name", ""))
        if len(kept) >= MAX_TOOLS:
            log.warning("%s: it has more than %d tools; the rest is left out", server, MAX_TOOLS)
            break
        if len(name) <= MAX_NAME:
            kept.setdefault(name, definition)
        else:
            log.warning("%s: a tool is left out, its name is too long", server)
    functions = naming.unique(kept)
    return {
        name: _tool(server, name, package, functions[name], definition)
        for name, definition in giving_way(kept.items())
    }


def giving_way(items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items, and let other threads run about every millisecond.

    Python by itself takes five for that, and the event loop would wait so long for each step.
    """
    began = time.perf_counter()
    for item in items:
        yield item
        if time.perf_counter() - began > SLICE:
            time.sleep(PAUSE)  # with 0 this thread would be the first to go on
            began = time.perf_counter()


def _tool(server: str, name: str, package: str, function: str, definition: Definition) -> Tool:
    description = str(definition.get("description") or definition.get("title") or "")
    schemas = json.dumps(
        [definition.get("inputSchema"), definition.get("outputSchema")], ensure_ascii=False
    )
    hidden = text.suspicious(name + description + schemas[:MAX_SCANNED])
    if hidden:
        log.warning("%s.%s: its definition hides %s", server, function, ", ".join(hidden))
    return Tool(
        server,
        name,
        package,
        function,
        description=text.visible(description, MAX_DESCRIPTION),
        input_schema=_schema(definition.get("inputSchema")),
        output_schema=_schema(definition.get("outputSchema")),
        annotations=_schema(definition.get("annotations")),
    )


def _schema(value: Any) -> Mapping[str, Any] | None:
    if not isinstance(value, Mapping) or len(json.dumps(value)) > MAX_SCHEMA:
        return None
    return value
