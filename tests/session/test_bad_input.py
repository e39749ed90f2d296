"""Input that no one should send: each ends in a clear result, none harms host or session."""

import os
import pathlib

import pytest

from divingbell import Divingbell, InvalidInput, Session
from tests.waiting import until


async def _usable(session: Session) -> None:
    assert (await session.run("20 + 22")).value == 42


@pytest.mark.parametrize("code", ["", "   \n\n", "# nothing", "\n"])
async def test_empty_code_is_fine(session: Session, code: str) -> None:
    result = await session.run(code)
    assert (result.status, result.value) == ("ok", None)


@pytest.mark.parametrize(
    "code",
    [
        "def",
        "x = = 1",
        "'unterminated",
        "\0",
        "x = 1\0",
        "  indented = 1\n dedented = 2",
        "(" * 5000,
        "-" * 100_000 + "1",
        "return 1",
        "%nosuchmagic",
        "x = 1\n" * 10 + "(",
    ],
)
async def test_code_that_is_no_python(session: Session, code: str) -> None:
    result = await session.run(code)
    assert result.status == "error"
    assert result.error is not None and result.error.type
    await _usable(session)


async def test_code_that_is_no_text(session: Session) -> None:
    with pytest.raises(InvalidInput, match="must be text"):
        await session.run(b"1 + 1")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="not valid text"):
        await session.run("x = '\ud800'")
    await _usable(session)


async def test_code_of_ten_megabytes_runs(session: Session) -> None:
    result = await session.run("x = '" + "a" * 10_000_000 + "'\nlen(x)")
    assert result.value == 10_000_000
    await _usable(session)


async def test_code_past_the_cap_is_refused_with_the_way_out(session: Session) -> None:
    with pytest.raises(InvalidInput, match=r"files\.put"):
        await session.run("#" * (17 << 20))
    await _usable(session)


async def test_a_million_lines_of_output(session: Session) -> None:
    result = await session.run("for i in range(1_000_000): print(i)", timeout=120)
    assert (result.status, result.limit) == ("ok", "output")
    last = (await session.files.get(f".outputs/cell-{result.cell}.txt"))[-7:]
    assert last == b"999999\n"
    await _usable(session)


async def test_output_without_newline(session: Session) -> None:
    result = await session.run("print('x' * 500_000, end='')")
    assert result.text == "x" * 500_000
    await _usable(session)


async def test_a_string_of_two_gigabytes(session: Session) -> None:
    result = await session.run("'a' * 2**31")
    assert (result.status, result.limit) == ("limit", "memory")
    await _usable(session)


async def test_output_that_is_no_text(session: Session) -> None:
    result = await session.run(
        "import os; os.write(1, b'\\xff\\xfe ok \\xc3\\n'); print('\\ud800')"
    )
    assert "ok" in result.text and "\\ud800" in result.text
    await _usable(session)


async def test_half_a_character_at_a_time(session: Session) -> None:
    code = "import os\nfor byte in 'grüße €\\n'.encode(): os.write(1, bytes([byte]))"
    assert (await session.run(code)).text == "grüße €\n"


@pytest.mark.parametrize(
    "code",
    [
        "def f(): f()\nf()",
        "x = []\nfor _ in range(100_000): x = [x]\nrepr(x)",
        "x = []\nx.append(x)\nx",
        "class A:\n    def __repr__(self): return repr(self)\nA()",
    ],
)
async def test_deep_recursion(session: Session, code: str) -> None:
    result = await session.run(code)
    assert result.status in ("ok", "error")
    await _usable(session)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit()", "ok"),
        ("import sys; sys.exit(0)", "ok"),
        ("exit()", "ok"),
        ("import sys; sys.exit(3)", "error"),
        ("import sys; sys.exit('bad')", "error"),
        ("raise KeyboardInterrupt", "error"),
        ("raise BaseException('x')", "error"),
        ("raise GeneratorExit", "error"),
        ("import os; os._exit(0)", "killed"),
        ("import os; os.kill(1, 9)", "ok"),
        (
            "import os\nfor n in range(1, 65):\n    try: os.kill(1, n)\n    except OSError: pass",
            "ok",
        ),
        ("import os; os.kill(-1, 9)", "error"),
        ("import os; os.wait()", "error"),
        ("import os; os.closerange(0, 4096)", "killed"),
        ("open('/proc/1/mem', 'r+b')", "error"),
        ("import sys; sys.stdout = sys.stderr = None; print = None", "ok"),
        ("import sys; sys.stdout.close()", "ok"),
        ("import sys; sys.stdout = object()", "ok"),
        ("import builtins; builtins.print = builtins.open = builtins.len = None", "killed"),
        ("import sys; sys.modules.clear()", "ok"),
        ("import gc; gc.disable(); gc.freeze()", "ok"),
        ("import sys; sys.setrecursionlimit(10**9); sys.settrace(lambda *a: None)", "ok"),
        ("globals().clear()", "ok"),
        ("import atexit; atexit.register(lambda: None)", "ok"),
        ("import signal; signal.alarm(1)", "ok"),
        ("import os; os.setsid()", "error"),
        ("import os; os.chdir('/'); os.environ.clear()", "ok"),
    ],
)
async def test_code_that_pulls_at_the_interpreter(session: Session, code: str, status: str) -> None:
    result = await session.run(code, timeout=10)
    assert result.status == status, result
    await _usable(session)


