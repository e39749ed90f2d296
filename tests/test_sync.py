"""The library without `await`, as scripts, notebooks, threads and web views use it."""

import asyncio
import importlib.util
import inspect
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest

import divingbell
from divingbell import Approval, DivingbellError, FileMissing, Result, WrongLoop, sync
from divingbell.gateway.gateway import Gateway
from divingbell.session.files import Files

ROOT = Path(__file__).parents[1]
PATIENCE = 60


def _generator() -> Any:
    spec = importlib.util.spec_from_file_location("make_sync", ROOT / "scripts/make_sync.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_sync"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def plain() -> Iterator[sync.Divingbell]:
    with sync.Divingbell(pool=1) as bell:
        yield bell


@pytest.fixture
def held(plain: sync.Divingbell) -> Iterator[sync.Session]:
    with plain.session() as session:
        yield session


# The file is made of the source

PAIRS = [
    (sync.Divingbell, divingbell.Divingbell),
    (sync.Session, divingbell.Session),
    (sync.Files, Files),
    (sync.CommandHandle, divingbell.CommandHandle),
]
LEFT_OUT = {
    # Those that write a way in of their own have an event loop.
    sync.Divingbell: {"border", "journal", "ledgers", "owned", "ready", "starting"},
}


def test_the_file_is_what_the_script_makes_of_the_library() -> None:
    made = _generator().formatted()
    assert made == (ROOT / "src/divingbell/sync.py").read_text("utf-8"), "run ./dev generate"


@pytest.mark.parametrize(("face", "original"), PAIRS)
def test_it_has_the_same_names(face: type, original: type) -> None:
    names = {name for name in dir(original) if not name.startswith("_")}
    assert names - set(dir(face)) == LEFT_OUT.get(face, set()) & names
    assert {name for name in dir(face) if not name.startswith("_")} - names <= {
        "command",
        "faces",
        "files",
        "id",
        "limits",
        "number",
    }


@pytest.mark.parametrize(("face", "original"), [*PAIRS, (sync.Gateway, Gateway)])
def test_its_methods_take_the_same_arguments_and_say_the_same(face: type, original: type) -> None:
    compared = 0
    for name, method in vars(face).items():
        if name.startswith("_") or not inspect.isfunction(method) or name == "of":
            continue
        theirs = inspect.unwrap(getattr(original, name))
        assert list(inspect.signature(inspect.unwrap(method)).parameters) == list(
            inspect.signature(theirs).parameters
        ), name
        doc = inspect.getdoc(getattr(original, name)) or ""
        assert (inspect.getdoc(method) or "") == doc.replace("`async with`", "`with`"), name
        compared += 1
    assert compared >= 2


# Cells, streams, files


def test_a_cell(held: sync.Session) -> None:
    result = held.run("x = 6\nx * 7")
    assert isinstance(result, Result)
    assert (result.status, result.value) == ("ok", 42)
    assert (held.cells, held.busy, held.closed) == (1, False, False)
    assert [each.name for each in held.variables()] == ["x"]


def test_a_fresh_session_for_one_run(plain: sync.Divingbell) -> None:
    assert plain.execute("sum(numbers)", context={"numbers": [1, 2]}, timeout=10).value == 3


def test_a_review(plain: sync.Divingbell) -> None:
    assert plain.review("while True: pass").findings[0].kind == "loop"


def test_an_open_file_is_an_ordinary_iterator(held: sync.Session) -> None:
    held.files.put("big", iter([b"ab"] * 300_000))
    with held.files.open("big") as file:
        assert isinstance(file, sync.OpenFile)
        assert file.info.size == 600_000
        assert b"".join(file) == b"ab" * 300_000
        assert list(file) == []
    file.close()
    with pytest.raises(FileMissing):
        held.files.open("nothing")


def test_events_come_as_they_happen(held: sync.Session) -> None:
    events = held.stream(
        "import os, time\n"
        "print('begun', flush=True)\n"
        "while not os.path.exists('go'): time.sleep(0.01)\n"
    )
    assert next(events).text == "begun\n"
    held.files.put("go", "")  # or it would never end
    [*_, last] = events
    assert last.type == "done" and last.result is not None and last.result.status == "ok"


def test_leaving_a_stream_early_interrupts_the_cell(held: sync.Session) -> None:
    for event in held.stream("x = 1\nprint(x, flush=True)\nwhile True: pass"):
        assert event.text == "1\n"
        break
    assert held.run("x").value == 1


def test_files(held: sync.Session) -> None:
    assert held.files.put("folder/data.bin", bytes(1 << 19)) == 1 << 19
    assert held.files.get("folder/data.bin") == bytes(1 << 19)
    assert sum(map(len, held.files.stream("folder/data.bin"))) == 1 << 19
    [info] = held.files.list()
    assert info.path == "folder/data.bin"
    held.files.remove("folder/data.bin")
    with pytest.raises(divingbell.FileRefused):
        held.files.get("folder/data.bin")


def test_commands(held: sync.Session) -> None:
    assert held.command(["echo", "a b"]).stdout == "a b\n"
    events = [(event.type, event.text) for event in held.command_stream("echo one")]
    assert events == [("stdout", "one\n"), ("done", "")]
    handle = held.command("echo one; sleep 60", background=True)
    for event in handle.stream():
        assert (event.type, event.text) == ("stdout", "one\n")
        break
    assert repr(handle) == f"<Command {handle.number} 'echo one; sleep 60': running>"
    assert isinstance(handle, sync.CommandHandle) and handle.running
    assert [command.number for command in held.commands()] == [handle.number]
    assert handle.kill().status == "cancelled" and held.commands() == []


def test_errors_are_those_of_the_library(held: sync.Session) -> None:
    with pytest.raises(divingbell.InvalidInput):
        held.run("1", timeout=-1)
    held.close()
    with pytest.raises(divingbell.SessionClosed):
        held.run("1")


def test_sessions_that_are_opened_and_let_go(plain: sync.Divingbell) -> None:
    one, other = plain.open("shared", user="ada"), plain.open("shared", user="ada")
    assert one.key == other.key
    assert one.key in [session.key for session in plain.sessions()]
    plain.release(one)
    plain.release(one)
    assert other.run("1").value == 1
    plain.release(other)
    assert other.closed


def test_an_approver_may_be_a_plain_function() -> None:
    asked: list[Approval] = []

    def approve(approval: Approval) -> bool:
        asked.append(approval)
        assert threading.current_thread() is not threading.main_thread()
        return True

    shop = {"command": sys.executable, "args": ["-m", "divingbell.surfaces.cli.demo_shop"]}
    policy = {"default": "ask"}
    with sync.Divingbell(
        pool=0, servers={"shop": shop}, policy=policy, on_approval=approve
    ) as bell:
        assert [server.name for server in bell.gateway.servers()] == ["shop"]
        result = bell.execute("from servers.shop import list_orders\nlen(list_orders(page=1))")
        assert result.value == 500, result
        assert [tool["name"] for tool in bell.gateway.search("orders", limit=1)] == [
            "shop.list_orders"
        ]
    assert [approval.tool for approval in asked] == ["shop.list_orders"]


# Threads, loops, forks, the end


def test_many_threads_use_one(plain: sync.Divingbell) -> None:
    def use(number: int) -> object:
        with plain.session() as session:
            session.run(f"x = {number}")
            return session.run("x * 2").value

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(use, range(16))) == [number * 2 for number in range(16)]


