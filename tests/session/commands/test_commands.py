"""Commands of a session: how they run, how they end, and what they leave alone."""

import asyncio
import contextlib
import re
import signal
import socket
import subprocess
import sys
from typing import Any

import pytest

from divingbell import (
    CapacityError,
    CommandHandle,
    CommandResult,
    Divingbell,
    InvalidInput,
    NotRecorded,
    Session,
    SessionClosed,
)
from divingbell.border.border import OpenBorder, Passage, Reader
from divingbell.border.walk import with_texts
from divingbell.journal.events import CommandEnded, CommandStarted, Intent, JournalEvent
from divingbell.principal import Principal
from divingbell.session import spool
from divingbell.session.commands import command, commands
from divingbell.session.commands.handle import StartedHandle
from divingbell.session.commands.live_output import MAX_UNREAD
from divingbell.session.local import OVERDRAFT
from tests.surfaces.mcp.stamped import Whole
from tests.waiting import PATIENCE, until, until_there

FOREVER = "echo began; while true; do sleep 0.05; done"
STUBBORN = "trap '' TERM; " + FOREVER


async def _pids(session: Session) -> set[str]:
    """The processes of a session but for pid 1, those who look, and the interpreter's copy."""
    found = await session.command(["sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"])
    return {word for word in ("sleep", "while true") if word in found.stdout.replace("cmdline", "")}


async def _in_background(session: Session, command: str, **options: Any) -> CommandHandle:
    handle = await session.command(command, background=True, **options)
    await until(lambda: handle.stdout, "the command writes")
    return handle


async def _nothing_left(session: Session) -> None:
    async def is_gone() -> bool:
        return not await _pids(session)

    await until(is_gone, "the processes of the command are gone")


async def test_it_gives_both_streams_and_the_exit_code(session: Session) -> None:
    result = await session.command("echo out; echo err >&2; exit 3")
    assert (result.status, result.exit_code) == ("error", 3)
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert result.error is not None and "exit code 3" in result.error.message
    assert result.error.exit_status == 3
    assert (result.number, result.usage.output_bytes) == (1, 8)
    assert result.usage.wall_ms > 0


async def test_words_meet_no_shell(session: Session) -> None:
    result = await session.command(["printf", "%s|", "$HOME", "a b", "*", ";exit 1"])
    assert (result.status, result.stdout) == ("ok", "$HOME|a b|*|;exit 1|")
    assert result.command == "printf '%s|' '$HOME' 'a b' '*' ';exit 1'"


async def test_folder_environment_and_input(session: Session) -> None:
    await session.files.put("below/file", b"")
    options: dict[str, Any] = {"cwd": "below", "env": {"WORD": "ünïcode"}, "input": "given"}
    result = await session.command("pwd; ls; echo $WORD $USER; cat", **options)
    assert result.stdout == "/workspace/below\nfile\nünïcode diver\ngiven"
    assert (await session.command("pwd; cat")).stdout == "/workspace\n"


async def test_a_large_input_is_passed_on_and_one_that_nobody_reads_is_dropped(
    session: Session,
) -> None:
    data = bytes(range(256)) * 20_000
    result = await session.command("cksum | cut -d' ' -f2", input=data)
    assert result.stdout == f"{len(data)}\n"
    assert (await session.command("true", input=data)).status == "ok"


async def test_bytes_that_are_no_text_are_replaced(session: Session) -> None:
    result = await session.command(r"printf 'a\377b\303'")
    assert result.stdout == "a�b�"


@pytest.mark.parametrize(
    "command", [["no-such-program", "x"], "no-such-program x"], ids=["words", "shell"]
)
async def test_a_program_that_is_not_there(session: Session, command: Any) -> None:
    result = await session.command(command)
    assert (result.status, result.exit_code) == ("error", 127)
    assert "not found" in result.stderr
    assert result.error is not None and "no such program" in result.error.hint


async def test_a_program_that_can_not_be_run(session: Session) -> None:
    await session.files.put("plain", b"x")
    result = await session.command(["/workspace/plain"])
    assert (result.status, result.exit_code) == ("error", 126)