async def test_replaced_streams_come_back_with_the_next_cell(session: Session) -> None:
    await session.run("import sys; sys.stdout = None")
    assert (await session.run("print('heard')")).text == "heard\n"
    await session.run("sys.stdout.close()")
    assert (await session.run("print('again')")).status == "ok"


@pytest.mark.parametrize(
    "code",
    [
        "raise Exception('x' * 100_000_000)",
        "class E(Exception):\n    def __str__(self): raise ValueError\nraise E",
        "class E(Exception):\n    def __str__(self): return 5\nraise E",
        "a = Exception('a'); b = Exception('b'); a.__cause__ = b; b.__cause__ = a\nraise a",
        "raise ExceptionGroup('g', [ExceptionGroup('h', [ValueError(i)]) for i in range(50)])",
        "e = Exception()\nfor i in range(500): n = Exception(i); n.__cause__ = e; e = n\nraise e",
        "class M(type):\n    __name__ = property(lambda s: 1/0)\n"
        "class E(Exception, metaclass=M): pass\nraise E",
        "e = Exception('n')\nfor i in range(1000): e.add_note('n' * 1000)\nraise e",
        "e = Exception(); e.__notes__ = 5\nraise e",
        "raise Exception('\\ud800 \\x00 \\x1b[31m')",
        "class K(dict): pass\nraise KeyError(K)",
    ],
)
async def test_exceptions_that_bite(session: Session, code: str) -> None:
    result = await session.run(code, timeout=20)
    assert result.status == "error", result
    assert result.error is not None
    assert len(result.error.traceback) < 50_000
    await _usable(session)


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("class R:\n    def __repr__(self): raise ValueError('no')\nR()", "ok"),
        ("class R:\n    def __repr__(self): return 'x' * 50_000_000\nR()", "ok"),
        ("class R:\n    def __repr__(self): return 5\nR()", "ok"),
        ("class R:\n    def _repr_html_(self): return 5\nR()", "ok"),
        ("class R:\n    def _repr_png_(self): return 'no base64 !!!'\nR()", "ok"),
        (
            "class R:\n    def _repr_mimebundle_(self, **k): return {'a/b': object(), 5: 5}\nR()",
            "ok",
        ),
        ("class R:\n    def __repr__(self):\n        while True: pass\nR()", "timeout"),
        ("class R:\n    def __getattr__(self, n): raise SystemExit\nR()", "ok"),
        ("10 ** 5000", "ok"),
        ("float('inf')", "ok"),
        ("{'a': float('nan')}", "ok"),
        ("'\\ud800'", "ok"),
        ("{'\\ud800': 1}", "ok"),
        ("list(range(10**6))", "ok"),
    ],
)
async def test_values_that_bite(session: Session, code: str, status: str) -> None:
    result = await session.run(code, timeout=5)
    assert result.status in (status, "error")
    assert sum(len(output.data) for output in result.outputs) < 2_000_000
    await _usable(session)


FORGERIES = {
    "garbage": "b'garbage ' * 1000",
    "a huge length": "b'\\xff' * 8 + b'x' * 100",
    "a deep header": "frame(b'[' * 100_000)",
    "not an object": "frame(b'[1, 2]')",
    "a double key": 'frame(b\'{"event": 1, "event": 2}\')',
    "not a number": "frame(b'{\"event\": NaN}')",
    "out of range": "frame(b'{\"event\": 1e999}')",
    "a lone surrogate": 'frame(b\'{"event": "\\\\ud800"}\')',
    "invalid utf-8": 'frame(b\'{"event": "\\xff"}\')',
    "a display that lies": 'frame(b\'{"event":"display","parts":[["text/plain",99999]]}\')',
    "a negative part": 'frame(b\'{"event":"display","parts":[["text/plain",-1]]}\')',
    "a display kept elsewhere": (
        'frame(b\'{"event":"display","parts":[["text/html",1,"../../etc/passwd"]]}\', b"x")'
    ),
    "a display without end": (
        'frame(b\'{"event":"display","parts":[["text/plain",5000000]]}\', b"x" * 5_000_000)'
    ),
    "a number that is none": 'frame(b\'{"event":"stdout","n":"x"}\')',
}


