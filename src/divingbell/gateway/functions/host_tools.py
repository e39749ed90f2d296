"""The functions of this program as tools of the server `host`: for all sessions, and for one.

A function that was given to one session has no file under /servers and is in no index of others:
another session does not find it by any name, and so can neither see nor call it.
"""

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from divingbell import logs
from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.catalog.catalog import split_name
from divingbell.gateway.catalog.definitions import MAX_TOOLS, tools_of
from divingbell.gateway.context import CallContext
from divingbell.gateway.functions.function import HostFunction, check_names
from divingbell.gateway.functions.host_result import HostResult
from divingbell.gateway.functions.threads import Threads
from divingbell.gateway.functions.tool_context import ToolContext
from divingbell.gateway.schema.outcome import TOO_MUCH_AT_ONCE
from divingbell.gateway.search.index import Index
from divingbell.gateway.upstream.fleet import Fleet
from divingbell.settings.policy import Policy
from divingbell.shares import allowance, weight
from divingbell.tool import Tool

log = logs.logger("divingbell.gateway")

HOST = "host"
"""The name of the server, and of its package."""


class Offered(NamedTuple):
    """A function, and the tool that it is."""

    tool: Tool
    function: HostFunction


class _SessionTools:
    """The functions that one session has for itself."""

    def __init__(self) -> None:
        self.offered: dict[str, Offered] = {}
        self.index = Index()
        self.revision = 0
        """Grows with each change, so that the session can tell that it has to look again."""

    def add(self, functions: Iterable[HostFunction]) -> None:
        known = {name: each.function for name, each in self.offered.items()}
        wanted = known | {each.name: each for each in functions if not _is_known(each, known)}
        if wanted == known:
            return
        self.revision += 1
        tools = _tools(wanted.values())
        self.offered = {name: Offered(tools[name], wanted[name]) for name in wanted}
        self.index = Index(tools.values())


class HostTools:
    """All functions that code may call, and the calls of them."""

    def __init__(self, rules: Policy, fleet: Fleet) -> None:
        self._policy = rules
        self._fleet = fleet
        self._shared: dict[str, Offered] = {}
        self._of_sessions: dict[str, _SessionTools] = {}
        self._threads = Threads()

    def stop(self) -> None:
        """Let the threads end that have nothing to do; one that hangs ends with the program."""
        self._threads.stop()

    # Functions come and go

    def share(self, functions: Iterable[HostFunction]) -> None:
        """Have these functions for all sessions, and no others.

        Raises:
            ConfigError: a server is called `host`.
            InvalidInput: there are too many, or two have the same name.
        """
        functions = list(functions)
        check_names(functions)
        _check_number(functions)
        made = self._fleet.publish(HOST, [each.definition for each in functions])
        self._shared = {each.name: Offered(made[each.name], each) for each in functions}
        self._tidy()

    def direct(self) -> tuple[str, ...]:
        """Return the names of those that clients see as tools of their own, in hybrid mode."""
        return tuple(name for name, each in self._shared.items() if each.function.direct)

    def names(self) -> tuple[str, ...]:
        """Return the names of those that all sessions have."""
        return tuple(self._shared)

    async def offer(self, session: str, functions: Iterable[HostFunction]) -> None:
        """Add functions for the session with this key alone. One of the same name is replaced.

        Raises:
            ConfigError: a server is called `host`.
            InvalidInput: there are too many, or one has the name of a function for all.
        """
        functions = list(functions)
        check_names(functions, self._shared)
        own = self._of_sessions.get(session) or _SessionTools()
        _check_number({*own.offered, *(each.name for each in functions)})
        if not self._fleet.is_published(HOST):
            self._fleet.publish(HOST, [])  # without the package there is nothing to import from
        own.add(functions)
        self._of_sessions[session] = own
        await self._fleet.written()

    def forget(self, session: str) -> None:
        """Forget a session that has ended."""
        if self._of_sessions.pop(session, None) is not None:
            self._tidy()

    def _tidy(self) -> None:
        """Take the package away once nobody has a function in it."""
        if not self._shared and not self._of_sessions:
            self._fleet.withdraw(HOST)

    # What one session has for itself

    def find(self, name: str, session: str) -> Tool | None:
        """Return the tool of that name that this session has for itself, if there is one."""
        own = self._of_sessions.get(session)
        server, called = split_name(name)
        if own is None or server != HOST:
            return None
        if called in own.offered:
            return own.offered[called].tool
        named = (each.tool for each in own.offered.values() if each.tool.function == called)
        return next(named, None)

    def tools(self, session: str) -> list[Tool]:
        """Return the tools that this session has for itself."""
        own = self._of_sessions.get(session)
        return [] if own is None else [each.tool for each in own.offered.values()]

    def search(self, session: str, query: str, limit: int) -> list[Tool]:
        """Return those of them that fit a query, the best first."""
        own = self._of_sessions.get(session)
        return [] if own is None else own.index.search(query, limit)

    def revision(self, session: str) -> int:
        """Return a number that grows when the session gets others."""
        own = self._of_sessions.get(session)
        return 0 if own is None else own.revision

    # Calls

    async def call(
        self, tool: Tool, given: Mapping[str, Any], context: CallContext, timeout: float
    ) -> HostResult:
        """Call the function behind a tool; `given` are its arguments as JSON.

        Raises:
            ToolFailed: it is gone, took too long, failed, or returned what can't be sent. Of an
                error that is no ToolFailed only the type is told: its words may hold secrets.
        """
        from divingbell.gateway.functions.calling import outcome  # it loads pydantic

        function = self._behind(tool, context.key)
        caller = ToolContext(tool.full_name, context.user or None, context.session, context.run)
        most = self._policy.max_result
        try:
            made = await outcome(function, given, caller, context, timeout, self._threads, most)
        except ToolFailed:
            raise
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise _failed(tool, "CancelledError") from None  # of something that it awaited
        except (Exception, SystemExit) as error:
            whose = logs.marks(context.principal, context.key, context.run or None)
            log.error("%s failed", tool.full_name, exc_info=error, extra=whose)
            raise _failed(tool, type(error).__name__) from None
        hold = allowance.RESULT.get()
        if hold is not None and not hold.grow(weight.cost(made.characters, made.weight)):
            raise ToolFailed(f"{tool.full_name}: {TOO_MUCH_AT_ONCE}", "tool_result")
        return HostResult({"result": made.value} if tool.wraps_result else made.value)

    def _behind(self, tool: Tool, session: str) -> HostFunction:
        """The function that is this very tool, and not another one of its name."""
        own = self._of_sessions.get(session)
        for offered in (own.offered if own is not None else {}, self._shared):
            found = offered.get(tool.name)
            if found is not None and found.tool == tool:
                return found.function
        raise ToolFailed(f"{tool.full_name} is not there any more", "tool_unknown")


def _failed(tool: Tool, kind: str) -> ToolFailed:
    return ToolFailed(f"{tool.full_name} failed with {kind}. The log of the host says more")


def _is_known(function: HostFunction, known: Mapping[str, HostFunction]) -> bool:
    """Whether it is there already. Whoever gives a list with each run makes it anew each time."""
    found = known.get(function.name)
    return found is not None and found.is_same(function)


def _tools(functions: Iterable[HostFunction]) -> dict[str, Tool]:
    return tools_of(HOST, HOST, [each.definition for each in functions])


def _check_number(functions: Collection[object]) -> None:
    if len(functions) > MAX_TOOLS:
        raise InvalidInput(f"{len(functions):,} functions are too many: {MAX_TOOLS:,} are the most")
