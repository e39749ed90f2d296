"""Every limit stops what it must stop, names itself, and says what to do."""

import pytest

from divingbell import Divingbell, Result, Session
from divingbell.session.transcript import MIN_RICH
from divingbell.shares.host_time import BURST
from tests.waiting import until


def _says(result: Result, *words: str) -> None:
    assert result.error is not None
    for word in words:
        assert word in str(result.error), str(result.error)


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(1e6)",
        "import threading; l = threading.Lock(); l.acquire(); l.acquire()",
    ],
)
async def test_time_out_first_interrupts_and_keeps_the_state(session: Session, code: str) -> None:
    await session.run("x = 1")
    result = await session.run(code, timeout=0.3)
    assert (result.status, result.limit, result.state) == ("timeout", None, "kept")
    _says(result, "0.3 s", "longer timeout")
    assert (await session.run("x")).value == 1


async def test_the_timeout_of_the_session_holds_where_the_run_names_none(bell: Divingbell) -> None:
    async with bell.session(timeout=0.2) as session:
        assert (await session.run("while True: pass")).status == "timeout"


async def test_code_stuck_in_c_is_killed(session: Session) -> None:
    stuck = (
        "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\nwhile True: pass"
    )
    result = await session.run(stuck, timeout=0.2)
    assert result.status == "timeout"
    assert result.state in ("rewound", "fresh")
    assert (await session.run("1 + 1")).value == 2


async def test_cpu_seconds_of_all_processes_count(bell: Divingbell) -> None:
    async with bell.session(cpu_seconds=0.3, timeout=30) as session:
        result = await session.run("while True: pass")
        assert (result.status, result.limit) == ("limit", "cpu")
        _says(result, "0.3 s of CPU time")
        child = "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'while 1: pass'])"
        result = await session.run(child)
        assert (result.status, result.limit) == ("limit", "cpu")
        assert (await session.run("1 + 1")).value == 2


async def test_an_allocation_that_is_too_large_costs_only_an_exception(session: Session) -> None:
    await session.run("x = 1")
    result = await session.run("b = bytearray(2 << 30)")
    assert (result.status, result.limit, result.state) == ("limit", "memory", "kept")
    _says(result, "512 MB", "less data")
    assert (await session.run("x")).value == 1


async def test_memory_taken_in_steps_is_bounded(bell: Divingbell) -> None:
    async with bell.session(memory="128MB", disk="32MB") as session:
        result = await session.run("hog = []\nwhile True: hog.append(bytearray(1 << 20))")
        assert (result.status, result.limit) == ("limit", "memory")
        assert (await session.run("1 + 1")).value == 2


async def test_memory_of_many_processes_counts_together(bell: Divingbell) -> None:
    code = """
import os, signal
for _ in range(8):
    if os.fork() == 0:
        hog = bytearray(50 << 20)
        hog[::4096] = b"x" * len(hog[::4096])
        signal.pause()
hog = bytearray(80 << 20)
signal.pause()
"""
    async with bell.session(memory="128MB", disk="32MB") as session:
        result = await session.run(code, timeout=5)
        assert result.status in ("limit", "timeout")
        assert result.limit == "memory" or any(
            "a process was ended" in note for note in result.notes
        )
        assert (await session.run("1 + 1")).value == 2


@pytest.mark.parametrize("kind", ["memfd", "sysv", "shm", "mmap"])
async def test_memory_outside_the_heap_counts_too(bell: Divingbell, kind: str) -> None:
    takes = {
        "memfd": "f = os.memfd_create('x')\nwhile True: os.write(f, bytes(1 << 20))",
        "shm": "f = open('/dev/shm/x', 'wb')\nwhile True: f.write(bytes(1 << 20))",
        "mmap": ("m = mmap.mmap(-1, 1 << 30)\nfor at in range(0, 1 << 30, 4096): m[at] = 1"),
        "sysv": (
            "libc = ctypes.CDLL(None, use_errno=True)\nlibc.shmat.restype = ctypes.c_void_p\n"
            "i = libc.shmget(0, ctypes.c_size_t(1 << 30), 0o1600)\n"
            "if i < 0: raise MemoryError\n"
            "ctypes.memset(libc.shmat(i, None, 0), 1, 1 << 30)"
        ),
    }
    async with bell.session(memory="128MB", disk="32MB") as session:
        result = await session.run("import ctypes, mmap, os\n" + takes[kind], timeout=10)
        assert result.status == "limit"
        assert result.limit in ("memory", "disk")
        assert (await session.run("1 + 1")).value == 2


