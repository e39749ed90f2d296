"""The table of promises through a node: every attack that does not need its sandbox here."""

from divingbell import Divingbell
from divingbell.promises import PROMISES
from divingbell.promises.check import self_check
from divingbell.promises.check.rig import CHECKS
from tests.scale import nodes

LEFT_OUT = {
    *("F50", "P11", "R15", "R55", "R65", "H49", "H71", "H72", "C04", "D52", "G23"),
    *("R60", "R61", "R62", "R63"),
}
"""They look into the interpreter, its zygote or its place on the disk, which are on the machine of
the node, or take all that it has of something; they are tried there: docs/scale.md says which."""
CHOSEN = tuple(
    promise.id
    for promise in PROMISES
    # Checks of the gateway start fronts of their own, with servers that nodes would have in turn.
    if promise.id not in LEFT_OUT and (promise.kind in ("probe", "bomb") or promise.id in CHECKS)
)


async def test_attacks_are_held_on_a_node_too(bell: Divingbell) -> None:
    with nodes.used(bell._engine.cluster):  # type: ignore[union-attr]
        verdicts = [verdict async for verdict in self_check.check(bell, CHOSEN)]
    assert not [(each.promise.id, each.detail) for each in verdicts if not each.kept]
    assert {each.promise.id for each in verdicts} == set(CHOSEN)