async def test_it_works_where_an_event_loop_runs_as_in_a_notebook(plain: sync.Divingbell) -> None:
    assert asyncio.get_running_loop().is_running()
    assert plain.execute("1 + 1").value == 2


def test_in_a_web_view(plain: sync.Divingbell) -> None:
    import urllib.request

    class Quiet(WSGIRequestHandler):
        def log_message(self, *_: object) -> None: ...

    def view(environ: dict[str, Any], start: Any) -> list[bytes]:
        value = plain.execute("6 * 7").value
        start("200 OK", [("Content-Type", "text/plain")])
        return [str(value).encode()]

    with make_server("127.0.0.1", 0, view, handler_class=Quiet) as server:
        serving = threading.Thread(target=server.handle_request)
        serving.start()
        with urllib.request.urlopen(
            f"http://127.0.0.1:{server.server_port}", timeout=PATIENCE
        ) as page:
            assert page.read() == b"42"
        serving.join()


def test_a_callback_that_calls_back_is_told_so(plain: sync.Divingbell) -> None:
    said: list[str] = []

    async def call_back() -> None:
        try:
            plain.execute("1")
        except DivingbellError as error:
            said.append(str(error))

    plain._portal.call(call_back)
    assert "must not call back" in said[0]


def test_a_process_that_was_forked_is_told_so(plain: sync.Divingbell) -> None:
    reading, writing = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            plain.execute("1")
        except WrongLoop as error:
            os.write(writing, str(error).encode())
        plain.close()  # which is the parent's: nothing happens
        os._exit(0)
    os.close(writing)
    os.waitpid(pid, 0)
    with open(reading, "rb") as pipe:
        assert b"make another Divingbell here" in pipe.read()
    assert plain.execute("1").value == 1