async def test_a_fork_bomb_stays_in_its_session(bell: Divingbell, session: Session) -> None:
    async with bell.session(processes=16, timeout=10) as bombed:
        result = await bombed.run("import os\nwhile True: os.fork()")
        assert (result.status, result.limit) == ("limit", "processes")
        _says(result, "16 processes")
        assert (await bombed.run("1 + 1")).value == 2
        threads = (
            "import threading, time\n"
            "for _ in range(99): threading.Thread(target=time.sleep, args=(3,)).start()"
        )
        result = await bombed.run(threads)
        assert (result.status, result.limit) == ("limit", "processes")
    assert (await session.run("1 + 1")).value == 2


async def test_a_fork_bomb_that_swallows_its_errors_is_ended_by_the_clock(bell: Divingbell) -> None:
    code = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
    async with bell.session(processes=16, timeout=1) as session:
        assert (await session.run(code)).status == "timeout"
        assert (await session.run("1 + 1")).value == 2
        code = "import os\nlen([p for p in os.listdir('/proc') if p.isdigit()]) <= 3"
        assert (await session.run(code)).value is True


async def test_the_disk_has_an_end(bell: Divingbell) -> None:
    async with bell.session(disk="8MB") as session:
        for folder in ("/workspace", "/tmp", "/home/diver", "/dev/shm"):
            code = f"f = open('{folder}/x', 'wb', 0)\nwhile True: f.write(bytes(1 << 20))"
            result = await session.run(code)
            assert (result.status, result.limit) == ("limit", "disk"), folder
            _says(result, "8 MB", "Remove files")
            await session.run(f"f.close(); import os; os.remove('{folder}/x')")


async def test_many_small_files_have_an_end_too(bell: Divingbell) -> None:
    async with bell.session(disk="8MB", open_files=64) as session:
        code = "for i in range(10**6): open(f'/workspace/{i}', 'w').close()"
        result = await session.run(code, timeout=20)
        assert (result.status, result.limit) == ("limit", "disk")


async def test_open_files_have_an_end(bell: Divingbell) -> None:
    async with bell.session(open_files=64) as session:
        result = await session.run("held = [open('/dev/null') for _ in range(1000)]")
        assert result.status == "error"
        _says(result, "Too many open files")
        assert (await session.run("held = None; 1")).value == 1


async def test_output_over_its_limit_is_kept_in_a_file(bell: Divingbell) -> None:
    async with bell.session(output=10_000) as session:
        result = await session.run("for i in range(5000): print('line', i)")
        assert (result.status, result.limit) == ("ok", "output")
        assert len(result.text) < 11_000
        assert result.usage.output_bytes > 40_000
        where = f".outputs/cell-{result.cell}.txt"
        assert any(f"/workspace/{where}" in note for note in result.notes)
        whole = (await session.files.get(where)).decode()
        assert whole == "".join(f"line {i}\n" for i in range(5000))
        assert (await session.run("print('next')")).text == "next\n"


async def test_output_without_end_is_stopped(bell: Divingbell) -> None:
    async with bell.session(output=10_000, disk="4MB", timeout=30) as session:
        for stream in ("stdout", "stderr"):
            code = f"import sys\nwhile True: print('x' * 9999, file=sys.{stream})"
            result = await session.run(code)
            assert (result.status, result.limit) == ("limit", "output"), stream
            _says(result, "summary")
            assert (await session.run("!rm -rf /workspace/.outputs")).status == "ok"


