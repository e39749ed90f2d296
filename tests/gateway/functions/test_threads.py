"""The threads of functions: nobody can take them all, also not with sessions that have ended."""

import asyncio
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.context import CallContext
from divingbell.gateway.functions import threads as module
from divingbell.gateway.functions.threads import MOST, MOST_OF_A_SESSION, Threads
from divingbell.principal import Principal
from divingbell.shares.weight import charge_nobody


def caller(user: str, session: str) -> CallContext:
    return CallContext(Principal(user), session, f"{user}/{session}")


@asynccontextmanager
async def hanging(threads: Threads) -> AsyncIterator[threading.Event]:
    """Something that functions can hang on until the end of the block."""
    free = threading.Event()
    try:
        yield free
    finally:
        free.set()
        threads.stop()


async def begun(threads: Threads, context: CallContext, on: threading.Event) -> bool:
    try:
        await threads.begin(context, on.wait, charge_nobody)
    except ToolFailed as error:
        assert error.code == "tool_limit"
        return False
    return True


async def test_one_user_leaves_threads_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    threads = Threads()
    async with hanging(threads) as on:
        taken = [
            await begun(threads, caller("mallory", str(session)), on)
            for session in range(10)
            for _ in range(MOST_OF_A_SESSION)
        ]
        assert sum(taken) == MOST // 2
        for user in ("ann", "bob", "cy", "dee"):
            assert await begun(threads, caller(user, "one"), on), user


async def test_one_session_has_its_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", 0.01)
    threads = Threads()
    async with hanging(threads) as on:
        taken = [await begun(threads, caller("ann", "one"), on) for _ in range(MOST)]
        assert sum(taken) == MOST_OF_A_SESSION
        assert await begun(threads, caller("ann", "two"), on)


async def test_whoever_waits_gets_the_thread_that_becomes_free() -> None:
    threads = Threads()
    async with hanging(threads) as on:
        ann = caller("ann", "one")
        first = [await threads.begin(ann, on.wait, charge_nobody) for _ in range(MOST_OF_A_SESSION)]
        waiting = asyncio.create_task(threads.begin(ann, lambda: 7, charge_nobody))
        await asyncio.sleep(0)
        assert not waiting.done()
        on.set()
        await asyncio.gather(*first)
        assert await (await waiting) == 7
        assert not threads._of and threads._busy == 0