async def test_the_network_is_not_there_and_a_hint_says_so(session: Session) -> None:
    result = await session.command("curl -sS http://example.com/ || wget http://example.com/")
    assert result.status == "error"
    assert result.error is not None and "no network" in result.error.hint


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("import socket; socket.socket()", "no network"),
        ("import urllib.request as r; r.urlopen('http://example.com')", "no network"),
        ("import no_such_module", "no_such_module is not installed here"),
        ("open('/home/ann/sales.csv')", "The files of the machine are not in the sandbox"),
        ("import os; os.environ['SHOP_TOKEN']", "MCP servers have their own"),
        ("open('mine.csv')", ""),
        ("{}['TOKEN']", ""),
        ("open('/etc/passwd', 'w')", ""),
    ],
)
async def test_a_program_of_python_gets_the_hint_that_a_cell_gets(
    session: Session, program: str, words: str
) -> None:
    await session.files.put("p.py", program)
    cell = await session.run(program)
    assert cell.error is not None and words in cell.error.hint
    assert bool(words) == bool(cell.error.hint)
    for way in ("python p.py", "python3 p.py 2>&1 | cat >&2; exit 1"):
        result = await session.command(way)
        assert result.error is not None and result.error.hint == cell.error.hint


async def test_a_signal_counts_as_a_shell_counts_it(session: Session) -> None:
    result = await session.command("kill -SEGV $$")
    assert (result.status, result.exit_code) == ("killed", 128 + signal.SIGSEGV)
    assert result.error is not None and "SIGSEGV" in result.error.message


@pytest.mark.parametrize("command", [FOREVER, STUBBORN], ids=["obedient", "stubborn"])
async def test_out_of_time_it_is_ended_with_all_that_it_started(
    session: Session, command: str
) -> None:
    result = await session.command(f"sleep 600 & {command}", timeout=0.3)
    assert result.status == "timeout"
    assert result.error is not None and "the command ran longer than its 0.3 s" in str(result.error)
    await _nothing_left(session)


async def test_it_is_asked_to_end_before_it_is_ended() -> None:
    async with (
        Divingbell(pool=0, preload=[], interrupt_grace=60) as bell,
        bell.session() as session,
    ):
        obedient = await _in_background(session, FOREVER)
        assert (await obedient.kill()).exit_code == 143
        polite = await _in_background(session, f"trap 'echo bye; exit 9' TERM; {FOREVER}")
        result = await polite.kill()
        assert (result.status, result.exit_code) == ("cancelled", 9)
        assert result.stdout == "began\nbye\n"


async def test_one_that_will_not_end_is_ended(session: Session) -> None:
    stubborn = await _in_background(session, STUBBORN)
    assert (await stubborn.kill()).exit_code == 137


async def test_the_timeout_of_the_session_holds(bell: Divingbell) -> None:
    async with bell.session(timeout=0.3) as session:
        assert (await session.command("sleep 60")).status == "timeout"


async def test_what_a_command_leaves_running_ends_with_it_and_a_daemon_stays(
    session: Session,
) -> None:
    assert (await session.command("sleep 600 & echo done")).stdout == "done\n"
    await _nothing_left(session)
    daemon = "setsid sh -c 'touch there; exec sleep 600' & while [ ! -e there ]; do :; done"
    assert (await session.command(daemon)).status == "ok"
    assert await _pids(session) == {"sleep"}


async def test_cancelling_ends_it(session: Session) -> None:
    running = asyncio.create_task(session.command(f"touch here; {FOREVER}"))
    await until_there(session, "here")
    assert len(session.commands()) == 1
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert session.commands() == []
    await _nothing_left(session)


async def test_processor_time_counts(bell: Divingbell) -> None:
    async with bell.session(cpu_seconds=0.3) as session:
        result = await session.command("while true; do :; done")
        assert (result.status, result.limit) == ("limit", "cpu")


