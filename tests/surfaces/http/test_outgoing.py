"""An answer's head and body go out together; a head that stands alone does not wait."""

import asyncio

from divingbell.surfaces.http.outgoing import Outgoing


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
