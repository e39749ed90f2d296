"""Everything that is measured, ours and others', behind one interface."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import bells

from divingbell import Divingbell, Session

FORK_SERVER = Path(__file__).with_name("fork_server.py")
ANSWER_TIMEOUT = 120.0
MAX_PACKET = 1 << 16
QUIET = subprocess.DEVNULL


@dataclass(frozen=True, slots=True)
class Task:
    """Code whose last line is an expression, and the repr of its value."""

    name: str
    setup: str
    expression: str
    answer: str

    @property
    def cell(self) -> str:
        return f"{self.setup}\n{self.expression}" if self.setup else self.expression

    @property
    def program(self) -> str:
        return f"{self.setup}\nprint({self.expression})"

    def check(self, answer: object) -> None:
        """Raise if a peer has given a wrong answer: its time would mean nothing."""
        if str(answer).strip() != self.answer:
            raise AssertionError(f"{self.name}: {answer!r} instead of {self.answer}")


PLAIN = Task("plain", "", "1+1", "2")
PANDAS = Task(
    "pandas",
    "import pandas as pd\nimport matplotlib.pyplot as plt",
    "int(pd.DataFrame({'a': [1, 2]}).a.sum())",
    "3",
)


class Peer(ABC):
    """Something that runs Python. Used within `async with peer.ready()`."""

    name: str
    has_pandas = True
    keeps_state = True
    """There is a session that can be asked again and again."""

    def missing(self) -> str | None:
        """Why it can't be measured here, if it can't."""
        return None

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        """What is there before the first session is asked for, outside of every time."""
        yield

    @abstractmethod
    async def first(self, task: Task) -> float:
        """Seconds from asking for a session to the answer of its first task."""

    async def round_trips(self, count: int) -> list[float]:
        """Seconds of each of `count` plain tasks in one session that is warm."""
        raise NotImplementedError


async def first_result(
    bell: Divingbell, task: Task, limits: Mapping[str, Any] | None = None
) -> float:
    """Seconds from asking for a session to the answer of its first task."""
    started = time.perf_counter()
    async with bell.session(**(limits or {})) as session:
        result = await session.run(task.cell)
        taken = time.perf_counter() - started
        task.check(result.value)
    return taken


async def round_trips(session: Session, count: int) -> list[float]:
    """Seconds of each of `count` plain tasks in a session that lives."""
    found = []
    for _ in range(count):
        started = time.perf_counter()
        result = await session.run(PLAIN.cell)
        found.append(time.perf_counter() - started)
        PLAIN.check(result.value)
    return found


class Pooled(Peer):
    """Divingbell through its library: a session that waits in the pool."""

    name = "divingbell, from the pool"
    limits: ClassVar[dict[str, Any]] = {}
    bell: ClassVar[Divingbell]

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        async with bells.ring(pool=1) as bell:
            Pooled.bell = bell
            async with bell.session() as self._warm:
                yield

    async def first(self, task: Task) -> float:
        await bells.pool_is_full(self.bell)
        taken = await first_result(self.bell, task, self.limits)
        await bells.pool_is_full(self.bell)
        return taken

    async def round_trips(self, count: int) -> list[float]:
        return await round_trips(self._warm, count)


class OnDemand(Pooled):
    """The same Divingbell: limits of its own make a session that the pool can't have."""

    name = "divingbell, on demand"
    keeps_state = False
    limits: ClassVar[dict[str, Any]] = {"timeout": 29.0}

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        yield


class Fork(Peer):
    name = "os.fork, no walls"

    def missing(self) -> str | None:
        return not_installed("pandas", "matplotlib")

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        command = [sys.executable, str(FORK_SERVER)]
        # The line is left first, however it ends: that is what ends the server.
        with subprocess.Popen(command, stdin=theirs.fileno()), self._line:  # noqa: ASYNC220
            theirs.close()
            self._line.recv(MAX_PACKET)
            yield

    def _ask(self, task: Task) -> None:
        self._line.send(task.cell.encode())
        task.check(self._line.recv(MAX_PACKET).decode())

    async def first(self, task: Task) -> float:
        started = time.perf_counter()
        self._line.send(b"new")
        self._ask(task)
        taken = time.perf_counter() - started
        self._line.send(b"end")
        return taken

    async def round_trips(self, count: int) -> list[float]:
        found = []
        self._line.send(b"new")
        for _ in range(count):
            started = time.perf_counter()
            self._ask(PLAIN)
            found.append(time.perf_counter() - started)
        self._line.send(b"end")
        return found


class Program(Peer):
    """One process a task, which prints its answer."""

    keeps_state = False
    before: ClassVar[tuple[str, ...]] = ()
    python = sys.executable

    async def first(self, task: Task) -> float:
        command = [*self.before, self.python, "-c", task.program]
        started = time.perf_counter()
        done = subprocess.run(  # noqa: ASYNC221  (nothing else may run meanwhile)
            command, capture_output=True, text=True, timeout=ANSWER_TIMEOUT
        )
        taken = time.perf_counter() - started
        if done.returncode:
            raise RuntimeError(f"{self.name}: {done.stderr.strip()[-300:]}")
        task.check(done.stdout)
        return taken


class Python(Program):
    name = "python -c, no walls"

    def missing(self) -> str | None:
        return not_installed("pandas", "matplotlib")


