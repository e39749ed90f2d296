"""The self-check: runs every promise of a backend against a sandbox of that backend.

Probes share a session, because they change nothing. A bomb has a session of its own with small
limits, and is judged by its result, by whether that session still works afterwards, and by a
neighbour that must not have noticed. Host checks are functions of this package; those of tools
have a Divingbell of their own, with rules of their own and a hostile server behind it, and so have
those of personal data, with a border and with people whom the server knows.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from functools import partial

from divingbell.app import Divingbell
from divingbell.errors import DivingbellError
from divingbell.models import Result
from divingbell.promises import KEPT, PROMISES, Promise
from divingbell.promises.check import (
    ALONE,
    CHECKS,
    PRIVACY_CHECKS,
    TOOL_CHECKS,
    CheckRig,
    PrivacyRig,
    PromiseBroken,
    ToolRig,
    judged,
)
from divingbell.sandbox import registry
from divingbell.session.session import Session

AT_ONCE = 4
"""Bombs that run side by side: most of them wait for a time limit."""
PATIENCE = 60.0
"""No check takes longer than this, whatever happens."""
MOST_AGAIN = 5
"""Checks that did not end beside others, and are tried once more alone: with four at once on a busy
machine that says nothing of the promise. So many that fail so are a failure of their own."""
NEIGHBOUR_PATIENCE = 20.0
_KEPT_FILE = "kept.txt"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a promise is kept here, and what was seen."""

    promise: Promise
    kept: bool
    detail: str


def promised(
    backend: str,
    limits_by: str,
    only: Collection[str] | None = None,
    *,
    own_uid: bool = True,
) -> tuple[Promise, ...]:
    """The promises that this backend makes with this way to limit."""
    return tuple(
        promise
        for promise in PROMISES
        if promise.about_sessions
        and (only is None or promise.id in only)
        and not _reason(promise, backend, limits_by, own_uid)
    )


def left_out(backend: str, limits_by: str, *, own_uid: bool = True) -> list[tuple[Promise, str]]:
    """The promises that this backend does not make with this way to limit, and why not."""
    return [
        (promise, reason)
        for promise in PROMISES
        if promise.about_sessions and (reason := _reason(promise, backend, limits_by, own_uid))
    ]


def _reason(promise: Promise, backend: str, limits_by: str, own_uid: bool) -> str:
    """The reason why a promise is not made; empty if it is."""
    row = registry.find(backend)
    # Of the backends of other packages the table knows nothing: their rows say it themselves.
    said = promise.backends.get(backend) or row.not_promised.get(promise.id, KEPT)
    if said != KEPT:
        return said
    if limits_by == "rlimits" and promise.without_cgroups:
        return promise.without_cgroups
    shares_uid = not own_uid and not row.sessions_have_own_uids
    return promise.without_own_uid if shares_uid else ""


async def check(bell: Divingbell, only: Collection[str] | None = None) -> AsyncIterator[Verdict]:
    """Run the promises of the bell's backend (or those whose id is in `only`), as they end.

    Raises:
        SandboxUnavailable: no session can be opened at all.
    """
    verdicts: asyncio.Queue[Verdict | None] = asyncio.Queue()
    task = asyncio.create_task(_Check(bell, only, verdicts).run())
    task.add_done_callback(lambda _: verdicts.put_nowait(None))
    try:
        while (verdict := await verdicts.get()) is not None:
            yield verdict
        await task
    finally:
        if not task.done():
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


Work = Callable[[], Awaitable[str]]
"""Begins a check; it returns what was seen."""


