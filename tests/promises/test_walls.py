"""Every promise of every wall that is made of containers, for real."""

import pytest

from divingbell import Divingbell
from divingbell.promises import KEPT, PROMISES
from divingbell.promises.check.rig import SMALL
from divingbell.promises.check.self_check import check, left_out, promised
from tests.walls import CONTAINED, Wall, need


@pytest.mark.parametrize("wall", CONTAINED, ids=lambda wall: wall.name)
async def test_every_promise_of_the_wall_is_kept(wall: Wall) -> None:
    need(wall)
    # A hundred containers are made here: without pandas in each it takes half the time. With the
    # limits of the check as settings, gVisor restores most of them, as it does for users.
    async with Divingbell(pool=0, preload=(), **SMALL, **wall.settings) as bell:
        verdicts = [verdict async for verdict in check(bell)]
    assert {verdict.promise.id for verdict in verdicts} == {
        promise.id for promise in promised(wall.name, "cgroup")
    }
    broken = [f"{each.promise.id}: {each.detail}" for each in verdicts if not each.kept]
    assert not broken, "\n".join(broken)


def test_what_is_not_promised_has_a_reason() -> None:
    for wall in ("local", *(each.name for each in CONTAINED)):
        for promise, reason in left_out(wall, "cgroup v2"):
            assert len(reason) > 20 and reason != KEPT, promise.id
        assert len(promised(wall, "cgroup v2")) + len(left_out(wall, "cgroup v2")) == len(PROMISES)


def test_what_a_wall_gives_up_keeps_the_host_safe() -> None:
    """No wall gives up what a session may see of the host, of the network or of others."""
    for wall in CONTAINED:
        groups = {promise.group for promise, _ in left_out(wall.name, "cgroup v2")}
        assert groups.isdisjoint({"network", "sessions", "python-level"})
