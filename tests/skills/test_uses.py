"""Uses of skills, counted from the journal."""

from pathlib import Path

import pytest

from divingbell.journal.events import CellEnded, SessionEnded, SkillUsed
from divingbell.models import Result
from divingbell.principal import Principal
from divingbell.skills import uses as counted
from divingbell.skills.record import Usage
from divingbell.skills.store import Stores
from divingbell.skills.uses import Uses
from tests.skills.samples import RECORD, made

ANNA, BOB = Principal("anna"), Principal("bob")


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    stores = Stores(tmp_path)
    for user in ("anna", "bob"):
        stores.of(user).save_all([(made(), RECORD), (made("another"), RECORD)])
    return stores


def _used(cell: int, name: str = "top-customers", who: Principal = ANNA) -> SkillUsed:
    return SkillUsed(who, name, 1, f"key of {who.user}", cell, 100)


def _ended(cell: int, result: Result | None, who: Principal = ANNA) -> CellEnded:
    return CellEnded(who, f"key of {who.user}", cell, "", result)


def _usage(stores: Stores, user: str = "anna") -> dict[str, Usage]:
    return {each.name: each.usage for each in stores.of(user).summaries()}


async def test_a_use_counts_with_the_end_of_its_cell(stores: Stores) -> None:
    uses = Uses(stores)
    for event in (
        _used(1), _used(1), _used(1, "another"), _ended(1, Result("ok")),
        _used(2), _ended(2, Result("error")),
        _used(3), _ended(3, None),
        _used(4), _ended(4, Result("ok"), BOB), SessionEnded(ANNA, "s", "key of anna", ""),
        _used(0),
    ):  # fmt: skip
        uses.take(event)
    await uses.close()
    assert _usage(stores) == {"another": Usage(1, 0, 100), "top-customers": Usage(4, 2, 200)}
    assert _usage(stores, "bob") == {"another": Usage(), "top-customers": Usage()}


async def test_each_user_has_uses_of_their_own(stores: Stores) -> None:
    uses = Uses(stores)
    for who in (ANNA, BOB, BOB):
        uses.take(_used(0, who=who))
    await uses.close()
    await uses.close()
    assert _usage(stores)["top-customers"].uses == 1
    assert _usage(stores, "bob")["top-customers"].uses == 2


async def test_what_waits_has_an_end(stores: Stores, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MOST_WAITING", 3)
    uses = Uses(stores)
    for cell in range(1, 10):
        uses.take(_used(cell))
    for cell in range(1, 10):
        uses.take(_ended(cell, Result("ok")))
    await uses.close()
    assert _usage(stores)["top-customers"].uses == 3


async def test_a_store_that_can_t_be_written_costs_no_cell_anything(
    stores: Stores, caplog: pytest.LogCaptureFixture
) -> None:
    stores.of("anna").folder.chmod(0o777)
    uses = Uses(stores)
    uses.take(_used(0))
    await uses.close()
    uses.take(_used(0))
    assert "can't be counted" in caplog.text and "is not counted" in caplog.text
