"""The same session behind every wall that is made of containers."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from divingbell import Divingbell, Session
from divingbell.host import profile
from divingbell.sandbox.contained.sandbox import ContainedSandbox
from tests.skills.samples import RUN_BY_PATH, of_another_agent
from tests.waiting import until, until_there
from tests.walls import CONTAINED, Wall, need

PATIENCE = 60.0
HOST = """
import asyncio, json, sys
from divingbell import Divingbell

async def main():
    async with Divingbell(pool=0, **json.loads(sys.argv[1])) as bell:
        async with bell.session() as session:
            await session.run("1 + 1")
            print("running", session._handle._interpreter.sandbox.name, flush=True)
            await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture(scope="module", params=CONTAINED, ids=lambda wall: wall.name)
def wall(request: pytest.FixtureRequest) -> Wall:
    chosen: Wall = request.param
    need(chosen)
    return chosen


@pytest.fixture(scope="module")
async def walled(wall: Wall, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Divingbell]:
    shown = tmp_path_factory.mktemp("shown")
    shown.chmod(0o755)
    (shown / "numbers.csv").write_text("a\n1\n")
    async with Divingbell(
        pool=1,
        copy_after=0.05,
        interrupt_grace=10,  # a busy machine is no reason to kill
        mounts={"/data": str(shown)},
        skills="on",
        **wall.settings,
    ) as bell:
        yield bell


@pytest.fixture
async def session(walled: Divingbell) -> AsyncIterator[Session]:
    async with walled.session() as session:
        yield session


def _sandbox(session: Session) -> ContainedSandbox:
    sandbox = session._handle._interpreter.sandbox
    assert isinstance(sandbox, ContainedSandbox)
    return sandbox


async def test_it_says_what_its_walls_are(session: Session, wall: Wall) -> None:
    assert session.isolation.backend == wall.name
    assert session.isolation.limits_by.startswith("cgroup v")


async def test_variables_output_and_values(session: Session) -> None:
    await session.run("import pandas as pd; frame = pd.DataFrame({'a': [1, 2]})")
    result = await session.run("print('out'); int(frame.a.sum())")
    assert result.status == "ok" and result.text.startswith("out\n") and result.value == 3


async def test_output_is_streamed(session: Session) -> None:
    seen: list[str] = []
    async for event in session.stream("for n in range(3): print(n)"):
        if event.type == "stdout":
            seen.append(event.text)
    assert "".join(seen) == "0\n1\n2\n"


async def test_files_go_in_and_come_out(session: Session) -> None:
    content = os.urandom(1 << 20)
    await session.files.put("in/a.bin", content)
    counted = await session.run("len(open('/workspace/in/a.bin', 'rb').read())")
    assert counted.value == len(content)
    assert await session.files.get("in/a.bin") == content
    assert [file.path for file in await session.files.list()] == ["in/a.bin"]


async def test_a_script_of_a_skill_is_run_by_its_path(walled: Divingbell, tmp_path: Path) -> None:
    await walled.skills.import_folder(of_another_agent(tmp_path), user="of the walls")
    try:
        async with walled.session(user="of the walls") as session:
            result = await session.run(RUN_BY_PATH)
            said = "hello Ann from /workspace/.skills/greet/scripts/greet.sh\n"
            assert (result.status, result.value) == ("ok", said), result
    finally:
        await walled.skills.remove("greet", user="of the walls")


async def test_a_command_runs_beside_the_cells(session: Session) -> None:
    result = await session.command("id -u; pwd; cat; echo bad >&2; exit 3", input="given\n")
    who = (await session.run("import os; os.getuid()")).value  # not 1000 behind every wall
    assert result.stdout == f"{who}\n/workspace\ngiven\n", result
    assert (result.status, result.exit_code, result.stderr) == ("error", 3, "bad\n")
    missing = await session.command(["no-such-program"])
    assert (missing.exit_code, missing.status) == (127, "error")


