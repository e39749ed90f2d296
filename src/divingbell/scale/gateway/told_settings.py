"""The settings of a service, as replicas are told of them: all but what servers are given.

The one process that has the servers reads the file. Of a server replicas get its name and how it
is treated; not its command, address, arguments, variables or headers.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from divingbell.errors import ConfigError
from divingbell.settings import config, sources
from divingbell.settings.config import Settings
from divingbell.settings.servers import Entry, Server, UnusableServer
from divingbell.settings.sources import Found, Source

_NOT_TOLD = ("servers", "mcp_config")
_CONFIG = config.PREFIX + "CONFIG"


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The settings, and the file that they are from."""

    settings: Settings
    source: Source | None

    @classmethod
    def of(cls, path: str = "", environment: Mapping[str, str] = os.environ) -> Self:
        """Read the settings of the file that is named here or in the environment.

        Raises:
            ConfigError: it is missing, or a setting can't be used.
        """
        named = path or environment.get(_CONFIG)
        source = sources.named(named) if named else None
        return cls(config.load(None, None, _without_config(environment), Found(source)), source)

    def told(self) -> bytes:
        """Return what a replica is told."""
        file = None
        if self.source is not None:
            tables = self.source.settings()
            for name in _NOT_TOLD:
                tables.pop(name, None)
            file = {"path": str(self.source.path), "tables": tables}
        servers = [_face(entry) for entry in self.settings.servers]
        return json.dumps({"file": file, "servers": servers}).encode()


def settings_told(body: bytes, environment: Mapping[str, str] = os.environ) -> Settings:
    """Return the settings that a replica was told; the rest of its environment counts as ever.

    Raises:
        ConfigError: a setting can't be used here.
    """
    told = json.loads(body)
    source = None
    if told["file"] is not None:
        source = _ToldSource(
            Path(told["file"]["path"]), json.dumps(told["file"]["tables"]).encode()
        )
    settings = config.load(None, {"servers": {}}, _without_config(environment), Found(source))
    return replace(settings, servers=tuple(_entry(face) for face in told["servers"]))


class _ToldSource(Source):
    """A settings file that another process has read."""

    def settings(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.data)
        return found


def _without_config(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != _CONFIG}


def _face(entry: Entry) -> dict[str, Any]:
    if isinstance(entry, UnusableServer):
        return {"name": entry.name, "unusable": entry.reason}
    face: dict[str, Any] = {
        "name": entry.name,
        "timeout": entry.timeout,
        "start_timeout": entry.start_timeout,
        "per_session": entry.per_session,
        "direct": list(entry.direct),
        "enabled": entry.enabled,
    }
    if entry.datasets is not None:  # our own server, which each replica runs, and it has no secret
        face |= {"datasets": entry.datasets, "command": entry.command, "args": list(entry.args)}
    return face


def _entry(face: Mapping[str, Any]) -> Entry:
    try:
        if "unusable" in face:
            return UnusableServer(face["name"], face["unusable"])
        given = dict(face)
        for name in ("direct", "args"):
            given[name] = tuple(given.get(name, ()))
        return Server(**given)
    except (KeyError, TypeError) as error:
        raise ConfigError(f"the gateway told of a server that makes no sense: {error}") from None
