"""The checks of users and their rates can fail: without what keeps them, each is broken."""

from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.principal import Principal
from divingbell.promises.check import rates
from divingbell.session import keeper, options
from divingbell.session.commands.commands import Commands
from divingbell.session.cpu_account import CpuAccount
from divingbell.session.local import LocalSession
from divingbell.session.user_rates import UserRates
from tests.promises import breaking

ROWS = {"R70", "R71", "S41"}


async def broken(rows: set[str]) -> set[str]:
    async with Divingbell(pool=0, preload=()) as bell:
        return await breaking.broken(bell, rows)


async def test_they_are_kept() -> None:
    assert await broken(ROWS) == set()


async def test_rates_that_begin_anew_with_each_session_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def by_session(self: LocalSession, kind: Any) -> None:
        with self._telling_refusal(kind):
            self._services.rates.admit(self.key)

    monkeypatch.setattr(LocalSession, "admit", by_session)
    monkeypatch.setattr(LocalSession, "check_rates", lambda _: None)
    assert await broken({"R70", "R71"}) == {"R70", "R71"}


async def test_rates_that_all_users_share_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    check, use = UserRates.check, UserRates.use_cpu
    monkeypatch.setattr(UserRates, "check", lambda self, _: check(self, "everyone"))
    monkeypatch.setattr(UserRates, "use_cpu", lambda self, _, used: use(self, "everyone", used))
    assert "R71" in await broken({"R71"})


async def test_time_that_is_not_counted_between_cells_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(CpuAccount, "charge", lambda _: 0.0)
    assert await broken({"R71"}) == {"R71"}


async def test_commands_that_are_not_counted_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    admit = LocalSession.admit

    def only_cells(self: LocalSession, kind: Any) -> None:
        if kind == "cell":
            admit(self, kind)

    monkeypatch.setattr(LocalSession, "admit", only_cells)
    assert await broken({"R70"}) == {"R70"}


async def test_what_is_never_ended_in_the_background_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Commands, "end_background", lambda _: True)
    monkeypatch.setattr(rates, "PATIENCE", 5.0)
    assert await broken({"R71"}) == {"R71"}


async def test_names_that_are_not_looked_at_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("divingbell.app.check_name", lambda *_: None)
    monkeypatch.setattr(keeper, "check_name", lambda *_: None)
    assert await broken({"S41"}) == {"S41"}


async def test_names_that_are_cut_or_cleaned_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    def cleaned(user: str | None) -> Principal:
        options.check_name("user", user)
        return Principal((user or "").strip("./ ").lower(), client="library")

    monkeypatch.setattr("divingbell.app._principal", cleaned)
    assert await broken({"S41"}) == {"S41"}


async def test_an_account_whose_name_reaches_what_is_the_programs_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from divingbell.host.login import login_name

    monkeypatch.setattr(
        "divingbell.app._principal", lambda user: Principal(user or login_name(), client="library")
    )
    assert await broken({"S41"}) == {"S41"}
