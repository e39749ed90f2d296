"""The cache of tool lists on disk, so that a server need not run before it is called."""

import contextlib
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

import mcp_types
from pydantic import ValidationError

from divingbell import logs
from divingbell.host import private_file
from divingbell.settings.servers import Server

log = logs.logger(__name__)

MAX_SIZE = 32 << 20
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Listing:
    """The tools and the instructions of a server, as they were when it last ran."""

    tools: list[mcp_types.Tool]
    instructions: str | None = None
    protocol_version: str | None = None


class ToolListCache:
    """A folder with one file for each server. What can't be read is as if it were not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def load(self, server: Server) -> Listing | None:
        """Return the listing of a server, or None."""
        data = private_file.read(self._path(server), MAX_SIZE)
        if data is None:
            return None
        try:
            document = json.loads(data)
            if document["format"] != FORMAT or document["identity"] != server.identity:
                return None
            return Listing(
                [mcp_types.Tool.model_validate(item, by_name=False) for item in document["tools"]],
                _optional_text(document["instructions"]),
                _optional_text(document["protocol_version"]),
            )
        except (ValueError, ValidationError, KeyError, TypeError, RecursionError):
            log.warning("the kept tool list of %s can't be read; it is asked again", server.name)
            return None

    def store(self, server: Server, listing: Listing) -> None:
        """Keep a listing. A full disk is no reason to fail."""
        document = {
            "format": FORMAT,
            "server": server.name,
            "identity": server.identity,
            "instructions": listing.instructions,
            "protocol_version": listing.protocol_version,
            "tools": [
                tool.model_dump(by_alias=True, mode="json", exclude_unset=True)
                for tool in listing.tools
            ],
        }
        data = json.dumps(document).encode()
        if len(data) > MAX_SIZE:
            self.forget(server)
            return
        try:
            private_file.write(self._path(server), data)
        except OSError as error:
            log.warning("the tool list of %s can't be kept: %s", server.name, error.strerror)

    def forget(self, server: Server) -> None:
        """Remove the listing of a server."""
        with contextlib.suppress(OSError):
            self._path(server).unlink()

    def _path(self, server: Server) -> Path:
        digest = hashlib.sha256(server.identity.encode()).hexdigest()[:16]
        return self._folder / f"{server.name}-{digest}.json"


def _optional_text(value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise TypeError
    return value
