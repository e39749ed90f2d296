"""What sessions promise: state, order, display, streams, interrupts."""

import asyncio
import contextlib
from typing import Any

import pytest

from divingbell import Divingbell, InvalidInput, Session, SessionClosed
from divingbell.session.cell import Cell, Ending
from tests.waiting import until, until_there


async def test_variables_imports_and_functions_persist(session: Session) -> None:
    await session.run("import math\nx = 20\ndef double(n):\n    return 2 * n")
    result = await session.run("double(x) + math.floor(2.5)")
    assert (result.status, result.value) == ("ok", 42)


async def test_the_call_of_the_readme_works(session: Session) -> None:
    code = "import pandas as pd; df = pd.DataFrame({'a': [1, 2]}); df.a.sum()"
    result = await session.run(code, timeout=25)
    assert (result.status, result.value) == ("ok", 3)
    assert dict(list(result.to_dict().items())[:4]) == {
        "success": True,
        "output": "np.int64(3)\n",
        "error": None,
        "execution_time_ms": round(result.usage.wall_ms, 3),
    }


async def test_await_works_at_the_top_level(session: Session) -> None:
    result = await session.run(
        "import asyncio\nawait asyncio.sleep(0)\nawait asyncio.sleep(0, 'w')"
    )
    assert result.value == "w"
    assert (await session.run("asyncio.run(asyncio.sleep(0, 'inner'))")).value == "inner"


async def test_a_dataframe_is_text_and_html(session: Session) -> None:
    result = await session.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert [output.type for output in result.outputs] == ["text/plain", "text/html"]
    assert "<table" in str(result.outputs[1].data)


async def test_figures_are_png_without_savefig(session: Session) -> None:
    code = "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.figure()\nplt.plot([3, 4]);"
    result = await session.run(code)
    images = [output for output in result.outputs if output.type == "image/png"]
    assert len(images) == 2
    for image in images:
        assert isinstance(image.data, bytes) and image.data.startswith(b"\x89PNG")
    # Shown once, then closed: the next cell shows nothing.
    assert (await session.run("1")).outputs[0].data == "1"


async def test_a_figure_shows_where_the_code_shows_it_even_with_another_backend(
    session: Session,
) -> None:
    code = (
        "import matplotlib.pyplot as plt\nprint('before')\n"
        "plt.plot([1]); plt.show()\nprint('after')"
    )
    result = await session.run(code)
    assert [output.type for output in result.outputs] == ["text/plain", "image/png", "text/plain"]
    agg = "import matplotlib\nmatplotlib.use('Agg')\nplt.plot([1]);"
    assert "image/png" in [output.type for output in (await session.run(agg)).outputs]


async def test_display_keeps_its_place_among_the_text(session: Session) -> None:
    code = """
from IPython.display import HTML
for i in range(3):
    print(i)
    display(HTML(f"<b>{i}</b>"))
"""
    result = await session.run(code)
    shown = [str(output.data) for output in result.outputs if output.type != "text/plain"]
    assert shown == ["<b>0</b>", "<b>1</b>", "<b>2</b>"]
    names = [output.name for output in result.outputs]
    assert names[0] == "stdout" and names[-1] == "display"


async def test_a_display_can_be_updated_and_output_cleared(session: Session) -> None:
    code = "h = display('first', display_id=True)\nprint('x')\nh.update('second')"
    result = await session.run(code)
    assert result.text == "'second'\nx\n"
    code = "from IPython.display import clear_output\nprint('gone')\nclear_output()\nprint('kept')"
    assert (await session.run(code)).text == "kept\n"


async def test_magics_and_the_shell_work(session: Session) -> None:
    assert (await session.run("!echo from the shell")).text == "from the shell\n"
    assert (await session.run("files = !ls /\nfiles[0]")).value == "bin"
    assert "Wall time" in (await session.run("%time 1 + 1")).text
    assert (await session.run("%%bash\necho $((6 * 7))")).text == "42\n"
    assert "no network" in (await session.run("%pip install requests")).text
    assert (await session.run("%cd /tmp\nimport os; os.getcwd()")).value == "/tmp"