class Bubblewrap(Program):
    name = "bwrap + python"
    before = (
        *("bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/"),
        *("--tmpfs", "/tmp", "--proc", "/proc", "--dev", "/dev"),
        # The checkout may lie in /tmp itself.
        *("--ro-bind", sys.prefix, sys.prefix, "--ro-bind", sys.base_prefix, sys.base_prefix),
    )

    def missing(self) -> str | None:
        if shutil.which("bwrap") is None:
            return "bwrap is not installed"
        tried = subprocess.run([*self.before, "true"], capture_output=True, text=True)
        if tried.returncode:
            return f"bwrap does not work here: {tried.stderr.strip()}"
        return not_installed("pandas", "matplotlib")


class Docker(Program):
    """`docker run` of an image with Python; with pandas if the image has it."""

    name = "docker run"
    has_pandas = False
    python = "python3"

    def __init__(self) -> None:
        self._image = os.environ.get("DIVINGBELL_BENCH_IMAGE", "")

    def missing(self) -> str | None:
        if shutil.which("docker") is None:
            return "docker is not installed"
        images = self._ask("image", "ls", "--format", "{{.Repository}}:{{.Tag}}")
        if images is None:
            return "no docker daemon answers"
        found = [name for name in images.split() if name.startswith("python:")]
        self._image = self._image or next(iter(found), "")
        if not self._image:
            return "no image python:* (pull one, or name one in DIVINGBELL_BENCH_IMAGE)"
        self.before = (  # type: ignore[misc]
            *("docker", "run", "--rm", "--network", "none", "--read-only", "--cap-drop", "ALL"),
            *("--security-opt", "no-new-privileges", "--user", "65534", self._image),
        )
        probe = subprocess.run(
            [*self.before, "python3", "-c", PANDAS.setup], capture_output=True, check=False
        )
        self.has_pandas = probe.returncode == 0
        return None

    @staticmethod
    def _ask(*arguments: str) -> str | None:
        done = subprocess.run(["docker", *arguments], capture_output=True, text=True)
        return None if done.returncode else done.stdout


class Kernel(Peer):
    """ipykernel through jupyter_client: `wait_for_ready` as documented, then a cell."""

    name = "ipykernel"
    waits = True

    def missing(self) -> str | None:
        return not_installed("ipykernel", "jupyter_client", "pandas", "matplotlib")

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        with self._kernel() as self._warm:
            self._warm.wait_for_ready(timeout=ANSWER_TIMEOUT)
            yield

    @staticmethod
    @contextmanager
    def _kernel() -> Iterator[Any]:
        from jupyter_client.manager import KernelManager

        keeper = KernelManager()
        keeper.start_kernel(stdout=QUIET, stderr=QUIET)
        client = keeper.blocking_client()
        client.start_channels()
        try:
            yield client
        finally:
            client.stop_channels()
            keeper.shutdown_kernel(now=True)

    async def first(self, task: Task) -> float:
        started = time.perf_counter()
        with self._kernel() as client:
            if self.waits:
                client.wait_for_ready(timeout=ANSWER_TIMEOUT)
                answer = self._run(client, task.cell)
            else:
                answer = self._run_at_once(client, task)
            taken = time.perf_counter() - started
        task.check(answer)
        return taken

    @staticmethod
    def _run(client: Any, code: str) -> str | None:
        """Execute, and wait for the result, the idle message and the reply."""
        asked = client.execute(code)
        answer = None
        while True:
            message = client.get_iopub_msg(timeout=ANSWER_TIMEOUT)
            if message["parent_header"].get("msg_id") != asked:
                continue
            if message["msg_type"] == "execute_result":
                answer = message["content"]["data"]["text/plain"]
            elif message["content"].get("execution_state") == "idle":
                break
        client.get_shell_msg(timeout=ANSWER_TIMEOUT)
        return answer

    @staticmethod
    def _run_at_once(client: Any, task: Task) -> str:
        """Before the kernel is up, only the reply is sure to arrive: the value comes in it."""
        client.execute(task.setup, user_expressions={"value": task.expression})
        message = client.get_shell_msg(timeout=ANSWER_TIMEOUT)
        return str(message["content"]["user_expressions"]["value"]["data"]["text/plain"])

    async def round_trips(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            started = time.perf_counter()
            answer = self._run(self._warm, PLAIN.cell)
            found.append(time.perf_counter() - started)
            PLAIN.check(answer)
        return found


class HastyKernel(Kernel):
    """The shortest way that there is: the cell is sent before the kernel has come up."""

    name = "ipykernel, not waited for"
    keeps_state = False
    waits = False

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        yield


class Monty(Peer):
    """pydantic-monty: an interpreter of its own for a part of Python, in a worker process."""

    name = "pydantic-monty"
    has_pandas = False

    def missing(self) -> str | None:
        return not_installed("pydantic_monty")

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        import pydantic_monty

        workers = pydantic_monty.Monty(min_processes=2, max_processes=4)
        with workers as self._pool, self._pool.checkout() as self._warm:
            yield

    async def first(self, task: Task) -> float:
        started = time.perf_counter()
        with self._pool.checkout() as session:
            answer = session.feed_run(task.cell)
            taken = time.perf_counter() - started
        task.check(answer)
        return taken

    async def round_trips(self, count: int) -> list[float]:
        found = []
        for _ in range(count):
            started = time.perf_counter()
            answer = self._warm.feed_run(PLAIN.cell)
            found.append(time.perf_counter() - started)
            PLAIN.check(answer)
        return found


def not_installed(*modules: str) -> str | None:
    for name in modules:
        with contextlib.suppress(ImportError):
            if importlib.util.find_spec(name) is not None:
                continue
        return f"{name} is not installed (./dev bench installs it)"
    return None


def everyone() -> list[Peer]:
    return [
        Pooled(),
        OnDemand(),
        Fork(),
        Python(),
        Bubblewrap(),
        Kernel(),
        HastyKernel(),
        Monty(),
        Docker(),
    ]
