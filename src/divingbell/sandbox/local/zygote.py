"""The host's handle on the zygote: starts it, asks it for sessions, starts it again."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.local.refusal import refused
from divingbell.sandbox.local.view import INSIDE
from divingbell_inside import layout

START_TIMEOUT = 120.0
SPAWN_TIMEOUT = 30.0
REAP_PAUSE = 0.2
MAX_MESSAGE = 1 << 16
_STAGE_ONE = INSIDE / "root.py"


Asked = asyncio.Future[dict[str, Any]]


class ZygoteDied(Exception):
    """The zygote ended while it was waited for."""


class Zygote:
    """One zygote process, or the lack of one; `start` starts it where needed.

    It is started from a thread of its own that lasts: the kernel ends the zygote, and every
    session, when the thread ends that started it.
    """

    def __init__(
        self,
        python: Path,
        plan: dict[str, Any],
        settings: dict[str, Any],
        uid_map: str,
    ) -> None:
        self._python = python
        self._plan = plan
        self._settings = settings
        self._uid_map = uid_map
        self._thread = ThreadPoolExecutor(1, "divingbell-zygote")
        self._starting = asyncio.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._launched: subprocess.Popen[bytes] | None = None
        """The last one that was started, which may not have answered yet."""
        self._stopped = False
        self._line: socket.socket | None = None
        self._waiting: dict[int, Asked] = {}
        self._last = 0
        self.info: dict[str, Any] = {}

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self) -> None:
        """Start it unless it runs.

        Raises:
            SandboxUnavailable: the kernel refuses, or the profile does not work.
        """
        async with self._starting:
            if self._line is not None:
                return
            loop = asyncio.get_running_loop()
            self._process, line, self.info = await loop.run_in_executor(self._thread, self._launch)
            line.setblocking(False)
            loop.add_reader(line, self._readable)
            self._line = line

    def ask(self, request: dict[str, Any], descriptors: list[int]) -> Asked:
        """Ask for a session; `answer` tells what came of it.

        `descriptors` are its end of the control line, then the entrances of its control group.

        Raises:
            SandboxUnavailable: it can't take any more requests.
            ZygoteDied: ask again, with another line: a half-made session may hold this one.
        """
        if self._line is None:
            raise ZygoteDied
        self._last = number = self._last + 1
        self._waiting[number] = future = asyncio.get_running_loop().create_future()
        message = json.dumps({"id": number, **request}).encode()
        try:
            socket.send_fds(self._line, [message], descriptors)
        except BlockingIOError:
            del self._waiting[number]
            raise SandboxUnavailable("too many sessions are being opened at once") from None
        except OSError:
            del self._waiting[number]
            self._died()
            raise ZygoteDied from None
        return future

    async def answer(self, asked: Asked) -> int:
        """Return the pid of the session that was asked for.

        Raises:
            SandboxUnavailable: it could not be made.
            ZygoteDied: see `ask`.
        """
        try:
            async with asyncio.timeout(SPAWN_TIMEOUT):
                answer = await asyncio.shield(asked)
        except TimeoutError:
            self._died()
            raise ZygoteDied from None
        if "error" in answer:
            raise SandboxUnavailable(f"a session could not be made: {answer['error']}")
        pid = answer["pid"]
        assert isinstance(pid, int)
        return pid

    def abandon(self, asked: Asked) -> None:
        """End the session that was asked for and that nobody wants any more."""

        def end(asked: Asked) -> None:
            if not asked.cancelled() and asked.exception() is None and "pid" in asked.result():
                self._thread.submit(_end_child, asked.result()["pid"])

        asked.add_done_callback(end)

    def _readable(self) -> None:
        assert self._line is not None
        try:
            message = self._line.recv(MAX_MESSAGE)
        except BlockingIOError:
            return
        except OSError:
            message = b""
        if not message:
            self._died()
            return
        answer = _checked(message)
        if answer is None:
            self._died()
            return
        future = self._waiting.pop(answer["id"], None)
        if future is not None and not future.done():
            future.set_result(answer)

    def _died(self) -> None:
        """Forget it; sessions that it has made live on."""
        if self._line is None:
            return
        asyncio.get_running_loop().remove_reader(self._line)
        self._line.close()
        self._line = None
        process, self._process = self._process, None
        if process is not None:
            self._thread.submit(_end, process)
            if self._waiting:
                self._thread.submit(_reap_half_made)
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ZygoteDied())
                future.exception()  # whoever waits for it still sees it; nobody has to
        self._waiting.clear()

    async def stop(self) -> None:
        """End it, and the thread that all sessions hang on."""
        self._stopped = True
        if self._launched is not None and self._line is None:
            # It may still be starting, and the thread waits for its first word.
            with contextlib.suppress(ProcessLookupError):
                self._launched.send_signal(signal.SIGKILL)
        self._died()
        await asyncio.to_thread(self._thread.shutdown)

    # In the thread

    def _launch(self) -> tuple[subprocess.Popen[bytes], socket.socket, dict[str, Any]]:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(START_TIMEOUT)
        with theirs, tempfile.TemporaryFile() as log:
            process = subprocess.Popen(
                # Not that of the profile: before there are walls, nothing of it is looked at.
                [self._python, "-I", "-S", _STAGE_ONE, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                pass_fds=[theirs.fileno()],
                env={"LANG": "C.UTF-8", "PATH": layout.ENVIRONMENT["PATH"]},
                cwd="/",
                start_new_session=True,
            )
            theirs.close()
            self._launched = process
            try:
                if self._stopped:
                    raise OSError("it is not needed any more")
                info = self._shake_hands(process.pid, ours)
            except (OSError, ValueError) as error:
                ours.close()
                _end(process)
                raise refused(_last_words(log, error)) from None
        return process, ours, info

    def _shake_hands(self, pid: int, line: socket.socket) -> dict[str, Any]:
        line.send(json.dumps(self._plan).encode())
        _expect(line, b"unshared")
        if not self._plan["own_groups"]:
            Path(f"/proc/{pid}/setgroups").write_text("deny")
        try:
            Path(f"/proc/{pid}/uid_map").write_text(self._uid_map.format(me=os.geteuid()))
            Path(f"/proc/{pid}/gid_map").write_text(self._uid_map.format(me=os.getegid()))
        except OSError as error:
            raise OSError(
                f"the uids {self._uid_map!r} can't be mapped here ({error.strerror}); "
                "inside a container set uid_base to uids that it has"
            ) from None
        line.send(b"mapped")
        _expect(line, b"rooted")
        line.send(json.dumps(self._settings).encode())
        message = line.recv(MAX_MESSAGE)
        if not message:
            raise OSError("it ended while it was importing the profile")
        info: dict[str, Any] = json.loads(message)
        return info


def _checked(message: bytes) -> dict[str, Any] | None:
    """Return an answer of the zygote, None if it lies.

    Packages run in it, and the process that it names will be ended by the host: it must be a
    session, which is a child of this process.
    """
    try:
        answer = json.loads(message)
        if "pid" in answer:
            os.waitid(os.P_PID, answer["pid"], os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return {**answer, "id": int(answer["id"])}
    except (ValueError, TypeError, KeyError, OverflowError, OSError, RecursionError):
        return None


def _expect(line: socket.socket, word: bytes) -> None:
    if line.recv(MAX_MESSAGE) != word:
        raise OSError(f"it ended before it was {word.decode()}")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGKILL)
    process.wait()


def _end_child(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _reap_half_made() -> None:
    """Reap the sessions that the zygote died over: they are our children, of unknown pids.

    Such a one ends by itself, its line being closed. Whoever is waited for here too early is
    alive and not harmed; whoever has ended is in nobody's way.
    """
    time.sleep(REAP_PAUSE)
    me = threading.get_native_id()
    with contextlib.suppress(OSError):
        for child in Path(f"/proc/self/task/{me}/children").read_text().split():
            with contextlib.suppress(ChildProcessError):
                os.waitpid(int(child), os.WNOHANG)


def _last_words(log: IO[bytes], error: Exception) -> str:
    log.seek(0)
    lines = log.read().decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else str(error)
