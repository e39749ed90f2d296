"""Files of a session's workspace, as raw bytes that are streamed both ways."""

import hashlib
import mimetypes
import re
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from email.utils import formatdate
from typing import Annotated
from urllib.parse import quote

from msgspec import Meta
from starlette.types import ASGIApp, Receive, Scope, Send

from divingbell.models import FileInfo
from divingbell.session.base import OpenFileHandle
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import Answer, as_json, head, nothing
from divingbell.surfaces.http.api.sessions import session_of
from divingbell.surfaces.http.moments import LAST, as_text
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.quotas import Gone
from divingbell.surfaces.http.wire import Nothing, Page, Told

BYTES = "application/octet-stream"
_CURSORS = secrets.token_bytes(32)
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


class FilesPage(Page):
    """A part of the list of files below a folder."""

    path: Annotated[str, Meta(max_length=4096)] = ""


class FileTold(Told):
    """A file of a session."""

    path: str
    size: int
    modified_at: str | None


class FilesTold(Told):
    """Files of a session."""

    items: list[FileTold]
    next: str | None


class Stored(Told):
    """A file that was stored."""

    path: str
    size: int


async def listed(call: Call, given: FilesPage) -> ASGIApp:
    """List the files below a folder of the workspace."""
    _, session = session_of(call)
    found = await session.files.list(given.path)
    part, after = pages.page(found, given, lambda each: _cursor(each.path))
    if not call.visitor.may("reveal"):
        names = await _shown(call, [each.path for each in part])
        part = [replace(each, path=name) for each, name in zip(part, names, strict=True)]
    return as_json(FilesTold(items=[_told(each) for each in part], next=after))


def _cursor(path: str) -> str:
    """Return what stands for a file in a list: its name may be longer than a cursor, or somebody's,
    whom not everybody may see, and nobody can guess it from this."""
    name = path.encode("utf-8", "surrogateescape")
    return hashlib.blake2b(name, key=_CURSORS, digest_size=16).hexdigest()


async def _shown(call: Call, names: list[str]) -> list[str]:
    """Return the names of files as those may read them who may not see personal data."""
    return await call.service.bell.border.outward(names, call.visitor.principal())


def _check_reader(call: Call) -> None:
    """Refuse the content of files, which is given as it is, to those who may not see all of it."""
    is_hidden = call.service.bell.border.holds_back(call.visitor.principal())
    if is_hidden and not call.visitor.may("reveal"):
        words = "files are given as they are, with personal data in them: this takes `reveal`"
        raise Refused(403, "forbidden", words)


async def put(call: Call, given: Nothing) -> ASGIApp:
    """Store a file: the body is its content, whatever it is."""
    _, session = session_of(call)
    path = call.parameter("path")
    _check_length(call, session.limits.disk)
    size = await session.files.put(path, _pieces(call.receive))
    return as_json(Stored(path=path, size=size), 201)


async def get(call: Call, given: Nothing) -> ASGIApp:
    """Return a file, or the range of its bytes that is asked for."""
    _check_reader(call)
    _, session = session_of(call)
    path = call.parameter("path")
    if call.scope["method"] == "HEAD":
        info = await session.files.stat(path)
        if info.kind != "file":
            raise Refused(422, "file_refused", f"{path[:200]!r} is a {info.kind} and no file")
        return Answer(b"", 200, BYTES, _headers(info, info.size))
    file = await session.files.open(path)
    try:
        part = _range(call.header(b"range"), file.info.size)
    except BaseException:
        await file.aclose()
        raise
    return _Content(file, part)


async def remove(call: Call, given: Nothing) -> ASGIApp:
    """Remove a file."""
    _, session = session_of(call)
    await session.files.remove(call.parameter("path"))
    return nothing()


class _Content:
    """The content of a file, or a part of it, as an application."""

    def __init__(self, file: OpenFileHandle, part: tuple[int, int] | None) -> None:
        self._file = file
        self._part = part

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        info = self._file.info
        start, end = self._part or (0, info.size)
        headers = _headers(info, end - start)
        if self._part is not None:
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{info.size}"
        async with self._file as pieces:
            await send(head(206 if self._part else 200, BYTES, headers))
            at = 0
            async for piece in pieces:
                wanted = piece[max(0, start - at) : max(0, end - at)]
                at += len(piece)
                if wanted:
                    await send({"type": "http.response.body", "body": wanted, "more_body": True})
                if at >= end:
                    break
        await send({"type": "http.response.body", "body": b""})


async def _pieces(receive: Receive) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes.

    Raises:
        Gone: the client has left before it was whole.
    """
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Gone
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body"):
            return


def _check_length(call: Call, most: int) -> None:
    length = call.header(b"content-length")
    if length is not None and length.isdigit() and int(length) > most:
        words = f"the disk of the session has {most:,} bytes: it can't hold {int(length):,}"
        raise Refused(413, "file_too_large", words)


def _headers(info: FileInfo, length: int) -> dict[str, str]:
    """Return the headers of a file. What it is is not believed: nothing shows or runs it."""
    name = quote(info.path.rpartition("/")[2])
    guessed = mimetypes.guess_type(info.path)[0]
    found = {
        "Content-Length": str(length),
        "Accept-Ranges": "bytes",
        "Last-Modified": formatdate(min(max(info.modified, 0.0), LAST), usegmt=True),
        "Content-Disposition": f"attachment; filename*=UTF-8''{name}",
        "Content-Security-Policy": "sandbox; default-src 'none'",
    }
    return found | ({"X-File-Type": guessed} if guessed else {})


def _range(given: str | None, size: int) -> tuple[int, int] | None:
    """Return the first byte that is wanted, and the one after the last; None for all.

    Raises:
        Refused: there are no such bytes.
    """
    match = None if given is None else _RANGE.fullmatch(given.strip())
    if match is None or match[1] == match[2] == "":
        return None  # as RFC 9110 has it, what is not understood is not there
    if match[1]:
        start, end = int(match[1]), min(int(match[2]) + 1 if match[2] else size, size)
    else:
        start, end = max(0, size - int(match[2])), size
    if start >= end:
        found = {"Content-Range": f"bytes */{size}"}
        raise Refused(416, "range_not_satisfiable", f"the file has {size:,} bytes", found)
    return start, end


def _told(info: FileInfo) -> FileTold:
    is_time = 0 <= info.modified <= LAST
    modified = as_text(info.modified) if is_time else None
    return FileTold(path=info.path, size=info.size, modified_at=modified)


OPERATIONS = (
    Operation("GET", "/sessions/{id}/files", "read", listed, query=FilesPage, answers=FilesTold),
    Operation("PUT", "/sessions/{id}/files/{path:path}", "run", put, answers=Stored, status=201),
    Operation("GET", "/sessions/{id}/files/{path:path}", "read", get, media_types=(BYTES,)),
    Operation("DELETE", "/sessions/{id}/files/{path:path}", "run", remove, status=204),
)
