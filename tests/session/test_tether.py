"""The host's end of the line: order, marks, caps, and what a broken line does."""

import asyncio
import contextlib
import os
import socket
import threading
from collections.abc import Callable

import pytest

from divingbell.session.intake import MARK_SIZE
from divingbell.session.tether import MAX_STEPS, Tether
from divingbell.shares.host_time import BURST, HostTime
from divingbell_inside import frames
from tests.waiting import until


class Other:
    """The interpreter's side, by hand."""

    def __init__(self) -> None:
        self.seen: list[object] = []
        self.closed: list[str] = []
        self.overdrawn: list[float] = []
        self.tether = Tether(
            self.seen.append,
            self._frame,
            self.closed.append,
            HostTime(lambda seconds, _: self.overdrawn.append(seconds)),
        )
        data, pipe = self.tether.hand_over()
        self.line = socket.socket(fileno=os.dup(data))
        self.line.setblocking(True)
        self.pipe = os.dup(pipe)
        self.tether.handed_over(0)
        hello = frames.receive(self.line)
        assert hello is not None
        self.mark = bytes.fromhex(hello[0]["mark"])

    def _frame(self, header: frames.Header, body: bytes) -> None:
        self.seen.append((header.get("event"), body))

    def text(self, data: bytes) -> None:
        os.write(self.pipe, data)

    def event(self, number: int, body: bytes = b"") -> None:
        self.line.sendall(frames.pack({"event": "e", "n": number}, body))
        self.text(self.mark + number.to_bytes(4, "big"))

    def answer(self, name: str) -> None:
        self.line.sendall(frames.pack({"event": name}))

    def merged(self) -> list[object]:
        """What was seen, with neighbouring pieces of text joined."""
        found: list[object] = []
        for item in self.seen:
            if isinstance(item, bytes) and found and isinstance(found[-1], bytes):
                found[-1] += item
            else:
                found.append(item)
        return found

    def close(self) -> None:
        self.tether.close()
        self.line.close()
        os.close(self.pipe)


@pytest.fixture
async def other():  # type: ignore[no-untyped-def]
    other = Other()
    yield other
    other.close()


async def test_events_keep_their_place_among_the_text(other: Other) -> None:
    other.text(b"one ")
    other.event(1, b"first")
    other.text(b"two ")
    other.event(2, b"second")
    other.event(3, b"third")
    other.text(b"three")
    other.answer("done")
    await until(lambda: ("done", b"") in other.seen, "the answer")
    assert other.merged() == [
        b"one ",
        ("e", b"first"),
        b"two ",
        ("e", b"second"),
        ("e", b"third"),
        b"three",
        ("done", b""),
    ]


async def test_a_mark_in_pieces_is_still_a_mark(other: Other) -> None:
    other.line.sendall(frames.pack({"event": "e", "n": 1}, b"x"))
    for byte in b"before" + other.mark + (1).to_bytes(4, "big") + b"after":
        other.text(bytes([byte]))
    other.answer("done")
    await until(lambda: ("done", b"") in other.seen, "the answer")
    assert other.merged() == [b"before", ("e", b"x"), b"after", ("done", b"")]


async def test_forged_marks_and_missing_marks_lose_nothing(other: Other) -> None:
    other.text(b"a" + other.mark + (99).to_bytes(4, "big") + b"b")
    other.line.sendall(frames.pack({"event": "e", "n": 5}, b"unmarked"))
    other.answer("done")
    await until(lambda: ("done", b"") in other.seen, "the answer")
    assert other.merged() == [b"ab", ("e", b"unmarked"), ("done", b"")]


async def test_text_that_looks_like_a_mark_is_text(other: Other) -> None:
    other.text(other.mark[: MARK_SIZE - 1])
    other.answer("done")
    await until(lambda: ("done", b"") in other.seen, "the answer")
    assert other.merged()[0] == other.mark[: MARK_SIZE - 1]


async def test_a_pause_holds_the_writer_and_loses_nothing(other: Other) -> None:
    other.tether.pause()
    flood = asyncio.to_thread(lambda: [other.text(b"x" * 10_000) for _ in range(50)])
    task = asyncio.create_task(flood)
    await asyncio.sleep(0.05)
    assert not other.seen and not task.done()
    other.tether.resume()
    await task
    await until(lambda: sum(len(t) for t in other.seen if isinstance(t, bytes)) == 500_000, "all")


async def test_a_frame_larger_than_the_buffers_goes_both_ways(other: Other) -> None:
    big = bytes(10 << 20)
    other.tether.send({"op": "run"}, big)
    received = await asyncio.to_thread(frames.receive, other.line)
    assert received == ({"op": "run"}, big)
    await asyncio.to_thread(other.line.sendall, frames.pack({"event": "big"}, big))
    await until(lambda: ("big", big) in other.seen, "the frame")


@pytest.mark.parametrize(
    "data",
    [b"\xff" * 64, frames.LENGTHS.pack(5, 0) + b"[1,2]", frames.pack({"n": "x"})],
)
async def test_a_line_that_breaks_the_rules_is_closed(other: Other, data: bytes) -> None:
    other.text(b"last words")
    other.line.sendall(data + frames.pack({"event": "done"}))
    await until(lambda: other.closed, "the line is closed")
    assert other.seen == [b"last words"]
    assert len(other.closed) == 1
    other.tether.send({"op": "ignored"})


