"""What is kept of calls has an end."""

from typing import Any

import pytest

from divingbell.journal.events import CallEnded, SessionEnded
from divingbell.principal import Principal
from divingbell.skills import recordings
from divingbell.skills.recordings import MAX_BYTES, MAX_CALL, MAX_CALLS, Recordings

NOBODY = Principal()


def ended(
    key: str, raw: bytes, body: bytes = b"{}", name: str = "a.b", **changes: Any
) -> CallEnded:
    given: dict[str, Any] = {
        "call": 1, "principal": NOBODY, "key": key, "cell": 1, "by": "code", "kind": "tool",
        "name": name, "outcome": "ok", "code": "", "sent": True, "arguments": {}, "raw": raw,
        "result": None, "body": body, "seconds": 0.0,
    }  # fmt: skip
    return CallEnded(**given | changes)


def test_calls_of_code_that_succeed_are_kept_until_their_session_ends() -> None:
    kept = Recordings()
    kept.take(ended("s", b'{"x":1}', b"1"))
    kept.take(ended("s", b'{"x":1}', b"2"))
    kept.take(ended("s", b'{"uri":"x"}', b"3", "read_resource", kind="question"))
    kept.take(ended("t", b"{}", b"4"))
    found = [(each.name, each.answer, each.kind) for each in kept.of("s")]
    assert found == [("a.b", b"2", "tool"), ("read_resource", b"3", "resource")]
    kept.take(SessionEnded(NOBODY, "id", "s", "it was closed"))
    assert not kept.of("s") and len(kept) == 1 and kept.size == 3


@pytest.mark.parametrize(
    "changes",
    [
        {"by": "client"},
        {"outcome": "failed"},
        {"outcome": "denied"},
        {"raw": b""},
        {"body": b""},
        {"name": "load_skill"},
        {"body": b"x" * MAX_CALL},
    ],
)
def test_other_calls_are_not_kept(changes: dict[str, Any]) -> None:
    kept = Recordings()
    kept.take(ended(**{"key": "s", "raw": b"{}"} | changes))
    assert not len(kept) and not kept.size


def test_of_one_session_the_oldest_go_first() -> None:
    kept = Recordings()
    for number in range(MAX_CALLS + 5):
        kept.take(ended("s", b"%d" % number))
    assert len(kept.of("s")) == MAX_CALLS and kept.of("s")[0].arguments == b"5"
    large = b"x" * (MAX_CALL - 10)
    for number in range(30):
        kept.take(ended("s", b"large %d" % number, large))
    assert kept.size == sum(each.size for each in kept.of("s")) <= MAX_BYTES


def test_all_sessions_together_have_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recordings, "MAX_SESSIONS", 3)
    monkeypatch.setattr(recordings, "MAX_ALL", 100)
    kept = Recordings()
    for number in range(5):
        kept.take(ended(f"s{number}", b"{}"))
    assert len(kept) == 3 and not kept.of("s1") and kept.of("s4")
    kept.take(ended("s9", b"x" * 60, b"x" * 30))
    kept.take(ended("s10", b"x" * 60, b"x" * 30))
    assert kept.size <= 100 and kept.of("s10") and not kept.of("s9")
