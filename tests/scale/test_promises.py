"""The table of promises through a node: every attack that is made from inside a session.

Those that look at the host need the sandbox on their own machine, and are tried there.
"""

from divingbell import Divingbell
from divingbell.promises import PROMISES
from divingbell.promises.check import self_check

INSIDE = tuple(promise.id for promise in PROMISES if promise.kind in ("probe", "bomb"))


async def test_attacks_from_inside_are_held_on_a_node_too(bell: Divingbell) -> None:
    verdicts = [verdict async for verdict in self_check.check(bell, INSIDE)]
    assert not [(each.promise.id, each.detail) for each in verdicts if not each.kept]
    assert {each.promise.id for each in verdicts} == set(INSIDE)
