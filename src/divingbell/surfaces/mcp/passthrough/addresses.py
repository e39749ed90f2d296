"""Addresses of upstream resources, as our clients see them.

With one server they are its own. With several, each begins with the name of its server, so that no
server can list a resource of another's as its own. That depends on the settings alone.
"""

from collections.abc import Collection
from typing import Any, TypeVar

from pydantic import BaseModel

from divingbell.surfaces.mcp.workspace import SCHEME, not_found

PREFIX = f"{SCHEME}servers/"

Model = TypeVar("Model", bound=BaseModel)


class Addresses:
    """Gives each resource an address that no other server's can have, and takes it back.

    `ours` are schemes, such as `skill://`, under which no server has any: those are Divingbell's.
    """

    def __init__(self, servers: Collection[str], ours: Collection[str] = ()) -> None:
        self._servers = servers
        self._ours = (SCHEME, *ours)
        self._only = next(iter(servers)) if len(servers) == 1 else None

    def has(self, uri: str) -> bool:
        """Whether an address is one of these, and none of a file of ours."""
        if not self._servers:
            return False
        return not self._is_ours(uri) if self._only else uri.startswith(PREFIX)

    def given(self, server: str, uri: str) -> str | None:
        """Return the address of a resource, or of a template, for our clients; None if it can't
        be."""
        if self._only:
            return None if self._is_ours(uri) else uri
        return f"{PREFIX}{server}/{uri}"

    def taken(self, uri: str) -> tuple[str, str]:
        """Return the server that an address belongs to, and its own address there.

        Raises:
            MCPError: it belongs to none.
        """
        if self._only and self.has(uri):
            return self._only, uri
        server, _, own = uri.removeprefix(PREFIX).partition("/")
        if not self.has(uri) or server not in self._servers:
            raise not_found(uri)
        return server, own

    def renamed(self, server: str, result: Model) -> Model:
        """Return a result with each address in it as our clients know it."""
        if self._only:
            return result
        changes: dict[str, Any] = {}
        for name in result.model_fields_set:
            value = getattr(result, name)
            if name == "uri" and isinstance(value, str):
                changes[name] = self.given(server, value)
            elif isinstance(value, BaseModel):
                changes[name] = self.renamed(server, value)
            elif isinstance(value, list):
                changes[name] = [
                    self.renamed(server, item) if isinstance(item, BaseModel) else item
                    for item in value
                ]
        return result.model_copy(update=changes)

    def _is_ours(self, uri: str) -> bool:
        return any(uri[: len(scheme)].lower() == scheme for scheme in self._ours)
