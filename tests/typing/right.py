"""Uses of the library that type checkers must let pass: see tests/test_types.py."""

from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from io import BytesIO, StringIO
from pathlib import Path, PurePosixPath
from typing import assert_type

from divingbell import (
    Answer,
    Approval,
    Approver,
    Border,
    Completion,
    Divingbell,
    Event,
    EventType,
    FileInfo,
    FileKind,
    FileMissing,
    FileRefused,
    Files,
    Gateway,
    Isolation,
    Journal,
    Ledger,
    LimitName,
    Limits,
    OpenFile,
    Output,
    OutputName,
    Policy,
    Principal,
    Result,
    ServerState,
    Session,
    SessionLimits,
    Settings,
    SettingsArguments,
    Source,
    State,
    Status,
    Tool,
    ToolUse,
    Variable,
)


async def ask(approval: Approval) -> bool | Answer:
    return Answer("no") if approval.user else approval.tool == "shop.refund"


def make(border: Border | None = None) -> Divingbell:
    approver: Approver = ask
    limits: SessionLimits = {"memory": "1GB", "timeout": 5}
    more: SettingsArguments = {"pool": 0, "preload": ["numpy"], "limits": limits}
    Divingbell("docker", Path("divingbell.toml"), on_approval=approver, border=border, **more)
    Divingbell(limits=Limits(memory=1 << 30), policy=Policy(), mounts={"/data": Path("data")})
    return Divingbell(memory="256MB", cores=2, servers={}, mcp_config=Path("mcp.json"))


async def run(bell: Divingbell) -> None:
    async with bell.session("analysis", user="ada", memory=1 << 28, timeout=1.5) as session:
        assert_type(session, Session)
        result = await session.run("1 + 1", context={"x": [1, 2]}, argv=["script.py"])
        assert_type(result, Result)
        assert_type(result.status, Status)
        assert_type(result.limit, LimitName | None)
        assert_type(result.state, State)
        assert_type(result.outputs, tuple[Output, ...])
        assert_type(result.ledger, Ledger | None)
        assert_type(await session.variables(), list[Variable])
        assert_type(await session.complete("pri", 3), list[Completion])
        assert_type(session.isolation, Isolation)
        assert_type(session.principal, Principal)
        assert_type(session.limits, Limits)
        assert_type(session.files, Files)
    assert_type(bell.settings, Settings)
    assert_type(bell.gateway, Gateway)
    assert_type(bell.journal, Journal)
    assert_type(bell.gateway.servers(), list[ServerState])
    assert_type(bell.gateway.tools(), list[Tool])
    assert_type(await bell.execute("1", disk="1MB"), Result)


async def watch(session: Session) -> EventType | None:
    last: EventType | None = None
    events = session.stream("print(1)")
    assert_type(events, AsyncGenerator[Event, None])
    async with aclosing(events):
        async for event in events:
            if event.type == "stdout":
                print(event.text)
            names: list[OutputName] = [output.name for output in event.outputs]
            print(names)
            last = event.type
    return last


async def chunks() -> AsyncIterator[bytes]:
    yield b"one"


def plain_chunks() -> Iterator[bytes | memoryview]:
    yield b"one"


def open_files(path: Path) -> list[Source]:
    return [path.open("rb"), path.open()]


async def files(session: Session) -> list[FileInfo]:
    sources: list[Source] = [
        "text",
        b"bytes",
        bytearray(1),
        memoryview(b"view"),
        Path("report.csv"),
        BytesIO(),
        StringIO(),
        chunks(),
        plain_chunks(),
        iter([b"one"]),
    ]
    for source in sources:
        assert_type(await session.files.put(PurePosixPath("folder/file"), source), int)
    async with aclosing(session.files.stream("file", most=10)) as pieces:
        assert_type([piece async for piece in pieces], list[bytes])
    try:
        async with await session.files.open("file") as file:
            assert_type(file, OpenFile)
            assert_type(file.info, FileInfo)
            assert_type([piece async for piece in file], list[bytes])
            await session.files.put("copy", file)
    except FileMissing as error:
        refused: FileRefused = error
        assert_type(refused.code, str)
    kind: FileKind = (await session.files.stat("file")).kind
    print(kind)
    return await session.files.list()


def tools_of(ledger: Ledger) -> list[ToolUse]:
    return list(ledger.tools)
