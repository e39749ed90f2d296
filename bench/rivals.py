"""Others that run Python behind walls of the same kind, from the same image."""

import asyncio
import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from abc import abstractmethod
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from environments import environment
from peers import ANSWER_TIMEOUT, PLAIN, Peer, Task
from turns import Unable

from divingbell.errors import DivingbellError
from divingbell.host import profile
from divingbell.models import Limits
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.command import PART_OF_DISK, own_memory
from divingbell.sandbox.docker import daemon, images
from divingbell_inside import layout

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "requirements" / "walls.txt"
SERVER = Path(__file__).with_name("rival_server.py")
LABEL = f"org.divingbell.bench={os.getpid()}"
PYTHON = f"{layout.PROFILE}/bin/python"
ENDING_TIMEOUT = 60.0
LIMITS = Limits()
NOBODY = 65534


def briefly(error: Exception) -> str:
    """The first sentence of an error: a table has no room for more."""
    return str(error).strip().split("\n")[0].split(". ")[0] or type(error).__name__


@contextmanager
def _docker(runtime: str = daemon.RUNC) -> Iterator[Any]:
    try:
        client = daemon.connect()
        with contextlib.closing(client):
            daemon.check(client, runtime)
            yield client
    except DivingbellError as error:
        raise Unable(briefly(error)) from error


@functools.cache
def image() -> str:
    """The name of the image that Divingbell's own containers have; made where it is missing."""
    with _docker() as client:
        return images.provide(client, _root(), _say)


@functools.cache
def _root() -> root.Root:
    return root.prepare(profile.prepare(progress=_say), _say)


def _say(line: str) -> None:
    print("·", line, file=sys.stderr, flush=True)


def versions() -> list[str]:
    """Of what the walls are made of here."""
    found = []
    with contextlib.suppress(Unable), _docker() as client:
        found.append(f"Docker {client.version()['Version']}")
    with contextlib.suppress(OSError):
        said = subprocess.run(["runsc", "--version"], capture_output=True, text=True).stdout
        found.append(said.split("\n")[0])
    return found


@contextmanager
def swept() -> Iterator[None]:
    """Remove the containers of this run that are left, however it ends."""
    try:
        yield
    finally:
        with contextlib.suppress(Unable), _docker() as client:
            for container in client.containers(all=True, filters={"label": LABEL}):
                client.remove_container(container["Id"], force=True, v=True)


class DockerRun(Peer):
    """`docker run` by hand, with the same limits and the same environment."""

    keeps_state = False

    def __init__(self, runtime: str) -> None:
        self._runtime = runtime
        self.name = "docker run" if runtime == daemon.RUNC else f"docker run --runtime={runtime}"
        self._image = ""

    def missing(self) -> str | None:
        if shutil.which("docker") is None:
            return "the command docker is not installed"
        try:
            with _docker(self._runtime):
                self._image = image()
        except Unable as error:
            return str(error)
        return None

    def _command(self, program: str) -> list[str]:
        memory = LIMITS.memory + own_memory(in_gvisor=self._runtime == daemon.RUNSC)
        sizes = {layout.WORKSPACE: 1, "/tmp": 1, layout.HOME: PART_OF_DISK}
        flags = {
            "runtime": [self._runtime],
            "label": [LABEL],
            "network": ["none"],
            "cap-drop": ["ALL"],
            "security-opt": ["no-new-privileges"],
            "user": [f"{NOBODY}:{NOBODY}"],
            "workdir": [layout.WORKSPACE],
            "memory": [str(memory)],
            "memory-swap": [str(memory)],
            "cpus": [f"{LIMITS.cores:g}"],
            # gVisor's own threads would count there.
            "pids-limit": [str(LIMITS.processes)] if self._runtime == daemon.RUNC else [],
            "tmpfs": [
                f"{at}:size={LIMITS.disk // part},mode=700,uid={NOBODY},gid={NOBODY}"
                for at, part in sizes.items()
            ],
            "env": [f"{name}={value}" for name, value in layout.ENVIRONMENT.items()],
        }
        given = [f"--{flag}={value}" for flag, values in flags.items() for value in values]
        return ["docker", "run", "--rm", "--read-only", *given, self._image, PYTHON, "-c", program]

    async def first(self, task: Task) -> float:
        """Seconds to the line that it prints; that the container has to end is not counted."""
        started = time.perf_counter()
        running = await asyncio.create_subprocess_exec(
            *self._command(task.program), stdout=PIPE, stderr=PIPE, start_new_session=True
        )
        assert running.stdout is not None and running.stderr is not None
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                answer = (await running.stdout.readline()).decode()
                taken = time.perf_counter() - started
                words = (await running.stderr.read()).decode()
                await running.wait()
        except TimeoutError:
            raise Unable("it did not answer in time") from None
        finally:
            await _end(running)
        if running.returncode:
            raise Unable(words.strip().split("\n")[-1])
        task.check(answer)
        return taken