async def test_a_flood_of_one_stream_does_not_block_the_other(session: Session) -> None:
    code = """
import os, sys
for _ in range(50):
    sys.stderr.write("e" * 5000)
print("out")
for _ in range(50):
    sys.stdout.write("o" * 5000)
print("err", file=sys.stderr)
"""
    result = await session.run(code)
    assert result.status == "ok"
    assert result.text.count("e" * 5000) == 50
    assert result.text.endswith("err\n")


async def test_displays_have_an_end_too(bell: Divingbell) -> None:
    async with bell.session(output=10_000) as session:
        code = (
            "from IPython.display import HTML\nfor _ in range(90): display(HTML('<p>' * 100_000))"
        )
        result = await session.run(code)
        assert (result.status, result.limit) == ("ok", "output")
        assert len(result.text) < 11_000
        assert sum(len(output.data) for output in result.outputs) < MIN_RICH + 11_000
        # None is lost: each is a file, and all lines about them are in another.
        lines = (await session.files.get(f".outputs/cell-{result.cell}.txt")).decode().splitlines()
        assert len(lines) == 90
        assert len(await session.files.get(f".outputs/cell-{result.cell}-90.html")) == 300_000


async def test_the_end_of_long_output_is_shown_too(bell: Divingbell) -> None:
    async with bell.session(output=10_000) as session:
        result = await session.run("for i in range(5000): print('line', i)\n'the value'")
        assert result.text.startswith("line 0\nline 1\n")
        assert result.text.endswith("line 4998\nline 4999\n'the value'\n")
        where = f"/workspace/.outputs/cell-{result.cell}.txt"
        assert f" bytes left out; all of it is in {where} …]\n" in result.text
        assert result.value == "the value"


async def test_a_long_value_is_cut_like_what_is_printed(bell: Divingbell) -> None:
    async with bell.session(output="64KB") as session:
        result = await session.run("'z' * 200_000")
        assert (result.status, result.limit) == ("ok", "output")
        assert len(result.text) < 66_000
        assert result.text.startswith("'zz") and result.text.endswith("zz'\n")
        assert result.value == "z" * 200_000  # as data it is whole
        whole = await session.files.get(f".outputs/cell-{result.cell}.txt")
        assert whole == b"'" + b"z" * 200_000 + b"'\n"


async def test_text_too_long_for_the_line_is_kept_by_the_session(session: Session) -> None:
    result = await session.run("'z' * 9_000_000")
    assert result.status == "ok"
    path = f"/workspace/.outputs/cell-{result.cell}-1.txt"
    assert f"characters left out; all of it is in {path} …]" in result.text
    assert result.text.startswith("'zz") and result.text.endswith("zz'\n")
    assert len(await session.files.get(path)) == 9_000_002


async def test_what_does_not_fit_on_the_disk_is_said_not_to_be_kept(bell: Divingbell) -> None:
    async with bell.session(disk="4MB") as session:
        code = "from IPython.display import HTML\nHTML('<p>' * 2_000_000)"
        result = await session.run(code)
        assert result.text == (
            "[HTML: text/html, 6,000,000 bytes, can't be seen here; "
            "it could not be kept: No space left on device]\n"
        )


async def test_usage_is_counted_from_outside(session: Session) -> None:
    result = await session.run("sum(range(10**6)); print('x' * 10)")
    assert result.usage.wall_ms > 0
    assert result.usage.cpu_ms is not None and result.usage.cpu_ms > 0
    assert result.usage.output_bytes == 11