async def test_a_program_that_fails_in_a_cell_says_so(session: Session) -> None:
    assert (await session.run("!echo before; exit 3\n!true")).text == "before\n[exit status 3]\n"
    assert (await session.run("!kill -9 $$")).text == "[ended by signal 9]\n"
    script = await session.run("%%bash\nexit 3")
    assert script.error is not None and "exit status 3" in script.error.message


async def test_input_says_what_to_do_instead(session: Session) -> None:
    result = await session.run("input('name? ')")
    assert result.status == "error"
    assert result.error is not None and "pass it in as a variable" in result.error.message


async def test_all_output_comes_in_order(session: Session) -> None:
    code = """
import ctypes, os, subprocess, sys
libc = ctypes.CDLL(None)
for turn in range(20):
    print("print", turn)
    os.system(f"echo system {turn}; echo error {turn} >&2")
    libc.printf(b"printf %d\\n", turn)
    print("stderr", turn, file=sys.stderr)
    subprocess.run(["echo", "run", str(turn)])
    os.write(1, b"write %d\\n" % turn)
"""
    result = await session.run(code)
    words = ("print", "system", "error", "printf", "stderr", "run", "write")
    assert result.text == "".join(f"{word} {turn}\n" for turn in range(20) for word in words)
    assert {output.name for output in result.outputs} == {"stdout", "stderr"}


async def test_output_streams_while_the_code_runs(session: Session) -> None:
    code = "import time\nprint('now')\nwhile not stop_file.exists(): time.sleep(0.01)\nprint('end')"
    await session.run("import pathlib\nstop_file = pathlib.Path('/workspace/stop')")
    seen = []
    async for event in session.stream(code):
        seen.append(event.type)
        if event.text == "now\n":
            await session.files.put("stop", b"")
    assert seen == ["stdout", "stdout", "done"]


async def test_the_last_event_has_the_result(session: Session) -> None:
    events = [event async for event in session.stream("print('a')\n1 + 1")]
    assert [event.type for event in events] == ["stdout", "result", "done"]
    last = events[-1].result
    assert last is not None and last.value == 2


async def test_a_progress_bar_arrives_sanely(session: Session) -> None:
    code = "for i in range(101): print(f'\\r{i:3d}%', end='', flush=True)\nprint()"
    result = await session.run(code)
    assert result.text == "100%\n"


async def test_output_of_threads_is_attributed_to_their_cell(session: Session) -> None:
    code = """
import threading
go = threading.Event()
def speak():
    go.wait()
    print("from the thread")
thread = threading.Thread(target=speak)
thread.start()
"""
    assert (await session.run(code)).cell == 1
    result = await session.run("print('main')\ngo.set()\nthread.join()\nprint('end')")
    assert [(o.cell, o.data) for o in result.outputs] == [
        (2, "main\n"),
        (1, "from the thread\n"),
        (2, "end\n"),
    ]


async def test_tasks_go_on_between_cells_and_the_next_result_shows_what_they_said(
    session: Session,
) -> None:
    code = """
import asyncio, pathlib
async def later():
    await asyncio.sleep(0.01)
    print("later")
    pathlib.Path("/workspace/done").touch()
task = asyncio.create_task(later())
await asyncio.sleep(0)
"""
    assert (await session.run(code)).text == ""
    for _ in range(500):
        if any(file.path == "done" for file in await session.files.list()):
            break
    result = await session.run("print('now')")
    assert [(o.cell, o.data) for o in result.outputs] == [(1, "later\n"), (2, "now\n")]


async def test_tracebacks_show_the_users_own_lines(session: Session) -> None:
    await session.run("def inner(row):\n    return row['missing']")
    result = await session.run("import pandas as pd\ninner(pd.DataFrame({'a': [1]}))")
    assert result.status == "error" and result.error is not None
    assert "return row['missing']" in result.error.traceback
    assert "<cell 1>" in result.error.traceback and "<cell 2>" in result.error.traceback
    assert "in pandas" in result.error.traceback
    assert "site-packages" not in result.error.traceback
    assert "divingbell_inside" not in result.error.traceback