async def test_memory_and_processes_are_those_of_the_session(bell: Divingbell) -> None:
    async with bell.session(memory="64MB", processes=8, disk="64MB") as session:
        result = await session.command(["python3", "-c", "bytearray(200 << 20)"])
        assert "MemoryError" in result.stderr
        result = await session.command("for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done; wait")
        assert result.status in ("error", "limit") and "fork" in result.stderr.lower()
        assert (await session.run("1 + 1")).value == 2


async def test_a_command_can_not_start_where_there_is_no_place_for_a_process(
    bell: Divingbell,
) -> None:
    async with bell.session(processes=4) as session:
        await session.run("import subprocess\nfor n in range(9): subprocess.Popen(['sleep', '60'])")
        result = await session.command(["true"])
        assert (result.status, result.limit) in (("limit", "processes"), ("killed", None))


async def test_long_output_shows_its_start_and_end_and_is_whole_in_a_file(
    bell: Divingbell,
) -> None:
    async with bell.session(output=4096) as session:
        result = await session.command("seq 1 100000; echo small >&2")
        assert (result.status, result.limit, result.stderr) == ("ok", "output", "small\n")
        assert result.stdout.startswith("1\n2\n") and result.stdout.endswith("99999\n100000\n")
        assert "bytes left out" in result.stdout and len(result.stdout) < 4200
        [note] = result.notes
        where = "/workspace/.outputs/command-1-stdout.txt"
        assert note == f"stdout is cut to 4 KB; all of it is in {where}"
        kept = await session.files.get(where)
        assert kept == "".join(f"{n}\n" for n in range(1, 100_001)).encode()


async def test_output_that_does_not_fit_the_disk_ends_the_command(bell: Divingbell) -> None:
    async with bell.session(output=4096, disk="2MB") as session:
        result = await session.command("while true; do seq 1 100000; done")
        assert (result.status, result.limit) == ("limit", "output")


async def test_a_file_server_that_is_stuck_keeps_nobody_waiting(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "END_PATIENCE", 0.2)
    monkeypatch.setattr(spool, "FINISH_TIMEOUT", 0.2)
    ours, theirs = socket.socketpair()
    monkeypatch.setattr(session._handle.sandbox, "open_files", lambda: theirs.detach())
    with ours:
        async with asyncio.timeout(PATIENCE):
            result = await session.command("trap '' TERM; cat /dev/zero", timeout=1)
    assert (result.status, result.limit) == ("timeout", "output")
    assert "as much as could be kept" in result.notes[0]


async def test_a_hundred_megabytes_are_taken_in(bell: Divingbell) -> None:
    async with bell.session(disk="200MB", memory="512MB") as session:
        result = await session.command("head -c 100000000 /dev/zero", timeout=60)
        assert (result.status, result.usage.output_bytes) == ("ok", 100_000_000)
        [file] = await session.files.list(".outputs")
        assert file.size == 100_000_000


async def test_events_come_as_it_writes(session: Session) -> None:
    seen: list[tuple[str, str]] = []
    result: CommandResult | None = None
    waits = "while [ ! -e go ]; do sleep 0.01; done"
    async for event in session.command_stream(f"echo one; {waits}; echo two >&2"):
        if event.type == "done":
            result = event.result
        else:
            seen.append((event.type, event.text))
            await session.files.put("go", b"")
    assert seen == [("stdout", "one\n"), ("stderr", "two\n")]
    assert result is not None and (result.stdout, result.stderr) == ("one\n", "two\n")


async def test_the_end_of_long_output_comes_as_an_event_too(bell: Divingbell) -> None:
    async with bell.session(output=4096) as session:
        events = [event async for event in session.command_stream("seq 1 100000")]
        text = "".join(event.text for event in events if event.type == "stdout")
        assert events[-1].result is not None and text == events[-1].result.stdout
        assert [event.text for event in events if event.type == "notice"] == [
            "stdout over 4,096 bytes goes to /workspace/.outputs/command-1-stdout.txt"
        ]


