"""What a cell shows, put together."""

import pytest

from divingbell.models import Event
from divingbell.transcript import Transcript, settle_lines
from divingbell_inside import frames


def _transcript(limit: int = 1000) -> tuple[Transcript, list[Event], list[bytes]]:
    events: list[Event] = []
    over: list[bytes] = []
    return Transcript(1, limit, events.append, over.append), events, over


@pytest.mark.parametrize(
    ("text", "settled"),
    [
        ("plain\n", "plain\n"),
        ("1%\r2%\r3%\n", "3%\n"),
        ("long line\rshort\n", "shortline\n"),
        ("windows\r\nlines\r\n", "windows\nlines\n"),
        ("a\rb", "b"),
        ("\r\r\r", ""),
    ],
)
def test_carriage_returns_do_what_a_terminal_does(text: str, settled: str) -> None:
    assert settle_lines(text) == settled


def test_text_of_one_stream_is_one_output() -> None:
    transcript, events, _ = _transcript()
    transcript.text("stdout", b"a", 1)
    transcript.text("stdout", b"b\n", 1)
    transcript.text("stderr", b"c\n", 1)
    transcript.text("stdout", b"d\n", 1)
    assert [(o.name, o.data) for o in transcript.finish()] == [
        ("stdout", "ab\n"),
        ("stderr", "c\n"),
        ("stdout", "d\n"),
    ]
    assert [event.text for event in events] == ["a", "b\n", "c\n", "d\n"]


def test_past_the_limit_everything_goes_to_the_overflow_from_its_start() -> None:
    transcript, _, over = _transcript(10)
    transcript.raw(b"12345678")
    transcript.raw(b"9abcdef")
    transcript.raw(b"more")
    assert b"".join(over) == b"123456789abcdefmore"
    assert transcript.finish()[0].data == "123456789a"
    assert (transcript.cut, transcript.bytes) == (True, 19)


@pytest.mark.parametrize("parts", [None, [["text/plain"]], [["text/plain", 6]], [[5, 1]], ["x"]])
def test_a_display_that_lies_breaks_the_rules(parts: object) -> None:
    transcript, _, _ = _transcript()
    with pytest.raises(frames.FrameError):
        transcript.display({"parts": parts}, b"12345")


def test_clearing_waits_for_the_next_output_if_asked() -> None:
    transcript, events, _ = _transcript()
    transcript.raw(b"old")
    transcript.clear(wait=True)
    assert [event.type for event in events] == ["stdout"]
    transcript.raw(b"new")
    assert [event.type for event in events] == ["stdout", "clear", "stdout"]
    assert [output.data for output in transcript.finish()] == ["new"]


def test_the_cut_falls_between_characters() -> None:
    transcript, events, over = _transcript(10)
    transcript.raw("123456789€ and more".encode())
    assert transcript.finish()[0].data == "123456789"
    assert b"".join(over).decode() == "123456789€ and more"
    assert "\ufffd" not in "".join(event.text for event in events)


def test_half_a_character_of_one_stream_does_not_spoil_the_other() -> None:
    transcript, _, _ = _transcript()
    transcript.raw("ü".encode()[:1])
    transcript.text("stderr", "é".encode(), 1)
    transcript.raw("ü".encode()[1:])
    assert [output.data for output in transcript.finish()] == ["é", "ü"]


def test_many_changes_of_stream_end_at_the_limit() -> None:
    transcript, _, over = _transcript(10_000)
    for _ in range(1000):
        transcript.text("stdout", b"a", 1)
        transcript.text("stderr", b"b", 1)
    assert len(transcript.finish()) < 200
    assert len(b"".join(over)) == 2000


def test_an_update_finds_its_display_and_a_strange_type_is_left_out() -> None:
    transcript, _, _ = _transcript()
    transcript.display({"parts": [["text/plain", 1]], "id": "x"}, b"1")
    transcript.display({"parts": [["text/plain", 1], ["no type", 1]]}, b"23")
    transcript.display({"parts": [["text/plain", 1]], "id": "x", "update": True}, b"4")
    assert [output.data for output in transcript.finish()] == ["4", "2"]


def test_an_id_that_no_display_has_breaks_the_rules() -> None:
    transcript = Transcript(1, 1000, lambda event: None, lambda data: None)
    transcript.display({"parts": [], "id": "x" * 200}, b"")
    with pytest.raises(frames.FrameError, match="too long"):
        transcript.display({"parts": [], "id": "x" * 201}, b"")
