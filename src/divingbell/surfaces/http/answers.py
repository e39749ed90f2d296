"""Answers: what goes back over HTTP, whole or as a stream."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.types import Receive, Scope, Send

JSON = "application/json"
_ENCODER = msgspec.json.Encoder()
_ALWAYS = (
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
)
"""What is told to one user is kept nowhere, and is taken for what it says that it is."""


def head(
    status: int, media_type: str = "", headers: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """Return the beginning of an answer."""
    given = {name.lower().encode("latin-1") for name in headers or ()}
    found = [each for each in _ALWAYS if each[0] not in given]
    if media_type:
        found.append((b"content-type", media_type.encode("ascii")))
    found += [
        (name.lower().encode("latin-1"), value.encode("latin-1"))
        for name, value in (headers or {}).items()
    ]
    return {"type": "http.response.start", "status": status, "headers": found}


class Answer:
    """A whole answer. It can be called as an application."""

    __slots__ = ("body", "headers", "media_type", "status")

    def __init__(
        self,
        body: bytes = b"",
        status: int = 200,
        media_type: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.body = body
        self.status = status
        self.media_type = media_type
        self.headers = headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = head(self.status, self.media_type, self.headers)
        if self.status != 204 and "Content-Length" not in (self.headers or {}):
            start["headers"].append((b"content-length", b"%d" % len(self.body)))
        await send(start)
        await send({"type": "http.response.body", "body": self.body})


def as_json(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    """Return a value as JSON."""
    return Answer(_ENCODER.encode(value), status, JSON, headers)


def nothing(headers: Mapping[str, str] | None = None) -> Answer:
    """Return an answer without content."""
    return Answer(status=204, headers=headers)