class Installed(Peer):
    """One that is a library: it runs in a process and an environment of its own."""

    kind: str
    install = True
    """Where it is not installed yet."""

    @abstractmethod
    def settings(self, folder: Path) -> dict[str, Any]:
        """What it needs to know; the folder is its own."""

    @asynccontextmanager
    async def ready(self) -> AsyncIterator[None]:
        python = environment(LOCK, self.install, "./dev bench walls")
        with tempfile.TemporaryDirectory(prefix=f"divingbell-bench-{self.kind}-") as folder:
            arguments = [self.kind, json.dumps(self.settings(Path(folder)))]
            async with self._serving(python, str(SERVER), *arguments):
                await self._answer()
                yield

    @asynccontextmanager
    async def _serving(self, *command: str) -> AsyncIterator[None]:
        self._server = await asyncio.create_subprocess_exec(
            *command,
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            # Ctrl-C is for us: it ends, and cleans up, when its line is closed.
            start_new_session=True,
        )
        try:
            yield
        finally:
            assert self._server.stdin is not None
            self._server.stdin.close()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(ENDING_TIMEOUT):
                    await self._server.wait()
            await _end(self._server)

    async def first(self, task: Task) -> float:
        return (await self._ask("first", task, 1))[0]

    async def round_trips(self, count: int) -> list[float]:
        return await self._ask("warm", PLAIN, count)

    async def _ask(self, verb: str, task: Task, count: int) -> list[float]:
        assert self._server.stdin is not None
        question = {"do": verb, "program": task.program, "count": count}
        with contextlib.suppress(OSError):  # if it has ended, so does its answer
            self._server.stdin.write(json.dumps(question).encode() + b"\n")
            await self._server.stdin.drain()
        found = await self._answer()
        for answer in found["answers"]:
            task.check(answer)
        taken: list[float] = found["taken"]
        return taken

    async def _answer(self) -> dict[str, Any]:
        assert self._server.stdout is not None
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT):
                line = await self._server.stdout.readline()
        except TimeoutError:
            raise Unable("it did not answer in time") from None
        if not line:
            raise Unable(f"it ended, status {await self._server.wait()}")
        found: dict[str, Any] = json.loads(line)
        if "unable" in found:
            raise Unable(found["unable"])
        return found


class LlmSandbox(Installed):
    """Its plain session: each run is a program of its own in a container that stays."""

    name = "llm-sandbox"
    kind = "llm-sandbox"

    def settings(self, folder: Path) -> dict[str, Any]:
        place = folder / "environment"
        _stand_in(place)
        limit = LIMITS.memory + own_memory(in_gvisor=False)
        name, value = LABEL.split("=")
        walls = {
            # Its containers are to wait: an image of ours has no command of its own.
            "command": "/bin/sh",
            "environment": layout.ENVIRONMENT,
            "network_mode": "none",
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "mem_limit": limit,
            "memswap_limit": limit,
            "pids_limit": LIMITS.processes,
            "nano_cpus": int(LIMITS.cores * 1e9),
            "labels": {name: value},
            # Else it waits for ten seconds whenever it ends one. That is not counted anyway.
            "stop_signal": "SIGKILL",
            "volumes": {str(place): {"bind": f"{layout.WORKSPACE}/.sandbox-venv", "mode": "ro"}},
        }
        return {"image": image(), "workdir": layout.WORKSPACE, "walls": walls}


class LlmSandboxInteractive(LlmSandbox):
    """Its session that keeps state: an IPython in the container that looks for files to run."""

    name = "llm-sandbox, interactive"
    kind = "llm-sandbox-interactive"


class Ray(Installed):
    """`ray.experimental.sandbox`. Nothing after its refusal has been tried: see `RaySandbox`."""

    name = "ray.experimental.sandbox"
    kind = "ray"

    def settings(self, folder: Path) -> dict[str, Any]:
        return {
            "folder": str(folder),
            "root": str(_root().path),
            "python": PYTHON,
            "cpu": LIMITS.cores,
            "memory": LIMITS.memory + own_memory(in_gvisor=True),
            "environment": layout.ENVIRONMENT,
        }


def everyone(*, install: bool) -> list[Peer]:
    Installed.install = install
    return [
        DockerRun(daemon.RUNC),
        DockerRun(daemon.RUNSC),
        LlmSandbox(),
        LlmSandboxInteractive(),
        Ray(),
    ]


def _stand_in(place: Path) -> None:
    """Lay out what llm-sandbox takes for the virtual environment that it would make with pip.

    There is no network to install from, and all that it wants is in the image.
    """
    programs = {"python": f'exec {PYTHON} "$@"', "pip": "exit 0"}
    (place / "bin").mkdir(parents=True)
    for name, line in programs.items():
        (place / "bin" / name).write_text(f"#!/bin/sh\n{line}\n")
        (place / "bin" / name).chmod(0o755)


async def _end(process: Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()
