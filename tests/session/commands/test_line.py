"""A command server that was taken over: what it sends costs little, and is believed no further."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell import Session
from divingbell.sandbox.supervised import SupervisedSandbox
from divingbell.session.commands import line
from divingbell.shares.host_time import HostTime
from divingbell_inside import frames


def raw(header: bytes, body: bytes = b"") -> bytes:
    return struct.pack("!II", len(header), len(body)) + header + body


@contextlib.asynccontextmanager
async def taken_over(session: Session, monkeypatch: Any) -> AsyncIterator[socket.socket]:
    """The other end of the line of the next command, in our hands."""
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(SupervisedSandbox, "open_command", lambda *_: theirs.detach())
    with ours:
        ours.setblocking(False)
        yield ours


async def test_a_server_that_is_believed(session: Session, monkeypatch: Any) -> None:
    async with taken_over(session, monkeypatch) as ours:
        for header in ({"event": "began", "pid": 7}, {"event": "stdout"}, {"event": "ended"}):
            ours.send(frames.pack({**header, "code": 0}, b"x" if "pid" not in header else b""))
        result = await session.command("true")
        assert (result.status, result.stdout) == ("ok", "x")


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("!II", 0xFFFFFFFF, 0xFFFFFFFF),
        struct.pack("!II", 2, line.MAX_BODY + 1) + b"{}",
        struct.pack("!II", line.MAX_HEADER + 1, 0),
        raw(b"{}"),
        raw(b"[]"),
        raw(b'{"event":"stdout","event":"stderr"}'),
        raw(b'{"event":["stdout"]}'),
        raw(b'{"event":"display"}'),
        raw(b'{"event":"began","pid":"7"}'),
        raw(b'{"event":"began","pid":0}'),
        raw(b'{"event":"began","pid":4194304}'),
        raw(b'{"event":"ended"}'),
        raw(b'{"event":"ended","code":"0"}'),
        raw(b'{"event":"ended","code":256}'),
        raw(b'{"event":"ended","code":-1000}'),
        raw(b'{"event":"ended","code":1' + b"0" * 900 + b"}"),
        raw(b'{"event":"began","pid":7}') + raw(b'{"event":"refused","reason":"late"}'),
        b"not a frame at all, but long enough for one",
    ],
)
async def test_frames_that_break_the_rules_end_the_command(
    session: Session, monkeypatch: Any, sent: bytes
) -> None:
    async with taken_over(session, monkeypatch) as ours:
        ours.send(sent)
        result = await session.command("true")
        assert (result.status, result.exit_code) == ("killed", 137)
        assert result.error is not None and "written to its line" in result.error.message
        assert (await session.run("1 + 1")).value == 2


async def test_words_about_a_stumble_that_are_none_give_no_hint(
    session: Session, monkeypatch: Any
) -> None:
    async with taken_over(session, monkeypatch) as ours:
        ours.send(raw(b'{"event":"ended","code":1,"error":{"stumble":["<b>",7],"limit":"sky"}}'))
        result = await session.command("true")
        assert result.error is not None and (result.status, result.error.hint) == ("error", "")


async def test_tiny_frames_are_taken_in_a_few_at_a_time_and_charged() -> None:
    ours, theirs = socket.socketpair()
    charged: list[float] = []

    class Account(HostTime):
        def charge(self, seconds: float) -> float:
            charged.append(seconds)
            return super().charge(seconds)

    reading = line.CommandLine(theirs.detach(), Account(lambda *_: None))
    taken: list[int] = []
    in_a_row = 0

    def take(header: frames.Header, body: bytes) -> None:
        nonlocal in_a_row
        in_a_row += 1

    def settle() -> None:
        nonlocal in_a_row
        taken.append(in_a_row)
        in_a_row = 0

    with ours:
        ours.sendall(raw(b"{}") * 5000)
        ours.shutdown(socket.SHUT_WR)
        await reading.read(take, settle)
    reading.close()
    assert sum(taken) == 5000
    assert max(taken) <= line.MAX_STEPS
    assert len(charged) == len(taken) and sum(charged) > 0


async def test_while_it_is_paused_nothing_is_read_and_breaking_off_ends_it() -> None:
    ours, theirs = socket.socketpair()
    reading = line.CommandLine(theirs.detach(), HostTime(lambda *_: None))
    taken: list[frames.Header] = []
    reading.pause()
    task = asyncio.create_task(reading.read(lambda header, _: taken.append(header), lambda: None))
    with ours:
        ours.sendall(raw(b"{}"))
        await asyncio.sleep(0)
        assert not taken
        reading.break_off()
        await asyncio.wait_for(task, 10)
    reading.close()
