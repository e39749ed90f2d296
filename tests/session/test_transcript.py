"""What a cell shows, put together."""

import pytest

from divingbell.models import Event
from divingbell.session.transcript import Transcript, settle_lines
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


def test_text_within_the_limit_is_whole_though_its_end_comes_late() -> None:
    transcript, events, over = _transcript(100)
    for number in range(10):
        transcript.raw(b"%d" % number * 10)
    assert "".join(str(output.data) for output in transcript.finish()) == "".join(
        str(number) * 10 for number in range(10)
    )
    assert (transcript.cut, over) == (False, [])
    assert "".join(event.text for event in events).endswith("9" * 10)


def test_past_the_limit_everything_goes_to_the_overflow_from_its_start() -> None:
    transcript, events, over = _transcript(12)
    transcript.raw(b"12345678")
    transcript.raw(b"9abcdef")
    transcript.raw(b"more")
    assert b"".join(over) == b"123456789abcdefmore"
    shown = [str(output.data) for output in transcript.finish("; it is kept")]
    assert shown == ["123456789\n[… 7 bytes left out; it is kept …]\nore"]
    assert (transcript.cut, transcript.bytes) == (True, 19)
    assert "".join(event.text for event in events) == "".join(shown)


def _display(transcript: Transcript, text: str, **header: object) -> None:
    raw = text.encode()
    transcript.display({"parts": [["text/plain", len(raw)]], **header}, raw)


def test_the_text_of_displays_counts_like_what_is_printed() -> None:
    transcript, _, over = _transcript(4000)
    transcript.raw(b"printed\n")
    _display(transcript, "a" * 1000)
    _display(transcript, "b" * 5000, result=True)
    transcript.raw(b"last\n")
    outputs = transcript.finish()
    assert [output.name for output in outputs] == [
        "stdout", "display", "result", "result", "result", "stdout",
    ]  # fmt: skip
    assert sum(len(output.data) for output in outputs) < 4000
    assert "bytes left out" in str(outputs[3].data)
    whole = "printed\n" + "a" * 1000 + "\n" + "b" * 5000 + "\nlast\n"
    assert b"".join(over).decode() == whole


def test_an_image_keeps_its_place_among_text_that_is_cut() -> None:
    transcript, events, _ = _transcript(1000)
    transcript.raw(b"a" * 2000)
    transcript.display({"parts": [["image/png", 3, "cell-1-1.png"]]}, b"PNG")
    transcript.raw(b"b" * 5)
    outputs = transcript.finish()
    assert [output.type for output in outputs] == ["text/plain", "image/png", "text/plain"]
    assert "bytes left out" in str(outputs[0].data)
    assert outputs[1].path == "/workspace/.outputs/cell-1-1.png"
    assert outputs[2].data == "b" * 5
    assert [event.type for event in events] == ["stdout", "display", *["stdout"] * 3]


def test_displays_past_their_limit_are_named_by_a_line() -> None:
    transcript, _, _ = _transcript(10_000)
    for number in range(3):
        header = {"parts": [["image/png", 1_500_000, f"cell-1-{number + 1}.png"]]}
        transcript.display(header, bytes(1_500_000))
    header = {"parts": [["text/plain", 5], ["text/html", 3_000_000]]}
    transcript.display(header, b"table" + b"x" * 3_000_000)
    kinds = [(output.type, len(output.data)) for output in transcript.finish()]
    line = (
        "[image/png, 1,500,000 bytes: too much to show; "
        "it is kept in /workspace/.outputs/cell-1-3.png]"
    )
    assert kinds == [
        ("image/png", 1_500_000),
        ("image/png", 1_500_000),
        ("text/plain", len(line)),
        ("text/plain", 5),
    ]


def test_a_display_that_is_updated_without_end_takes_the_place_of_one() -> None:
    transcript, events, over = _transcript(4000)
    _display(transcript, "0", id="x")
    for number in range(20_000):
        _display(transcript, f"{number} " * 100, id="x", update=True)
    [output] = transcript.finish()
    assert output.data == "19999 " * 100
    assert (transcript.cut, over) == (False, [])
    assert sum(len(part.data) for event in events for part in event.outputs) < 5_000_000


def test_displays_of_text_without_end_are_text_without_end() -> None:
    transcript, events, over = _transcript(10_000)
    for number in range(50_000):
        _display(transcript, str(number))
    outputs = transcript.finish()
    assert len(outputs) < 100 and len(events) < 100
    assert str(outputs[-1].data).endswith("49998\n49999\n")
    assert b"".join(over).decode().split() == [str(number) for number in range(50_000)]


@pytest.mark.parametrize(
    "parts",
    [None, [["text/plain"]], [["text/plain", 6]], [[5, 1]], ["x"], [["text/plain", 1, "../x.png"]]],
)
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
    transcript, events, over = _transcript(12)
    transcript.raw("12345678€ and €€".encode())
    shown = [str(output.data) for output in transcript.finish()]
    [text] = shown
    assert text.startswith("12345678\n[") and text.endswith("]\n€")
    assert b"".join(over).decode() == "12345678€ and €€"
    assert "\ufffd" not in "".join(event.text for event in events)


def test_a_character_that_comes_in_two_pieces_at_the_cut_is_whole() -> None:
    transcript, _, _ = _transcript(12)
    transcript.raw(b"12345678" + "€".encode()[:1])
    transcript.raw("€".encode()[1:])
    assert "".join(str(output.data) for output in transcript.finish()) == "12345678€"


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


def test_text_that_is_cleared_again_and_again_is_not_held() -> None:
    transcript, _, over = _transcript(1000)
    for _ in range(100):
        transcript.raw(b"x" * 600)
        transcript.clear(False)
    assert sum(map(len, over)) == 60_000
    assert len(transcript.finish()) == 1  # which says how much was left out


def test_displays_that_are_emptied_again_and_again_are_not_held() -> None:
    transcript, _, over = _transcript(1000)
    full = {"parts": [["text/plain", 100]], "id": "a"}
    with pytest.raises(frames.FrameError, match="emptied"):
        for _ in range(10_000):
            transcript.display(full, b"x" * 100)
            transcript.display({"parts": [], "id": "a", "update": True}, b"")
            assert len(transcript._items) < 5_000
    assert sum(map(len, over)) > 10_000
