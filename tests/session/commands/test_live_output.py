"""Output of a command as it comes: whole characters, in order, and never more than may wait."""

import asyncio

import hypothesis
from hypothesis import strategies

from divingbell.command import CommandEvent
from divingbell.session.commands.live_output import MAX_UNREAD, LiveOutput
from tests.waiting import PATIENCE


def read(live: LiveOutput) -> list[CommandEvent]:
    """All that waits, of one that has ended."""

    async def collect() -> list[CommandEvent]:
        async with asyncio.timeout(PATIENCE):
            return [event async for event in live.events()]

    return asyncio.run(collect())


def live(unfinished: bytes = b"") -> LiveOutput:
    return LiveOutput({"stdout": unfinished, "stderr": b""})


@hypothesis.given(strategies.text(alphabet="aä€😀\n", max_size=60), strategies.integers(0, 200))
def test_characters_stay_whole_wherever_it_begins_and_the_pipe_is_cut(text: str, at: int) -> None:
    raw = text.encode()
    before = raw[:at].decode("utf-8", "ignore").encode()
    output = live(raw[len(before) : at])
    for start in range(at, len(raw), 3):
        output.add("stdout", raw[start : min(start + 3, len(raw))])
    output.end()
    assert "".join(event.text for event in read(output)) == text[len(before.decode()) :]


def test_a_stream_that_ends_within_a_character_says_so() -> None:
    output = live()
    output.add("stderr", "€".encode()[:2])
    output.end()
    assert read(output) == [CommandEvent("stderr", "�")]


def test_what_does_not_fit_is_left_out_until_the_reader_has_caught_up() -> None:
    async def scenario() -> list[CommandEvent]:
        output = live()
        for _ in range(10):
            output.add("stdout", b"x" * (MAX_UNREAD // 4))
        output.add("stdout", "ä".encode()[:1])
        output.add("stderr", b"small")
        seen = []
        async for event in output.events():
            seen.append(event)
            if len(seen) == 3:
                output.add("stdout", "ä".encode()[1:] + b"again")
                output.end()
        return seen

    first, notice, *rest = asyncio.run(scenario())
    assert (first.type, len(first.text)) == ("stdout", MAX_UNREAD)
    assert notice.type == "notice" and notice.text.startswith("393,217 bytes of stdout are left")
    assert rest == [CommandEvent("stderr", "small"), CommandEvent("stdout", "äagain")]


def test_tiny_pieces_are_one_event() -> None:
    output = live()
    for _ in range(10_000):
        output.add("stdout", b"o")
        output.add("stderr", b"e")
    output.end()
    assert [len(event.text) for event in read(output)] == [10_000, 10_000]
