"""The door of a node: calls of tools go over the line to the gateway, which a front has.

A node has no server, no rule and no secret of one: it passes on a name and arguments, and gets an
answer. Who is asked is the front that runs the cell; between cells, one that holds the session.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import cast, get_args

from divingbell.errors import DivingbellError, InvalidInput, ToolFailed, ToolFailure
from divingbell.gateway.context import Answer, CallContext
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.schema.outcome import TOO_MUCH_AT_ONCE
from divingbell.scale.line import Line, LineLost, Message
from divingbell.session.intake import field_of
from divingbell.shares import allowance, weight

MAX_KIND = 40
MAX_MESSAGE = 20_000
CALLS_AT_ONCE = 256
"""Of one session, beyond which its calls wait here. The front has the limit of the policy."""


class LineDoor:
    """The gateway at the other end of lines (divingbell.session.calls.ToolGateway).

    `front` returns the line to whoever answers for the session with a key; None where nobody does.
    """

    calls_at_once = CALLS_AT_ONCE

    def __init__(self, front: Callable[[str], Line | None]) -> None:
        self._front = front
        self.generations: dict[str, int] = {}
        """By the key of a session what its front has said last, with a cell."""

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer a call.

        Raises:
            ToolFailed: it was refused, did not succeed, or nobody is there to answer it.
        """
        line = self._front(context.key)
        if line is None:
            raise ToolFailed(
                f"{name}: the program that answers calls of tools for this session has gone; call "
                "it again once somebody uses the session",
                "tool_unavailable",
            )
        try:
            request = {"op": "call", "key": context.key, "run": context.run, "name": name}
            stream = await line.request_with(request, arguments)
            try:
                message = await stream.receive()
            except asyncio.CancelledError:
                stream.tell({"do": "cancel"})
                stream.abandon()
                raise  # whether it was made already is told by the front, which knows
        except LineLost as error:
            context.sent = True
            raise ToolFailed(
                f"{name}: the line to the gateway broke while the call was under way; whether it "
                f"was made is not known ({error})",
                "tool_unavailable",
            ) from None
        except ToolFailed:
            raise
        except DivingbellError as error:
            raise ToolFailed(f"{name}: {error}", "tool_unavailable") from None
        _take_whether_sent(context, message)
        return _answer_in(name, message)

    def generation(self, session: str) -> int:
        return self.generations.get(session, 0)

    async def offer(self, session: str, functions: Sequence[HostFunction]) -> None:
        raise InvalidInput("functions are given where the gateway is, and a node has none")

    def received(self, session: str, user: str, source: str) -> None:
        """Leave that to the front, which has taken note before it sent anything."""

    def cost(self, arguments: bytes) -> int:
        return weight.weight_of(arguments, weight.MAX_ARGUMENTS) * weight.UNIT

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        raise ToolFailed("code is approved where the gateway is")

    def end_run(self, session: str) -> None:
        """Leave that to the front."""

    async def forget(self, session: str) -> None:
        self.generations.pop(session, None)

    # What hints name: the front gives them (divingbell.scale.stumbles)

    @property
    def has_servers(self) -> bool:
        return False

    def fetching(self, user: str) -> list[str]:
        return []

    def signature_of(self, name: str, user: str) -> str | None:
        return None


def _take_whether_sent(context: CallContext, message: Message) -> None:
    context.sent = message.header.get("sent") is not False


def _answer_in(name: str, message: Message) -> Answer:
    header, body = message
    if header.get("ok") is True:
        hold = allowance.RESULT.get()
        if hold is not None and not hold.grow(len(body)):
            raise ToolFailed(f"{name}: {TOO_MUCH_AT_ONCE}", "tool_result")
        return Answer(body, field_of(header, "kind", str, "value")[:MAX_KIND])
    code = field_of(header, "code", str, "tool_error")
    told = body[: 4 * MAX_MESSAGE].decode("utf-8", "replace")
    raise tool_failure(code, told[:MAX_MESSAGE] or f"{name} failed")


def tool_failure(code: str, words: str) -> ToolFailed:
    """Return the failure of a call that the other side has told; one that is not known here is a
    plain one."""
    return ToolFailed(words, cast(ToolFailure, code) if code in _CODES else "tool_error")


_CODES = frozenset(get_args(ToolFailure))
