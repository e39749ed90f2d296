"""Calls that take several requests: the 2026 era asks the client between two of them.

A call that has a question is kept, running, until the client comes back with the answer. The
client holds a sealed word for it, which only the same user can use, for the same request.
"""

import asyncio
import contextlib
import json
import secrets
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Generic, TypeVar

import mcp_types as types
import pydantic
from mcp import MCPError
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity

from divingbell import logs
from divingbell.host import beside
from divingbell.principal import Principal
from divingbell.shares import weight
from divingbell.surfaces.mcp.callers import HTTP, Context, principal_of
from divingbell.surfaces.mcp.client_channel import ClientChannel
from divingbell.surfaces.mcp.definitions import NAME
from divingbell.surfaces.mcp.replicas import Alone, Replicas, expired

log = logs.logger("divingbell")

PATIENCE = 600.0
"""Seconds that a call waits for an answer before it is given up."""
MAX_KEPT = 16
"""Calls of one user that wait for an answer."""
MAX_LARGE_KEPT = 4
"""Of these, calls with large arguments, which are held as long: four bodies have 64 MB."""
STOP_TIMEOUT = 5.0
_RESULTS: Mapping[str, type[pydantic.BaseModel]] = {
    each.__name__: each
    for each in (
        types.CallToolResult,
        types.GetPromptResult,
        types.InputRequiredResult,
        types.ReadResourceResult,
    )
}
"""What a call that is kept may end with, or ask."""
_ANSWERS: pydantic.TypeAdapter[types.InputResponses | None] = pydantic.TypeAdapter(
    types.InputResponses | None
)

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

    def __init__(self, replicas: Replicas | None = None) -> None:
        self._replicas = replicas or Alone()
        self._kept: dict[str, SuspendedCall[Any]] = {}

    def boundary(self) -> RequestStateBoundary:
        """Return what seals the states that go out, and checks those that come in."""
        security = RequestStateSecurity(
            keys=[self._replicas.key], ttl=PATIENCE, bind_principal=_principal
        )
        return RequestStateBoundary(security, default_audience=NAME)

    async def begin(
        self, ctx: Context, channel: ClientChannel, work: Work[R]
    ) -> R | types.InputRequiredResult:
        """Do the work, or return its first questions."""
        call = SuspendedCall(channel, work, weight.is_large(ctx.params))
        return await self._go_on(ctx, call)

    async def resume(
        self, ctx: Context, state: Mapping[str, Any], answers: types.InputResponses | None
    ) -> Any | types.InputRequiredResult:
        """Go on with work that has been kept, by this replica or by the one that the state names.

        Raises:
            MCPError: there is none, or it is another principal's.
        """
        principal, where = principal_of(ctx), state.get("at", self._replicas.name)
        if where == self._replicas.name:
            return await self._go_on(ctx, self._taken(principal, state["kept"], answers))
        request = {
            "user": principal.user,
            "kept": state["kept"],
            "answers": _ANSWERS.dump_python(answers, mode="json", by_alias=True, exclude_none=True),
        }
        told = await self._replicas.resume(where, request)
        if "error" in told:
            raise MCPError(**told["error"])
        return _RESULTS[told["kind"]].model_validate(told["result"])

    async def resume_for(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Go on with work that is kept here, for another replica that its client has come to.

        In the newer era alone calls are kept, and there a user is all that a principal is.
        """
        principal = Principal(request["user"], "", HTTP)
        answers = _ANSWERS.validate_python(request["answers"])
        try:
            found = await self._go_on(None, self._taken(principal, request["kept"], answers))
        except MCPError as error:
            data = error.error.model_dump(mode="json", exclude_none=True)
            return {"error": data}
        result = found.model_dump(mode="json", by_alias=True, exclude_none=True)
        return {"kind": type(found).__name__, "result": result}

    def _taken(
        self, principal: Principal, key: str, answers: types.InputResponses | None
    ) -> SuspendedCall[Any]:
        """Return a call that is kept no more, with the client's answers."""
        kept = self._kept.get(key)
        if kept is None or kept.channel.principal != principal:
            raise expired()
        self._forget(key)
        kept.channel.answer(answers)
        return kept

    async def _go_on(
        self, ctx: Context | None, call: SuspendedCall[R]
    ) -> R | types.InputRequiredResult:
        channel, task = call.channel, call.task
        channel.attach(ctx)
        asking = asyncio.create_task(channel.asking.wait())
        try:
            await asyncio.wait((task, asking), return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            channel.attach(None)
            # The state first: keeping one more may end another.
            state = json.dumps({"kept": self._keep(call), "at": self._replicas.name})
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
