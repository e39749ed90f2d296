"""Values of which half is on one stream and half on the other, or a display between them."""

import itertools
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell import Divingbell, Output, Result, Session
from divingbell.border.parted_outputs import is_parted, without_parted

FIRST, SECOND = "zelda@ja", "zz.org"
OUT = f"print('to {FIRST}', end='', flush=True)"
REST = f"print('{SECOND} now', flush=True)"
ERR = "import sys, time; time.sleep(0.1); print({}, file=sys.stderr, flush=True); time.sleep(0.1)"


@pytest.fixture(scope="module")
async def bell(
    anyio_backend: str, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Divingbell]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        async with Divingbell(privacy="personal") as bell:
            yield bell


@pytest.fixture
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session


@pytest.mark.parametrize(
    "code",
    [
        f"{OUT}\n{ERR.format(repr(SECOND + ' now'))}",
        f"{OUT}\n{ERR.format(repr('warning'))}\n{REST}",
        f"{OUT}\ndisplay('a table')\n{REST}",
        f"{OUT}\ndisplay({{'image/png': b'x'}}, raw=True)\n{REST}",
        f"{OUT}\ndisplay(1)\n{ERR.format(repr('warning'))}\ndisplay(2)\n{REST}",
    ],
)
async def test_a_parted_value_is_whole_in_no_reading(session: Session, code: str) -> None:
    events = [event async for event in session.stream(code)]
    result = events[-1].result
    assert result is not None
    streams = {
        name: "".join(str(each.data) for each in result.outputs if each.name == name)
        for name in ("stdout", "stderr")
    }
    streamed = "".join(event.text for event in events)
    for text in (result.text, *streams.values(), streamed):
        assert FIRST + SECOND not in text, events
    assert "to [EMAIL_" in result.text and "now" in result.text
    # What was replaced is not there in part, either.
    assert FIRST not in result.text and SECOND not in result.text


async def test_what_waits_while_a_display_passes_is_not_lost(session: Session) -> None:
    code = "print('half', end='', flush=True)\ndisplay('D')\nprint('way there')"
    events = [event async for event in session.stream(code)]
    assert "".join(event.text for event in events) == "halfway there\n"
    assert [event.type for event in events].count("display") == 1
    assert events[-1].result is not None
    assert events[-1].result.text == "half\n'D'\nway there\n"


def hidden(texts: list[str]) -> list[str]:
    """A stand-in for a conversation: what lies between < and > is a value."""
    whole = "".join(texts)
    if "<" not in whole:
        return texts
    signs, shown, is_within = iter(whole), list[str](), False
    for text in texts:
        kept = ""
        for sign in itertools.islice(signs, len(text)):
            is_within = (is_within or sign == "<") and sign != ">"
            kept += "" if is_within or sign == ">" else sign
        shown.append(kept)
    return shown


OUTPUTS = st.lists(
    st.tuples(st.sampled_from(["stdout", "stderr", "display"]), st.text("ab<>", max_size=3)),
    max_size=8,
)


@given(OUTPUTS)
def test_all_readings_are_looked_at_and_displays_stay(pairs: list[tuple[str, str]]) -> None:
    outputs = tuple(Output("text/plain", text, name) for name, text in pairs)
    result = Result("ok", outputs=outputs)
    read: list[str] = []

    def look(texts: list[str]) -> list[str]:
        read.append("".join(texts))
        return texts

    assert without_parted(result, look) == result
    for name in ("stdout", "stderr"):
        own = [text for other, text in pairs if other == name]
        assert len(own) < 2 or "".join(own) in read
    runs = itertools.groupby(pairs, lambda pair: pair[0] == "display")
    for is_display, run in runs:
        texts = [text for _, text in run]
        assert is_display or len(texts) < 2 or "".join(texts) in read
    assert is_parted(result) == (sum(name != "display" for name, _ in pairs) > 1)
    shown = without_parted(result, hidden).outputs
    assert [each for each in shown if each.name == "display"] == [
        each for each in outputs if each.name == "display"
    ]


def test_a_picture_stays_where_it_is() -> None:
    picture = Output("image/png", b"x", "display")
    result = Result("ok", outputs=(picture, Output("text/plain", "a", "stdout"), picture))
    assert not is_parted(result) and without_parted(result, hidden) == result
