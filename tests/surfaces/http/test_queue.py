"""The queue of cells: users in turn, sessions one at a time."""

import pytest

from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.queue import Queue, Room


async def test_users_take_turns_however_many_one_of_them_has() -> None:
    queue = Queue(Room(at_once=1, of_user=1))
    places: list[tuple[str, int]] = []
    running = queue.enter("anne", "a0")
    waiting = {
        name: queue.enter(name[0], name, lambda place, name=name: places.append((name, place)))  # type: ignore[misc]
        for name in ("a1", "a2", "b1", "b2", "c1")
    }
    assert [waiting[name].place for name in waiting] == [1, 4, 2, 5, 3]
    order = []
    while queue.waiting:
        queue.leave(running)
        [(name, running)] = [each for each in waiting.items() if each[1].running]
        order.append(name)
        del waiting[name]
    assert order == ["a1", "b1", "c1", "a2", "b2"]
    queue.leave(running)
    queue.leave(running)
    assert queue.running == 0 and not queue._users


async def test_a_session_runs_one_at_a_time_and_others_of_its_user_pass_it() -> None:
    queue = Queue(Room(at_once=4, of_user=4))
    first, second, other = (queue.enter("anne", name) for name in ("s", "s", "t"))
    assert (first.running, second.running, other.running) == (True, False, True)
    queue.leave(first)
    assert second.running


async def test_a_full_queue_refuses_a_user_or_all() -> None:
    queue = Queue(Room(at_once=1, of_user=1, waiting=2, waiting_of_user=1))
    for user in ("anne", "anne", "bert"):
        queue.enter(user, "s")
    with pytest.raises(Refused) as refused:
        queue.enter("anne", "t")
    assert refused.value.status == 429 and "Retry-After" in refused.value.headers
    with pytest.raises(Refused) as refused:
        queue.enter("carl", "s")
    assert refused.value.status == 503
