"""The docker backend: finds the daemon, keeps the image, makes one container a session."""

import asyncio
import contextlib
import os
import platform
import secrets
import socket
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell import logs
from divingbell.errors import SandboxUnavailable
from divingbell.host import beside, cgroups, folders, owned_folder, profile
from divingbell.host.uids import Uids
from divingbell.models import Isolation, Limits
from divingbell.sandbox.base import Backend, BackendRequest
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.command import (
    CAPABILITIES,
    COMMAND,
    EXPENDABLE,
    PART_OF_DISK,
    host_threads,
    own_memory,
)
from divingbell.sandbox.contained.handshake import greet
from divingbell.sandbox.contained.sandbox import ContainedSandbox, Ending
from divingbell.sandbox.contained.socket import ContainerSocket
from divingbell.sandbox.docker import daemon, images, seccomp
from divingbell_inside import layout

if TYPE_CHECKING:
    from docker import APIClient

START_TIMEOUT = 120.0
ENDING_TIMEOUT = 5.0
REMOVAL_TIMEOUT = 15.0
"""Seconds that a closing session waits for the daemon; what it leaves is removed at the stop, or
at the next start."""
ENDING_PAUSE = 0.05
SOCKET_FOLDER = "socket"
LABEL = "org.divingbell.host"
"""Which host process a container belongs to: the folder of its sockets, which that holds locked."""
MACHINE_LABEL = "org.divingbell.machine"
_MASKED = [
    f"/proc/{name}"
    for name in (
        "acpi", "asound", "kallsyms", "kcore", "keys", "kmsg", "latency_stats", "sched_debug",
        "scsi", "timer_list", "timer_stats",
    )
]  # fmt: skip
_MASKED.append("/dev/pts")  # with it goes /dev/ptmx: there are no terminals to be made
_READ_ONLY = [f"/proc/{name}" for name in ("bus", "fs", "irq", "pressure", "sys", "sysrq-trigger")]
_ETC = {name: layout.ETC[name] for name in ("passwd", "group", "hosts", "hostname")}
_ETC["resolv.conf"] = ""  # Docker would show the host's
_LOG = {"Type": "json-file", "Config": {"max-size": "64k", "max-file": "1"}}

log = logs.logger("divingbell")


