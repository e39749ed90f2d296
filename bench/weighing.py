"""How much: the memory of an idle session behind each wall."""

import re
import statistics
from contextlib import AsyncExitStack
from typing import Any

import bells
import processes
import rivals
import table
from memory import LOADED
from sealed import COLD, ON_DEMAND, RESTORED, RESTORING, SETTINGS

from divingbell import Session
from divingbell.errors import DivingbellError

MEASURE = "memory, idle"
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    **{wall: (wall, COLD) for wall in SETTINGS},
    RESTORED: (RESTORING, ON_DEMAND),
}
_MB = 1 << 20
_IDENTIFIER = re.compile("[0-9a-f]{64}")
"""What Docker calls a container, and its control groups."""


async def weighing(count: int) -> list[table.Row]:
    """What its control group is charged with, and the PSS of all processes that it needs.

    The first leaves out Docker's shim, and what sessions share with each other or the zygote.
    """
    rows = []
    for name, (wall, limits) in WAYS.items():
        try:
            rows.append(await _weigh(name, SETTINGS[wall], limits, count))
        except DivingbellError as error:
            rows.append(table.Row(MEASURE, name, f"– ({rivals.briefly(error)})"))
    return rows


async def _weigh(
    name: str, settings: dict[str, Any], limits: dict[str, Any], count: int
) -> table.Row:
    async with bells.ring(**settings, pool=0, copy_after=0.0) as bell, AsyncExitStack() as stack:
        sessions = []
        for _ in range(count):
            session = await stack.enter_async_context(bell.session(**limits))
            result = await session.run(LOADED)
            assert result.status == "ok", result
            sessions.append(session)
        members = [_members(session) for session in sessions]
        shares = [processes.proportional_memory(pids) / _MB for pids in members]
        counted = [
            session._handle._interpreter.sandbox.consumption().memory for session in sessions
        ]
    charged = [value / _MB for value in counted if value is not None]
    # Without control groups there is only the share of each page.
    values, by = (charged, "its control group") if charged else (shares, "PSS")
    return table.Row(
        MEASURE,
        f"{name}, pandas loaded: by {by}",
        f"{statistics.median(values):.1f} MB",
        ratio=f"{statistics.median(shares):.1f} MB PSS of its {len(members[0])} processes",
        spread=f"{min(values):.1f} – {max(values):.1f} MB (all)",
        runs=str(count),
    )


def _members(session: Session) -> set[int]:
    """The processes of the host that would not be there without this session."""
    sandbox = session._handle._interpreter.sandbox
    name = getattr(sandbox, "name", None)
    if name is None:
        return set(processes.family(bells.first_process(session), processes.children()))
    seen: set[int] = set(sandbox.pids())  # type: ignore[attr-defined]
    # Docker's shim and gVisor's gofer may be outside of its control groups, but they name it.
    names = {name, *(found for pid in seen for found in _IDENTIFIER.findall(processes.groups(pid)))}
    return seen.union(*map(processes.naming, names))
