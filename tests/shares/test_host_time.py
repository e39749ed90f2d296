"""The account of the host's processor time: what is in hand, and what happens after that."""

import pytest

from divingbell.session.local import OVERDRAFT_BETWEEN
from divingbell.shares import host_time
from divingbell.shares.host_time import BURST, SHARE, UNNOTICED, HostTime


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, as the account sees it."""
    now = [1000.0]
    monkeypatch.setattr(host_time.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(host_time, "_everyone", host_time._Everyone())
    return now


def test_a_little_goes_unnoticed_and_more_is_taken_in_turns(clock: list[float]) -> None:
    account = HostTime(lambda *_: pytest.fail("it is not overdrawn"))
    assert account.charge(UNNOTICED / 2) == 0.0
    assert account.charge(UNNOTICED) == UNNOTICED


def test_past_the_burst_a_session_is_slowed_down_to_its_share(clock: list[float]) -> None:
    overdrawn: list[float] = []
    account = HostTime(lambda seconds, _: overdrawn.append(seconds))
    account.charge(BURST)
    taken = 0.0
    started = clock[0]
    while clock[0] < started + 100:
        clock[0] += account.charge(0.001)
        taken += 0.001
    assert taken == pytest.approx(SHARE * 100, rel=0.01)
    assert overdrawn[-1] == pytest.approx(taken, rel=0.01)
    assert overdrawn == sorted(overdrawn)


def test_what_is_not_taken_comes_back_and_the_past_is_forgotten(clock: list[float]) -> None:
    overdrawn: list[float] = []
    account = HostTime(lambda seconds, _: overdrawn.append(seconds))
    account.charge(BURST + 1)
    assert overdrawn == [BURST + 1]
    clock[0] += 1000
    assert account.charge(0.0) == 0.0
    account.charge(BURST + 1)
    assert overdrawn == [BURST + 1, BURST + 1]


def test_small_cells_in_a_row_never_use_it_up(clock: list[float]) -> None:
    account = HostTime(lambda *_: pytest.fail("it is not overdrawn"))
    for _ in range(10_000):
        clock[0] += 0.0006
        account.charge(0.00008)


def test_many_that_flood_together_have_one_share_and_are_all_overdrawn(
    clock: list[float],
) -> None:
    overdrawn: dict[int, float] = {}
    accounts = [
        HostTime(lambda seconds, times, at=number: overdrawn.__setitem__(at, seconds * times))  # type: ignore[misc]
        for number in range(8)
    ]
    free = [clock[0]] * len(accounts)
    taken = 0.0
    started = clock[0]
    while clock[0] < started + 20:
        clock[0] += 0.0001
        for number, account in enumerate(accounts):
            if clock[0] >= free[number]:
                clock[0] += 0.001  # there is but one loop
                free[number] = clock[0] + account.charge(0.001)
                taken += 0.001
    assert len(overdrawn) == len(accounts)
    assert min(overdrawn.values()) > OVERDRAFT_BETWEEN
    assert taken < 18


def test_who_draws_little_has_all_of_its_share_whatever_others_do(clock: list[float]) -> None:
    flood, quiet = HostTime(lambda *_: None), HostTime(lambda *_: pytest.fail("overdrawn"))
    for _ in range(10_000):
        clock[0] += 0.001
        flood.charge(0.001)
        assert quiet.charge(0.0001) == 0.0


def test_a_flood_is_told_when_it_begins_and_when_it_is_over(clock: list[float]) -> None:
    told: list[bool] = []
    account = HostTime(lambda *_: None, told.append)
    account.charge(UNNOTICED / 2)
    assert told == []
    account.charge(UNNOTICED)
    account.charge(UNNOTICED)
    assert told == [True] and account.is_flood
    account.look()
    assert told == [True]
    clock[0] += BURST / SHARE
    account.look()  # nothing more has come
    assert told == [True, False] and not account.is_flood


def test_one_at_the_brink_does_not_begin_and_end_all_the_time(clock: list[float]) -> None:
    told: list[bool] = []
    account = HostTime(lambda *_: None, told.append)
    account.charge(UNNOTICED)
    for _ in range(1000):
        clock[0] += 0.001 / SHARE
        account.charge(0.001)
    assert len(told) <= 1