async def test_a_command_ends_with_all_that_it_started(session: Session) -> None:
    stubborn = (
        "trap '' TERM; sleep 614 & echo began; until [ -e go ]; do sleep 0.1; done; "
        "kill -STOP $PPID; sleep 614"
    )
    handle = await session.command(stubborn, background=True)
    await until(lambda: handle.stdout, "the command writes")
    await session.files.put("go", "")  # only now: what its server has not read would be lost
    # As after the grace that it has, which is long here.
    session._handle.sandbox.end_command(handle.number)
    assert (await handle.wait()).status == "killed"

    async def is_gone() -> bool:
        listed = await session.command("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
        return "sleep 614" not in listed.stdout

    await until(is_gone, "its processes are gone")
    assert (await session.run("1 + 1")).value == 2


async def test_a_link_out_of_the_workspace_leads_nowhere(session: Session) -> None:
    from divingbell import FileRefused

    await session.run("import os; os.symlink('/etc', 'link')")
    with pytest.raises(FileRefused):
        await session.files.get("link/passwd")


async def test_a_folder_of_the_host_is_shown_read_only(session: Session) -> None:
    result = await session.run("open('/data/numbers.csv').read()")
    assert result.value == "a\n1\n", result.error
    refused = await session.run("open('/data/new', 'w')")
    assert refused.error is not None and refused.error.type in ("OSError", "PermissionError")


async def test_a_cell_out_of_time_keeps_the_variables(session: Session) -> None:
    await session.run("x = 5")
    late = await session.run("while True: pass", timeout=1)
    assert late.status == "timeout"
    assert (await session.run("x")).value == 5


async def test_a_killed_interpreter_comes_back_with_its_variables(session: Session) -> None:
    await session.run("x = 6")
    await until(lambda: session.copied_cell == session.cells, "a copy")
    killed = await session.run("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert killed.status == "killed" and killed.state == "rewound"
    assert (await session.run("x")).value == 6


async def test_neither_the_socket_nor_the_token_is_left_inside(session: Session) -> None:
    code = """
import os
left = os.listdir('/run/divingbell')
shown = open('/proc/self/environ', 'rb').read() + repr(dict(os.environ)).encode()
left, b'TOKEN' in shown
"""
    assert (await session.run(code)).value == ([], False)


async def test_there_is_no_network_and_no_way_to_write_elsewhere(session: Session) -> None:
    code = """
import os, socket
def refused(action):
    try:
        action()
    except OSError:
        return True
    return False
[
    refused(lambda: socket.create_connection(('127.0.0.1', 80), 1)),
    refused(lambda: socket.socket(socket.AF_INET)),
    refused(lambda: open('/usr/bin/x', 'w')),
    refused(lambda: open('/etc/passwd', 'a')),
    refused(lambda: os.mkdir('/new')),
    refused(lambda: os.setuid(0)),
    os.getuid() != 0,
]
"""
    assert (await session.run(code)).value == [True] * 7


async def test_one_that_is_killed_from_outside_says_so_and_starts_anew(
    session: Session, walled: Divingbell
) -> None:
    async with walled.session() as neighbour:
        await neighbour.run("here = 42")
        code = "import time; open('begun', 'w').close(); time.sleep(50)"
        running = asyncio.create_task(session.run(code))
        await until_there(session, "begun")
        for pid in _sandbox(session).pids():
            with contextlib.suppress(ProcessLookupError):  # it went with one before it
                os.kill(pid, signal.SIGKILL)
        result = await asyncio.wait_for(running, PATIENCE)
        assert result.status in ("killed", "limit") and result.state == "fresh", result
        after = await asyncio.wait_for(session.run("1 + 1"), PATIENCE)
        assert after.value == 2
        assert (await neighbour.run("here")).value == 42


async def test_what_is_used_is_counted(session: Session) -> None:
    before = _sandbox(session).consumption()
    await session.run("sum(range(10**7))")
    after = _sandbox(session).consumption()
    assert after.cpu_seconds > before.cpu_seconds + 0.05
    assert after.memory is not None and after.memory > 20 << 20


async def test_nothing_is_left_after_a_session(walled: Divingbell, wall: Wall) -> None:
    async with walled.session(open_files=512) as session:
        sandbox = _sandbox(session)
        pids = sandbox.pids()
        assert pids
    # Init has to reap what gVisor leaves to it.
    await until(lambda: not [pid for pid in pids if Path(f"/proc/{pid}").exists()], "their end")
    assert sandbox.name not in _left_over(wall)


def _left_over(wall: Wall) -> str:
    """All that still bears a name of ours: containers, folders, control groups."""
    home = profile.home()
    found = [str(path) for kind in ("sockets", "bundles") for path in home.glob(f"{kind}/*/*")]
    if wall.name.startswith("docker"):
        asked = ["docker", "ps", "--all", "--no-trunc", "--format", "{{.ID}} {{.Names}}"]
        found.append(subprocess.run(asked, capture_output=True, text=True).stdout)
    return "\n".join(found)


async def test_after_a_killed_host_the_next_start_leaves_nothing_behind(wall: Wall) -> None:
    started = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, json.dumps(wall.settings), stdout=subprocess.PIPE
    )
    assert started.stdout is not None
    async with asyncio.timeout(PATIENCE):
        words: list[Any] = (await started.stdout.readline()).decode().split()
    name = words[1]
    assert name in _left_over(wall)
    started.kill()
    await started.wait()
    async with Divingbell(pool=0, **wall.settings):
        assert name not in _left_over(wall)
        # Others' groups come and go meanwhile: `walk` passes over what has gone.
        groups = [each for each, *_ in os.walk("/sys/fs/cgroup") if name in os.path.basename(each)]
        assert groups == []