class DockerBackend(Backend):
    """Containers of the Docker daemon of this machine, by one of the runtimes that it knows."""

    def __init__(self, request: BackendRequest, runtime: str = daemon.RUNC) -> None:
        self._request = request
        self._settings = request.settings
        self._progress = request.progress
        self._runtime = runtime
        self._client: APIClient | None = None
        self._folders: folders.HostFolders | None = None
        self._uids: Uids | None = None
        self._image = ""
        self._limits_by = ""
        self._denied = frozenset[str]()

    @property
    def _by_gvisor(self) -> bool:
        return self._runtime == daemon.RUNSC

    async def start(self) -> None:
        try:
            await beside.run(self._start)
        except OSError as error:
            raise SandboxUnavailable(
                f"the {self._request.name} backend can't start: {error}"
            ) from error

    def _start(self) -> None:
        settings = self._settings
        if settings.workspace != "memory":
            raise SandboxUnavailable(
                f"with the backend {self._request.name} a workspace is never on the host: "
                'set workspace = "memory", or choose another backend'
            )
        client = self._client = daemon.connect()
        info = daemon.check(client, self._runtime)
        client.timeout = daemon.TIMEOUT
        self._limits_by = f"cgroup v{info.get('CgroupVersion') or 1}"
        if daemon.counts_together(info):
            self._denied = seccomp.INOTIFY
        prepared = profile.prepare(settings.packages, progress=self._progress)
        made = root.prepare(prepared, self._progress)
        profile.release(prepared)  # all of it is in there
        above = profile.home() / "sockets"
        with daemon.translated("importing the image"):
            remove_leftovers(client, above)
            self._image = images.provide(client, made, self._progress)
        self._folders = folders.HostFolders(above)
        locks = {} if os.geteuid() == 0 else {"locks": profile.home() / "uids"}
        self._uids = Uids(settings.uid_base, settings.uid_count, **locks)

    async def create(self, limits: Limits) -> ContainedSandbox:
        assert self._client is not None and self._folders is not None and self._uids is not None
        number = self._uids.take()
        name = secrets.token_hex(8)  # mounts show it: it tells nothing
        made = _Made(self._client, self._folders, self._uids, number, name)
        try:
            return await self._assemble(made, limits)
        except BaseException as error:
            await asyncio.shield(made.remove())
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"a container could not be made: {error}") from error
            raise

    async def _assemble(self, made: "_Made", limits: Limits) -> ContainedSandbox:
        folder = made.folders.path / made.folders.make(made.name, None)
        socket_folder = folder / SOCKET_FOLDER
        owned_folder.make(socket_folder)  # for a uid that is not ours, whatever the umask
        _introduce(folder, made.uid)
        listening = ContainerSocket(socket_folder)
        try:
            await made.launch(partial(self._launch, made, folder, listening.token, limits))
            connecting = asyncio.ensure_future(listening.accept(made.contains))
            line = await _unless_it_ends(connecting, made)
        finally:
            listening.close()
        by_gvisor = self._by_gvisor
        try:
            async with asyncio.timeout(START_TIMEOUT):
                uid = made.uid if by_gvisor else None
                greeting = greet(line, self._settings, limits, in_gvisor=by_gvisor, uid=uid)
                _, group = await asyncio.gather(greeting, daemon.beside(made.find_group))
        except TimeoutError:
            line.close()
            raise SandboxUnavailable(
                f"the container did not get ready within {START_TIMEOUT:g} s: see `docker info`"
            ) from None
        except BaseException:
            line.close()
            raise
        isolation = Isolation(
            backend=self._request.name,
            limits_by=self._limits_by,
            landlock=0,  # it says so itself when it is sealed
            own_uid=os.geteuid() == 0,  # others of this machine may have hosts, too
        )
        return ContainedSandbox(
            made.container, line, group, isolation, limits, made.ending, made.remove
        )

    def _launch(self, made: "_Made", folder: Path, token: str, limits: Limits) -> None:
        """Make the container and start it."""
        client = made.client
        environment = layout.GVISOR_ENVIRONMENT if self._by_gvisor else layout.ENVIRONMENT
        host = client.create_host_config(**self._walls(made.uid, limits, folder))
        host |= {
            "MaskedPaths": _MASKED,
            "ReadonlyPaths": _READ_ONLY,
            "LogConfig": _LOG,
            "CgroupnsMode": "private",
        }
        with daemon.translated("starting a container"):
            container = client.create_container(
                self._image,
                list(COMMAND),
                name=made.container,
                hostname=layout.HOSTNAME,
                # Root of gVisor's kernel, which is nobody on the host.
                user="0:0" if self._by_gvisor else f"{made.uid}:{made.uid}",
                working_dir="/",
                environment={**environment, layout.TOKEN: token},
                labels={LABEL: str(made.folders.path), MACHINE_LABEL: socket.gethostname()},
                host_config=host,
            )
            made.identifier = container["Id"]
            client.start(made.container)

    def _walls(self, uid: int, limits: Limits, folder: Path) -> dict[str, Any]:
        disk, part = limits.disk, limits.disk // PART_OF_DISK
        owner = f"uid={uid},gid={uid}"
        shown: dict[str, str | Path] = {layout.SOCKET_FOLDER: folder / SOCKET_FOLDER}
        shown |= {f"/etc/{name}": folder / name for name in _ETC}
        if self._request.servers is not None:
            shown[layout.SERVERS] = self._request.servers
        shown |= self._settings.mounts
        profile = seccomp.profile(platform.machine(), self._denied)
        memory = limits.memory + own_memory(in_gvisor=self._by_gvisor)
        return {
            "runtime": self._runtime,
            "network_mode": "none",
            "ipc_mode": "private",
            "read_only": True,
            "cap_drop": ["ALL"],
            "cap_add": list(CAPABILITIES) if self._by_gvisor else [],
            "security_opt": ["no-new-privileges:true", f"seccomp={profile}"],
            "mem_limit": memory,
            "memswap_limit": memory,
            # With gVisor its own threads count there, and not the processes inside it.
            "pids_limit": host_threads(limits.processes)
            if self._by_gvisor
            else limits.processes + layout.OWN_PROCESSES,
            "oom_score_adj": EXPENDABLE if self._by_gvisor else 0,
            "cpu_period": cgroups.PERIOD,
            "cpu_quota": int(limits.cores * cgroups.PERIOD),
            "mounts": [_read_only(inside, outside) for inside, outside in shown.items()],
            "tmpfs": {
                layout.WORKSPACE: f"{_writable(disk)},mode=700,{owner}",
                "/tmp": f"{_writable(disk)},mode=1777",
                layout.HOME: f"{_writable(part)},mode=700,{owner}",
                "/dev/shm": f"{_writable(part)},mode=1777",
                "/sys": "ro,noexec,nosuid,nodev,size=4k,mode=555",
            },
        }

    async def stop(self) -> None:
        client, self._client = self._client, None
        if client is not None and self._folders is not None:
            mine = partial(remove_containers, client, str(self._folders.path))
            await _in_time(mine, "containers of sessions that are over")
        if self._folders is not None:
            await asyncio.to_thread(self._folders.close)
        if self._uids is not None:
            self._uids.close()
        if client is not None:
            client.close()


