"""Resources that the kernel counts by user: one session takes all of them, and others need some
too."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import divingbell_inside
from divingbell.promises import PROBES
from divingbell.promises.check.processes import processes_of
from divingbell.promises.check.rig import Check, CheckRig, checks, expect, judged
from divingbell.session.session import Session

MANY = 1_000_000
"""More than a uid has of anything that is counted here."""
HOST_PATIENCE = 30.0


def _taking(probe: str) -> Check:
    async def take(rig: CheckRig) -> str:
        async with rig.session() as greedy, rig.session() as neighbour:
            words = judged(await rig.run(greedy, probe, MOST=MANY))
            judged(await rig.run(neighbour, probe, MOST=1))
            await asyncio.to_thread(_take_one, probe)
        return f"{words}; some are left for others"

    return take


def _take_one(probe: str) -> None:
    """Do the same on the host, once, in a process that takes nothing along."""
    source = f"MOST = 1\n{(PROBES / probe).read_text('utf-8')}"
    inside = Path(divingbell_inside.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", source],
        env={"PYTHONPATH": f"{PROBES}:{inside}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=HOST_PATIENCE,
    )
    expect(done.stdout.startswith("SAFE"), f"the host: {done.stdout or done.stderr[-300:]}")


@checks("R65")
async def uids(rig: CheckRig) -> str:
    async with rig.session() as session, rig.session() as neighbour:
        own, other = _uids_of(session), _uids_of(neighbour)
    shared = own & other | (own | other) & {os.geteuid()}
    expect(
        bool(own and other) and not shared, f"uids {own} and {other}, the host's is {os.geteuid()}"
    )
    return f"uids {own} and {other}"


def _uids_of(session: Session) -> set[int]:
    """The user ids of a session's processes on the host, by which the kernel counts their use."""
    found = set()
    for pid in processes_of(session):
        status = Path(f"/proc/{pid}/status").read_text()
        found |= {int(line.split()[1]) for line in status.splitlines() if line.startswith("Uid:")}
    return found


for _row in ("R60", "R61", "R62", "R63"):
    checks(_row)(_taking(f"{_row}.py"))
