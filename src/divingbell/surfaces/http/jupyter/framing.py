"""Framing: a message as one frame of a WebSocket, in the two forms that Jupyter has for that.

The older one is JSON as text, or bytes where buffers come with it. The newer one, which a client
asks for as a subprotocol, is bytes: offsets, then the channel and the parts of the message.
"""

import struct
from abc import ABC, abstractmethod
from itertools import pairwise
from typing import get_args

import msgspec

from divingbell.surfaces.http.jupyter.messages import (
    BadMessage,
    Channel,
    Header,
    Message,
    Request,
)

V1 = "v1.kernel.websocket.jupyter.org"
MAX_PARTS = 64
"""Parts of a frame. A message has four, a channel, and buffers that nobody here has a use for."""
V1_PARTS = 5
CHANNELS: dict[bytes, Channel] = {name.encode(): name for name in get_args(Channel)}
_JSON = msgspec.json.Decoder(Request)
_HEADER = msgspec.json.Decoder(Header)

Frame = str | bytes


class Framing(ABC):
    """One of the two forms."""

    @abstractmethod
    def read(self, frame: Frame) -> Request:
        """Return the request in a frame.

        Raises:
            BadMessage: there is none.
        """

    @abstractmethod
    def write(self, message: Message) -> Frame:
        """Return a message as a frame."""


class JsonFraming(Framing):
    """JSON, with the channel in it."""

    def read(self, frame: Frame) -> Request:
        if isinstance(frame, bytes):
            frame = _first_part(frame)
        try:
            return _JSON.decode(frame)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadMessage(str(error)) from None

    def write(self, message: Message) -> Frame:
        # The parts are JSON already.
        return (
            f'{{"header":{message.header.decode()},"msg_id":"{message.msg_id}",'
            f'"msg_type":"{message.kind}","parent_header":{message.parent.decode()},'
            f'"metadata":{{}},"content":{message.content.decode()},'
            f'"buffers":[],"channel":"{message.channel}"}}'
        )


class V1Framing(Framing):
    """Offsets of eight bytes, the channel, the header, its parent, the metadata, the content."""

    def read(self, frame: Frame) -> Request:
        if isinstance(frame, str):
            raise BadMessage(f"a frame of {V1} is binary")
        starts = _offsets(frame, 8, "<Q")
        if len(starts) < V1_PARTS + 1:
            raise BadMessage("a message has a channel and four parts")
        channel, header, _, _, content = (
            frame[start:end] for start, end in pairwise(starts[: V1_PARTS + 1])
        )
        if channel not in CHANNELS:
            raise BadMessage("there is no such channel")
        try:
            return Request(_HEADER.decode(header), msgspec.Raw(content), CHANNELS[channel])
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadMessage(str(error)) from None

    def write(self, message: Message) -> Frame:
        parts = (
            message.channel.encode(),
            message.header,
            message.parent,
            b"{}",
            message.content,
        )
        at = 8 * (len(parts) + 2)
        offsets = [at]
        for part in parts:
            at += len(part)
            offsets.append(at)
        return struct.pack(f"<{len(offsets) + 1}Q", len(offsets), *offsets) + b"".join(parts)


def framing_of(asked: list[str]) -> tuple[Framing, str | None]:
    """Return the form that a client can read, and the subprotocol that it is then told."""
    return (V1Framing(), V1) if V1 in asked else (JsonFraming(), None)


def _first_part(frame: bytes) -> bytes:
    """Return the JSON of a frame with buffers, which are left out."""
    starts = _offsets(frame, 4, ">I")
    return frame[starts[0] : starts[1] if len(starts) > 1 else None]


def _offsets(frame: bytes, size: int, form: str) -> list[int]:
    """Return the offsets at the start of a frame; each is in it, and none before the last.

    Raises:
        BadMessage: they are not.
    """
    count = struct.unpack_from(form, frame)[0] if len(frame) >= size else 0
    if not 1 <= count <= MAX_PARTS or len(frame) < size * (count + 1):
        raise BadMessage(f"a frame has 1 to {MAX_PARTS} offsets at its start")
    offsets = [struct.unpack_from(form, frame, size * (at + 1))[0] for at in range(count)]
    if offsets != sorted(offsets) or offsets[0] < size * (count + 1) or offsets[-1] > len(frame):
        raise BadMessage("an offset of the frame points outside of it")
    return offsets
