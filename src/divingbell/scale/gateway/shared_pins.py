"""The definitions of tools that were seen through any replica, and what changed ones mean."""

import asyncio
from typing import Any, cast, get_args

from divingbell.errors import ToolFailed
from divingbell.gateway.policy.pins import Pins, Review
from divingbell.scale.gateway.asking import asked
from divingbell.scale.gateway.failures import checked
from divingbell.scale.gateway.link import GatewayLink
from divingbell.scale.line import Line, Message, Stream
from divingbell.session.intake import field_of
from divingbell.settings.rules import Action
from divingbell.tool import Tool
from divingbell_inside import frames

MAX_KNOWN = 20_000
_ACTIONS, _REVIEWS = get_args(Action), get_args(Review)


class PinKeeper:
    """The side of the gateway: the pins are a file of its machine."""

    def __init__(self, pins: Pins) -> None:
        self._pins = pins
        self._saving: asyncio.Task[None] | None = None

    async def review(self, line: Line, stream: Stream, message: Message) -> None:
        header = message.header
        action: Any = header.get("action")
        if action not in _ACTIONS:
            raise frames.FrameError("a decision that is none")
        review = self._pins.review_digest(*_definition_in(header), action)
        stream.finish({"review": review})
        self._save()

    async def approve(self, line: Line, stream: Stream, message: Message) -> None:
        self._pins.approve_digest(*_definition_in(message.header))
        stream.finish({})
        self._save()

    async def stop(self) -> None:
        """Remember what is to be remembered."""
        if self._saving is not None:
            await asyncio.wait([self._saving])
        if self._pins.unsaved:
            await asyncio.to_thread(self._pins.save)

    def _save(self) -> None:
        if self._pins.unsaved and (self._saving is None or self._saving.done()):
            self._saving = asyncio.create_task(asyncio.to_thread(self._pins.save))


class RemotePins:
    """The side of a replica (divingbell.gateway.policy.pins.SharedPins).

    What was fine is not asked about again until the server lists its tools anew.
    """

    def __init__(self, link: GatewayLink) -> None:
        self._link = link
        self._fine: dict[tuple[str, str], Tool] = {}

    async def review(self, tool: Tool, digest: str, action: Action) -> Review:
        key = tool.server, tool.name
        if self._fine.get(key) is tool:
            return "fine"
        message = await self._asked("review_pin", tool, digest, action=action)
        review = field_of(message.header, "review", str, "")
        if review not in _REVIEWS:
            raise ToolFailed("the definition of the tool could not be compared", "tool_unavailable")
        if review == "fine":
            if len(self._fine) >= MAX_KNOWN:
                self._fine.clear()
            self._fine[key] = tool
        return cast(Review, review)

    async def approve(self, tool: Tool, digest: str) -> None:
        await self._asked("approve_pin", tool, digest)

    async def _asked(self, op: str, tool: Tool, digest: str, **more: str) -> Message:
        definition = {"server": tool.server, "tool": tool.name, "digest": digest}
        return checked(await asked(self._link, {"op": op, **definition, **more}))


def _definition_in(header: frames.Header) -> tuple[str, str, str]:
    server, tool, digest = header["server"], header["tool"], header["digest"]
    if not (type(server) is str and type(tool) is str and type(digest) is str):
        raise frames.FrameError("a definition of nothing")
    return server, tool, digest