class _Made:
    """The parts of one container, as far as they have been made."""

    def __init__(
        self,
        client: "APIClient",
        host_folders: folders.HostFolders,
        uids: Uids,
        number: int,
        name: str,
    ) -> None:
        self.client = client
        self.folders = host_folders
        self.name = name
        self.uid = uids.first + number
        self.container = f"{host_folders.path.name}.{name}"
        self.identifier = ""
        self._launching: asyncio.Task[None] | None = None
        self._give_back = partial(uids.give_back, number)

    def contains(self, pid: int) -> bool:
        """Whether a process of this machine belongs to the container."""
        try:
            groups = Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return False
        return bool(self.identifier) and self.identifier in groups

    async def launch(self, work: Callable[[], None]) -> None:
        """Make and start it; whoever is cancelled here leaves that to `remove`."""
        self._launching = asyncio.create_task(daemon.beside(work))
        await asyncio.shield(self._launching)

    def find_group(self) -> cgroups.Group:
        pid = self.state()["Pid"]
        try:
            return cgroups.of_process(pid)
        except cgroups.NoCgroups as reason:
            raise SandboxUnavailable(f"what a session uses can't be counted: {reason}") from None

    async def ending(self) -> Ending:
        """Return how the container has ended. Never raises."""
        try:
            state = await daemon.beside(self._ended_state)
        except SandboxUnavailable as error:
            return Ending(f"the container is gone ({error})")
        if state["Running"]:
            return Ending("its first process has closed the line")
        if state.get("OOMKilled"):
            return Ending("the container was out of memory", out_of_memory=True)
        words = state.get("Error") or f"status {state.get('ExitCode')}"
        return Ending(f"the container has ended ({words})")

    def _ended_state(self) -> dict[str, Any]:
        deadline = time.monotonic() + ENDING_TIMEOUT
        while (state := self.state())["Running"] and time.monotonic() < deadline:
            time.sleep(ENDING_PAUSE)  # the daemon hears of it a moment after we do
        return state

    def state(self) -> dict[str, Any]:
        with daemon.translated():
            state: dict[str, Any] = self.client.inspect_container(self.container)["State"]
        return state

    def last_words(self) -> str:
        with contextlib.suppress(SandboxUnavailable), daemon.translated():
            said: bytes = self.client.logs(self.container, tail=5)
            lines = said.decode("utf-8", "replace").split("\n")
            return " / ".join(line.strip() for line in lines if line.strip())[-300:]
        return ""

    async def remove(self) -> None:
        if self._launching is not None and not self._launching.done():
            await asyncio.wait({self._launching}, timeout=REMOVAL_TIMEOUT)
            if self._launching.done():
                self._launching.exception()  # that it failed is no news any more
        remove = partial(_remove_container, self.client, self.container)
        if self._launching is None or await _in_time(remove, f"the container {self.container}"):
            self._give_back()  # nobody has that uid any more
        await asyncio.to_thread(self.folders.remove, self.name)


