"""Nobody takes more than a rate over time, nobody waits longer than was said, and the idle are
forgotten."""

import math

from hypothesis import given
from hypothesis import strategies as st

from divingbell.shares.buckets import EXACT, Buckets

MANY = 10_000


class Time:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_passes_and_then_it_flows_in_evenly() -> None:
    time = Time()
    buckets = Buckets(3, 60, time)
    for _ in range(3):
        assert buckets.wait("ada", 1) == 0
        buckets.take("ada", 1)
    assert math.isclose(buckets.wait("ada", 1), 20)
    assert buckets.wait("bob", 1) == 0
    time.now += 19.9
    assert buckets.wait("ada", 1)
    time.now += 0.1
    assert buckets.wait("ada", 1) == 0


def test_what_was_taken_beyond_it_is_owed() -> None:
    time = Time()
    buckets = Buckets(10, 60, time)
    buckets.take("ada", 15)
    assert math.isclose(buckets.wait("ada"), 30) and not buckets.is_overdrawn("ada")
    buckets.take("ada", 5)
    assert buckets.is_overdrawn("ada")
    time.now += 59
    assert buckets.wait("ada") and not buckets.is_overdrawn("ada")
    time.now += 1
    assert buckets.wait("ada") == 0


def test_the_idle_are_forgotten_and_those_who_owe_are_not() -> None:
    time = Time()
    buckets = Buckets(10, 60, time)
    buckets.take("debtor", 1_000)
    for number in range(MANY):
        buckets.take(f"user {number}", 1)
    assert len(buckets) == MANY + 1
    time.now += 60
    for _ in range(MANY):
        buckets.take("ada", 0.001)
    assert len(buckets) == 2 and buckets.wait("debtor")


def test_many_who_come_one_after_another_never_pile_up() -> None:
    time = Time()
    buckets = Buckets(60, 60, time)
    most = 0
    for number in range(MANY):
        buckets.take(f"user {number}", 1)  # full again after a second, in which ten come
        time.now += 0.1
        most = max(most, len(buckets))
    assert most < 50


STEPS = st.lists(
    st.tuples(st.sampled_from("ab"), st.floats(0, 100), st.floats(0.01, 20)), max_size=60
)


@given(amount=st.integers(1, 1_000), seconds=st.integers(1, 100_000), steps=STEPS)
def test_in_any_span_there_is_a_burst_and_the_rate_and_no_more(
    amount: int, seconds: int, steps: list[tuple[str, float, float]]
) -> None:
    time = Time()
    buckets = Buckets(amount, seconds, time)
    taken: dict[str, list[tuple[float, float]]] = {"a": [], "b": []}
    for name, pause, wanted in steps:
        time.now += pause
        cost = min(wanted, amount)
        if not buckets.wait(name, cost):
            buckets.take(name, cost)
            taken[name].append((time.now, cost))
    for log in taken.values():
        for first, (begin, _) in enumerate(log):
            for end, _ in log[first:]:
                inside = sum(cost for at, cost in log if begin <= at <= end)
                slack = 1e-6 * amount + len(log) * EXACT * amount / seconds
                assert inside <= amount + (end - begin) * amount / seconds + slack


@given(
    amount=st.integers(1, 1_000),
    seconds=st.integers(1, 100_000),
    costs=st.lists(st.floats(0.001, 5_000), min_size=1, max_size=20),
)
def test_the_wait_is_true_neither_too_long_nor_too_short(
    amount: int, seconds: int, costs: list[float]
) -> None:
    time = Time()
    buckets = Buckets(amount, seconds, time)
    for cost in costs:
        buckets.take("ada", cost)
    for wanted in (0, min(1, amount)):
        wait = buckets.wait("ada", wanted)
        if wait:
            began = time.now
            time.now = began + wait * 0.999 - 1e-5
            assert buckets.wait("ada", wanted)
            time.now = began + wait + 1e-6
            assert buckets.wait("ada", wanted) == 0
            time.now = began


@given(steps=STEPS)
def test_two_do_not_feel_each_other(steps: list[tuple[str, float, float]]) -> None:
    time = Time()
    together, alone = Buckets(20, 60, time), Buckets(20, 60, time)
    for name, pause, cost in steps:
        time.now += pause
        together.take(name, cost)
        if name == "a":
            alone.take(name, cost)
        assert together.wait("a") == alone.wait("a")