async def test_leaving_the_loop_ends_it(session: Session) -> None:
    async with contextlib.aclosing(session.command_stream(FOREVER)) as events:
        async for event in events:
            assert event.text == "began\n"
            break
    assert session.commands() == []
    await _nothing_left(session)


async def test_in_the_background_it_goes_on_until_it_is_killed(session: Session) -> None:
    handle = await _in_background(session, FOREVER)
    assert handle.running and handle.exit_code is None and handle.pid
    assert session.commands() == [handle]
    assert (await session.run(f"import os; os.getsid({handle.pid}) != os.getsid(0)")).value is True
    result = await handle.kill()
    assert (result.status, result.stdout) == ("cancelled", "began\n")
    assert not handle.running and handle.exit_code == result.exit_code
    assert session.commands() == []
    assert await handle.kill() == await handle.wait() == result
    await _nothing_left(session)


async def test_whoever_gives_up_waiting_leaves_it_running(session: Session) -> None:
    handle = await _in_background(session, FOREVER)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await handle.wait()
    assert handle.running


async def test_in_the_background_only_its_own_timeout_counts(bell: Divingbell) -> None:
    async with bell.session(timeout=0.1, cpu_seconds=0.1) as session:
        busy = await _in_background(session, "echo; while [ ! -e go ]; do :; done; echo went")
        assert (await session.command("sleep 60")).status in ("timeout", "limit")
        short = await session.command("sleep 60", background=True, timeout=0.1)
        assert (await short.wait()).status == "timeout"
        assert busy.running
        await session.files.put("go", b"")
        assert (await busy.wait()).stdout == "\nwent\n"


async def test_commands_and_cells_run_side_by_side(session: Session) -> None:
    cell = asyncio.create_task(
        session.run("import os, time\nwhile not os.path.exists('go'): time.sleep(0.01)\n'went'")
    )
    await until(lambda: session.busy, "the cell runs")
    assert (await session.command("touch go; echo hello")).stdout == "hello\n"
    assert (await cell).value == "went"


async def test_interrupting_a_cell_leaves_commands_alone(session: Session) -> None:
    handle = await _in_background(session, FOREVER)
    assert (await session.run("while True: pass", timeout=0.2)).status == "timeout"
    assert handle.running


async def test_a_replaced_interpreter_takes_commands_along_and_the_result_says_so(
    session: Session,
) -> None:
    handle = await _in_background(session, FOREVER)
    await session.reset()
    result = await handle.wait()
    assert (result.status, result.exit_code, result.stdout) == ("killed", 137, "began\n")
    assert result.error is not None and "the interpreter was replaced" in result.error.message
    assert (await session.command("echo again")).stdout == "again\n"


async def test_the_end_of_the_session_ends_commands(bell: Divingbell) -> None:
    async with bell.session() as session:
        handle = await _in_background(session, STUBBORN)
    result = await handle.wait()
    assert result.status == "killed"
    assert result.error is not None and "the session ended" in result.error.message
    with pytest.raises(SessionClosed):
        await session.command("true")


async def test_a_sandbox_that_is_lost_is_renewed_for_a_command(session: Session) -> None:
    sandbox = session._handle.sandbox
    await sandbox.stop()
    sandbox.on_gone("a test has ended it")
    result = await session.command("echo still here")
    assert result.stdout == "still here\n"


async def test_a_server_that_is_killed_or_stopped_from_inside(session: Session) -> None:
    result = await session.command("sleep 600 & kill -9 $PPID; sleep 600")
    assert (result.status, result.exit_code) == ("killed", 137)
    assert result.error is not None and "ended from inside" in result.error.message
    result = await session.command("sleep 600 & kill -STOP $PPID; sleep 600", timeout=0.3)
    assert result.status == "timeout"
    await _nothing_left(session)


async def test_a_command_has_nothing_open_but_its_streams(session: Session) -> None:
    result = await session.command(["ls", "/proc/self/fd"])
    assert result.stdout.split() == ["0", "1", "2", "3"]  # the last is the folder itself


