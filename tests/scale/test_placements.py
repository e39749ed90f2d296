"""Placements: by what is free, one node for one session, nothing forgotten and nothing kept."""

import asyncio
from typing import Any

import pytest

from divingbell.errors import CapacityError, SandboxUnavailable
from divingbell.scale import placements
from divingbell.scale.cluster import Held
from divingbell.scale.placements import Placements
from tests.waiting import until

GB = 1 << 30


def report(places: int = 2, free: int = 8 * GB, *held: Held, draining: bool = False) -> Any:
    return {
        "places": places,
        "held": list(held),
        "memory": 16 * GB,
        "free_memory": free,
        "draining": draining,
    }


async def two_nodes(**reports: Any) -> Placements:
    found = Placements()
    for name in ("one", "two"):
        await found.joined(name, reports.get(name, report()))
    return found


async def test_a_session_stays_where_it_is_and_each_placing_has_a_higher_number() -> None:
    found = await two_nodes()
    node, first = await found.place("anne", "a", 0)
    again, second = await found.place("anne", "a", 0)
    assert again == node and second > first


async def test_sessions_go_where_most_is_free_of_places_and_of_memory() -> None:
    found = await two_nodes(one=report(4, 2 * GB), two=report(4, 12 * GB))
    assert [(await found.place("anne", id, 0))[0] for id in "abc"] == ["two", "two", "two"]
    found = await two_nodes(one=report(4), two=report(2))
    nodes = [(await found.place("anne", id, 0))[0] for id in "abcdef"]
    assert nodes.count("one") == 4 and nodes.count("two") == 2


async def test_a_node_without_memory_or_that_is_drained_takes_nothing() -> None:
    found = await two_nodes(one=report(2, 1 << 20), two=report(draining=True))
    with pytest.raises(CapacityError, match=r"one has 1 MB of memory left, two is being drained"):
        await found.place("anne", "a", 0.01)


async def test_who_finds_no_place_is_told_the_nodes_and_more_are_asked_for() -> None:
    wanted: list[int] = []
    found = Placements(wanted.append)
    await found.joined("one", report(1))
    await found.place("anne", "a", 0)
    with pytest.raises(CapacityError, match=r"one has all of 1 session\b.*add a machine"):
        await found.place("bert", "b", 0.01)
    assert wanted == [2, 0]


async def test_who_waits_gets_the_place_that_becomes_free() -> None:
    found = Placements()
    await found.joined("one", report(1))
    _, number = await found.place("anne", "a", 0)
    waiting = asyncio.create_task(found.place("bert", "b", 20))
    await asyncio.sleep(0)
    await found.gone("anne", "a", number)
    assert (await waiting)[0] == "one"


async def test_without_nodes_it_says_so() -> None:
    with pytest.raises(SandboxUnavailable, match="divingbell nodes"):
        await Placements().place("anne", "a", 0)


async def test_a_user_has_so_many_sessions_in_all_of_the_cluster() -> None:
    found = await two_nodes()
    await found.place("anne", "a", 0, most=1)
    await found.place("anne", "a", 0, most=1)
    with pytest.raises(CapacityError, match="you have 1 sessions") as refused:
        await found.place("anne", "b", 0, most=1)
    assert refused.value.of_user
    await found.place("bert", "b", 0, most=1)


async def test_an_end_that_is_told_late_does_not_undo_a_later_placing() -> None:
    found = await two_nodes()
    _, first = await found.place("anne", "a", 0)
    node, _ = await found.place("anne", "a", 0)
    await found.gone("anne", "a", first)
    assert found.ids_of("anne") == ["a"]
    assert found.still_of(node, [Held("anne", "a", "key", first)])


async def test_a_node_that_is_given_up_has_nothing_any_more() -> None:
    found = await two_nodes()
    node, number = await found.place("anne", "a", 0)
    await found.given_up(node)
    assert found.ids_of("anne") == []
    other, later = await found.place("anne", "a", 0)
    assert other != node and later > number
    await found.joined(node, report())
    assert not found.still_of(node, [Held("anne", "a", "key", number)])


async def test_who_begins_anew_knows_what_nodes_hold_and_gives_out_no_number_again() -> None:
    before = await two_nodes()
    _, number = await before.place("anne", "a", 0)
    after = Placements()
    assert after.begun > number
    await after.joined("one", report(2, 8 * GB))
    await after.joined("two", report(2, 8 * GB, Held("anne", "a", "key", number)))
    assert (await after.place("anne", "a", 0))[0] == "two"
    assert (await after.place("anne", "b", 0))[1] > number


async def test_of_two_nodes_that_say_they_hold_it_the_later_placing_counts() -> None:
    found = Placements()
    await found.joined("one", report(2, 8 * GB, Held("anne", "a", "k1", 5)))
    await found.joined("two", report(2, 8 * GB, Held("anne", "a", "k2", 7)))
    assert not found.still_of("one", [Held("anne", "a", "k1", 5)])
    assert found.still_of("two", [Held("anne", "a", "k2", 7)])


async def test_what_was_placed_and_never_opened_is_forgotten_once_nobody_can_be_opening_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = await two_nodes()
    await found.place("anne", "a", 0)
    monkeypatch.setattr(placements, "SETTLING", 0.0)
    await found.place("anne", "b", 60)
    await found.place("anne", "c", 0)

    async def is_forgotten() -> bool:
        for node in ("one", "two"):
            await found.reported(node, report())
        return found.ids_of("anne") == ["a", "b"]

    await until(is_forgotten, "it is forgotten")