def _read_only(inside: str, outside: str | Path) -> dict[str, Any]:
    from docker.types import Mount

    made: dict[str, Any] = Mount(inside, str(Path(outside).resolve()), "bind", read_only=True)
    return made


def _writable(size: int) -> str:
    return f"rw,exec,nosuid,nodev,size={size},nr_inodes={layout.inodes_of(size)}"


def _introduce(folder: Path, uid: int) -> None:
    """Write the files that give the uid of this session its name."""
    for name, text in _ETC.items():
        (folder / name).write_text(text.replace(str(layout.UID), str(uid)))
        (folder / name).chmod(0o644)


async def _unless_it_ends(
    connecting: "asyncio.Future[socket.socket]", made: _Made
) -> socket.socket:
    """Wait until the container has connected, and no longer than it lives."""
    deadline = asyncio.get_running_loop().time() + START_TIMEOUT
    try:
        while not (await asyncio.wait({connecting}, timeout=1.0))[0]:
            state = await daemon.beside(made.state)
            late = asyncio.get_running_loop().time() > deadline
            if late or not state["Running"]:
                words = state.get("Error") or await daemon.beside(made.last_words)
                what = (
                    f"did not connect within {START_TIMEOUT:g} s"
                    if late
                    else "ended before it connected"
                )
                raise SandboxUnavailable(
                    f"the container {what}: {words or 'it said nothing'}. See `divingbell doctor`"
                )
        return connecting.result()
    finally:
        if not connecting.done():
            connecting.cancel()


async def _in_time(removal: Callable[[], object], what: str) -> bool:
    """Remove something; whether it is gone. Waits for a silent daemon, but not for ever."""
    try:
        async with asyncio.timeout(REMOVAL_TIMEOUT):
            await daemon.beside(removal)
        return True
    except (SandboxUnavailable, TimeoutError) as error:
        log.warning(
            "%s could not be removed (%s): the next start does it", what, str(error) or "no answer"
        )
        return False


def _remove_container(client: "APIClient", container: str) -> None:
    from docker.errors import APIError, NotFound

    try:
        with daemon.translated("removing a container"):
            client.remove_container(container, force=True, v=True)
    except SandboxUnavailable as refusal:
        error = refusal.__cause__
        being_removed = isinstance(error, APIError) and error.status_code == 409
        if not isinstance(error, NotFound) and not being_removed:
            raise


def remove_containers(client: "APIClient", host: str) -> None:
    """Remove all that are left of one host process."""
    with daemon.translated("listing containers"):
        left = client.containers(all=True, filters={"label": f"{LABEL}={host}"})
    for container in left:
        _remove_container(client, container["Id"])


def remove_leftovers(client: "APIClient", above: Path) -> int:
    """Remove the containers of host processes of this machine that are gone; return how many."""
    ours = {"label": [LABEL, f"{MACHINE_LABEL}={socket.gethostname()}"]}
    removed = 0
    for container in client.containers(all=True, filters=ours):
        folder = Path(container["Labels"][LABEL])
        if folder.parent == above and folders.is_left_over(folder):
            _remove_container(client, container["Id"])
            removed += 1
    return removed
