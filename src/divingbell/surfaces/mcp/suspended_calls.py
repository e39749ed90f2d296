"""Calls that take several requests: the 2026 era asks the client between two of them.

A call that has a question is kept, running, until the client comes back with the answer. The
client holds a sealed word for it, which only the same user can use, for the same request.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Generic, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from divingbell import logs
from divingbell.host import beside
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.surfaces.mcp.callers import Context, principal_of
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.definitions import NAME

log = logs.logger("divingbell")

PATIENCE = 600.0
"""Seconds that a call waits for an answer before it is given up."""
MAX_KEPT = 16
"""Calls of one user that wait for an answer."""
MAX_LARGE_KEPT = 4
"""Of these, calls with large arguments, which are held as long: four bodies have 64 MB."""
STOP_TIMEOUT = 5.0

R = TypeVar("R")
Work = Callable[[ClientChannel], Awaitable[R]]


class SuspendedCall(Generic[R]):
    """A call that has begun: its work, and the channel to the client that it may ask."""

    def __init__(self, channel: ClientChannel, work: Work[R], is_large: bool) -> None:
        self.channel = channel
        self.is_large = is_large
        self.task: asyncio.Task[R] = asyncio.create_task(_run(work, channel))
        self.task.add_done_callback(beside.heard)
        self.giving_up: asyncio.TimerHandle | None = None


async def _run(work: Work[R], channel: ClientChannel) -> R:
    return await work(channel)


class SuspendedCalls:
    """Keeps the calls that wait for their client."""

    def __init__(self) -> None:
        self._kept: dict[str, SuspendedCall[Any]] = {}

    def boundary(self) -> RequestStateBoundary:
        """Return what seals the states that go out, and checks those that come in."""
        security = RequestStateSecurity(
            keys=[secrets.token_bytes(32)], ttl=PATIENCE, bind_principal=_principal
        )
        return RequestStateBoundary(security, default_audience=NAME)

    async def begin(
        self, ctx: Context, channel: ClientChannel, work: Work[R]
    ) -> R | types.InputRequiredResult:
        """Do the work, or return its first questions."""
        call = SuspendedCall(channel, work, weight.is_large(ctx.params))
        return await self._go_on(ctx, call)

    async def resume(
        self, ctx: Context, key: str, answers: types.InputResponses | None
    ) -> Any | types.InputRequiredResult:
        """Go on with work that has been kept.

        Raises:
            MCPError: there is none, or it is another principal's.
        """
        kept = self._kept.get(key)
        if kept is None or kept.channel.principal != principal_of(ctx):
            raise MCPError(types.INVALID_PARAMS, "Invalid or expired requestState")
        self._forget(key)
        kept.channel.answer(answers)
        return await self._go_on(ctx, kept)

    async def _go_on(self, ctx: Context, call: SuspendedCall[R]) -> R | types.InputRequiredResult:
        channel, task = call.channel, call.task
        channel.attach(ctx)
        asking = asyncio.create_task(channel.asking.wait())
        try:
            await asyncio.wait((task, asking), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            channel.attach(None)
            # The state first: keeping one more may end another.
            state = state_of("kept", self._keep(call))
            return types.InputRequiredResult(
                input_requests=dict(channel.pending), request_state=state
            )
        except asyncio.CancelledError:
            await _stop(task)
            raise
        finally:
            asking.cancel()

    def _keep(self, call: SuspendedCall[Any]) -> str:
        key = secrets.token_urlsafe(16)
        mine = [old for old, kept in self._kept.items() if kept.channel.user == call.channel.user]
        self._give_up_oldest(mine, MAX_KEPT - 1)
        if call.is_large:
            large = [old for old in mine if old in self._kept and self._kept[old].is_large]
            self._give_up_oldest(large, MAX_LARGE_KEPT - 1)
        loop = asyncio.get_running_loop()
        call.giving_up = loop.call_later(PATIENCE, self._give_up, key)
        self._kept[key] = call
        return key

    def _give_up_oldest(self, keys: list[str], most: int) -> None:
        for old in keys[: max(0, len(keys) - most)]:
            self._give_up(old)

    def _forget(self, key: str) -> SuspendedCall[Any] | None:
        kept = self._kept.pop(key, None)
        if kept is not None and kept.giving_up is not None:
            kept.giving_up.cancel()
        return kept

    def _give_up(self, key: str) -> None:
        kept = self._forget(key)
        if kept is not None:
            kept.task.cancel()

    async def close(self, connection: str | None = None) -> None:
        """Give up the calls of a connection, or all of them."""
        ending = [
            key
            for key, kept in self._kept.items()
            if connection is None or kept.channel.principal.conversation == connection
        ]
        for kept in [kept for key in ending if (kept := self._forget(key))]:
            await _stop(kept.task)


def state_of(kind: str, value: Any) -> str:
    """Write down what the next request needs."""
    return json.dumps({kind: value})


def read_state(state: str | None) -> dict[str, Any]:
    """Return what an earlier request has written down; it was sealed, so it is ours."""
    found = json.loads(state) if state else {}
    assert isinstance(found, dict)
    return found


async def _stop(task: "asyncio.Task[Any]") -> None:
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, Exception):
        await asyncio.wait([task], timeout=STOP_TIMEOUT)


def _principal(ctx: Context) -> str | None:
    principal: Principal = principal_of(ctx)
    return json.dumps([principal.user, principal.conversation])
