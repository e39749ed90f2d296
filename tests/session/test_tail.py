"""The end of what a cell shows."""

from divingbell.models import Output
from divingbell.session.tail import RUN_COST, Run, Tail


def _shown(tail: Tail) -> list[str]:
    return [entry.text if isinstance(entry, Run) else str(entry[0].data) for entry in tail]


def test_the_last_text_stays() -> None:
    tail = Tail(10)
    tail.add_text("stdout", 1, b"0123456789")
    assert tail.dropped == 0
    tail.add_text("stdout", 1, b"abc")
    assert (_shown(tail), tail.dropped) == (["3456789abc"], 3)
    tail.add_text("stdout", 1, b"x" * 1000)
    assert (_shown(tail), tail.dropped) == (["x" * 10], 1003)


def test_it_begins_with_a_whole_character() -> None:
    tail = Tail(4)
    tail.add_text("stdout", 1, "€€".encode())
    assert _shown(tail) == ["€"]


def test_many_changes_of_stream_leave_few_runs() -> None:
    tail = Tail(1000)
    for number in range(10_000):
        tail.add_text(("stdout", "stderr")[number % 2], 1, b"x")
    assert len(_shown(tail)) <= 1000 // RUN_COST + 1


def test_displays_stay_where_they_came() -> None:
    tail = Tail(10)
    tail.add_text("stdout", 1, b"before")
    tail.append([Output("image/png", "picture")])
    tail.add_text("stdout", 1, b"after that")
    assert _shown(tail) == ["picture", "after that"]


def test_one_that_holds_nothing_is_no_trouble() -> None:
    tail = Tail(0)
    tail.add_text("stdout", 1, b"abc")
    tail.add_text("stderr", 1, b"abc")
    assert ("".join(_shown(tail)), tail.dropped) == ("", 6)
