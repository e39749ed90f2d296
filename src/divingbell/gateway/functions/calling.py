"""A call of a host function: on the event loop if it is async, else in a thread."""

import asyncio
import inspect
from collections.abc import Awaitable, Iterator, Mapping
from typing import Any, TypeVar

from divingbell.errors import ToolFailed
from divingbell.gateway.context import CallContext
from divingbell.gateway.functions.function import HostFunction
from divingbell.gateway.functions.plain import NoRoom, Plain, plain
from divingbell.gateway.functions.threads import Threads
from divingbell.gateway.functions.tool_context import ToolContext
from divingbell.shares import weight
from divingbell.shares.workers import WORKERS

AT_ONCE = 500
"""Characters, and units of weight, of a result that is made plain on the event loop. Measured: at
most 0.16 ms. What is larger is done in a thread."""
Value = TypeVar("Value")


async def outcome(
    function: HostFunction,
    given: Mapping[str, Any],
    caller: ToolContext,
    context: CallContext,
    timeout: float,
    threads: Threads,
    max_result: int,
) -> Plain:
    """Call a function, and return its value as plain data.

    Raises:
        ToolFailed: an argument does not fit, it took too long, or its value can't be sent.
        BaseException: whatever the function raises.
    """
    name, charge = caller.tool, weight.charging()
    positional, named = await weight.beside(lambda each: function.bound(each, caller), given)

    def work() -> Any:
        value = function.function(*positional, **named)
        if inspect.isawaitable(value):
            return value
        return WORKERS.here(lambda: _fitting(name, value, max_result))

    if function.is_async:
        value = await _within(timeout, name, function.function(*positional, **named))
    else:
        made = await _within(timeout, name, await threads.begin(context, work, charge))
        if isinstance(made, Plain):
            return made
        value = await _within(timeout, name, made)  # a plain function that returns a coroutine
    if not isinstance(value, Iterator):
        try:
            return plain(name, value, AT_ONCE, AT_ONCE)
        except NoRoom:
            pass  # it is larger
    write = await threads.begin(
        context, lambda: WORKERS.here(lambda: _fitting(name, value, max_result)), charge
    )
    return await _within(timeout, name, write)


def _fitting(name: str, value: Any, max_result: int) -> Plain:
    try:
        return plain(name, value, max_result)
    except NoRoom:
        raise ToolFailed(
            f"{name}: the result has more than {max_result:,} bytes (max_result in [policy]), or "
            "too many lists, objects and values. The call was made: ask for less at a time",
            "tool_result",
        ) from None


async def _within(seconds: float, name: str, work: Awaitable[Value]) -> Value:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await work
    except TimeoutError:
        if not limit.expired():
            raise
        words = f"{name} took longer than {seconds:g} seconds: it is not waited for any longer"
        raise ToolFailed(words, "tool_timeout") from None
