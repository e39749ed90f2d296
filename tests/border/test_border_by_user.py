"""Some users have a stricter border than the others: their personal data is kept from models."""

import inspect
import re
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.border.border import Border, OpenBorder
from divingbell.border.border_by_user import BorderByUser
from divingbell.border.vault.tokens import TOKEN
from divingbell.errors import ConfigError, UnknownToken

KEY = "ghp_" + "a8Kd93Lm2Qx7Rt5Wz1Bv" * 2
CODE = f"print('zelda@jazz.org, {KEY[:40]}')"


@pytest.mark.parametrize(
    ("privacy", "of_others"),
    [
        ("off", f"zelda@jazz.org, {KEY[:40]}\n"),
        ("secrets", "zelda@jazz.org, [API_KEY]\n"),
        ("personal", "[EMAIL], [API_KEY]\n"),
    ],
)
async def test_the_users_that_are_named_have_personal_data_hidden(
    privacy: Any, of_others: str
) -> None:
    rules = {"users": ["ann"]}
    async with Divingbell(privacy=privacy, privacy_rules=rules, pool=0, preload=()) as bell:
        async with bell.session(user="ann") as session:
            hidden = (await session.run(CODE)).text
            streamed = "".join([event.text async for event in session.stream(CODE)])
            assert streamed == hidden
            assert await session.reveal(hidden) == f"zelda@jazz.org, {KEY[:40]}\n"
        async with bell.session(user="bob") as session:
            assert _kinds(await _text(session, CODE)) == of_others
            # What is hers means nothing to him.
            assert "zelda" not in await _text(session, f"print({hidden!r})")
    assert _kinds(hidden) == "[EMAIL], [API_KEY]\n"


async def test_a_border_of_ones_own_and_such_users_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="leave one out"):
        Divingbell(border=OpenBorder(), privacy_rules={"users": ["ann"]})


def test_nothing_of_a_border_is_left_out() -> None:
    def named(border: type) -> dict[str, inspect.Signature]:
        members = inspect.getmembers(border, inspect.isfunction)
        return {name: inspect.signature(each) for name, each in members if name[0] != "_"}

    assert named(BorderByUser) == named(Border)


async def _text(session: Any, code: str) -> str:
    try:
        return str((await session.run(code)).text)
    except UnknownToken as error:
        return str(error)


def _kinds(text: str) -> str:
    return TOKEN.sub(lambda token: re.sub(r"_\d+", "", token[0]), text)