async def test_a_syntax_error_points_at_the_line(session: Session) -> None:
    result = await session.run("x = 1\nif x\n    y = 2")
    assert result.status == "error" and result.error is not None
    assert result.error.type == "SyntaxError"
    assert str(result.error).startswith('  File "<cell 1>", line 2\n')
    assert "if x" in result.error.traceback and "^" in result.error.traceback


async def test_an_error_without_lines_of_the_users_shows_none_of_others(session: Session) -> None:
    code = "import matplotlib.pyplot as plt\nplt.title('$\\\\undefined$');"
    text = (await session.run(code)).text
    assert text.startswith("ValueError: ")
    assert 'File "' not in text
    assert " in matplotlib)" in text


async def test_an_interrupt_stops_the_cell_and_keeps_the_state(session: Session) -> None:
    await session.run("x = 'kept'")
    running = asyncio.create_task(session.run("open('begun', 'w').close()\nwhile True: pass"))
    await until_there(session, "begun")
    assert await session.interrupt()
    result = await running
    assert (result.status, result.state) == ("cancelled", "kept")
    assert (await session.run("x")).value == "kept"
    assert not await session.interrupt()


@pytest.mark.parametrize("code", ["import os; os.system('sleep 100')", "await asyncio.sleep(100)"])
async def test_an_interrupt_reaches_what_the_cell_waits_for(session: Session, code: str) -> None:
    await session.run("import asyncio; x = 1")
    result = await session.run(code, timeout=0.3)
    assert (result.status, result.state) == ("timeout", "kept")
    assert (await session.run("x")).value == 1


async def test_cancelling_a_run_interrupts_the_cell(session: Session) -> None:
    await session.run("x = 1")
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(session.run("import time; time.sleep(60)"), 0.2)
    assert (await session.run("x")).value == 1


async def test_leaving_a_stream_early_interrupts_the_cell(session: Session) -> None:
    stream = session.stream("i = 0\nwhile True:\n    print(i)\n    i += 1")
    async for _ in stream:
        break
    await stream.aclose()  # type: ignore[attr-defined]
    assert (await session.run("i >= 0")).value is True


async def test_two_runs_at_once_are_queued_in_order(session: Session) -> None:
    await session.run("import time; order = []")
    codes = [f"time.sleep(0.02); order.append({i})" for i in range(5)]
    await asyncio.gather(*(session.run(code) for code in codes))
    assert (await session.run("order")).value == [0, 1, 2, 3, 4]


async def test_context_values_are_variables_and_never_code(session: Session) -> None:
    hostile = '\'; import os; os._exit(1) #\n""" \\ {x}'
    result = await session.run(
        "given, rows[1]['a']", context={"given": hostile, "rows": [1, {"a": 2}]}
    )
    assert result.value == (hostile, 2)


