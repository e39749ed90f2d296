"""Servers that outlive a Divingbell that was killed are ended by the next one."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from divingbell import Divingbell
from divingbell.gateway.upstream.transport.orphan_groups import ProcessGroups, end_orphans
from divingbell.host import profile
from divingbell.parts import GROUPS
from tests.gateway.galley import galley
from tests.waiting import until

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def start() -> "subprocess.Popen[bytes]":
    return subprocess.Popen(SLEEPER, start_new_session=True)


def test_a_group_that_was_left_is_ended(tmp_path: Path) -> None:
    with start() as left:
        ProcessGroups(tmp_path / "groups").note(left.pid)
        end_orphans(tmp_path / "groups")
        assert left.wait(20) == -signal.SIGKILL


def test_a_number_that_is_somebody_elses_by_now_is_left_alone(tmp_path: Path) -> None:
    with start() as other:
        groups = ProcessGroups(tmp_path / "groups")
        groups.note(other.pid)
        note = tmp_path / "groups" / str(other.pid)
        known = note.read_text()
        for word in range(4):  # the start, the owner, the start of the machine, the table
            words = known.split()
            words[word] = "12345"
            note.write_text(" ".join(words))
            end_orphans(tmp_path / "groups")
        for name in ("1", "0", "x", "-1"):
            (tmp_path / "groups" / name).write_text("1")
        end_orphans(tmp_path / "groups")
        end_orphans(tmp_path / "nowhere")
        note.write_text(known)
        (tmp_path / "groups").chmod(0o777)  # somebody else may have written it
        end_orphans(tmp_path / "groups")
        (tmp_path / "groups").chmod(0o700)
        assert other.poll() is None
        groups.forget(other.pid)
        assert not (tmp_path / "groups" / str(other.pid)).exists()
        other.kill()


def test_a_process_that_heads_no_group_is_not_written_down(tmp_path: Path) -> None:
    with subprocess.Popen(SLEEPER) as member:
        ProcessGroups(tmp_path / "groups").note(member.pid)
        assert not any((tmp_path / "groups").iterdir())
        member.kill()


async def test_servers_are_written_down_as_long_as_they_run() -> None:
    async with galley() as (bell, session):
        assert (await session.run("servers.galley.add(1, 1)")).value == 2
        pid = bell.gateway.fleet.upstream("galley").pid
        noted = profile.home().glob(f"running/divingbell-*-*/{GROUPS}/{pid}")
        assert [path.name for path in noted] == [str(pid)]
    assert not list(profile.home().glob(f"running/divingbell-*-*/{GROUPS}/{pid}"))


async def test_the_next_start_ends_what_a_killed_host_has_left(tmp_path: Path) -> None:
    deaf = (
        "import json, signal, sys, time\n"
        "for line in sys.stdin:\n"
        "    asked = json.loads(line)\n"
        "    if 'id' not in asked: continue\n"
        "    known = {'initialize': {'protocolVersion': '2025-06-18',"
        " 'capabilities': {'tools': {}}, 'serverInfo': {'name': 'deaf', 'version': '1'}},"
        " 'tools/list': {'tools': []}}\n"
        "    method = asked['method']\n"
        "    answer = {'result': known[method]} if method in known else"
        " {'error': {'code': -32601, 'message': 'no'}}\n"
        "    print(json.dumps({'jsonrpc': '2.0', 'id': asked['id'], **answer}), flush=True)\n"
        "while True: time.sleep(1)\n"
    )
    (tmp_path / "deaf.py").write_text(deaf)
    host = (
        "import asyncio, sys\nfrom divingbell import Divingbell\n"
        "async def main():\n"
        f"    entry = {{'command': sys.executable, 'args': [{str(tmp_path / 'deaf.py')!r}]}}\n"
        "    async with Divingbell(pool=0, preload=[], servers={'deaf': entry}) as bell:\n"
        "        await bell.gateway.fleet.upstream('deaf').ready()\n"
        "        print(bell.gateway.fleet.upstream('deaf').pid, flush=True)\n"
        "        await asyncio.sleep(600)\n"
        "asyncio.run(main())\n"
    )
    pid = await asyncio.to_thread(_start_and_kill, host)
    assert Path(f"/proc/{pid}").exists()
    async with Divingbell(pool=0, preload=[]):
        await until(lambda: not _lives(pid), "the end of the server")


def _start_and_kill(host: str) -> int:
    """Run a host until it has told the pid of its server, then kill it."""
    with subprocess.Popen([sys.executable, "-c", host], stdout=subprocess.PIPE) as killed:
        assert killed.stdout is not None
        pid = int(killed.stdout.readline())
        killed.kill()
    return pid


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (OSError, IndexError):
        return False
