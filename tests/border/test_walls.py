"""The border behind every wall: what is promised does not depend on the backend."""

import re
from collections.abc import AsyncIterator
from typing import Any

import pytest

from divingbell import Divingbell, Session, UnknownToken
from tests import walls

WALLS = (walls.LOCAL, *walls.CONTAINED)
VALUES = ("anna.lindqvist@example.org", "4111 1111 1111 1111", "Sayrefitz", "+49 30 9018 2745")
PERSON = {
    "email": "anna.lindqvist@example.org",
    "last_name": "Sayrefitz",
    "notes": "card 4111 1111 1111 1111, call +49 30 9018 2745",
}
CHART = """
import matplotlib.pyplot as plt
figure, axes = plt.subplots()
axes.bar([{label}, "south"], [3, 4])
plt.show()
"""
TOKEN = re.compile(r"\[[A-Z_]+_\d{6,}\]")


@pytest.fixture(scope="module", params=WALLS, ids=lambda wall: wall.name)
async def private(request: pytest.FixtureRequest) -> AsyncIterator[Divingbell]:
    walls.need(request.param)

    def find() -> dict[str, str]:
        """Return a person."""
        return PERSON

    def echo(what: str) -> str:
        """Say it again."""
        return f"it was {what}"

    async with Divingbell(
        backend=request.param.name,
        backend_minimum=request.param.name,
        pool=0,
        privacy="personal",
        privacy_rules={"images": "checked"},
        tools=[find, echo],
    ) as bell:
        yield bell


@pytest.fixture
async def session(private: Divingbell) -> AsyncIterator[Session]:
    async with private.session() as session:
        await session.run("from servers.host import *\nperson = find()")
        yield session


def hidden(shown: str) -> str:
    """Return what was shown, which has none of the values."""
    assert not [value for value in VALUES if value in shown], shown
    return shown


async def test_a_token_in_code_is_its_value_there(session: Session) -> None:
    result = await session.run("person['email']")
    token = result.value
    assert TOKEN.fullmatch(token)
    result = await session.run(f"person['email'] == '{token}', len(b'{token}'), f'<{token}>'")
    assert list(result.value)[:2] == [True, len(PERSON["email"])]
    assert token in hidden(str(result.value))
    with pytest.raises(UnknownToken, match="not known in this conversation"):
        await session.run("print('[EMAIL_111111111]')")


async def test_a_tools_result_has_tokens_and_its_arguments_have_values(session: Session) -> None:
    shown = hidden((await session.run("print(find())\nfind()")).text)
    assert {"EMAIL", "NAME", "CARD", "PHONE"} <= set(re.findall(r"\[([A-Z]+)_\d", shown))
    email = next(found for found in TOKEN.findall(shown) if "EMAIL" in found)
    result = await session.run(
        f"said = echo(what='{email}')\nprint(said, said[7:] == person['email'])"
    )
    assert hidden(result.text).startswith(f"it was {email} True")


async def test_a_stream_that_is_cut_anywhere_shows_no_half(session: Session) -> None:
    code = (
        "import sys, time\n"
        "whole = '; '.join(person.values())\n"
        "for cut in range(len(whole)):\n"
        "    sys.stdout.write(whole[:cut]); sys.stdout.flush()\n"
        "    sys.stderr.write(''); sys.stderr.flush()\n"
        "    sys.stdout.write(whole[cut:] + '\\n'); sys.stdout.flush()\n"
        "for letter in whole: print(letter, end='', flush=True)\n"
    )
    run = session.stream(code)
    pieces = [event.text async for event in run if event.type == "stdout"]
    shown = hidden("".join(pieces))
    for piece in pieces:
        hidden(piece)
    lines = shown.splitlines()
    assert len(set(lines)) == 1 and len(lines) == len("; ".join(PERSON.values())) + 1
    assert len(TOKEN.findall(lines[0])) == 4


async def test_a_chart_is_shown_if_nothing_is_found_in_its_texts(session: Session) -> None:
    clean = await session.run(CHART.format(label="'north'"))
    assert [output.type for output in clean.outputs] == ["image/png"], clean.error
    for label in ("person['email']", "person['last_name']"):
        held = await session.run(CHART.format(label=label))
        assert not any(output.type.startswith("image/") for output in held.outputs)
        assert "held back: its texts have" in hidden(held.text)


async def test_what_a_command_prints_has_tokens(session: Session) -> None:
    await session.run("open('people.txt', 'w').write('\\n'.join(person.values()))")
    told = await session.command("cat people.txt; cat people.txt >&2")
    assert told.exit_code == 0
    for text in (told.stdout, told.stderr):
        assert len(TOKEN.findall(hidden(text))) == 4
    email = next(found for found in TOKEN.findall(told.stdout) if "EMAIL" in found)
    found: Any = await session.command(["grep", "-c", email, "people.txt"])
    assert found.stdout == "1\n"
    shell = await session.run("!cat people.txt")
    assert len(set(TOKEN.findall(hidden(shell.text)))) == 4
