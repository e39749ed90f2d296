"""Mistakes that type checkers must find, each in a line that is marked: see tests/test_types.py."""

from pathlib import PureWindowsPath

from divingbell import Approval, Divingbell, Event, Result, Session, SessionLimits, Status


def of_settings() -> None:
    Divingbell(memroy="1GB")  # wrong
    Divingbell(memory=[1])  # wrong
    Divingbell(pool="two")  # wrong
    Divingbell(mode="fast")  # wrong
    Divingbell(preload="numpy")  # wrong
    Divingbell(limits={"memroy": "1GB"})  # wrong
    Divingbell(on_approval=print)  # wrong
    Divingbell("local", backend="docker")  # wrong


async def of_sessions(bell: Divingbell) -> None:
    bell.session(timeuot=3)  # wrong
    bell.session(user=7)  # wrong
    async with bell.session(output=1.5) as session:  # wrong
        await session.run(b"1")  # wrong
        await session.run("1", context={1: 2})  # wrong
        await session.run("1", "2")  # wrong
    await bell.execute("1", memory=None)  # wrong
    limits: SessionLimits = {"cpu": 1}  # wrong
    print(limits, bell.backend)  # wrong


def of_results(result: Result, event: Event) -> Status:
    if result.status == "failed":  # wrong
        print(result.text)
    print(result.output)  # wrong
    if event.type == "stout":  # wrong
        print(event.text)
    result.status = "ok"  # wrong
    print(result.error.type)  # wrong
    return event.type  # wrong


async def of_files(session: Session) -> None:
    await session.files.put("a", None)  # wrong
    await session.files.put("a", 7)  # wrong
    await session.files.put("a", {"b": 1})  # wrong
    await session.files.put("a", iter(["text"]))  # wrong
    await session.files.put(b"a", b"")  # wrong
    await session.files.get(PureWindowsPath("a"))  # wrong
    await session.files.get("a", most="5MB")  # wrong
    if (await session.files.stat("a")).kind == "directory":  # wrong
        print(session.files.lists)  # wrong


async def approve_all(approval: Approval) -> int:
    return approval.identifier


Divingbell(on_approval=approve_all)  # wrong