async def test_rlimits_are_the_fallback_and_say_so() -> None:
    async with Divingbell(cgroups="off", pool=0, memory="256MB") as bell, bell.session() as session:
        assert session.isolation.limits_by == "rlimits"
        result = await session.run("hog = []\nwhile True: hog.append(bytearray(1 << 20))")
        assert (result.status, result.limit) == ("limit", "memory")
        for code in (
            "import os; os.memfd_create('x')",
            "import ctypes; l = ctypes.CDLL(None, use_errno=True)\n"
            "if l.shmget(0, ctypes.c_size_t(1 << 20), 0o1600) < 0: raise PermissionError(1, 'shm')",
        ):
            result = await session.run(code)
            assert result.error is not None and "Permission" in result.error.type
        result = await session.run("import os\nwhile True: os.fork()", timeout=20)
        assert (result.status, result.limit) == ("limit", "processes")
        async with bell.session(cpu_seconds=0.3) as burner:
            result = await burner.run("while True: pass")
            assert (result.status, result.limit) == ("limit", "cpu")


async def test_pressure_drops_the_copy_before_the_interpreter(bell: Divingbell) -> None:
    """A change in place of most of the memory fits only once: the waiting copy has to go."""
    async with bell.session(memory="192MB", disk="32MB") as session:
        result = await session.run("import numpy as np\na = np.ones(9_000_000)\nx = 'kept'")
        await until(lambda: session.copied_cell == result.cell, "a copy of the interpreter")
        result = await session.run("a += 1\na[0]")
        assert (result.status, result.value, result.state) == ("ok", 2.0, "kept")
        assert (await session.run("x")).value == "kept"


FLOOD = """
import gc, os, socket
outlet = next(each for each in gc.get_objects() if type(each).__name__ == "Outlet")
line = socket.socket(fileno=os.dup(outlet._data.fileno()))
line.setblocking(True)
if not behind or os.fork() == 0:
    packed = (b"\\0\\0\\0\\2\\0\\0\\0\\0" + b"{}") * 1000
    while True:
        line.sendall(packed)
"""


async def test_a_cell_that_floods_the_host_is_slowed_down_and_then_stopped(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.session.local.OVERDRAFT", 0.002)
    monkeypatch.setattr("divingbell.shares.host_time.SHARE", 0.05)  # however busy the machine is
    session._handle._interpreter.host_time._left = 0.0
    result = await session.run(FLOOD, context={"behind": False})
    assert (result.status, result.limit) == ("limit", "host")
    _says(result, "more than the host could take in", "Print less")
    assert (await session.run("1 + 1")).value == 2


async def test_a_session_that_floods_the_host_gives_way_to_others_until_it_is_over(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    gives_way: list[bool] = []
    give_way = session._handle.sandbox.give_way
    monkeypatch.setattr(
        session._handle.sandbox,
        "give_way",
        lambda to_all: (gives_way.append(to_all), give_way(to_all)),
    )
    await session.run("1 + 1")
    assert gives_way == []
    account = session._handle._interpreter.host_time
    account._left = 0.0  # as after a flood
    await session.run("1 + 1")
    assert gives_way == [True]
    account._left = BURST  # as after some seconds, in which nothing more is sent
    await until(lambda: gives_way == [True, False], "the end of the flood")


async def test_what_floods_the_host_between_cells_is_ended_and_the_next_result_says_so(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.session.local.OVERDRAFT_BETWEEN", 0.002)
    monkeypatch.setattr("divingbell.shares.host_time.SHARE", 0.05)
    await session.run("x = 1")
    await until(lambda: session.copied_cell == 1, "a copy of the state")
    session._handle._interpreter.host_time._left = 0.0
    assert (await session.run(FLOOD, context={"behind": True})).status == "ok"
    await until(lambda: session._handle._untold.reason, "the end of what was left behind")
    result = await session.run("x")
    assert (result.status, result.value, result.state) == ("ok", 1, "rewound")
    assert any("kept the host busy" in note for note in result.notes), result.notes
    result = await session.run("import os; os.waitpid(-1, os.WNOHANG)")
    assert result.error is not None and result.error.type == "ChildProcessError"
    assert not result.notes
