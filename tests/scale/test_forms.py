"""Forms of a hostile node: what does not fit is refused as such, whatever it is made of."""

from typing import Any

import pytest

from divingbell.models import Event, Result
from divingbell.scale import forms
from divingbell.scale.state import SessionState
from divingbell_inside import frames

HUGE = int("9" * 400)


def _parsed(text: bytes) -> Any:
    return forms.parsed({"json": len(text)}, text)[0]


@pytest.mark.parametrize("half", [b'["\\ud800"]', b'{"\\uDFFF": 1}'])
def test_half_a_character_is_refused(half: bytes) -> None:
    with pytest.raises(frames.FrameError):
        _parsed(half)
    assert _parsed(b'["\\ud83d\\ude00"]') == ["😀"]


@pytest.mark.parametrize(
    ("kind", "form"),
    [
        (SessionState, {"last_used": HUGE}),
        (SessionState, {"last_used": 1e300}),
        (SessionState, {"cells": HUGE}),
        (SessionState, {"consumption": {"cpu_seconds": -HUGE}}),
        (Result, {"status": "ok", "cell": HUGE}),
    ],
)
def test_numbers_of_any_length_are_refused(kind: type, form: dict[str, Any]) -> None:
    with pytest.raises(frames.FrameError):
        forms.read(kind, form)


def test_no_event_of_a_node_is_the_last() -> None:
    assert forms.read_event({"type": "stdout", "text": "a"}, memoryview(b"")) == Event(
        "stdout", "a"
    )
    with pytest.raises(frames.FrameError):
        forms.read_event({"type": "done"}, memoryview(b""))
    done = {"type": "done", "result": {"status": "ok", "exit_code": 0, "stdout": "raw"}}
    with pytest.raises(frames.FrameError):
        forms.read_command_event(done)


def test_what_is_read_on_the_event_loop_is_light() -> None:
    text = b"[" + b"[],".join([b""] * (forms.LIGHT // 8)) + b"[]]"
    assert len(forms.parsed({"json": len(text)}, text)[0]) == forms.LIGHT // 8
    with pytest.raises(frames.FrameError, match="too many values"):
        forms.parsed({"json": len(text)}, text, forms.LIGHT)
