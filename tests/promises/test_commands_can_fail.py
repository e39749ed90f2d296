"""The checks of commands can fail: without what keeps them, each of their rows is broken."""

import shutil
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.promises.check.rig import BUSY_ALLOWANCE
from divingbell.sandbox.local import view, zygote
from divingbell.session.commands import line
from tests.promises import breaking

Changed = Callable[[str, str, str], AbstractAsyncContextManager[Divingbell]]


@pytest.fixture
def with_inside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Changed:
    """A Divingbell in whose sandboxes a line of a module is another."""

    @asynccontextmanager
    async def changed(module: str, old: str, new: str) -> AsyncIterator[Divingbell]:
        inside = tmp_path / "divingbell_inside"
        shutil.copytree(zygote._STAGE_ONE.parent, inside)
        source = (inside / module).read_text()
        assert old in source
        (inside / module).write_text(source.replace(old, new))
        monkeypatch.setattr(view, "INSIDE", inside)
        monkeypatch.setattr(zygote, "_STAGE_ONE", inside / "root.py")
        async with Divingbell(pool=0, preload=[]) as bell:
            yield bell

    return changed


async def test_walls_without_a_filter_are_noticed(with_inside: Changed) -> None:
    async with with_inside("chamber.py", "seccomp.install(shape.program)", "") as bell:
        assert await breaking.broken(bell, {"C01"}) == {"C01"}


async def test_a_server_that_can_be_looked_into_is_noticed(with_inside: Changed) -> None:
    old, new = "kernel.set_dumpable(False)  # its", "# its"
    async with with_inside("supervisor.py", old, new) as bell:
        assert await breaking.broken(bell, {"C06"}) == {"C06"}


async def test_a_command_without_limits_is_noticed(with_inside: Changed) -> None:
    old = "        self._be_users_own()\n        kernel.set_dumpable(False)"
    new = "        os.setsid()\n        kernel.set_dumpable(False)"
    async with with_inside("supervisor.py", old, new) as bell:
        assert await breaking.broken(bell, {"C02"}) == {"C02"}


async def test_descriptors_that_a_command_inherits_are_noticed(with_inside: Changed) -> None:
    old = "process_group=0,"
    new = "process_group=0, pass_fds=[self._line.fileno()],"
    async with with_inside("commands.py", old, new) as bell:
        assert await breaking.broken(bell, {"C02"}) == {"C02"}


async def test_a_line_that_is_read_without_a_pause_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read = line.CommandLine.read

    async def read_on(self: line.CommandLine, take: line.Take, taken: Callable[[], None]) -> None:
        self._socket.setblocking(True)
        ends = time.thread_time() + 2 * BUSY_ALLOWANCE
        while not self.stopped and time.thread_time() < ends:
            self._decoder.feed(self._socket.recv(line.READ_SIZE))
            while not self.stopped and (frame := self._decoder.next_frame()) is not None:
                take(*frame)
        self._socket.setblocking(False)
        await read(self, take, taken)

    monkeypatch.setattr(line.CommandLine, "read", read_on)
    async with Divingbell(pool=0) as bell:
        assert await breaking.broken(bell, {"C03", "C04"}) == {"C03", "C04"}


async def test_processes_that_outlive_their_command_are_noticed(with_inside: Changed) -> None:
    async with with_inside("supervisor.py", "processes.end_session(pid)", "pass") as bell:
        assert await breaking.broken(bell, {"C05"}) == {"C05"}
