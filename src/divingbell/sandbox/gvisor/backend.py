"""The gvisor backend: one runsc sandbox a session, from a bundle on the prepared root."""

import asyncio
import contextlib
import os
import secrets
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from divingbell import logs
from divingbell.errors import SandboxUnavailable
from divingbell.host import beside, cgroups, folders, profile
from divingbell.models import Isolation, Limits
from divingbell.sandbox.base import Backend, BackendRequest
from divingbell.sandbox.contained import root
from divingbell.sandbox.contained.command import host_threads, own_memory
from divingbell.sandbox.contained.handshake import greet
from divingbell.sandbox.contained.sandbox import ContainedSandbox, Ending
from divingbell.sandbox.contained.socket import ContainerSocket
from divingbell.sandbox.gvisor import bundle, checkpoint, runsc
from divingbell_inside import layout

START_TIMEOUT = 120.0
STATE = "state"
SAVING_MEMORY, RESTORED_MEMORY = 256 << 20, 56 << 20
"""What it may take besides while it writes a checkpoint, and what it has left of reading one: an
idle session by restore was measured to hold 59 MB more than a cold one (`./dev bench walls`)."""

log = logs.logger("divingbell")


class GVisorBackend(Backend):
    """Sandboxes of runsc, each a kernel of its own, restored from a checkpoint where that works."""

    def __init__(self, request: BackendRequest) -> None:
        self._request = request
        self._settings = request.settings
        self._progress = request.progress
        self._folders: folders.HostFolders | None = None
        self._hierarchy: cgroups.Hierarchy | None = None
        self._runsc: runsc.Runsc
        self._root: root.Root

    async def start(self) -> None:
        try:
            await beside.run(self._start)
        except OSError as error:
            raise SandboxUnavailable(f"the gvisor backend can't start: {error}") from error
        try:
            await self._save(self._settings.limits)
        except OSError as error:
            log.warning("sessions start cold, because none can be saved: %s", error)

    def _start(self) -> None:
        settings = self._settings
        if settings.workspace != "memory":
            raise SandboxUnavailable(
                f"with the backend {self._request.name} a workspace is never on the host: "
                'set workspace = "memory", or choose another backend'
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
        profile.release(prepared)  # all of it is in there
        above = profile.home() / "bundles"
        remove_leftovers(self._runsc, above)
        self._folders = folders.HostFolders(above)
        (self._folders.path / STATE).mkdir()

    async def create(self, limits: Limits) -> ContainedSandbox:
        saved = checkpoint.find(self._root, self._key(limits))
        if saved is None or saved.refusal:
            return await self._create(limits)
        try:
            return await self._create(limits, saved.path)
        except SandboxUnavailable as error:
            sandbox = await self._create(limits)  # if this fails too, it is not the checkpoint
            log.warning("a restore failed, so that sessions start cold now: %s", error)
            with contextlib.suppress(OSError):
                saved.refuse(str(error))
            return sandbox

    async def _save(self, limits: Limits) -> None:
        """Have a warmed interpreter saved and restored, unless that was tried before.

        Raises:
            SandboxUnavailable: no session can be made at all, a cold one neither.
        """
        key = self._key(limits)
        if checkpoint.find(self._root, key) is not None:
            return
        with checkpoint.making(self._root, key) as folder:
            if folder is None:
                return
            self._progress("saving a warmed interpreter to start sessions from, once")
            refusal = ""
            try:
                async with self._making() as made:
                    line = await self._open(made, limits, save_in=folder)
                    line.close()
                trial = await self._create(limits, folder)
                await trial.stop()
            except SandboxUnavailable as error:
                refusal = str(error)
                cold = await self._create(limits)  # if this fails too, it is not the checkpoint
                await cold.stop()
                log.warning("sessions start cold, because none can be restored: %s", refusal)
            checkpoint.keep(self._root, key, self._runsc, refusal)

    async def _create(self, limits: Limits, saved: Path | None = None) -> ContainedSandbox:
        """Make a session, from what was saved in that folder, or cold."""
        assert self._hierarchy is not None
        async with self._making(keep=True) as made:
            line = await self._open(made, limits, saved)
        assert made.group is not None
        isolation = Isolation(
            backend=self._request.name,
            limits_by=f"cgroup v{self._hierarchy.version}",
            landlock=0,
            own_uid=False,
        )
        return ContainedSandbox(
            made.name, line, made.group, isolation, limits, made.ending, made.remove
        )

    @contextlib.asynccontextmanager
    async def _making(self, *, keep: bool = False) -> AsyncIterator["_Made"]:
        """Give what a container is made in; remove it if that fails, or if it is not to stay."""
        assert self._folders is not None
        made = _Made(self._runsc, self._folders, f"session-{secrets.token_hex(8)}")
        done = False
        try:
            yield made
            done = True
        except TimeoutError:
            raise SandboxUnavailable(
                f"gVisor did not get ready within {START_TIMEOUT:g} s: see `divingbell doctor`"
            ) from None
        except OSError as error:
            raise SandboxUnavailable(f"a container could not be made: {error}") from error
        finally:
            if not (done and keep):
                await asyncio.shield(made.remove())

    async def _open(
        self,
        made: "_Made",
        limits: Limits,
        saved: Path | None = None,
        *,
        save_in: Path | None = None,
    ) -> socket.socket:
        """Start or restore a container; return the line to it. With `save_in` it is saved."""
        assert self._hierarchy is not None
        memory = limits.memory + own_memory(in_gvisor=True)
        memory += SAVING_MEMORY if save_in else RESTORED_MEMORY if saved else 0
        allowed = replace(limits, processes=host_threads(limits.processes), memory=memory)
        made.group = self._hierarchy.create(made.name, allowed)
        folder = made.folders.path / made.folders.make(made.name, None)
        socket_folder = folder / "socket"
        socket_folder.mkdir()
        listening = ContainerSocket(socket_folder)
        try:
            if saved is not None:
                listening.leave_token()
            token = listening.token if saved is None else ""
            bundle.write(folder, self._describe(socket_folder, token, limits))
            async with asyncio.timeout(START_TIMEOUT):
                await asyncio.to_thread(made.launch, folder, saved)
                line = await listening.accept(made.contains)
                (folder / "config.json").unlink()
                try:
                    to_be_saved = save_in is not None
                    await greet(
                        line,
                        self._settings,
                        limits,
                        in_gvisor=True,
                        uid=layout.UID,
                        to_be_saved=to_be_saved,
                    )
                    if save_in is not None:
                        # It must hold no socket of the host any more: it closes the line.
                        await asyncio.get_running_loop().sock_recv(line, 1)
                        await asyncio.to_thread(made.save, save_in)
                except BaseException:
                    line.close()
                    raise
        finally:
            listening.close()
        return line

    def _describe(self, socket_folder: Path, token: str, limits: Limits) -> dict[str, Any]:
        shown: dict[str, str | Path] = dict(self._settings.mounts)
        if self._request.servers is not None:
            shown[layout.SERVERS] = self._request.servers
        return bundle.describe(self._root.path, socket_folder, token, limits, shown)

    def _key(self, limits: Limits) -> str:
        description = self._describe(Path(), "", limits)
        return checkpoint.key_of(self._runsc, description, self._settings.preload)

    async def stop(self) -> None:
        if self._folders is not None:
            await asyncio.to_thread(self._folders.close)
        if self._hierarchy is not None:
            await asyncio.to_thread(self._hierarchy.close)


class _Made:
    """The parts of one container, as far as they have been made."""

    def __init__(self, program: runsc.Runsc, host_folders: folders.HostFolders, name: str) -> None:
        self.folders = host_folders
        self.name = name
        self.group: cgroups.Group | None = None
        self._runsc = program
        self._state = host_folders.path / STATE

    def launch(self, folder: Path, saved: Path | None) -> None:
        assert self.group is not None
        entrances = self.group.entrances()
        try:
            how = ["run"] if saved is None else ["restore", f"--image-path={saved}"]
            command = [*how, "--detach", f"--bundle={folder}", self.name]
            self._runsc.run(self._state, command, entrances=entrances)
        finally:
            for entrance in entrances:
                os.close(entrance)

    def save(self, folder: Path) -> None:
        """Write all that it consists of into a folder, and end it."""
        self._runsc.run(self._state, ["checkpoint", f"--image-path={folder}", self.name])

    def contains(self, pid: int) -> bool:
        """Whether a process of this machine belongs to the container."""
        try:
            return f"{self.name}\n" in Path(f"/proc/{pid}/cgroup").read_text()
        except OSError:
            return False

    async def ending(self) -> Ending:
        """Return how the container has ended; the kernel has counted whom it killed for memory."""
        return Ending("gVisor's kernel for this session has ended")

    async def remove(self) -> None:
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        """End its processes, which is all that it consists of, and forget what runsc noted.

        `runsc delete --force` does the same, and waits for a second or two.
        """
        if self.group is not None:
            self.group.kill()
            try:
                self.group.remove()
            except OSError as error:
                log.warning("the control group of a session could not be removed: %s", error)
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
