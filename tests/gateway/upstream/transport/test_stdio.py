"""Servers as processes: what they see, what they leave behind."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport import process, server_log
from divingbell.gateway.upstream.transport.server_log import MAX_LINE, ServerLog
from divingbell.gateway.upstream.transport.stdio import StdioConnection, environment_for
from divingbell.settings.servers import Server
from tests.gateway.upstreams import alive, entry, running, shop, text_of
from tests.real_servers import fixture
from tests.waiting import until

ROOT = Path(__file__).parents[4]


def test_a_server_sees_the_basics_and_what_its_entry_names() -> None:
    environment = {
        "PATH": "/bin",
        "HOME": "/home/bo",
        "LANG": "C",
        "SHELL": "() { :; }; echo a function",
        "GITHUB_TOKEN": "secret",
        "LD_PRELOAD": "/evil.so",
        "PYTHONPATH": "/evil",
    }
    server = Server("x", command="x", env={"KEY": "value", "LANG": "de_DE"})
    assert environment_for(server, environment) == {
        "PATH": "/bin",
        "HOME": "/home/bo",
        "LANG": "de_DE",
        "KEY": "value",
    }


async def test_nothing_of_the_hosts_environment_reaches_a_running_server(tmp_path: Path) -> None:
    environment = {**os.environ, "OPENAI_API_KEY": "sk-host-secret", "DIVINGBELL_TOKEN": "x"}
    async with running(shop(env={"MINE": "yes"}), tmp_path, environment=environment) as upstream:
        result = await upstream.call_tool("environment", {})
        assert result.structured_content is not None
        assert result.structured_content["MINE"] == "yes"
        assert not {"OPENAI_API_KEY", "DIVINGBELL_TOKEN"} & set(result.structured_content)


async def test_a_module_that_lies_in_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planted = tmp_path / "wsgiref"
    planted.mkdir()
    (planted / "__init__.py").write_text("")
    (planted / "headers.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w')")
    monkeypatch.chdir(tmp_path)
    module = Server("module", command=sys.executable, args=("-m", "wsgiref.headers"))
    async with running(module, tmp_path) as upstream:
        with contextlib.suppress(ToolFailed):
            await upstream.ready()
    assert not (tmp_path / "mark").exists()


async def test_the_whole_group_of_a_server_ends_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "EXIT_GRACE", 0.3)
    async with running(entry(fixture("stubborn")), tmp_path) as upstream:
        pids = [int(pid) for pid in (await text_of(upstream, "work", {})).split()]
        assert all(alive(pid) for pid in pids)
    await until(lambda: not any(alive(pid) for pid in pids), "the end of the group")


async def test_a_child_that_holds_the_pipes_does_not_hide_the_death_of_its_server(
    tmp_path: Path,
) -> None:
    async with running(entry(fixture("stubborn")), tmp_path) as upstream:
        server, child = [int(pid) for pid in (await text_of(upstream, "work", {})).split()]
        os.kill(server, signal.SIGKILL)
        await until(lambda: upstream.state != "ready", "the loss to be seen")
        await until(lambda: not alive(child), "the end of the child")


async def test_a_server_that_ends_because_it_is_left_did_not_end_by_itself(tmp_path: Path) -> None:
    waits = Server("waits", command=sys.executable, args=("-c", "import sys; sys.stdin.read()"))
    log = ServerLog(tmp_path, "waits", Redactor())
    connection = StdioConnection(waits, os.environ, log)
    async with connection.open(asyncio.Event()) as (_, writer):
        await writer.aclose()
        pid = connection.pid
        assert pid is not None
        await until(lambda: not alive(pid), "the end of the server")
        assert await connection.reason() is None


async def test_no_descriptor_process_or_task_is_left(tmp_path: Path) -> None:
    async def once() -> None:
        async with running(entry(fixture("choking")), tmp_path) as upstream:
            await upstream.ready()
        missing = Server("gone", command="/no/such/program")
        async with running(missing, tmp_path) as upstream:
            with contextlib.suppress(Exception):
                await upstream.ready(0.01)

    await once()
    before = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), children()
    for _ in range(3):
        await once()
    assert (len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), children()) == before


async def test_a_server_ends_when_its_host_is_killed(tmp_path: Path) -> None:
    host = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, str(tmp_path),
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert host.stdout is not None
        pid = int(await host.stdout.readline())
        assert alive(pid)
        host.kill()
        await until(lambda: not alive(pid), "the end of the server")
    finally:
        with contextlib.suppress(ProcessLookupError):
            host.kill()
        await host.communicate()


HOST = """
import asyncio, sys
from pathlib import Path
from tests.gateway.upstreams import running, shop

async def main():
    async with running(shop(), Path(sys.argv[1])) as upstream:
        await upstream.ready()
        print(upstream.pid, flush=True)
        await asyncio.sleep(300)

