"""Lists of servers as other clients keep them: an mcp.json, read with its habits.

Names that only another client knows are passed over, and one entry that can't be used does not
stand in the way of the others.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.settings import tables
from divingbell.settings.jsonc import read_document
from divingbell.settings.servers import Entry, Server, UnusableServer, read_server
from divingbell.settings.tables import Place

log = logs.logger(__name__)

MILLISECONDS = 1000
"""A timeout from here on is one in milliseconds, as several clients count: nobody means a quarter
of an hour by 1000."""
_OTHER_NAMES = {"serverUrl": "url", "httpUrl": "url", "type": "transport"}


def read_mcp_json(path: str | Path, environment: Mapping[str, str]) -> list[Entry]:
    """Return the servers of a standard mcp.json, or of VS Code's.

    Raises:
        ConfigError: the file can't be read, or holds no list of servers.
    """
    return entries_of_list(read_document(Path(path)), Path(path), environment)


def entries_of_list(document: Any, path: Path, environment: Mapping[str, str]) -> list[Entry]:
    """Return the servers of an mcp.json that was read already; `path` says where it lies.

    Raises:
        ConfigError: it holds no list of servers.
    """
    table = servers_in(document)
    if table is None:
        raise ConfigError(f"{path}: there is no `mcpServers` in it")
    if not isinstance(table, Mapping):
        raise ConfigError(f"{path}: the servers must be a table, name by name")
    place = Place(str(path), folder=path.absolute().parent, environment=environment)
    found: dict[str, Entry] = {}
    for given, raw in table.items():
        name = tidy_name(given)
        if name != given:
            log.info("%s: the server %s is called %r here", path, tables.shown(given), name)
        if name in found:
            log.warning("%s: there are two servers with the name %r", path, name)
        else:
            found[name] = _entry(name, raw, place)
    return list(found.values())


def servers_in(document: Any) -> Any:
    """Return the table of servers of a client's file, or None if it has none."""
    if not isinstance(document, Mapping):
        return None
    return document.get("mcpServers", document.get("servers"))


def tidy_name(name: str) -> str:
    """Return a name that a server can have, as near as can be to the one that it has elsewhere."""
    tidy = re.sub(r"_{2,}", "_", re.sub(r"[^A-Za-z0-9_-]+", "-", str(name)))
    return tidy.strip("-_")[:64] or "server"


def _entry(name: str, raw: Any, place: Place) -> Entry:
    try:
        at = place.part(f"server {name!r}")
        ours = _in_our_words(raw, at) if isinstance(raw, Mapping) else raw
        return read_server(name, ours, place)
    except ConfigError as error:
        return UnusableServer(name, str(error))


def _in_our_words(raw: Mapping[str, Any], at: Place) -> dict[str, Any]:
    """An entry as it would stand in our own file."""
    known = tables.names(Server)
    found: dict[str, Any] = {}
    for key, value in raw.items():
        name = _OTHER_NAMES.get(key, key)
        if value is None:
            continue
        if name in known:
            found[name] = value
        elif key == "disabled":
            if not isinstance(value, bool):
                raise ConfigError(at.told("disabled must be true or false"))
            found.setdefault("enabled", not value)
        else:
            log.info("%s: %s is not used here", at, tables.shown(key))
    for name in ("timeout", "start_timeout"):
        value = found.get(name)
        if isinstance(value, int | float) and MILLISECONDS <= value < 1e12:
            found[name] = value / 1000
    if "command" in found:
        found.pop("oauth", None)  # only addresses are signed in at, whatever is written there
    return found