IGNORED = """
import divingbell
with divingbell.sync.Divingbell(pool=0, preload=[]) as bell, bell.session() as session:
    print(session.command("grep SigIgn /proc/self/status").stdout)
    print(session.run("!grep SigIgn /proc/self/status").text)
"""


async def test_what_the_host_ignores_is_heeded_inside() -> None:
    program = [sys.executable, "-c", IGNORED]
    host = await asyncio.create_subprocess_exec(
        "env", "--ignore-signal=HUP", "--ignore-signal=QUIT", *program, stdout=subprocess.PIPE
    )
    said, _ = await host.communicate()
    assert re.findall(r"[0-9a-f]{16}", said.decode()) == ["0" * 16] * 2


async def _read(handle: CommandHandle) -> list[tuple[str, str]]:
    """All of a command's events but the last, which is `done`."""
    *events, last = [event async for event in handle.stream()]
    assert last.type == "done" and last.result == await handle.wait()
    return [(event.type, event.text) for event in events]


async def test_a_handle_gives_what_was_written_and_then_what_comes(session: Session) -> None:
    handle = await _in_background(session, "echo one; while [ ! -e go ]; do :; done; echo two >&2")
    seen: list[tuple[str, str]] = []
    async for event in handle.stream():
        if event.type != "done":
            seen.append((event.type, event.text))
            await session.files.put("go", b"")
    assert seen == [("stdout", "one\n"), ("stderr", "two\n")]
    assert event.result == await handle.wait()
    assert await _read(handle) == seen


async def test_several_may_read_and_one_who_leaves_leaves_it_running(session: Session) -> None:
    waiting = "while [ ! -e go ]; do :; done; echo end"
    handle = await _in_background(session, f"echo start; {waiting}")
    async with contextlib.aclosing(handle.stream()) as events:
        async for event in events:
            assert event.text == "start\n"
            break
    assert handle.running
    both = asyncio.gather(_read(handle), _read(handle))
    await session.files.put("go", b"")
    for seen in await both:
        assert "".join(text for _, text in seen) == "start\nend\n"


async def test_more_than_is_shown_is_streamed_all_the_same(bell: Divingbell) -> None:
    async with bell.session(output=4096) as session:
        handle = await session.command(
            "while [ ! -e go ]; do :; done; seq 1 20000", background=True
        )
        reading = asyncio.create_task(_read(handle))
        await session.files.put("go", b"")
        text = "".join(text for kind, text in await reading if kind == "stdout")
        assert text == "".join(f"{n}\n" for n in range(1, 20_001))


async def test_a_slow_reader_is_told_what_was_left_out(session: Session) -> None:
    handle = await _in_background(session, "echo a; while [ ! -e go ]; do :; done; seq 1 200000")
    notices: list[str] = []
    async for event in handle.stream():
        if event.text == "a\n":
            await session.files.put("go", b"")
            result = await handle.wait()
        elif event.type == "notice":
            notices.append(event.text)
        elif event.type == "stdout":
            assert len(event.text) <= MAX_UNREAD
    [notice] = notices
    assert notice.endswith("bytes of stdout are left out here: the reader was too slow")
    assert result.usage.output_bytes > MAX_UNREAD


async def test_who_waits_for_a_handle_keeps_an_idle_session_open() -> None:
    async with Divingbell(pool=0, preload=[], idle_timeout=0.5) as bell:
        session = await bell.open()
        handle = await session.command("sleep 1.2; echo waited", background=True)
        assert (await handle.wait()).stdout == "waited\n"
        handle = await session.command("sleep 1.2; echo read", background=True)
        assert await _read(handle) == [("stdout", "read\n")]
        assert not session.closed


async def test_the_short_form_says_what_it_is_and_how(session: Session) -> None:
    secret = {"TOKEN": "s3cret"}
    handle = await session.command(["sleep", "600"], background=True, env=secret)
    assert repr(handle) == "<Command 1 'sleep 600': running>"
    await handle.kill()
    assert repr(handle) == "<Command 1 'sleep 600': exit code 143>"
    handle = await session.command("true\n" + "# x" * 1000, background=True)
    assert repr(handle).startswith("<Command 2 'true # x") and len(repr(handle)) < 150
    await handle.wait()


