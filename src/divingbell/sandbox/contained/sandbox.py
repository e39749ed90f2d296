"""One sandbox in a container, of whatever kind: counted, ended, and asked what went wrong."""

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

from divingbell import logs
from divingbell.errors import SandboxUnavailable
from divingbell.host.cgroups import Group
from divingbell.models import Consumption, Isolation, Limits
from divingbell.sandbox.supervised import SupervisedSandbox

log = logs.logger("divingbell")


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a container that was not told to end."""

    reason: str
    out_of_memory: bool = False


class ContainedSandbox(SupervisedSandbox):
    """The host's handle on a container whose first process is our supervisor.

    `name` is what the container is called. `find_ending` asks whoever keeps the container how it
    ended; `remove` ends it, removes all that was made for it, and never raises.
    """

    def __init__(
        self,
        name: str,
        control: socket.socket,
        group: Group,
        isolation: Isolation,
        limits: Limits,
        find_ending: Callable[[], Awaitable[Ending]],
        remove: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(control, isolation, limits)
        self.name = name
        self._group = group
        self._processes = group.processes
        self._find_ending = find_ending
        self._remove = remove
        self._asking: asyncio.Task[None] | None = None

    def _count(self) -> Consumption:
        try:
            return self._group.consumption()
        except OSError:  # the container is gone, and its groups with it
            return self._final

    def pids(self) -> list[int]:
        return self._processes()

    def give_way(self, to_all: bool) -> None:
        self._group.give_way(to_all)

    def share(self, part: float) -> None:
        self._group.share(part)

    def _refusal(self, reason: str) -> SandboxUnavailable:
        return SandboxUnavailable(
            f"the container can't be sealed: {reason}. See `divingbell doctor`"
        )

    def _line_closed(self) -> None:
        if self._stopping is None and self._asking is None:
            self._count_once_more()
            self._asking = self._loop.create_task(self._ask())

    def _count_once_more(self) -> None:
        self._final = self._count()

    async def _ask(self) -> None:
        ending = await self._find_ending()
        if ending.out_of_memory:
            self._group = _Past(replace(self._final, memory_kills=self._final.memory_kills + 1))
        if self._stopping is None:
            self.on_gone(ending.reason)

    async def _stop(self) -> None:
        self._close_control()
        if self._asking is not None and self._asking is not asyncio.current_task():
            self._asking.cancel()
        with contextlib.suppress(OSError):
            self._group.close()
        await self._remove()


class _Past(Group):
    """The last counts of groups that are gone."""

    def __init__(self, counted: Consumption) -> None:
        self._counted = counted

    def consumption(self) -> Consumption:
        return self._counted

    def remove(self) -> None:
        return None