@pytest.mark.parametrize("forgery", FORGERIES)
async def test_frames_forged_by_user_code_end_in_a_clear_result(
    session: Session, bell: Divingbell, forgery: str
) -> None:
    code = f"""
import os, stat, struct, time
def frame(header, body=b""):
    return struct.pack("!II", len(header), len(body)) + header + body
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2 and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{{name}}").st_mode):
            os.write(int(name), {FORGERIES[forgery]})
    except OSError:
        pass
time.sleep(3)
"""
    async with bell.session() as neighbour:
        result = await session.run(code, timeout=10)
        assert result.status in ("killed", "ok")
        await _usable(session)
        await _usable(neighbour)


@pytest.mark.parametrize(
    "event",
    [
        {"event": "done", "cell": 1, "status": "ok", "kind": ["cut"]},
        {"event": "done", "cell": 99, "status": "ok"},
        {"event": "done", "cell": 1, "status": "error", "error": {"type": 5, "limit": "nonsense"}},
        {"event": "copied", "reason": None},
        {"event": "variables", "items": [5, {"name": 5}, {"name": "x", "shape": "big"}]},
        {"event": "nonsense"},
        {},
        {"event": ["list"]},
    ],
)
async def test_well_formed_forgeries_fool_only_their_own_session(
    session: Session, event: dict[str, object]
) -> None:
    code = f"""
import json, os, stat, struct
header = json.dumps({event!r}).encode()
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2 and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{{name}}").st_mode):
            os.write(int(name), struct.pack("!II", len(header), 0) + header)
    except OSError:
        pass
"""
    result = await session.run(code)
    assert result.status in ("ok", "error", "killed")
    await session.run("pass")
    await _usable(session)


async def test_descriptors_sent_up_the_line_are_not_kept(session: Session) -> None:
    before = len(os.listdir("/proc/self/fd"))
    code = """
import os, socket, stat
fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(250)]
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2 and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
            line = socket.socket(fileno=os.dup(int(name)))
            socket.send_fds(line, [b"x"], fds)
    except OSError:
        pass
"""
    await session.run(code, timeout=5)
    await _usable(session)
    assert len(os.listdir("/proc/self/fd")) < before + 50


async def test_hostile_words_to_the_supervisor_ruin_only_their_own_session(
    session: Session, bell: Divingbell
) -> None:
    code = """
import array, os, socket, stat
for name in os.listdir("/proc/self/fd"):
    if int(name) <= 2 or not os.path.exists(f"/proc/self/fd/{name}"):
        continue
    if not stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
        continue
    line = socket.socket(fileno=os.dup(int(name)))
    if line.type != socket.SOCK_SEQPACKET:
        continue
    null = os.open("/dev/null", os.O_RDONLY)
    one, other = socket.socketpair()
    if os.fork() == 0:
        for fds in ([null], [other.fileno()], [null] * 100, []):
            socket.send_fds(line, [b"copy" * 10], fds)
        os._exit(0)
    os.wait()
    socket.send_fds(line, [b"copy"], [other.fileno()])
"""
    async with bell.session() as neighbour:
        assert (await session.run(code)).status in ("ok", "killed")
        result = await session.run("import os; os._exit(1)")
        assert result.status == "killed"
        await _usable(session)
        await _usable(neighbour)


async def test_threads_and_children_left_behind_end_with_the_session(bell: Divingbell) -> None:
    code = """
import os, subprocess, threading, time
threading.Thread(target=time.sleep, args=(1000,)).start()
subprocess.Popen(["sleep", "1000"], start_new_session=True)
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 4096)
        time.sleep(1000)
    os._exit(0)
"""
    async with bell.session() as session:
        await session.run(code)
        pid = session._handle.sandbox.pid  # type: ignore[attr-defined]
        found = pathlib.Path(f"/proc/{pid}/task/{pid}/children")
        await until(lambda: len(found.read_text().split()) >= 2, "the orphan")
        children = found.read_text().split()
    for child in [*children, str(pid)]:
        assert not os.path.exists(f"/proc/{child}"), child


async def test_a_line_that_lies_to_the_very_end_can_still_be_closed(bell: Divingbell) -> None:
    """Marks without frames and garbage behind them: what is read at the close is hostile too."""
    code = """
import os, stat
sockets = []
for name in os.listdir("/proc/self/fd"):
    try:
        if int(name) > 2 and stat.S_ISSOCK(os.stat(f"/proc/self/fd/{name}").st_mode):
            sockets.append(int(name))
    except OSError:
        pass
import gc
marks = [o._mark for o in gc.get_objects() if type(o).__name__ == "Outlet"]
while True:
    for mark in marks:
        os.write(1, mark + b"\\xff\\xff\\xff\\xff")
    for number in sockets:
        try:
            os.write(number, b"\\xff" * 1000)
        except OSError:
            pass
"""
    for _ in range(3):
        async with bell.session() as session:
            assert (await session.run(code, timeout=5)).status in ("killed", "timeout")
            await _usable(session)