class _Check:
    def __init__(
        self, bell: Divingbell, only: Collection[str] | None, out: asyncio.Queue[Verdict | None]
    ) -> None:
        self._rig = CheckRig(bell)
        self._tool_rig: ToolRig | None = None
        """Only while checks run that need one."""
        self._privacy_rig: PrivacyRig | None = None
        """The same."""
        self._only = only
        self._out = out
        self._places = asyncio.Semaphore(AT_ONCE)
        self._slowness = 1
        self._late: list[tuple[Promise, Work]] = []
        """Those that did not end beside others."""

    async def run(self) -> None:
        async with contextlib.AsyncExitStack() as stack:
            shared = await stack.enter_async_context(self._rig.session())
            neighbour = await stack.enter_async_context(self._rig.session())
            await neighbour.run("here = 42")
            isolation = shared.isolation
            self._slowness = registry.find(isolation.backend).slowness
            chosen = promised(
                isolation.backend, isolation.limits_by, self._only, own_uid=isolation.own_uid
            )
            if any(promise.id in TOOL_CHECKS for promise in chosen):
                beside = ToolRig.beside(self._rig.bell)
                self._tool_rig = await stack.enter_async_context(beside)
            if any(promise.id in PRIVACY_CHECKS for promise in chosen):
                with_people = PrivacyRig.beside(self._rig.bell)
                self._privacy_rig = await stack.enter_async_context(with_people)
            for promise in chosen:
                if promise.kind == "probe":
                    await self._report(promise, partial(self._probe, promise, shared))
            together = [
                self._report(promise, partial(self._bomb, promise, neighbour), again=True)
                if promise.kind == "bomb"
                else self._report(promise, partial(self._host, promise), again=True)
                for promise in chosen
                if promise.kind == "bomb" or (promise.kind == "host" and promise.id not in ALONE)
            ]
            await asyncio.gather(*together)
            # Those that measure this process itself can have no one beside them.
            for promise in chosen:
                if promise.kind == "host" and promise.id in ALONE:
                    await self._report(promise, partial(self._host, promise))
            for promise, work in self._late:
                await self._report(promise, work)

    async def _report(self, promise: Promise, work: Work, *, again: bool = False) -> None:
        """Run a check, and tell what it has found; one that does not end may be tried again."""
        async with self._places:
            try:
                async with asyncio.timeout(PATIENCE * self._slowness):
                    detail, kept = await work(), True
            except PromiseBroken as broken:
                detail, kept = str(broken), False
            except TimeoutError:
                if again and len(self._late) < MOST_AGAIN:
                    self._late.append((promise, work))
                    return
                words = f"the check did not end within {PATIENCE * self._slowness:g} s"
                detail, kept = words, False
            except DivingbellError as error:
                detail, kept = f"{type(error).__name__}: {error}", False
        self._out.put_nowait(Verdict(promise, kept, detail[:500]))

    async def _probe(self, promise: Promise, session: Session) -> str:
        return judged(await self._rig.run(session, promise.probe))

    async def _host(self, promise: Promise) -> str:
        if promise.id in CHECKS:
            return await CHECKS[promise.id](self._rig)
        if promise.id in TOOL_CHECKS and self._tool_rig is not None:
            return await TOOL_CHECKS[promise.id](self._tool_rig)
        if promise.id in PRIVACY_CHECKS and self._privacy_rig is not None:
            return await PRIVACY_CHECKS[promise.id](self._privacy_rig)
        raise PromiseBroken("there is no function in divingbell.promises.check for it")

    async def _bomb(self, promise: Promise, neighbour: Session) -> str:
        async with self._rig.session(**promise.limits) as session:
            await session.files.put(_KEPT_FILE, b"kept")
            started = time.monotonic()
            result = await self._rig.run(session, promise.probe)
            seconds = time.monotonic() - started
            _judge_bomb(promise, result, seconds / self._slowness)
            await _judge_afterwards(promise, session)
        started = time.monotonic()
        answer = await neighbour.run("here")
        waited = time.monotonic() - started
        if answer.value != 42 or waited > NEIGHBOUR_PATIENCE:
            raise PromiseBroken(f"the neighbour answered {answer.value!r} after {waited:.1f} s")
        return f"{_outcome(result)} after {seconds:.1f} s; the session and its neighbour go on"


def _outcome(result: Result) -> str:
    return f"{result.status}:{result.limit}" if result.limit else result.status


def _judge_bomb(promise: Promise, result: Result, seconds: float) -> None:
    if "UNSAFE" in result.text:
        raise PromiseBroken(result.text.strip()[-300:])
    if result.status not in promise.outcomes and _outcome(result) not in promise.outcomes:
        raise PromiseBroken(
            f"it ended with {_outcome(result)} ({result.error}); {result.text[-200:]}"
        )
    if seconds > promise.within:
        raise PromiseBroken(f"{_outcome(result)}, but only after {seconds:.1f} s")


async def _judge_afterwards(promise: Promise, session: Session) -> None:
    after = await session.run("1 + 1", timeout=10)
    if after.value != 2:
        raise PromiseBroken(f"the session does not work afterwards: {after.status} {after.error}")
    if promise.keeps_files:
        try:
            kept = await session.files.get(_KEPT_FILE)
        except DivingbellError as error:
            raise PromiseBroken(f"the files of the session are gone: {error}") from None
        if kept != b"kept":
            raise PromiseBroken("the files of the session have changed")
