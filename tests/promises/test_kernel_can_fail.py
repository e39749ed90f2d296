"""Without what keeps them, the promises about the kernel's quotas are found broken."""

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.host import folders, uids
from divingbell.promises import PROBES
from divingbell.promises.check.self_check import check
from divingbell.sandbox.local import quotas

ROOT = Path(__file__).parents[2]
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="others have one uid only")


async def broken(*rows: str) -> set[str]:
    """Which of them are broken; in turn, because what another session frees can be taken again."""
    async with Divingbell(pool=0, preload=()) as bell:
        verdicts = [verdict for row in rows async for verdict in check(bell, {row})]
    assert {verdict.promise.id for verdict in verdicts} == set(rows)
    return {verdict.promise.id for verdict in verdicts if not verdict.kept}


async def test_a_session_that_takes_all_of_a_quota_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Without shares of its own."""

    class Undivided(quotas.Quotas):
        def __init__(self, sessions: int, *, shared: bool) -> None:
            super().__init__(sessions, shared=shared)
            self.pending_signals = resource.getrlimit(resource.RLIMIT_SIGPENDING)[0]

        def take_inotify(self) -> quotas.Inotify:
            return (1 << 20, 1 << 20)

    monkeypatch.setattr("divingbell.sandbox.local.backend.Quotas", Undivided)
    assert await broken("R60", "R61") == {"R60", "R61"}


@as_root
async def test_sessions_with_one_uid_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uids.Uids, "take", lambda _: 1)
    assert await broken("R62", "R63", "R65") == {"R62", "R63", "R65"}


async def test_a_workspace_that_others_can_enter_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    make = folders.Workspaces.__init__

    def make_open(self: folders.Workspaces, above: Path) -> None:
        make(self, above)
        self.path.parent.chmod(0o711)

    monkeypatch.setattr(folders.Workspaces, "__init__", make_open)
    assert await broken("F50") == {"F50"}


@pytest.mark.parametrize("name", ["K50", "K51", "K52", "R64"])
def test_a_probe_says_unsafe_where_there_is_no_sandbox(name: str) -> None:
    done = subprocess.run(
        [sys.executable, f"{name}.py"],
        cwd=PROBES,
        env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert re.search("^UNSAFE", done.stdout, re.MULTILINE), done.stdout + done.stderr
