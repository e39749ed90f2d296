"""A user is any text: nothing of it becomes a path, and no other user has anything of it."""

from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, InvalidInput, Session, ToolContext
from divingbell.events import JournalEvent, SessionOpened
from divingbell.host.login import login_name

MARK = "q7x9z"
NAMES = [
    f"../../{MARK}",
    MARK,
    f"{MARK}/",
    f"/{MARK}",
    f"{MARK} ",
    MARK.upper(),
    f"~/{MARK}",
    f"{MARK}%00",
    f"{MARK}'; DROP TABLE",
    f"{MARK}é",  # one letter
    f"{MARK}e\u0301",  # a letter and its accent
    "1",
    "True",
    "1.0",
    "None",
    ".",
    "..",
    "ü" * 512,
    login_name(),
]
NO_NAMES: list[Any] = [
    1, True, 1.0, b"ada", ("ada",), "", f"{MARK}\0b", f"{MARK}\nb", f"{MARK}\ud800", MARK * 2_000,
]  # fmt: skip


def whoami(context: ToolContext) -> str | None:
    """Say whose call it is."""
    return context.user


@pytest.mark.parametrize("name", NO_NAMES, ids=lambda name: repr(name)[:20])
async def test_what_is_no_name_is_refused_by_every_way(bell: Divingbell, name: Any) -> None:
    before = len(bell.sessions())
    with pytest.raises(InvalidInput):
        await bell.open(user=name)
    with pytest.raises(InvalidInput):
        await bell.execute("1", user=name)
    with pytest.raises(InvalidInput):
        async with bell.session(user=name):
            pass
    with pytest.raises(InvalidInput):
        bell.get("any", user=name)
    with pytest.raises(InvalidInput):
        bell.sessions(user=name)
    assert len(bell.sessions()) == before


async def test_sessions_vault_budgets_and_events_are_by_user_and_no_name_is_a_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = tmp_path / "a" / "b" / "c"
    deep.mkdir(parents=True)
    monkeypatch.setenv("XDG_DATA_HOME", str(deep))
    monkeypatch.chdir(deep)
    heard: list[JournalEvent] = []
    async with Divingbell(
        pool=0,
        preload=(),
        audit="on",
        privacy="personal",
        tools=[whoami],
        policy={"calls_per_user": 1, "execution_rate_per_user": "2/hour"},
        on_event=heard.append,
    ) as bell:
        tokens: dict[str, str] = {}
        for name in NAMES:
            async with bell.session("same", user=name) as session:
                tokens[name] = await _use(session, name)
            async with bell.session("same", user=f"not {name}"[:512]) as other:
                assert await other.reveal(tokens[name]) == tokens[name]
        made = [path for path in tmp_path.rglob("*") if MARK in path.name.lower()]
        assert any(deep.rglob("*.jsonl")) and made == []
    opened = [event.principal.user for event in heard if isinstance(event, SessionOpened)]
    assert opened[::2] == NAMES


async def _use(session: Session, name: str) -> str:
    """Take all that a user has of each budget; return the token of a value."""
    called = await session.run("from servers.host import whoami\nx = 1\nwhoami()")
    assert called.value == name, called
    shown = await session.run("'x' in globals(), 'anna' + '@' + 'example.org'")
    assert shown.value is not None and shown.value[0] is True
    token = str(shown.value[1])
    assert await session.reveal(token) == "anna@example.org"
    return token
