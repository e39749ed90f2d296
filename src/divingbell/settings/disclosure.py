"""Lines that show everything a settings file says, and what it would start.

The file is a stranger's: each line is one line, and nothing in it is hidden or left out.
"""

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from divingbell.errors import ConfigError
from divingbell.escapes import one_line
from divingbell.settings.mcp_json import servers_in
from divingbell.settings.sources import Found
from divingbell.settings.trust import options
from divingbell.settings.variables import names_in

MAX_SHOWN = 256 << 10
"""Characters of all lines. A name that many settings share is in the line of each of them, so that
files of 64 KB could make lines without end."""
_URLS = ("url", "serverUrl", "httpUrl")


def lines(found: Found) -> list[str]:
    """Return what the files say, line by line; what they would start comes last.

    Raises:
        ConfigError: one can't be read, or not be shown.
    """
    room, given = MAX_SHOWN, []
    try:
        for line in _lines(found):
            room -= len(line)
            if room < 0:  # a part of it would be no ground to trust the whole
                raise _unshown(found, "has more in it than can be shown")
            given.append(line)
    except RecursionError:
        raise _unshown(found, "is nested too deeply to be shown") from None
    return given


def wrapped(lines: Iterable[str], width: int) -> list[str]:
    """Return the lines as a terminal of this width shows them, each with a mark in front.

    The terminal is not left to break them: a stranger's words could then begin a line.
    """
    from rich.cells import chop_cells

    return [f"| {part}" for line in lines for part in chop_cells(line, max(2, width - 2))]


def _unshown(found: Found, reason: str) -> ConfigError:
    names = " or ".join(shown(str(source.path)) for source in found.all)
    return ConfigError(
        f"{names} {reason}, so it can't be trusted. Make it simpler, or look at it and name "
        f"the file to use: {options(found.all)}"
    )


def _lines(found: Found) -> Iterator[str]:
    settings = found.settings.settings() if found.settings is not None else {}
    listed = found.servers.document() if found.servers is not None else {}
    for source, content in ((found.settings, settings), (found.servers, listed)):
        if source is not None:
            yield shown(str(source.path))
            yield from (f"    {line}" for line in _flat(content, ""))
    entries = [*_entries(settings.get("servers")), *_entries(servers_in(listed))]
    kept = _entries({"vault": settings.get("vault")})
    commands = [_command(entry) for entry in entries if "command" in entry]
    if commands:
        yield "It starts on this machine, outside of the sandbox:"
        yield from (f"    {command}" for command in commands)
    addresses = [shown(str(entry[key])) for entry in entries for key in _URLS if key in entry]
    stores = [str(table["store"]) for table in kept if "store" in table]
    addresses += [shown(store) for store in stores if not store.startswith("sqlite")]
    if addresses:
        yield "It connects to:"
        yield from (f"    {address}" for address in addresses)
    if variables := sorted({name for entry in (*entries, *kept) for name in names_in(entry)}):
        yield f"It uses these variables of your environment: {shown(', '.join(variables))}"


def shown(words: str) -> str:
    """Return a stranger's words as one line in which everything can be seen."""
    return one_line(words)


def _flat(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, Mapping) and (value or not name):
        for key, item in value.items():
            yield from _flat(item, f"{name}.{key}" if name else str(key))
    else:
        yield shown(f"{name} = {json.dumps(value, ensure_ascii=False, default=str)}")


def _entries(table: Any) -> list[Mapping[str, Any]]:
    values = table.values() if isinstance(table, Mapping) else ()
    return [entry for entry in values if isinstance(entry, Mapping)]


def _command(entry: Mapping[str, Any]) -> str:
    arguments = entry.get("args", [])
    given = arguments if isinstance(arguments, list) else [arguments]
    return shown(shlex.join(str(word) for word in (entry["command"], *given)))