asyncio.run(main())
"""


async def test_what_a_server_says_on_stderr_is_in_a_log_of_the_owner(tmp_path: Path) -> None:
    async with running(shop(), tmp_path / "logs") as upstream:
        await upstream.call_tool("complain", {"text": "something is odd"})
        path = tmp_path / "logs" / "shop.log"
        await until(lambda: "something is odd" in path.read_text(), "the line in the log")
        assert upstream.log_path == path
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_log_has_an_end_and_no_secrets(tmp_path: Path) -> None:
    log = ServerLog(tmp_path, "shop", Redactor(["log-secret"], "shop"))
    log.begin()
    log.take(b"half of log-sec")
    log.take(b"ret\nand \x1b[31mred\n")
    log.take("no end: ü".encode()[:-1])
    log.flush()
    text = log.path.read_text()
    assert "half of [secret of shop]\n" in text
    assert log.last_words() == "half of [secret of shop] / and red / no end: \ufffd"
    for _ in range(2 * (server_log.MAX_SIZE // 100_000 + 1)):
        log.take((b"x" * 999 + b"\n") * 100)
    assert log.path.stat().st_size < 1.5 * server_log.MAX_SIZE
    assert sorted(path.name for path in tmp_path.iterdir()) == ["shop.log", "shop.log.1"]
    log.take(b"y" * 10_000_000)
    assert len(log.last_words()) < 1000


def test_a_log_that_can_not_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    log = ServerLog(tmp_path / "file", "shop", Redactor())
    log.begin()
    log.take(b"words\n")
    assert log.last_words() == "words"


def children() -> int:
    return len(Path(f"/proc/self/task/{os.getpid()}/children").read_text().split())


@pytest.mark.parametrize("form", ["{}", "%73%33%63ret-of-the-server", "&#115;3cret-of-the-server"])
@pytest.mark.parametrize("piece", [1, 1000, 4096, 100_000])
def test_a_secret_is_not_cut_in_two_by_the_end_of_a_line(
    tmp_path: Path, form: str, piece: int
) -> None:
    secret = "s3cret-of-the-server"
    for before in range(MAX_LINE - 60, MAX_LINE + 10, 7):
        log = ServerLog(tmp_path, f"shop-{before}", Redactor([secret], "shop"))
        said = ("x" * before + form.format(secret) + "y" * 3 * MAX_LINE).encode()
        for start in range(0, len(said), piece):
            log.take(said[start : start + piece])
        log.flush()
        text = log.path.read_text().replace("\n", "")
        assert text == "x" * before + "[secret of shop]" + "y" * 3 * MAX_LINE


def test_a_line_with_an_end_is_cleaned_before_it_is_cut(tmp_path: Path) -> None:
    log = ServerLog(tmp_path, "shop", Redactor(["s3cret-of-the-server"], "shop"))
    log.take(b"x" * (MAX_LINE - 5) + b"s3cret-of-the-server" + b"\nnext\n")
    assert "s3cre" not in log.path.read_text() and "next" in log.path.read_text()


def test_what_acts_on_a_terminal_is_not_in_the_log(tmp_path: Path) -> None:
    log = ServerLog(tmp_path, "shop", Redactor([], "shop"))
    log.take("\x1b]0;title\x07\x1b[2Jred \u202e\U000e0041\n".encode())
    log.note("also \x1b[31mhere")
    assert log.path.read_text() == "red \\u202e\\U000e0041\n--- also here\n"


@pytest.mark.parametrize("command", ["uv", "uvx"])
async def test_uv_is_found_where_it_came_with_us_and_path_has_none(
    tmp_path: Path, command: str
) -> None:
    environment = {**os.environ, "PATH": str(tmp_path)}
    server = Server("x", command=command, args=("--version",))
    async with running(server, tmp_path, environment=environment) as upstream:
        with pytest.raises(ToolFailed, match=rf"messages of MCP belong: {command} \d"):
            await upstream.ready()


async def test_uv_of_path_comes_before_ours(tmp_path: Path) -> None:
    theirs = tmp_path / "uvx"
    theirs.write_text("#!/bin/sh\necho their own\n")
    theirs.chmod(0o755)
    environment = {**os.environ, "PATH": str(tmp_path)}
    async with running(Server("x", command="uvx"), tmp_path, environment=environment) as upstream:
        with pytest.raises(ToolFailed, match="messages of MCP belong: their own"):
            await upstream.ready()


async def test_no_other_program_that_lies_beside_us_is_found(tmp_path: Path) -> None:
    assert Path(sys.executable).with_name("divingbell").exists()
    environment = {**os.environ, "PATH": str(tmp_path)}
    server = Server("x", command="divingbell")
    async with running(server, tmp_path, environment=environment) as upstream:
        with pytest.raises(ToolFailed, match="divingbell was not found"):
            await upstream.ready()
