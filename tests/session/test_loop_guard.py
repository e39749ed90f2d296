"""The wrong loop, the wrong thread, a fork, no asyncio at all: each is told at once what to do."""

import asyncio
import inspect
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import Any

import pytest

from divingbell import Divingbell, DivingbellError, Session, WrongLoop
from divingbell.session.base import CommandHandle, FilesHandle
from divingbell.session.loop_guard import LoopGuard

PATIENCE = 120.0
Call = Callable[[], Any]


def calls_of(kind: type, target: object) -> Iterator[tuple[str, Call]]:
    """Everything that can be called on an object by its users, with some text for each argument."""
    for name, function in inspect.getmembers(kind, inspect.isfunction):
        if not name.startswith("_"):
            needed = [
                parameter
                for parameter in list(inspect.signature(function).parameters.values())[1:]
                if parameter.default is parameter.empty
                and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            ]
            words = ["a"] * len(needed)
            yield f"{kind.__name__}.{name}", partial(getattr(target, name), *words)


def everything(bell: Divingbell, session: Session) -> dict[str, Call]:
    found = dict(calls_of(Session, session))
    found |= calls_of(FilesHandle, session.files)
    found |= calls_of(Divingbell, bell)
    found["Divingbell.__aenter__"] = bell.__aenter__
    found["Divingbell.tool"] = partial(bell.tool, function_of_another_thread)
    del found["Session.commands"]  # it only looks, from wherever
    return found


def function_of_another_thread() -> None:
    """Do nothing."""


async def _outcome(call: Call) -> Any:
    """What comes of a call, whatever kind of thing it returns."""
    given = call()
    if isinstance(given, AsyncGenerator):
        return await anext(given)
    if isinstance(given, AbstractAsyncContextManager):
        return await given.__aenter__()
    return await given if inspect.isawaitable(given) else given


async def _refusal(call: Call) -> str:
    try:
        return f"no error: {await _outcome(call)!r}"
    except WrongLoop as error:
        return str(error)


def _refusals(calls: dict[str, Call]) -> dict[str, str]:
    """The words of each, in an event loop of its own."""

    async def run_all() -> dict[str, str]:
        async with asyncio.timeout(PATIENCE):
            return {name: await _refusal(call) for name, call in calls.items()}

    return asyncio.run(run_all())


async def test_another_loop_in_another_thread_is_told_at_once(
    bell: Divingbell, session: Session
) -> None:
    refusals = await asyncio.to_thread(_refusals, everything(bell, session))
    assert {name for name, said in refusals.items() if "another event loop" not in said} == set()
    assert all("divingbell.sync" in said for said in refusals.values())
    assert {"Session.run", "Session.stream", "FilesHandle.put", "Divingbell.get"} <= set(refusals)
    assert (await session.run("1 + 1")).value == 2  # nothing came of it


async def test_a_command_is_of_the_loop_of_its_session(session: Session) -> None:
    handle = await session.command("sleep 600", background=True)
    told = await asyncio.to_thread(_refusals, dict(calls_of(CommandHandle, handle)))
    assert set(told) == {f"CommandHandle.{name}" for name in ("kill", "stream", "wait")}
    assert not [words for words in told.values() if words.startswith("no error")]
    assert (await handle.kill()).status == "cancelled"


async def test_a_thread_without_a_loop_is_told_at_once(bell: Divingbell, session: Session) -> None:
    def attempt() -> list[str]:
        said = []
        for call in (bell.sessions, lambda: bell.get("a"), session.touch):
            with pytest.raises(WrongLoop) as caught:
                call()
            said.append(str(caught.value))
        return said

    assert all("no asyncio event loop" in said for said in await asyncio.to_thread(attempt))


async def test_what_only_looks_may_be_read_from_anywhere(bell: Divingbell) -> None:
    async with bell.session("seen", user="ada", labels={"team": "a"}) as session:
        seen = await asyncio.to_thread(
            lambda: (session.id, session.user, session.busy, session.closed, dict(session.labels))
        )
        assert seen == ("seen", "ada", False, False, {"team": "a"})
        shown = await asyncio.to_thread(lambda: (repr(session), repr(bell), bell._repr_html_()))
        assert shown[0] == "<Session 'seen' of 'ada': 0 cells, idle>"


async def test_another_thread_may_hand_its_call_over(session: Session) -> None:
    loop = asyncio.get_running_loop()

    def call() -> object:
        return asyncio.run_coroutine_threadsafe(session.run("6 * 7"), loop).result(PATIENCE).value

    assert await asyncio.to_thread(call) == 42


