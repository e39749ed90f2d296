"""The gvisor backend: one runsc sandbox a session, from a bundle on the prepared root."""

import asyncio
import contextlib
import logging
import os
import secrets
from dataclasses import replace
from pathlib import Path

from divingbell import profile
from divingbell.config import Settings
from divingbell.errors import SandboxUnavailable
from divingbell.models import Limits
from divingbell.sandbox.base import Backend, Isolation
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.command import OWN_MEMORY
from divingbell.sandbox.contained.door import Door
from divingbell.sandbox.contained.handshake import greet
from divingbell.sandbox.contained.sandbox import ContainedSandbox, Ending
from divingbell.sandbox.gvisor import bundle, runsc
from divingbell.sandbox.local import cgroups, folders
from divingbell_inside import layout

START_TIMEOUT = 120.0
STATE = "state"
HOST_THREADS_PER_PROCESS, OWN_THREADS = 4, 256
"""How many of the host's threads gVisor takes for a process inside, and for itself."""

log = logging.getLogger("divingbell")


class GVisorBackend(Backend):
    def __init__(
        self,
        settings: Settings,
        progress: profile.Progress | None = None,
        servers: Path | None = None,
    ) -> None:
        self._settings = settings
        self._progress = progress or (lambda line: None)
        self._servers = servers
        self._folders: folders.HostFolders | None = None
        self._hierarchy: cgroups.Hierarchy | None = None
        self._runsc: runsc.Runsc
        self._root: root.Root

    async def start(self) -> None:
        await asyncio.to_thread(self._start)

    def _start(self) -> None:
        settings = self._settings
        if settings.workspace != "memory":
            raise SandboxUnavailable(
                'workspace on the host is for the local backend: with gvisor it is "memory"'
            )
        self._runsc = runsc.find(settings.platform)
        try:
            self._hierarchy = cgroups.find()
        except cgroups.NoCgroups as reason:
            raise SandboxUnavailable(
                f"the gvisor backend can limit memory by control groups only, and {reason}"
            ) from None
        prepared = profile.prepare(settings.packages, progress=self._progress)
        self._root = root.prepare(prepared, self._progress)
        above = profile.home() / "bundles"
        remove_leftovers(self._runsc, above)
        self._folders = folders.HostFolders(above)
        self._folders.path.chmod(0o700)
        (self._folders.path / STATE).mkdir()

    async def create(self, limits: Limits) -> ContainedSandbox:
        assert self._folders is not None and self._hierarchy is not None
        made = _Made(self._runsc, self._folders, f"session-{secrets.token_hex(8)}")
        try:
            return await self._assemble(made, limits)
        except BaseException as error:
            await asyncio.shield(made.remove())
            if isinstance(error, OSError):
                raise SandboxUnavailable(f"a container could not be made: {error}") from error
            raise

    async def _assemble(self, made: "_Made", limits: Limits) -> ContainedSandbox:
        assert self._hierarchy is not None
        threads = limits.processes * HOST_THREADS_PER_PROCESS + OWN_THREADS
        allowed = replace(limits, processes=threads, memory=limits.memory + OWN_MEMORY["runsc"])
        made.group = group = self._hierarchy.create(made.name, allowed)
        folder = made.folders.path / made.folders.make(made.name, None)
        at_the_door = folder / "door"
        at_the_door.mkdir()
        door = Door(at_the_door)
        shown: dict[str, str | Path] = dict(self._settings.mounts)
        if self._servers is not None:
            shown[layout.SERVERS] = self._servers
        description = bundle.describe(self._root.path, at_the_door, door.token, limits, shown)
        bundle.write(folder, description)
        try:
            async with asyncio.timeout(START_TIMEOUT):
                await asyncio.to_thread(made.launch, folder)
                line = await door.admit(made.contains)
                (folder / "config.json").unlink()
                try:
                    await greet(line, self._settings, limits, in_gvisor=True, uid=layout.UID)
                except BaseException:
                    line.close()
                    raise
        except TimeoutError:
            raise SandboxUnavailable("gVisor did not get ready in time") from None
        finally:
            door.close()
        isolation = Isolation(
            backend="gvisor",
            limits_by=f"cgroup v{self._hierarchy.version}",
            landlock=0,
            own_uid=False,
        )
        return ContainedSandbox(made.name, line, group, isolation, limits, made.ending, made.remove)

    async def stop(self) -> None:
        if self._folders is not None:
            await asyncio.to_thread(self._folders.close)
        if self._hierarchy is not None:
            await asyncio.to_thread(self._hierarchy.close)


class _Made:
    """All that is made for one container, as far as it has been made."""

    def __init__(self, program: runsc.Runsc, host_folders: folders.HostFolders, name: str) -> None:
        self.folders = host_folders
        self.name = name
        self.group: cgroups.Group | None = None
        self._runsc = program
        self._state = host_folders.path / STATE

    def launch(self, folder: Path) -> None:
        assert self.group is not None
        entrances = self.group.entrances()
        try:
            command = ["run", "--detach", f"--bundle={folder}", self.name]
            self._runsc.run(self._state, command, entrances=entrances)
        finally:
            for entrance in entrances:
                os.close(entrance)

    def contains(self, pid: int) -> bool:
        """Whether a process of this machine belongs to the container."""
        try:
            return f"{self.name}\n" in Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return False

    async def ending(self) -> Ending:
        """How the container has ended; the kernel has counted whom it killed for memory."""
        return Ending("gVisor's kernel for this session has ended")

    async def remove(self) -> None:
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        """End its processes, which is all that it consists of, and forget what runsc noted.

        `runsc delete --force` does the same, and waits for a second or two.
        """
        if self.group is not None:
            self.group.kill()
            with contextlib.suppress(OSError):
                self.group.remove()
        for note in self._state.glob(f"{self.name}_*"):
            note.unlink(missing_ok=True)
        self.folders.remove(self.name)


def remove_leftovers(program: runsc.Runsc, above: Path) -> int:
    """End the containers of host processes that are gone; return how many.

    Their folders go when the folder of this process is made.
    """
    removed = 0
    for state in above.glob(f"*/{STATE}"):
        if not folders.is_left_over(state.parent):
            continue
        for found in state.glob("session-*"):
            name = found.name.partition("_")[0].removesuffix(".state").removesuffix(".lock")
            with contextlib.suppress(SandboxUnavailable):
                program.run(state, ["delete", "--force", name])
                removed += 1
    return removed