def test_what_does_not_run_says_how_it_would() -> None:
    bell = sync.Divingbell(pool=0)
    with pytest.raises(DivingbellError, match="with Divingbell"):
        bell.execute("1")
    before = threading.active_count()
    with bell:
        assert bell.execute("1").value == 1
        with pytest.raises(DivingbellError, match="running already"):
            bell.start()
    bell.close()
    assert threading.active_count() <= before + 1
    with pytest.raises(DivingbellError, match="with Divingbell"):
        bell.execute("1")


def test_one_that_can_not_start_leaves_no_thread_behind() -> None:
    def portals() -> list[str]:
        return [each.name for each in threading.enumerate() if each.name == "divingbell-sync"]

    before = len(portals())
    with pytest.raises(divingbell.ConfigError):
        sync.Divingbell(memroy="1GB")
    broken = sync.Divingbell(backend="docker", pool=0)
    broken._of.start = _refuse  # type: ignore[method-assign]
    with pytest.raises(divingbell.SandboxUnavailable):
        broken.start()
    assert len(portals()) == before


async def _refuse() -> Any:
    raise divingbell.SandboxUnavailable("there is no wall here")


def _python(code: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_program_that_closes_nothing_ends_in_order() -> None:
    code = (
        "import divingbell\n"
        "bell = divingbell.sync.Divingbell(pool=1).start()\n"
        "session = bell.open()\n"
        "print(session.run('1 + 1').value)\n"
    )
    with _python(code) as program:
        out, errors = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, errors) == (0, "2\n", "")


def test_ctrl_c_interrupts_the_cell_and_the_session_goes_on() -> None:
    code = """
import divingbell
with divingbell.sync.Divingbell(pool=0) as bell, bell.session() as session:
    try:
        for event in session.stream("x = 1\\nprint('begun', flush=True)\\nwhile True: pass"):
            print(event.text, end="", flush=True)
    except KeyboardInterrupt:
        result = session.run("x")
        print(result.value, result.state, flush=True)
    try:
        print("again", flush=True)
        session.run("while True: pass")
    except KeyboardInterrupt:
        print(session.run("x + 1").value, flush=True)
"""
    with _python(code) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "begun\n"
        program.send_signal(signal.SIGINT)
        assert program.stdout.readline() == "1 kept\n"
        assert program.stdout.readline() == "again\n"
        program.send_signal(signal.SIGINT)
        out, errors = program.communicate(timeout=PATIENCE)
    assert (program.returncode, out, errors) == (0, "2\n", "")


def test_functions_of_the_program_are_tools_before_and_while_it_runs() -> None:
    bell = sync.Divingbell(pool=0)

    @bell.tool
    def price(product: str) -> float:
        """The price of a product."""
        return {"rope": 12.5}[product]

    with bell:

        @bell.tool(name="stock")
        def count(product: str) -> int:
            """How many there are."""
            return len(product)

        code = (
            "from servers.host import price, stock\n[price(product='rope'), stock(product='rope')]"
        )
        assert bell.execute(code).value == [12.5, 4]
        bell.remove_tool("stock")
        assert bell.execute("from servers.host import stock").status == "error"
        own = bell.execute("from servers.host import whose\nwhose()", tools=[whose])
        assert own.value == "mine"
    assert (price("rope"), count("x")) == (12.5, 1)


def whose() -> str:
    """Say whose it is."""
    return "mine"