async def test_only_so_many_at_once(session: Session) -> None:
    handles = [
        await session.command("sleep 60", background=True) for _ in range(commands.MAX_COMMANDS)
    ]
    with pytest.raises(CapacityError, match=r"8 commands already.*session\.commands\(\)"):
        await session.command("true")
    assert session.commands() == handles
    await handles[3].kill()
    assert (await session.command("true")).status == "ok"


async def test_a_folder_that_is_not_there_is_refused(session: Session) -> None:
    with pytest.raises(InvalidInput, match="folder '/nowhere': No such file or directory"):
        await session.command("true", cwd="/nowhere")
    with pytest.raises(InvalidInput, match="folder 'nope' below /workspace: No such file"):
        await session.command("true", cwd="nope")
    assert session.commands() == []


class _Keeper:
    """Keeps everything, or nothing."""

    def __init__(self, *, refuses: bool) -> None:
        self.refuses = refuses
        self.kept: list[JournalEvent] = []

    async def intend(self, event: Intent) -> None:
        if self.refuses:
            raise NotRecorded("the disk is full")
        self.kept.append(event)

    def note(self, event: JournalEvent) -> None:
        self.kept.append(event)


async def test_the_journal_is_told_of_each_and_of_its_one_end(
    bell: Divingbell, session: Session
) -> None:
    keeper = _Keeper(refuses=False)
    undo = bell.journal.keep(keeper)
    try:
        await session.command(["echo", "a b"])
        with pytest.raises(InvalidInput):
            await session.command("true", cwd="/nowhere")
    finally:
        undo()
    told = [event for event in keeper.kept if isinstance(event, CommandStarted | CommandEnded)]
    assert [(type(event), event.number, event.key) for event in told] == [
        (CommandStarted, 1, session.key),
        (CommandEnded, 1, session.key),
        (CommandStarted, 2, session.key),
        (CommandEnded, 2, session.key),
    ]
    assert told[0].command == "echo 'a b'"
    assert isinstance(told[1], CommandEnded) and told[1].result is not None
    assert told[1].result.stdout == "a b\n"


async def test_what_can_not_be_recorded_is_not_run(bell: Divingbell, session: Session) -> None:
    undo = bell.journal.keep(_Keeper(refuses=True))
    try:
        with pytest.raises(NotRecorded):
            await session.command("touch ran")
    finally:
        undo()
    assert await session.files.list() == []


async def test_commands_that_keep_the_host_busy_are_stopped_and_cells_are_not(
    session: Session,
) -> None:
    heavy = await _in_background(session, FOREVER)
    light = await _in_background(session, FOREVER)
    assert isinstance(heavy, StartedHandle)
    heavy._running.line.drawn = OVERDRAFT
    cell = asyncio.create_task(session.run("import time; time.sleep(0.3); 'whole'"))
    await until(lambda: session.busy, "the cell runs")
    session._handle.overdrawn(OVERDRAFT / 2, 1.0)
    assert heavy.running
    session._handle.overdrawn(OVERDRAFT * 1.1, 1.0)
    result = await heavy.wait()
    assert (result.status, result.limit) == ("limit", "host")
    assert light.running and (await cell).value == "whole"


