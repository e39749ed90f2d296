"""Files of a client's sessions as MCP resources."""

import mimetypes
import re
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary

import mcp_types as types
from mcp import MCPError

from divingbell.errors import DivingbellError
from divingbell.principal import Principal
from divingbell.session.base import SessionHandle
from divingbell.session.ownership import OwnedSessions
from divingbell.surfaces.mcp.file_reads import Reading

SCHEME = "divingbell://"
MAX_LISTED = 500
TEMPLATE = types.ResourceTemplate(
    uri_template=SCHEME + "sessions/{session_id}/files/{+path}",
    name="workspace",
    description="A file in /workspace of one of your sessions.",
)
_URI = re.compile(re.escape(SCHEME) + r"sessions/(?P<session>[^/]+)/files/(?P<path>.+)")
_TEXTS = ("application/json", "application/xml", "application/javascript", "application/toml")


class Changes:
    """Changes of a principal's files between two looks."""

    def __init__(self, owned: OwnedSessions) -> None:
        self._owned = owned
        self._seen: WeakKeyDictionary[SessionHandle, dict[str, tuple[int, float]]] = (
            WeakKeyDictionary()
        )

    async def look(self, principal: Principal) -> tuple[list[str], bool]:
        """Return the URIs of files that are new or others, and whether the list is another."""
        changed: list[str] = []
        is_other = False
        for name, session in self._owned.of(principal):
            try:
                files = (await session.files.list())[:MAX_LISTED]
            except DivingbellError:
                continue  # ended meanwhile
            now = {uri_of(name, file.path): (file.size, file.modified) for file in files}
            before = self._seen.get(session, {})
            self._seen[session] = now
            changed += [uri for uri, state in now.items() if before.get(uri) != state]
            is_other |= now.keys() != before.keys()
        return changed, is_other


async def resources_of(owned: OwnedSessions, principal: Principal) -> list[types.Resource]:
    """Return the files of the sessions that the principal has open."""
    found: list[types.Resource] = []
    for name, session in owned.of(principal):
        if session.busy:
            continue  # the listing would wait for the cell, and with it the client
        try:
            files = await session.files.list()
        except DivingbellError:
            continue  # ended meanwhile
        for file in files[: MAX_LISTED - len(found)]:
            found.append(
                types.Resource(
                    uri=uri_of(name, file.path),
                    name=file.path,
                    mime_type=kind_of(file.path),
                    size=file.size,
                )
            )
    return found


async def read(
    owned: OwnedSessions, reading: Reading, principal: Principal, uri: str
) -> types.ReadResourceResult:
    """Return the content of a file.

    Raises:
        MCPError: there is no such file, it is too large, or too much is under way.
    """
    match = _URI.fullmatch(uri)
    session = owned.find(principal, unquote(match["session"])) if match else None
    if match is None or session is None:
        raise not_found(uri)
    path = unquote(match["path"])
    kind = kind_of(path)
    as_text = kind.startswith("text/") or kind in _TEXTS
    try:
        found = await reading.read(principal.user, session, path, as_text)
    except DivingbellError as error:
        raise MCPError(types.INVALID_PARAMS, str(error), {"uri": uri}) from None
    content: types.TextResourceContents | types.BlobResourceContents
    if found.is_text:
        content = types.TextResourceContents(uri=uri, mime_type=kind, text=found.content)
    else:
        content = types.BlobResourceContents(uri=uri, mime_type=kind, blob=found.content)
    return types.ReadResourceResult(contents=[content])


def uri_of(session: str, path: str) -> str:
    """Return the URI of a file."""
    return f"{SCHEME}sessions/{session}/files/{quote(path)}"


def not_found(uri: str) -> MCPError:
    """Return the error for a resource that nobody has."""
    return MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})


def kind_of(path: str) -> str:
    """Return the MIME type that a name suggests."""
    return mimetypes.guess_type(path)[0] or "application/octet-stream"
