"""Tokens in the code of a session: what runs has the values, and what is shown has the tokens."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from divingbell import Session
from divingbell.border.border import OpenBorder
from divingbell.principal import Principal

PAGE = Path(__file__).parents[2] / "docs" / "privacy.md"
SECTION = re.compile(r"^## Tokens in code$(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
CELL = re.compile(r"^```py\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CELLS = CELL.findall("".join(SECTION.findall(PAGE.read_text("utf-8"))))
TOKEN = "[EMAIL_482715]"
HOSTILE = "'\"); open('pwned', 'w') #\n'; touch pwned; '"


@pytest.fixture(autouse=True)
def tokens(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The tokens of the conversation, in the place of a border that knows them."""
    known = {TOKEN: HOSTILE}

    async def values_in(border: OpenBorder, code: str, principal: Principal) -> Mapping[str, str]:
        return {token: value for token, value in known.items() if token in code}

    monkeypatch.setattr(OpenBorder, "values_in", values_in)
    return known


async def _value(session: Session, code: str) -> object:
    result = await session.run(code)
    assert result.status == "ok", result.error
    assert not (await session.run("import os; os.path.exists('pwned')")).value
    return result.value


@pytest.mark.parametrize(
    "code",
    [
        "'[EMAIL_482715]'",
        "import asyncio\nx = '[EMAIL_482715]'\nawait asyncio.sleep(0)\nx",
        "async def f(x='[EMAIL_482715]'):\n    return x\nawait f()",
        "!true [EMAIL_482715]\n'[EMAIL_482715]'",
        "%time x = '[EMAIL_482715]'\nx",
        "%%time\nx = '[EMAIL_482715]'\nx",
    ],
)
async def test_a_cell_computes_with_the_value(session: Session, code: str) -> None:
    assert await _value(session, code) == HOSTILE


@pytest.mark.parametrize(
    "code",
    ["%%capture shown\nx = '[EMAIL_482715]'", "%%timeit -n 1 -r 1\nglobal x\nx = '[EMAIL_482715]'"],
)
async def test_python_that_a_magic_runs_has_the_value(session: Session, code: str) -> None:
    assert (await session.run(code)).status == "ok"
    assert await _value(session, "x") == HOSTILE


@pytest.mark.parametrize(
    "code",
    [
        "!printf %s '[EMAIL_482715]'",
        "x = !printf %s '[EMAIL_482715]'\nprint(x[0])",
        "%%bash\nprintf %s '[EMAIL_482715]'",
        "%%time\n!printf %s '[EMAIL_482715]'",
    ],
)
async def test_the_shell_gets_the_token_as_it_is_written(session: Session, code: str) -> None:
    result = await session.run(code)
    assert result.status == "ok" and TOKEN in result.text, result
    assert "pwned" not in result.text and await session.files.list() == []


async def test_tracebacks_sources_and_syntax_errors_show_the_token(session: Session) -> None:
    failed = await session.run("def f():\n    return int('[EMAIL_482715]')\nf()")
    assert failed.error is not None and "int('[EMAIL_482715]')" in failed.error.traceback
    assert repr(HOSTILE) in failed.error.message
    source = await session.run("import inspect\ninspect.getsource(f)")
    assert source.value == "def f():\n    return int('[EMAIL_482715]')\n"
    wrong = await session.run("x = = '[EMAIL_482715]'")
    assert wrong.error is not None and wrong.error.type == "SyntaxError"
    assert TOKEN in wrong.error.traceback and "pwned" not in wrong.error.traceback


async def test_a_later_cell_without_the_value_has_the_token(
    session: Session, tokens: dict[str, str]
) -> None:
    assert await _value(session, "x = '[EMAIL_482715]'; x") == HOSTILE
    tokens.clear()
    assert await _value(session, "[x, '[EMAIL_482715]']") == [HOSTILE, TOKEN]
    assert await _value(session, "%%time\n'[EMAIL_482715]'") == TOKEN


async def test_variables_and_arguments_come_beside_tokens(session: Session) -> None:
    result = await session.run(
        "import sys\n[address == '[EMAIL_482715]', sys.argv]",
        context={"address": HOSTILE},
        argv=["script.py", "word"],
    )
    assert result.value == [True, ["script.py", "word"]]


async def test_half_a_character_arrives(session: Session, tokens: dict[str, str]) -> None:
    tokens[TOKEN] = "\ud83d\ude00\0"
    code = "[ord(each) for each in '[EMAIL_482715]']"
    assert await _value(session, code) == [0xD83D, 0xDE00, 0]


def test_the_page_has_cells_to_run() -> None:
    assert len(CELLS) >= 3


@pytest.mark.parametrize("code", CELLS)
async def test_cells_of_the_page_print_what_they_say(
    session: Session, tokens: dict[str, str], code: str
) -> None:
    tokens[TOKEN] = "o'hara@example.com"
    result = await session.run(code)
    assert result.status == "ok", result.error
    shown = [line.rstrip() for line in result.text.splitlines() if line.strip()]
    assert shown == [found.rstrip() for found in re.findall(r"^# → ?(.*)$", code, re.MULTILINE)]