async def test_events_without_end_are_refused(other: Other) -> None:
    def flood() -> None:
        try:
            for number in range(1, 20_000):
                other.line.sendall(frames.pack({"event": "e", "n": number}))
        except OSError:
            return

    await asyncio.to_thread(flood)
    await until(lambda: other.closed, "the line is closed")
    assert "too many" in other.closed[0]


async def test_the_end_of_the_other_side_is_told_once(other: Other) -> None:
    other.text(b"bye")
    other.line.close()
    await until(lambda: other.closed, "the line is closed")
    assert other.seen == [b"bye"]
    assert len(other.closed) == 1


async def turns_while(seen: Callable[[], int], until_seen: int) -> list[int]:
    """How much was seen before each turn of the others, until all of it was."""
    found: list[int] = []
    async with asyncio.timeout(30):
        while seen() < until_seen:
            before = seen()
            await asyncio.sleep(0)
            found.append(seen() - before)
    return found


async def test_tiny_frames_by_the_thousand_let_others_run(other: Other) -> None:
    count = 5_000
    flood = asyncio.create_task(
        asyncio.to_thread(other.line.sendall, frames.pack({"event": "x"}) * count)
    )
    turns = await turns_while(lambda: len(other.seen), count)
    await flood
    assert max(turns) <= MAX_STEPS and sum(turns) == count


async def test_forged_marks_by_the_thousand_let_others_run(other: Other) -> None:
    steps = 0
    take = other.tether._intake._step

    def counted() -> bool:
        nonlocal steps
        steps += 1
        return take()

    other.tether._intake._step = counted  # type: ignore[method-assign]
    noise = b"".join(b"x" + other.mark + number.to_bytes(4, "big") for number in range(3_000))
    flood = asyncio.create_task(asyncio.to_thread(other.text, noise))
    turns = await turns_while(lambda: steps, 6_000)
    await flood
    assert max(turns) <= MAX_STEPS
    await until(lambda: other.merged() == [b"x" * 3_000], "all of the text")
    assert len(other.seen) < 3_000, "text between forged marks is passed on in larger pieces"


async def test_events_whose_marks_never_come_are_passed_on_a_few_at_a_time(other: Other) -> None:
    count = 3_000
    numbered = b"".join(frames.pack({"event": "e", "n": each}) for each in range(count))
    flood = asyncio.create_task(
        asyncio.to_thread(other.line.sendall, numbered + frames.pack({"event": "done"}))
    )
    turns = await turns_while(lambda: len(other.seen), count + 1)
    await flood
    assert max(turns) <= MAX_STEPS
    assert other.seen[-1] == ("done", b"")


async def test_an_answer_waits_for_the_text_before_it_and_not_for_what_comes_later(
    other: Other,
) -> None:
    stop = threading.Event()

    def flood() -> None:
        other.text(b"before ")
        other.answer("done")
        while not stop.is_set():
            other.text(b"x" * 4096)

    task = asyncio.create_task(asyncio.to_thread(flood))
    await until(lambda: ("done", b"") in other.seen, "the answer")
    stop.set()
    await task
    at = other.seen.index(("done", b""))
    assert b"".join(each for each in other.seen[:at] if isinstance(each, bytes)).startswith(
        b"before "
    )


async def test_after_a_rest_it_reads_on_however_little_is_left(other: Other) -> None:
    other.tether._host_time.charge(BURST + 0.001)
    for number in range(20):
        other.answer(str(number))
        await until(lambda: (str(number), b"") in other.seen, "the answer")  # noqa: B023


async def test_what_is_read_is_charged(other: Other) -> None:
    other.tether._host_time.charge(BURST)
    other.answer("done")
    await until(lambda: ("done", b"") in other.seen, "the answer")
    assert other.overdrawn


async def test_a_header_of_too_many_values_closes_the_line_before_it_is_parsed(
    other: Other, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []
    parse = frames.parse

    def noted(raw: bytes) -> frames.Header:
        if len(raw) > 10_000:  # small ones are of sessions that other tests have left
            parsed.append(len(raw))
        return parse(raw)

    monkeypatch.setattr(frames, "parse", noted)
    rows = b'{"event":"done","value":[' + b"[]," * 20_000 + b"[]]}"
    text = b'{"event":"done","value":"' + b"[]," * 300_000 + b'"}'
    for header in (rows, text):
        packed = frames.LENGTHS.pack(len(header), 0) + header
        await asyncio.to_thread(other.line.sendall, packed)
        await until(lambda: len(other.seen) == len(parsed) == 1, "the frame")
        other.seen.clear()
        parsed.clear()
    many = b'{"event":"done","value":[' + b"[]," * 300_000 + b"[]]}"
    packed = frames.LENGTHS.pack(len(many), 0) + many
    flood = asyncio.create_task(asyncio.to_thread(_send_all, other.line, packed))
    await until(lambda: other.closed, "the line is closed")
    await flood
    assert not parsed and "too many values" in other.closed[0]


def _send_all(line: socket.socket, data: bytes) -> None:
    with contextlib.suppress(OSError):  # the line is closed meanwhile
        line.sendall(data)


async def test_events_are_weighed_by_what_is_made_of_them(other: Other) -> None:
    header = b'{"event":"e","n":%d,"x":[' + b"[0]," * 4_000 + b"0]}"

    def flood() -> None:
        for number in range(1_000):
            text = header % number
            _send_all(other.line, frames.LENGTHS.pack(len(text), 0) + text)

    task = asyncio.create_task(asyncio.to_thread(flood))
    await until(lambda: other.closed, "the line is closed")
    other.line.close()
    await task
    assert "too many" in other.closed[0]
    assert len(other.tether._intake._numbered) * len(header) < 4 << 20