def test_a_second_run_is_told_that_the_first_has_ended(caplog: pytest.LogCaptureFixture) -> None:
    """In a process of its own: it is left open until the process ends."""
    program = """
import asyncio
from divingbell import Divingbell, WrongLoop
bell = Divingbell(pool=0, preload=())
async def first():
    await bell.__aenter__()
    return await bell.open("a")
async def second(session):
    for call in (bell.open, lambda: session.run("1"), session.close, bell.__aenter__,
                 lambda: bell.__aexit__(None, None, None), lambda: session.files.list()):
        try:
            await call()
        except WrongLoop as error:
            assert "has ended" in str(error), error
            print("told")
asyncio.run(second(asyncio.run(first())))
"""
    done = _program(program)
    assert done.stdout.split() == ["told"] * 6
    [line] = done.stderr.splitlines()
    assert "without closing" in line


def test_one_that_was_left_may_be_started_again_in_another_run() -> None:
    bell = Divingbell(pool=0, preload=())

    async def use() -> object:
        async with bell:
            return (await bell.execute("1 + 1")).value

    assert [asyncio.run(use()), asyncio.run(use())] == [2, 2]


def test_what_is_not_asyncio_is_told_so() -> None:
    """As trio does it: the coroutine is run, and there is no loop of asyncio's."""
    with pytest.raises(WrongLoop, match="needs one \\(trio's is none\\)"):
        Divingbell().__aenter__().send(None)
    with pytest.raises(WrongLoop):
        LoopGuard()


def test_it_is_an_error_of_ours_with_a_code() -> None:
    assert issubclass(WrongLoop, DivingbellError)
    assert WrongLoop.code == "wrong_loop"


# Forks

FORKING = """
import asyncio, multiprocessing, os
from divingbell import Divingbell, WrongLoop

def outcome(call):
    try:
        call()
    except StopIteration:
        return "quiet"
    except WrongLoop as error:
        assert "a fork" in str(error), error
        return "told"

def attempt(bell, session):
    calls = [bell.sessions, session.touch, lambda: session.run("x = 2").send(None),
             lambda: anext(session.stream("1")).send(None),
             lambda: session.files.put("a", "b").send(None),
             lambda: session.close().send(None), lambda: bell.release(session).send(None),
             lambda: bell.open().send(None), lambda: bell.__aenter__().send(None)]
    assert [outcome(call) for call in calls] == ["told"] * len(calls)
    assert outcome(lambda: bell.close().send(None)) == "quiet"
    bell._abandon(None)  # what Python calls when a program ends

def in_child(bell, session):
    attempt(bell, session)
    async def own():
        async with Divingbell(pool=0, preload=()) as another:
            print("child", (await another.execute("6 * 7")).value, flush=True)
    asyncio.run(own())

async def leave(context):
    await context.__aexit__(None, None, None)

async def main():
    async with Divingbell(pool=1, preload=()) as bell:
        context = bell.session("a")
        session = await context.__aenter__()
        await session.run("x = 1")
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                attempt(bell, session)
                status = 0 if outcome(lambda: leave(context).send(None)) == "quiet" else 2
            finally:
                os._exit(status)
        _, status = await asyncio.to_thread(os.waitpid, pid, 0)
        print("fork", os.waitstatus_to_exitcode(status), (await session.run("x")).value, flush=True)
        child = multiprocessing.get_context("fork").Process(target=in_child, args=(bell, session))
        child.start()
        await asyncio.to_thread(child.join)
        print("process", child.exitcode, (await session.run("x")).value, flush=True)
        print("files", await session.files.put("a", "bc"), flush=True)
        async with bell.session("b") as another:
            print("new", (await another.run("3")).value, flush=True)
        await leave(context)
        print("closed", session.closed)

asyncio.run(asyncio.wait_for(main(), 100))
"""


def _program(source: str) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run(
        # Python 3.12 and later warn of forks beside threads.
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", source],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def test_a_fork_can_use_nothing_and_harms_nothing() -> None:
    done = _program(FORKING)
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "fork 0 1", "child 42", "process 0 1", "files 2", "new 3", "closed True",
    ]  # fmt: skip


def test_a_check_is_cheap_enough_for_every_call() -> None:
    """Counted, not timed: it makes two calls of the interpreter's own and reads nothing."""

    async def count() -> int:
        guard, calls = LoopGuard(), 0

        def see(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event == "c_call"

        sys.setprofile(see)
        try:
            guard.check()
        finally:
            sys.setprofile(None)
        return calls

    assert asyncio.run(count()) <= 6
