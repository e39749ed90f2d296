"""The checks of floods can fail: without what bounds the work, each of their rows is broken."""

import sys

import pytest

from divingbell import Divingbell
from divingbell.session import intake, tether
from divingbell.shares.host_time import HostTime
from divingbell_inside import value_rules
from tests.promises import breaking


async def broken(rows: set[str]) -> set[str]:
    async with Divingbell(pool=0) as bell:
        return await breaking.broken(bell, rows)


async def test_a_line_that_is_read_to_its_end_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    read = intake.Intake._read_socket

    def read_again(self: intake.Intake) -> bool:
        self.socket_ready = read(self)
        return self.socket_ready

    monkeypatch.setattr(intake.Intake, "_read_socket", read_again)
    monkeypatch.setattr(tether, "MAX_STEPS", sys.maxsize)
    monkeypatch.setattr(HostTime, "slice", 3.0)
    assert await broken({"H60", "H61", "H63"}) == {"H60", "H61", "H63"}


async def test_processes_left_behind_that_are_not_slowed_down_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HostTime, "charge", lambda *_: 0.0)
    monkeypatch.setattr(HostTime, "slice", 0.05)
    assert await broken({"H62"}) == {"H62"}


async def test_headers_that_are_parsed_whatever_is_in_them_are_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(intake, "check_weight", lambda _: None)
    assert await broken({"H64"}) == {"H64"}


async def test_keys_that_are_all_compared_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_rules, "check_hashes", lambda *_: 0)
    assert await broken({"H73"}) == {"H73"}
