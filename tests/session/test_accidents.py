"""An accident never costs the session: what is killed, what takes over, what the result says."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator

import pytest

from divingbell import Divingbell, Session
from tests.waiting import until


async def _with_a_copy(session: Session, code: str) -> int:
    """Run code and wait until a copy waits that knows what it did; return the cell's number."""
    result = await session.run(code)
    await until(lambda: session.copied_cell == result.cell, "a copy of the interpreter")
    return result.cell


@pytest.fixture(scope="module")
async def forgetful() -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, copy_after=0) as bell:
        yield bell


CRASHES = {
    "os._exit(0)": "exited with status 0",
    "os.kill(os.getpid(), 9)": "SIGKILL",
    "os.abort()": "SIGABRT",
    "ctypes.string_at(0)": "SIGSEGV",
    "os.closerange(0, 4096)": "closed the descriptors",
}


@pytest.mark.parametrize("crash", CRASHES)
async def test_the_copy_takes_over_after_a_crash(session: Session, crash: str) -> None:
    cell = await _with_a_copy(session, "import os, ctypes\nx = [1, 2, 3]")
    await session.run("open('/workspace/f', 'w').write('still here')")
    result = await session.run(f"x.append(4); {crash}")
    assert (result.status, result.state, result.state_cell) == ("killed", "rewound", cell)
    assert result.error is not None and CRASHES[crash] in result.error.message
    assert any(f"after cell {cell}" in note for note in result.notes)
    assert (await session.run("x")).value == [1, 2, 3]
    assert (await session.run("open('/workspace/f').read()")).value == "still here"


@pytest.mark.parametrize("crash", list(CRASHES))
async def test_without_a_copy_the_next_run_is_fresh_and_says_so(
    forgetful: Divingbell, crash: str
) -> None:
    async with forgetful.session() as session:
        await session.run("import os, ctypes\nx = 1\nopen('/workspace/f', 'w').write('kept')")
        result = await session.run(crash)
        assert (result.status, result.state, result.state_cell) == ("killed", "fresh", None)
        assert any("variables and imports are gone" in note for note in result.notes)
        assert (await session.run("'x' in globals()")).value is False
        assert (await session.run("open('/workspace/f').read()")).value == "kept"


async def test_a_cell_that_is_deaf_to_interrupts_is_killed(session: Session) -> None:
    cell = await _with_a_copy(session, "import signal\nx = 1")
    deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nx = 2\nwhile True: pass"
    result = await session.run(deaf, timeout=0.3)
    assert (result.status, result.state, result.state_cell) == ("timeout", "rewound", cell)
    assert (await session.run("x")).value == 1


async def test_a_copy_can_be_copied_again(session: Session) -> None:
    for turn in range(3):
        cell = await _with_a_copy(session, f"x = {turn}")
        result = await session.run("import os; os._exit(1)")
        assert (result.state, result.state_cell) == ("rewound", cell)
        assert (await session.run("x")).value == turn


async def test_an_interpreter_that_dies_between_cells_is_replaced(session: Session) -> None:
    cell = await _with_a_copy(session, "x = 5")
    code = "import threading, os\nthreading.Timer(0.2, lambda: os._exit(3)).start()"
    await session.run(code)
    await until(lambda: not session.alive, "the interpreter dies")
    result = await session.run("x")
    assert result.value == 5
    assert (result.state, result.state_cell) == ("rewound", cell)


async def test_no_copy_is_made_while_there_are_threads(session: Session) -> None:
    code = """
import threading
stop = threading.Event()
threading.Thread(target=stop.wait).start()
"""
    result = await session.run(code)
    await until(lambda: session.copy_refused == "threads", "the refusal")
    assert session.copied_cell != result.cell
    await session.run("stop.set()")


async def test_a_chosen_seed_survives_the_take_over(session: Session) -> None:
    await _with_a_copy(session, "import random\nrandom.seed(7)")
    await session.run("import os; os._exit(1)")
    rewound = (await session.run("random.random()")).value
    assert rewound == (await session.run("random.seed(7); random.random()")).value


async def test_tasks_and_the_loop_survive_the_take_over(session: Session) -> None:
    await _with_a_copy(session, "import asyncio\nawait asyncio.sleep(0)\nx = 1")
    await session.run("import os; os._exit(1)")
    assert (await session.run("await asyncio.sleep(0, 'awake')")).value == "awake"


async def test_processes_of_the_killed_cell_are_ended(session: Session) -> None:
    await _with_a_copy(session, "import os, subprocess")
    await session.run("p = subprocess.Popen(['sleep', '1000'])\nos._exit(1)")
    code = "sorted(open(f'/proc/{p}/cmdline').read() for p in os.listdir('/proc') if p.isdigit())"
    assert not any("sleep" in line for line in (await session.run(code)).value)


async def test_user_code_does_not_see_the_copy_as_its_child(session: Session) -> None:
    await _with_a_copy(session, "import os")
    result = await session.run("os.wait()")
    assert result.error is not None and result.error.type == "ChildProcessError"


async def test_killing_everything_by_hand_harms_only_this_session(
    bell: Divingbell, session: Session
) -> None:
    async with bell.session("neighbour") as neighbour:
        await neighbour.run("y = 1")
        await _with_a_copy(session, "import os\nx = 1")
        await session.run("os.kill(-1, 9)")
        result = await session.run("os.kill(os.getpid(), 9)")
        assert (result.status, result.state) == ("killed", "fresh")
        assert (await session.run("1 + 1")).value == 2
        assert (await neighbour.run("y")).value == 1


async def test_a_fork_that_comes_back_from_its_cell_does_not_answer(session: Session) -> None:
    code = """
import os
pid = os.fork()
if pid:
    os.waitpid(pid, 0)
print("child" if pid == 0 else "parent")
"""
    result = await session.run(code)
    assert result.status == "ok"
    assert sorted(result.text.split()) == ["child", "parent"]
    assert (await session.run("1 + 1")).value == 2


async def test_many_accidents_in_a_row(session: Session) -> None:
    for turn in range(10):
        assert (await session.run(f"import os\nx = {turn}\nos._exit(0)")).status == "killed"
    assert (await session.run("1")).value == 1


async def test_a_sandbox_killed_from_outside_is_made_anew(session: Session) -> None:
    await session.run("x = 1")
    running = asyncio.create_task(session.run("import time; time.sleep(60)"))
    await until(lambda: session.busy, "the cell runs")
    os.kill(session._handle.sandbox.pid, signal.SIGKILL)  # type: ignore[attr-defined]
    result = await running
    assert (result.status, result.state) == ("killed", "fresh")
    assert any("workspace" in note for note in result.notes)
    assert (await session.run("1 + 1")).value == 2