class _Stamps(OpenBorder):
    """Restores a name that the model knows by another, and hides it again."""

    async def inward(
        self, value: Any, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Any:
        return with_texts(value, lambda text: text.replace("NAME-1", "Earle"))

    async def outward(
        self, value: Any, principal: Principal, reader: Reader = "model", origin: str = ""
    ) -> Any:
        return with_texts(value, lambda text: self.text(text, principal))

    def text(self, text: str, principal: Principal, *, goes_on: bool = False) -> str:
        return text.replace("Earle", "NAME-1")

    def passage(self, principal: Principal, charge: Any) -> Passage:
        return Whole(self, principal)


async def test_all_of_it_passes_the_border() -> None:
    async with Divingbell(pool=0, preload=[], border=_Stamps()) as bell, bell.session() as session:
        options: dict[str, Any] = {"env": {"WHO": "NAME-1"}, "input": "NAME-1"}
        command = "cat; printf $WHO >&2; printf $WHO | wc -c"
        result = await session.command(command, **options)
        assert (result.stdout, result.stderr) == ("NAME-15\n", "NAME-1")
        assert (await session.command(["printf", "NAME-1"])).stdout == "NAME-1"
        events = [event async for event in session.command_stream(command, **options)]
        assert "Earle" not in repr(events)
        handle = await session.command(f"printf $WHO; {FOREVER}", background=True, **options)
        await until(lambda: "NAME-1" in handle.stdout, "the command writes")
        assert "Earle" not in repr((handle.stdout, handle.stderr, await handle.kill()))
        assert "Earle" not in repr(await _read(handle))
        handle = await session.command(
            "while [ ! -e go ]; do :; done; printf $WHO", background=True, **options
        )
        reading = asyncio.create_task(_read(handle))
        await session.files.put("go", b"")
        assert await reading == [("stdout", "NAME-1")]


HOSTILE = "'; touch pwned; '\"$(touch pwned)`touch pwned`\n"


class _Hostile(OpenBorder):
    """Restores a token to what a stranger wrote, and hides nothing."""

    async def inward(
        self, value: Any, principal: Principal, to: str = "", written: bytes | None = None
    ) -> Any:
        return with_texts(value, lambda text: text.replace("[NAME_482715]", HOSTILE))


async def test_tokens_become_values_in_words_and_stay_in_a_text_for_the_shell() -> None:
    async with Divingbell(pool=0, preload=[], border=_Hostile()) as bell, bell.session() as session:
        text = "printf %s '[NAME_482715]'"
        for result in (
            await session.command(text),
            await (await session.command(text, background=True)).wait(),
            [event async for event in session.command_stream(text)][-1].result,
        ):
            assert result is not None and result.stdout == "[NAME_482715]", result
        words = await session.command(["printf", "%s|%s", "a [NAME_482715]", "[NAME_482715]"])
        assert words.stdout == f"a {HOSTILE}|{HOSTILE}"
        assert words.command == "printf '%s|%s' 'a [NAME_482715]' '[NAME_482715]'"
        options: dict[str, Any] = {"env": {"WHO": "[NAME_482715]"}, "input": "[NAME_482715]"}
        assert (await session.command('cat; printf %s "$WHO"', **options)).stdout == HOSTILE * 2
        with pytest.raises(InvalidInput, match=r"env: '\[NAME_482715\]' can't be the name"):
            await session.command("true", env={"[NAME_482715]": "x"})
        assert await session.files.list() == []


async def test_a_folder_may_be_named_by_a_token() -> None:
    async with Divingbell(pool=0, preload=[], border=_Stamps()) as bell, bell.session() as session:
        await session.files.put("Earle/file", b"")
        assert (await session.command("ls", cwd="NAME-1")).stdout == "file\n"
        with pytest.raises(InvalidInput, match="'NAME-1/none'"):
            await session.command("ls", cwd="NAME-1/none")


async def test_an_idle_session_is_not_ended_while_somebody_waits_for_a_command() -> None:
    async with Divingbell(pool=0, preload=[], idle_timeout=0.5) as bell:
        session = await bell.open()
        result = await session.command("sleep 1.2; echo waited")
        assert (result.status, result.stdout) == ("ok", "waited\n")
        handle = await session.command("sleep 600", background=True)
        await until(lambda: session.closed, "the session is idle")
        assert "idle" in str((await handle.wait()).error)


async def test_it_has_the_environment_that_its_session_was_opened_with(bell: Divingbell) -> None:
    async with bell.session(env={"REGION": "north", "UNIT": "tons"}) as session:
        result = await session.command("echo $REGION $UNIT", env={"UNIT": "kilos"})
        assert result.stdout == "north kilos\n"
        await session.reset()
        assert (await session.command("echo $REGION")).stdout == "north\n"
