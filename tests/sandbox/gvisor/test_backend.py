"""What is different in a session behind gVisor: pid 1 is someone else, memory has two limits."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell, Session
from divingbell.sandbox.contained.command import EXPENDABLE
from divingbell.sandbox.contained.sandbox import ContainedSandbox
from tests.walls import DOCKER_RUNSC, GVISOR, Wall, need

TO_PID_1 = """
import os, resource, signal
def outcome(action):
    try:
        return repr(action())
    except OSError as error:
        return type(error).__name__
[
    outcome(lambda: os.kill(1, signal.SIGKILL)),
    outcome(lambda: os.kill(1, signal.SIGSTOP)),
    outcome(lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0))),
    outcome(lambda: os.listdir('/proc/1')),
]
"""
IDENTITY = """
import os
with open('/proc/self/status') as file:
    held = [int(line.split()[1], 16) for line in file if line.startswith('Cap')]
ours = {os.stat(path).st_uid for path in ('/workspace', os.path.expanduser('~'))}
[0 in os.getresuid() + os.getresgid(), any(held), ours == {os.getuid()}, os.getcwd()]
"""


@pytest.fixture(scope="module", params=[DOCKER_RUNSC, GVISOR], ids=lambda wall: wall.name)
async def bell(request: pytest.FixtureRequest) -> AsyncIterator[Divingbell]:
    wall: Wall = request.param
    need(wall)
    async with Divingbell(pool=0, **wall.settings) as bell:
        yield bell


@pytest.fixture(scope="module")
async def session(bell: Divingbell) -> AsyncIterator[Session]:
    async with bell.session() as session:
        yield session


async def test_gvisor_goes_before_the_host_when_the_machine_is_out_of_memory(
    session: Session,
) -> None:
    await session.run("1")
    sandbox = session._handle._interpreter.sandbox
    assert isinstance(sandbox, ContainedSandbox)
    scores = {int(Path(f"/proc/{pid}/oom_score_adj").read_text()) for pid in sandbox.pids()}
    assert max(scores) == EXPENDABLE, scores


async def test_nothing_can_be_done_to_the_first_process(session: Session) -> None:
    result = await session.run(TO_PID_1)
    assert result.value == ["PermissionError"] * 3 + ["[]"], result.error


async def test_code_is_nobody_special_and_owns_its_folders(session: Session) -> None:
    assert (await session.run(IDENTITY)).value == [False, False, True, "/workspace"]


async def test_programs_and_the_file_server_are_the_same_person(session: Session) -> None:
    await session.files.put("stored.txt", b"x")
    code = """
import os, subprocess
ran = subprocess.run(['id', '-u'], capture_output=True, text=True).stdout
[int(ran) == os.getuid(), os.stat('stored.txt').st_uid == os.getuid()]
"""
    assert (await session.run(code)).value == [True, True]


async def test_too_much_memory_is_an_error_and_costs_neither_variables_nor_files(
    bell: Divingbell,
) -> None:
    async with bell.session(memory="128MB", timeout=60) as session:
        await session.files.put("kept.txt", b"kept")
        await session.run("kept = 5")
        result = await session.run("pieces = []\nwhile True: pieces.append(bytearray(8 << 20))")
        assert (result.status, result.limit, result.state) == ("limit", "memory", "kept")
        assert (await session.run("kept")).value == 5
        assert await session.files.get("kept.txt") == b"kept"


async def test_several_processes_together_meet_the_outer_limit(bell: Divingbell) -> None:
    code = """
import os, time
for _ in range(12):
    if os.fork() == 0:
        taken = bytearray(b'x') * (64 << 20)
        time.sleep(60)
time.sleep(60)
"""
    async with bell.session(memory="128MB", timeout=60) as session:
        result = await session.run(code)
        assert (result.status, result.limit, result.state) == ("limit", "memory", "fresh")
        assert (await session.run("1 + 1")).value == 2


async def test_the_usual_packages_work_within_the_usual_limit(bell: Divingbell) -> None:
    code = """
import concurrent.futures, numpy, pandas, matplotlib.pyplot as plt
frame = pandas.DataFrame(numpy.ones((500_000, 8)))
with concurrent.futures.ThreadPoolExecutor(16) as pool:
    sums = list(pool.map(lambda column: frame[column].sum(), range(8)))
plt.plot(frame.groupby(0).sum().T)
plt.show()
large = numpy.ones(35_000_000)  # threads have not used up what can be had
int(sum(sums) + large.sum())
"""
    async with bell.session(timeout=60) as session:
        result = await session.run(code)
        assert result.value == 8 * 500_000 + 35_000_000, result.error
