"""Messages of Jupyter's protocol: requests of clients, checked, and messages that answer them."""

import itertools
import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from divingbell.shares import weight

VERSION = "5.4"
"""The version of the protocol."""
MAX_WORD = 256
"""Characters of each field of a header: all of it comes back with each answer."""
REQUEST, REPLY = "_request", "_reply"

Word = Annotated[str, msgspec.Meta(max_length=MAX_WORD)]
Channel = Literal["shell", "control", "stdin", "iopub"]
Content = TypeVar("Content", bound=msgspec.Struct)

_numbers = itertools.count(1)
_SESSION = secrets.token_hex(8)
"""The part of this process in the ids of messages."""


class BadMessage(ValueError):
    """Raised for what a client has sent, where it is no message; says why."""


class Header(msgspec.Struct, frozen=True):
    """The header of a request. Fields that the protocol does not have are left out."""

    msg_id: Word
    msg_type: Word
    session: Word = ""
    username: Word | None = None
    date: Word | float | None = None
    """Some clients send a number."""
    version: Word | None = None


class Request(msgspec.Struct, frozen=True):
    """A message of a client. Its parent and metadata are not looked at: an answer names the
    request that it answers, and nothing else."""

    header: Header
    content: msgspec.Raw = msgspec.Raw(b"{}")
    channel: Channel | None = None

    @property
    def kind(self) -> str:
        return self.header.msg_type

    @property
    def size(self) -> int:
        return len(bytes(self.content))

    async def read(self, kind: type[Content]) -> Content:
        """Return the content, as requests of this kind have it; a large one is read in a thread.

        Raises:
            BadMessage: it is something else.
        """
        raw = bytes(self.content)
        try:
            return await weight.beside(lambda data: msgspec.json.decode(data, type=kind), raw)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadMessage(f"{self.kind}: {error}") from None


class Message(msgspec.Struct, frozen=True):
    """A message to clients, each part as JSON: it is written once, however many read it."""

    kind: str
    channel: Channel
    msg_id: str
    header: bytes
    parent: bytes
    content: bytes

    @property
    def size(self) -> int:
        return len(self.content)


def message(
    kind: str, channel: Channel, content: Mapping[str, Any] | bytes, parent: Header | None = None
) -> Message:
    """Return a message that answers its parent, or that nobody asked for."""
    number = f"{_SESSION}_{next(_numbers)}"
    header = {
        "msg_id": number,
        "msg_type": kind,
        "session": _SESSION,
        "username": "divingbell",
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
        "version": VERSION,
    }
    return Message(
        kind,
        channel,
        number,
        msgspec.json.encode(header),
        b"{}" if parent is None else msgspec.json.encode(parent),
        content if isinstance(content, bytes) else msgspec.json.encode(content),
    )


def reply_kind(request: str) -> str:
    """Return the kind of message that answers this kind of request."""
    return request.removesuffix(REQUEST) + REPLY
