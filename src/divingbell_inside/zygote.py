"""The zygote: imports everything once, then clones itself into a new session on request.

It stays single-threaded, so that a clone is a whole process. A session is made a child of the
host (CLONE_PARENT): it outlives this zygote and dies with the host.
"""

import gc
import json
import os
import signal
import socket
import sys
import time
from typing import Any, NoReturn

gc.disable()  # imports make no garbage; the interpreter that is forked enables it again
sys.path.insert(0, "/opt/divingbell")

from divingbell_inside import (  # noqa: E402
    chamber,
    commands,
    files,
    kernel,
    landlock,
    layout,
    preparation,
    runner,
    seccomp,
    supervisor,
)

MAX_MESSAGE = 1 << 16
MAX_DESCRIPTORS = 8
_NAMESPACES = (
    kernel.CLONE_NEWUSER
    | kernel.CLONE_NEWNS
    | kernel.CLONE_NEWPID
    | kernel.CLONE_NEWNET
    | kernel.CLONE_NEWIPC
    | kernel.CLONE_NEWUTS
)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _close_all_but(kept: int) -> None:
    """Let go of everything that was the zygote's."""
    null = os.open("/dev/null", os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    kernel.close_all_but(kept)


class Zygote:
    def __init__(self, line: socket.socket) -> None:
        self._line = line

    def prepare(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Import and warm up; return what the host wants to know."""
        started = time.perf_counter()
        self._own_groups = bool(settings["own_groups"])
        self._per_process = bool(settings["memory_is_per_process"])
        denied = seccomp.UNCOUNTED_MEMORY if self._per_process else frozenset[str]()
        self._program = seccomp.build(kernel.MACHINE, deny=denied, private_memory=self._per_process)
        many = bool(settings["many"])
        missing = preparation.load(settings["preload"], warm=many)
        threads = len(os.listdir("/proc/self/task"))
        preparation.freeze(tidy=many)
        if many:
            kernel.join_pages()
        return {
            "ready": True,
            "python": sys.version.split()[0],
            "missing": missing,
            "threads": threads,
            "landlock": landlock.abi(),
            "seconds": time.perf_counter() - started,
        }

    def serve(self) -> None:
        """Answer the host's requests until it goes away."""
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._line, MAX_MESSAGE, MAX_DESCRIPTORS)
            if not message:
                return
            request = json.loads(message)
            pid = self._spawn(request, descriptors)
            for descriptor in descriptors:
                os.close(descriptor)
            self._line.send(json.dumps({"id": request["id"], **pid}).encode())

    def _spawn(self, request: dict[str, Any], descriptors: list[int]) -> dict[str, Any]:
        try:
            pid = kernel.clone(_NAMESPACES | kernel.CLONE_PARENT)
        except OSError as error:
            return {"error": str(error)}
        if pid == 0:
            self._become_session(request, *descriptors)
        try:
            identity = f"{layout.UID} {request['uid']} 1"
            _write(f"/proc/{pid}/uid_map", identity)
            _write(f"/proc/{pid}/gid_map", identity)
        except OSError as error:
            os.kill(pid, signal.SIGKILL)
            return {"error": f"mapping the session's uid: {error}", "pid": pid}
        return {"pid": pid}

    def _become_session(self, request: dict[str, Any], control: int, *entrances: int) -> NoReturn:
        status = 1
        line = socket.socket(fileno=control)
        try:
            for entrance in entrances:  # of our control groups, before anything else is done
                os.write(entrance, b"0")
            _close_all_but(control)
            shape = chamber.Shape(
                disk=request["disk"],
                processes=request["processes"],
                open_files=request["open_files"],
                memory=request["memory"],
                memory_is_per_process=self._per_process,
                own_groups=self._own_groups,
                host_folder=request["host_folder"],
                program=self._program,
                pending_signals=request["pending_signals"],
                inotify=tuple(request["inotify"]),
            )
            parts = (chamber.seal, runner.main, files.serve, commands.serve)
            supervisor.Supervisor(line, shape, parts).serve()
            status = 0
        except Exception as error:  # the host must learn why, and there is no one else to tell
            line.send(f"failed {type(error).__name__}: {error}".encode()[:400])
        finally:
            os._exit(status)


def _heed_signals() -> None:
    """Heed what the host may ignore, as under nohup or in the background of a script: programs of a
    session would inherit that. Python itself ignores two, and gives them back to its programs."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) == signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def main(descriptor: int) -> None:
    _heed_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.makedirs(layout.ENVIRONMENT["MPLCONFIGDIR"], exist_ok=True)
    line = socket.socket(fileno=descriptor)
    line.set_inheritable(False)
    zygote = Zygote(line)
    line.send(b"rooted")
    settings = json.loads(line.recv(MAX_MESSAGE))
    line.send(json.dumps(zygote.prepare(settings)).encode())
    zygote.serve()


if __name__ == "__main__":
    main(int(sys.argv[1]))
