"""The local backend: checks the machine, keeps the zygote, hands out sandboxes."""

import asyncio
import contextlib
import itertools
import os
import platform
import socket
import sys
from functools import partial
from pathlib import Path

from divingbell.errors import SandboxUnavailable
from divingbell.host import beside, cgroups, folders, profile
from divingbell.host.kernel import ARCHITECTURES
from divingbell.host.uids import BLOCK, Uids
from divingbell.models import Isolation, Limits
from divingbell.sandbox.base import Backend, BackendRequest
from divingbell.sandbox.local import bytecode, view
from divingbell.sandbox.local.quotas import Inotify, Quotas
from divingbell.sandbox.local.refusal import check_walls
from divingbell.sandbox.local.sandbox import LocalSandbox
from divingbell.sandbox.local.zygote import Zygote, ZygoteDied

SPAWN_ATTEMPTS = 3


def check_platform(system: str = sys.platform, machine: str = platform.machine()) -> None:
    """Raise SandboxUnavailable where the local backend can't work at all."""
    if system != "linux":
        raise SandboxUnavailable(
            "the local backend needs Linux (namespaces, seccomp). "
            "Elsewhere a Linux virtual machine is the way"
        )
    if machine not in ARCHITECTURES:
        raise SandboxUnavailable(
            f"the local backend knows the system calls of {' and '.join(ARCHITECTURES)}, "
            f"not of {machine}"
        )


class LocalBackend(Backend):
    """Processes in namespaces of their own, cloned from one zygote."""

    zygote: Zygote | None = None

    def __init__(self, request: BackendRequest) -> None:
        check_platform()
        self._request = request
        self._settings = request.settings
        self._numbers = itertools.count(1)
        self._hierarchy: cgroups.Hierarchy | None = None
        self._prepared: profile.Profile | None = None
        self._uids: Uids | None = None
        self._folders: folders.Workspaces | None = None
        self.without_cgroups = "turned off in the settings"

    async def start(self) -> None:
        settings = self._settings
        await asyncio.to_thread(self._find_cgroups)
        self._prepared = prepared = await beside.run(self._prepare)
        await asyncio.to_thread(bytecode.provide, view.INSIDE)
        as_root = os.geteuid() == 0
        if as_root:
            self._uids = Uids(settings.uid_base, settings.uid_count)
        self._quotas = Quotas(settings.max_sessions + settings.pool, shared=not as_root)
        if settings.workspace != "memory":
            self._folders = folders.Workspaces(Path(settings.workspace))
        plan = view.plan(prepared, settings.mounts, self._request.servers).to_dict() | {
            "own_groups": as_root,
            # Who is charged for what the kernel counts by user: not root, who is the host.
            "owner": self._uids.first if self._uids else None,
            "memory_is_per_process": self._hierarchy is None,
            "host_folders": str(self._folders.path) if self._folders else None,
        }
        # Root gives the zygote a block of unprivileged uids; others have only their own.
        uid_map = f"0 {self._uids.first} {BLOCK}" if self._uids else "0 {me} 1"
        self.zygote = Zygote(
            prepared.base_python,
            plan,
            {
                "preload": settings.preload,
                "many": self._request.many,
                "own_groups": as_root,
                "memory_is_per_process": self._hierarchy is None,
            },
            uid_map,
        )
        await self.zygote.start()

    def _find_cgroups(self) -> None:
        try:
            if self._settings.cgroups != "off":
                self._hierarchy = cgroups.find()
        except cgroups.NoCgroups as reason:
            if self._settings.cgroups == "require":
                raise SandboxUnavailable(f'cgroups = "require", but {reason}') from None
            self.without_cgroups = str(reason)

    def _prepare(self) -> profile.Profile:
        packages = self._settings.packages
        if profile.find(packages) is None:
            # Downloading takes a minute, which shall not be for nothing.
            check_walls()
        return profile.prepare(packages, progress=self._request.progress)

    @property
    def limits_by(self) -> str:
        return f"cgroup v{self._hierarchy.version}" if self._hierarchy else "rlimits"

    async def create(self, limits: Limits) -> LocalSandbox:
        for _ in range(SPAWN_ATTEMPTS):
            with contextlib.suppress(ZygoteDied):
                return await self._create(limits)
        raise SandboxUnavailable(
            f"the zygote died {SPAWN_ATTEMPTS} times in a row; `divingbell doctor` may say why"
        )

    async def _create(self, limits: Limits) -> LocalSandbox:
        assert self.zygote is not None
        await self.zygote.start()
        with contextlib.ExitStack() as undo:
            uid = self._uids.take() if self._uids else 0
            if self._uids:
                undo.callback(self._uids.give_back, uid)
            name = f"session-{next(self._numbers)}"
            try:
                return await self._assemble(name, uid, limits, undo)
            except OSError as error:
                raise SandboxUnavailable(f"a session could not be made: {error}") from error

    async def _assemble(
        self, name: str, uid: int, limits: Limits, undo: contextlib.ExitStack
    ) -> LocalSandbox:
        """Put a sandbox together; `undo` is emptied when the sandbox has taken everything over."""
        assert self.zygote is not None
        inotify = self._quotas.take_inotify()
        undo.callback(self._quotas.give_back_inotify, inotify)
        folder = None
        if self._folders:
            folder = self._folders.make(name, self._uids.first + uid if self._uids else None)
            undo.callback(self._folders.remove, folder)
        tree = cgroups.ProcessTree([])
        group: cgroups.Group = tree
        if self._hierarchy:
            group = self._hierarchy.create(name, limits)
            undo.callback(group.remove)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Closing the line ends what may have been made: it waits there for its first word.
        undo.callback(ours.close)
        with theirs, contextlib.ExitStack() as doors:
            entrances = group.entrances()
            for entrance in entrances:
                doors.callback(os.close, entrance)
            request = {
                "uid": uid,
                "disk": limits.disk,
                "processes": limits.processes,
                "open_files": limits.open_files,
                "memory": limits.memory,
                "host_folder": folder,
                "pending_signals": self._quotas.pending_signals,
                "inotify": inotify,
            }
            asked = self.zygote.ask(request, [theirs.fileno(), *entrances])
            undo.callback(self.zygote.abandon, asked)
            pid = await self.zygote.answer(asked)
        tree.pids.append(pid)
        isolation = Isolation(
            backend=self._request.name,
            limits_by=self.limits_by,
            landlock=int(self.zygote.info.get("landlock", 0)),
            own_uid=self._uids is not None,
        )
        clean = partial(self._clean, uid, folder, inotify)
        made = LocalSandbox(pid, ours, group, isolation, limits, clean)
        undo.pop_all()
        return made

    def _clean(self, uid: int, folder: str | None, inotify: Inotify) -> None:
        self._quotas.give_back_inotify(inotify)
        if self._uids:
            self._uids.give_back(uid)
        if self._folders and folder:
            self._folders.remove(folder)

    def abandon(self) -> None:
        # Python ends the zygote's thread before this, and the kernel every session with it.
        if self._hierarchy:
            self._hierarchy.close()
        if self._folders:
            self._folders.close()

    async def stop(self) -> None:
        if self.zygote is not None:
            await self.zygote.stop()
        if self._hierarchy:
            await asyncio.to_thread(self._hierarchy.close)
        if self._folders:
            await asyncio.to_thread(self._folders.close)
        if self._prepared:
            profile.release(self._prepared)
        if self._uids:
            self._uids.close()
