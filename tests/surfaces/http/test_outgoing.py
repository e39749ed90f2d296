"""What is written in one go leaves together: an answer's head and body, messages of a WebSocket.
What stands alone does not wait."""

import asyncio

from divingbell.surfaces.http.outgoing import MOST_GATHERED, Gathered, Outgoing


class Recorder(asyncio.Transport):
    """Keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[bytes] = []
        self.closed = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.written.append(bytes(data))

    def close(self) -> None:
        self.closed = True


def _made() -> tuple[Recorder, Outgoing]:
    recorder = Recorder()
    return recorder, Outgoing(recorder, asyncio.get_running_loop())


async def test_an_answer_is_one_write() -> None:
    recorder, outgoing = _made()
    for _ in range(2):
        outgoing.begin()
        outgoing.write(b"head ")
        outgoing.write(b"body")
    await asyncio.sleep(0)
    assert recorder.written == [b"head body"] * 2


async def test_a_head_alone_goes_in_the_next_turn_of_the_loop_and_what_follows_at_once() -> None:
    recorder, outgoing = _made()
    outgoing.begin()
    outgoing.write(b"head")
    assert not recorder.written
    await asyncio.sleep(0)
    assert recorder.written == [b"head"]
    outgoing.write(b"first")
    outgoing.write(b"second")
    assert recorder.written == [b"head", b"first", b"second"]


async def test_nothing_is_lost_where_the_next_answer_begins_or_the_connection_ends() -> None:
    recorder, outgoing = _made()
    outgoing.begin()
    outgoing.write(b"one")
    outgoing.begin()
    outgoing.write(b"two")
    outgoing.close()
    assert recorder.written == [b"one", b"two"]
    assert recorder.closed


async def test_messages_of_one_turn_are_one_write_and_their_order_stays() -> None:
    recorder = Recorder()
    gathered = Gathered(recorder, asyncio.get_running_loop())
    for message in (b"busy ", b"input"):
        gathered.write(message)
    assert not recorder.written
    await asyncio.sleep(0)
    assert recorder.written == [b"busy input"]
    gathered.write(b"last")
    gathered.close()
    await asyncio.sleep(0)
    assert recorder.written == [b"busy input", b"last"]
    assert recorder.closed


async def test_so_much_that_a_slow_reader_must_be_seen_does_not_wait() -> None:
    recorder = Recorder()
    gathered = Gathered(recorder, asyncio.get_running_loop())
    gathered.write(b"a")
    gathered.write(bytes(MOST_GATHERED))
    assert recorder.written == [b"a" + bytes(MOST_GATHERED)]
    await asyncio.sleep(0)
    assert len(recorder.written) == 1