@pytest.mark.parametrize(
    "context", [{"not a name": 1}, {"x": object()}, {"x": range(3)}, {"x": bytearray(1)}, {1: 2}]
)
async def test_a_context_that_is_not_plain_data_is_refused(
    session: Session, context: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        await session.run("1", context=context)


async def test_execute_runs_once_in_a_fresh_session(bell: Divingbell) -> None:
    result = await bell.execute("y = x * 2\ny", context={"x": 21})
    assert result.value == 42
    assert (await bell.execute("y")).status == "error"


async def test_variables_are_described(session: Session) -> None:
    await session.run("import pandas as pd\nn = 5\ns = 'text'\ndf = pd.DataFrame({'a': [1, 2, 3]})")
    found = {variable.name: variable for variable in await session.variables()}
    assert set(found) == {"n", "s", "df"}
    assert found["n"].preview == "5"
    assert found["s"].length == 4
    assert found["df"].shape == (3, 1)
    assert found["df"].type == "pandas.DataFrame" or "DataFrame" in found["df"].type


async def test_a_variable_that_bites_when_looked_at_harms_nothing(session: Session) -> None:
    code = """
class Bite:
    @property
    def shape(self):
        raise SystemError("bite")
bite = Bite()
n = 1
"""
    await session.run(code)
    assert {variable.name for variable in await session.variables()} == {"Bite", "bite", "n"}


async def test_reset_forgets_variables_and_keeps_files(session: Session) -> None:
    await session.run("x = 1\nopen('/workspace/kept.txt', 'w').write('kept')")
    await session.reset()
    assert (await session.run("'x' in globals()")).value is False
    assert (await session.run("open('/workspace/kept.txt').read()")).value == "kept"


async def test_a_closed_session_says_so(bell: Divingbell) -> None:
    async with bell.session() as session:
        await session.run("1")
    with pytest.raises(SessionClosed, match="has ended"):
        await session.run("1")
    with pytest.raises(SessionClosed):
        await session.files.list()


async def test_closing_while_a_cell_runs_ends_the_run(bell: Divingbell) -> None:
    async with bell.session() as session:
        running = asyncio.create_task(session.run("import time; time.sleep(60)"))
        await until(lambda: session.busy, "the cell runs")
    result = await running
    assert result.status == "killed"


async def test_inside_there_is_what_ordinary_code_expects(session: Session) -> None:
    code = """
import getpass, locale, os, pathlib, pwd, sys, tempfile, zoneinfo
user = pwd.getpwuid(os.getuid())
checks = {
    "user": getpass.getuser() == user.pw_name,
    "home": pathlib.Path.home() == pathlib.Path(user.pw_dir) and os.access(user.pw_dir, os.W_OK),
    "utf-8": locale.getpreferredencoding() == "UTF-8" and sys.getfilesystemencoding() == "utf-8",
    "zones": str(zoneinfo.ZoneInfo("Asia/Tokyo")) == "Asia/Tokyo",
    "cwd": os.getcwd() == "/workspace",
    "tmp": tempfile.NamedTemporaryFile().name.startswith("/tmp/"),
    "cache": (pathlib.Path.home() / ".cache").mkdir() is None,
    "stdin": sys.stdin.read() == "",
    "main": __name__ == "__main__",
}
[name for name, good in checks.items() if not good]
"""
    result = await session.run(code)
    assert result.value == [], result.error


async def test_classes_of_a_cell_can_be_pickled_and_modules_imported(session: Session) -> None:
    code = """
import pickle
class Point:
    def __init__(self, x): self.x = x
open("/workspace/mine.py", "w").write("answer = 42")
import mine
pickle.loads(pickle.dumps(Point(1))).x + mine.answer
"""
    assert (await session.run(code)).value == 43


async def test_random_numbers_differ_between_sessions(bell: Divingbell) -> None:
    code = (
        "import random, uuid, numpy as np, secrets\n"
        "[random.random(), float(np.random.rand()), secrets.token_hex(8), str(uuid.uuid4())]"
    )
    first, second = [(await bell.execute(code)).value for _ in range(2)]
    assert all(one != other for one, other in zip(first, second, strict=True))


async def test_two_sessions_share_nothing(bell: Divingbell) -> None:
    async with bell.session("one") as one, bell.session("two") as two:
        await one.run("x = 1\nopen('/workspace/f', 'w').write('secret')")
        await one.run("open('/tmp/f', 'w').write('secret')")
        code = "import os\n['x' in globals(), os.listdir('/workspace'), os.listdir('/tmp')]"
        assert (await two.run(code)).value == [False, [], []]


async def test_a_display_of_no_known_kind_does_no_harm(session: Session) -> None:
    code = "display({'foo': 'bar', 'text/plain; charset=utf-8': 'kept'}, raw=True)\nx = 1"
    result = await session.run(code)
    assert (result.status, result.text) == ("ok", "kept\n")
    big = "display({f'text/x-{i}': 'x' * 7_000_000 for i in range(3)}, raw=True); x"
    assert (await session.run(big)).value == 1


async def test_a_name_that_is_no_text_does_not_hide_the_others(session: Session) -> None:
    await session.run("globals()[1] = 2\nx = 3")
    assert [variable.name for variable in await session.variables()] == ["x"]


@pytest.mark.parametrize("more", [{}, {"c": {1}}])
async def test_an_interrupt_that_comes_too_early_is_repeated(
    session: Session, more: dict[str, object]
) -> None:
    """The interpreter is busy with a large context when the time is up, and hears nothing."""
    await session.run("x = 1")
    rows = [{"a": i, "b": "text" * 5} | more for i in range(100_000)]
    result = await session.run("while True: pass", context={"rows": rows}, timeout=0.02)
    assert (result.status, result.state) == ("timeout", "kept")
    assert (await session.run("x")).value == 1


async def test_a_late_interrupt_does_not_hit_the_next_cell(session: Session) -> None:
    for turn in range(30):
        running = asyncio.create_task(session.run("sum(range(20_000))"))
        await asyncio.sleep(0.0005 * (turn % 5))
        await session.interrupt()
        await running
        assert (await session.run(f"{turn}")).value == turn


async def test_cancelled_twice_the_session_stays_usable(session: Session) -> None:
    await session.run("import signal\nx = 1")
    await until(lambda: session.copied_cell, "a copy")
    deaf = "signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen('deaf', 'w').close()\n"
    running = asyncio.create_task(session.run(f"{deaf}while True: pass"))
    await until_there(session, "deaf")
    for _ in range(3):
        running.cancel()
        await asyncio.sleep(0.05)  # less than it takes until the interpreter is given up
    with pytest.raises(asyncio.CancelledError):
        await running
    result = await session.run("x")
    assert (result.value, result.state) == (1, "rewound")


async def test_closing_while_the_interpreter_is_being_replaced_leaves_nothing(
    bell: Divingbell,
) -> None:
    before = len(bell.sessions())
    for _ in range(5):
        async with bell.session() as session:
            running = asyncio.create_task(session.run("import os; os._exit(1)"))
            await asyncio.sleep(0.01)  # it is somewhere on its way
        with contextlib.suppress(SessionClosed):
            await running
    assert len(bell.sessions()) == before


async def test_a_cancelled_close_is_still_done_to_its_end(bell: Divingbell) -> None:
    for _ in range(5):
        async with bell.session() as session:
            closing = asyncio.create_task(session.close())
            await asyncio.sleep(0)
            closing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await closing
        async with bell.session() as other:
            assert (await other.run("1 + 1")).value == 2


async def test_from_the_end_of_a_cell_to_its_caller_is_one_round_of_the_loop(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Each round can meet a piece of somebody else's work, and a neighbour's flood is felt in all.
    loop, rounds, ended = asyncio.get_running_loop(), 0, []

    def count() -> None:
        nonlocal rounds
        rounds += 1
        counting[0] = loop.call_soon(count)

    ending = Cell._end

    def end(cell: Cell, how: Ending) -> None:
        ended.append(rounds)
        ending(cell, how)

    monkeypatch.setattr(Cell, "_end", end)
    counting = [loop.call_soon(count)]
    try:
        for _ in range(3):
            await session.run("1 + 1")
            assert rounds - ended.pop() <= 1
    finally:
        counting[0].cancel()


async def test_cancelled_at_its_end_a_run_leaves_the_session_usable(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    ending = Cell._end

    def end(cell: Cell, how: Ending) -> None:
        ending(cell, how)
        running.cancel()

    with monkeypatch.context() as patched:
        patched.setattr(Cell, "_end", end)
        running = asyncio.create_task(session.run("x = 1"))
        await asyncio.wait({running})
    assert running.cancelled()
    assert (await session.run("x")).value == 1


async def test_arguments_of_a_script_are_passed_on(session: Session) -> None:
    look = "import sys; [sys.argv, globals().get('__file__')]"
    assert (await session.run(look)).value == [[""], None]
    assert (await session.run(look, argv=["tool", "é"])).value == [["tool", "é"], None]
    await session.files.put("tool.py", "pass")
    found = await session.run(look, argv=["tool.py", "b"], context={"x": 1})
    assert found.value == [["tool.py", "b"], "/workspace/tool.py"]
    assert (await session.run("x, sys.argv")).value == (1, ["tool.py", "b"])


@pytest.mark.parametrize("argv", ["one text", [], ["a", 1], [None]])
async def test_arguments_of_a_script_are_texts(session: Session, argv: Any) -> None:
    with pytest.raises(InvalidInput, match="argv must be a list of texts"):
        await session.run("1", argv=argv)


async def test_the_status_that_code_exits_with_is_told(session: Session) -> None:
    for code, status in (("3", 3), ("True", 1), ("-1", 255), ("'3'", None)):
        error = (await session.run(f"import sys; sys.exit({code})")).error
        assert error is not None and error.exit_status == status


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("distan", "distance"),
        ("1 + distan", "distance"),
        ("boat.sa", ".sail"),
        ("import js", "json"),
        ("open('da", "data.csv"),
        ("%timei", "%timeit"),
    ],
)
async def test_code_is_completed(session: Session, code: str, text: str) -> None:
    await session.run("distance = 3\nclass Boat:\n    def sail(self): pass\nboat = Boat()")
    await session.files.put("data.csv", "a")
    found = await session.complete(code, len(code))
    assert text in [item.text for item in found]
    assert all(item.end == len(code) for item in found)


async def test_completing_runs_no_function_and_no_property(session: Session) -> None:
    await session.run(
        "ran = []\nclass Trap:\n    @property\n    def spring(self): ran.append('property')\n"
        "def call(): ran.append('call')\ntrap = Trap()"
    )
    for code in ("trap.spring.", "call().", "trap.sp"):
        await session.complete(code, len(code))
    assert (await session.run("ran")).value == []


async def test_an_object_that_gets_stuck_when_it_is_looked_at_costs_no_variables(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("divingbell.session.local.LOOK_TIMEOUT", 0.2)
    await session.run(
        "kept = 1\nclass Slow:\n    def __dir__(self):\n        while True: pass\nslow = Slow()"
    )
    assert await session.complete("slow.", 5) == []
    assert (await session.run("kept")).value == 1


async def test_an_answer_that_was_given_up_is_not_taken_for_the_next(session: Session) -> None:
    await session.run("import time\nclass Slow:\n    def __dir__(self):\n        time.sleep(0.3)")
    await session.run("slow = Slow(); quick = 1")
    given_up = asyncio.create_task(session.complete("slow.", 5))
    await until(lambda: session.busy, "the question")
    given_up.cancel()
    assert [item.text for item in await session.complete("quic", 4)] == ["quick"]


async def test_a_look_that_is_given_up_does_not_cost_the_next_cell(session: Session) -> None:
    await session.run(
        "import time\nclass Slow:\n    def __dir__(self):\n        time.sleep(600)\n"
        "slow = Slow()\nx = 1"
    )
    looking = asyncio.create_task(session.complete("slow.", 5))
    await until(lambda: session._handle._looks._seen is not None, "it looks")
    looking.cancel()
    await asyncio.wait({looking})
    result = await session.run("x", timeout=20)
    assert (result.status, result.value, result.state) == ("ok", 1, "kept")


@pytest.mark.parametrize("forged", ["[[p + 5, p, 'a']]", "[[-1, p, 'a']]", "[[0, 10**9, 'a']]"])
async def test_completions_stand_within_the_code(session: Session, forged: str) -> None:
    await session.run(
        "import divingbell_inside.completion as c\nwas = c.completions\n"
        f"c.completions = lambda shell, source, p: {forged}"
    )
    assert await session.complete("abc.", 4) == []
    await session.run("c.completions = was")


async def test_code_with_odd_ends_of_lines_is_completed_and_costs_no_variable(
    session: Session,
) -> None:
    await session.run("depth_of_sea = 10")
    for end in ("\r", "\r\n", "\v", "\f", "\x1c", "\x85", "\u2028", "\u2029"):
        await session.complete(end, len(end))
        [found] = await session.complete(f"{end}depth_of", len(end) + 8)
        assert (found.start, found.end, found.text) == (len(end), len(end) + 8, "depth_of_sea")
    assert (await session.run("depth_of_sea")).value == 10
