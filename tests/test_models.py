import base64
import datetime
import html.parser
import json
import math
from typing import Any

import pytest

from divingbell import Event, Failure, Output, Result, ToolCall, Usage
from divingbell.command import CommandEvent, CommandResult
from divingbell.models import Ledger
from divingbell_inside import values

PIXEL = b"\x89PNG\r\n\x1a\n" + bytes(50_000)
HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


def result_of(**more: Any) -> Result:
    return Result("ok", **more)


FULL = Result(
    "error",
    value={1: math.nan, "when": datetime.date(2026, 11, 17)},
    outputs=(Output("text/plain", "hello\n", "stdout", 3), Output("image/png", PIXEL, cell=3)),
    error=Failure("ValueError", "no", "Traceback\nValueError: no\n", exit_status=None),
    limit="output",
    usage=Usage(12.5, 3.25, 1000, 6),
    cell=3,
    state="rewound",
    state_cell=2,
    notes=("it was cut",),
    calls=(ToolCall("a.b", "{}", "ok", 1.5),),
    ledger=Ledger(code_tokens=3),
    value_kind="data",
)


def test_the_plain_form_has_what_most_want_and_every_field() -> None:
    found = json.loads(FULL.to_json())
    assert list(found)[:4] == ["success", "output", "error", "execution_time_ms"]
    assert (found["success"], found["execution_time_ms"]) == (False, 12.5)
    assert found["output"].endswith("[it was cut]\n") and "hello\n[image/png" in found["output"]
    assert found["error"] == "Traceback\nValueError: no"
    fields = {name for name in Result.__dataclass_fields__}
    assert fields <= found.keys()
    assert found["failure"]["type"] == "ValueError"
    assert found["state_cell"] == 2 and found["limit"] == "output" and found["notes"]
    assert found["calls"][0]["name"] == "a.b" and found["ledger"]["code_tokens"] == 3
    [text, image] = found["outputs"]
    assert text["data"] == "hello\n" and "encoding" not in text
    assert base64.b64decode(image["data"]) == PIXEL and image["encoding"] == "base64"


def test_the_value_of_the_plain_form_can_be_read_again() -> None:
    found = values.decode(FULL.to_dict()["value"])
    assert math.isnan(found[1]) and found["when"] == datetime.date(2026, 11, 17)


class Bitten:
    def __repr__(self) -> str:
        raise ValueError("it bites")


def deep() -> Any:
    made: Any = []
    for _ in range(100_000):
        made = [made]
    return made


@pytest.mark.parametrize("value", [Bitten(), {Bitten()}, "\ud800", deep(), 1 << 10_000, [..., 1j]])
def test_every_result_can_be_written_as_json(value: Any) -> None:
    found = json.loads(result_of(value=value).to_json())
    assert isinstance(found["value"], str) and found["value_kind"] == "text"


@pytest.mark.parametrize(
    ("item", "words"),
    [
        (Output("text/plain", "hello", "stdout"),
         "Output(type='text/plain', data='hello', name='stdout')"),
        (Output("image/png", PIXEL, cell=3),
         "Output(type='image/png', data=<50,008 bytes>, cell=3)"),
        (Event("stdout", text="a"), "Event(type='stdout', text='a')"),
        (Result("ok", value=False), "Result(status='ok', value=False)"),
    ],
)  # fmt: skip
def test_representations_leave_out_what_is_as_usual(item: Any, words: str) -> None:
    assert repr(item) == words


@pytest.mark.parametrize(
    "item",
    [
        FULL,
        result_of(value=list(range(100_000)), outputs=(Output("text/plain", "x" * 10**6),) * 50),
        result_of(value={"x" * 10**5: [b"x" * 10**5] * 100}, notes=("n" * 10**5,) * 100),
        Event("done", text="x" * 10**6, result=FULL),
        Output("text/html", "x" * 10**6, path="x" * 10**4),
    ],
    ids=lambda item: type(item).__name__,
)
def test_representations_are_short(item: Any) -> None:
    assert len(repr(item)) < 2_000


class Page(html.parser.HTMLParser):
    """Collects the elements of a page, with their attributes, and its text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(source)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def test_a_notebook_shows_text_and_images() -> None:
    page = Page(FULL._repr_html_())
    assert [tag for tag, _ in page.tags] == ["p", "pre", "img", "pre", "p"]
    assert page.tags[2][1]["src"] == f"data:image/png;base64,{base64.b64encode(PIXEL).decode()}"
    assert "cell 3: error" in page.text and "hello" in page.text
    assert "ValueError: no" in page.text and "it was cut" in page.text


def test_nothing_that_a_cell_made_runs_in_a_notebook() -> None:
    kinds = ("text/plain", "text/html", "image/svg+xml", "text/markdown", "application/javascript")
    shown = tuple(Output(kind, HOSTILE) for kind in kinds)
    raw = tuple(
        Output(kind, HOSTILE.encode())
        for kind in ("image/svg+xml", "text/html", "image/png' onerror='alert(1)", "image/png")
    )
    result = Result(
        "error",
        value=HOSTILE,
        outputs=shown + raw,
        error=Failure(HOSTILE, HOSTILE, HOSTILE, HOSTILE),
        notes=(HOSTILE,),
    )
    page = Page(result._repr_html_())
    assert [tag for tag, _ in page.tags] == ["p", "pre", "img", "pre", "p"]
    assert {name for _, attributes in page.tags for name in attributes} == {"style", "alt", "src"}
    assert page.text.count(HOSTILE) == 4  # the text, the traceback, the hint and the note


def test_what_a_command_has_written_makes_no_long_representation() -> None:
    result = CommandResult("ok", 0, stdout="x" * 1_000_000, command="yes")
    assert len(repr(result)) < 300 and "command='yes'" in repr(result)
    assert len(repr(CommandEvent("stdout", text="x" * 1_000_000))) < 300
    assert len(repr(CommandEvent("done", result=result))) < 600
