"""`divingbell image`: make the root file system of containers, see what there is, clear it up."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell import profile
from divingbell.app import Divingbell
from divingbell.config import Settings
from divingbell.errors import SandboxUnavailable
from divingbell.sandbox.contained import dockerfile, root
from divingbell.sandbox.docker import daemon, images
from divingbell.sandbox.gvisor import checkpoint, runsc
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.options import HostOptions
from divingbell.surfaces.cli.printing import NOTE

if TYPE_CHECKING:
    from docker import APIClient


def build(options: HostOptions, *, from_registry: bool) -> int:
    """Make the image, and give it to Docker where there is one."""
    settings = _settings(options)
    prepared = profile.prepare(settings.packages, progress=_tell)
    made = root.prepare(prepared, _tell)
    client = _docker()
    if client is None:
        print(f"{made.version}  {made.path}")
        return exit_status.OK
    with daemon.translated("making the image"):
        if from_registry:
            name = dockerfile.build(client, made.version, settings.packages, _tell)
        else:
            name = images.provide(client, made, _tell)
    print(f"{made.version}  {made.path}  {name}")
    return exit_status.OK


def show(options: HostOptions) -> int:
    """List what there is, and what of it is stale."""
    prepared = profile.prepare(_settings(options).packages, progress=_tell)
    current = root.find(prepared)
    client = _docker()
    with_docker = images.versions(client) if client is not None else []
    names = {each.version for each in root.stale(prepared)} | set(with_docker)
    for version in sorted(names | ({current.version} if current else set())):
        state = "current" if current and version == current.version else "stale"
        where = [*_folders(version), *(["docker"] if version in with_docker else [])]
        print(f"{version}  {state}  {' '.join(where)}")
    if current is None:
        _tell("there is no current one: run `divingbell image build`")
    return exit_status.OK


def prune(options: HostOptions) -> int:
    """Remove what is stale."""
    settings = _settings(options)
    prepared = profile.prepare(settings.packages, progress=_tell)
    current = root.find(prepared)
    for each in root.stale(prepared):
        root.remove(each)
        print(f"removed {each.path.parent}")
    for old in _stale_checkpoints(current, settings.platform):
        checkpoint.remove(old)
        print(f"removed {old.path}")
    if (client := _docker()) is not None:
        for version in images.versions(client):
            if current is None or version != current.version:
                try:
                    with daemon.translated():
                        images.remove(client, version)
                    print(f"removed {images.REPOSITORY}:{version}")
                except SandboxUnavailable as error:
                    _tell(f"{version} was kept: {error}")
    return exit_status.OK


def write_dockerfile(folder: Path, options: HostOptions) -> int:
    """Write a Dockerfile and what it needs."""
    dockerfile.write(folder, _settings(options).packages)
    print(f"docker build --tag {images.REPOSITORY}:VERSION {folder}")
    return exit_status.OK


def _settings(options: HostOptions) -> Settings:
    return Divingbell(**options.settings()).settings


def _folders(version: str) -> list[str]:
    path = root.folder() / version
    return [os.fspath(path)] if path.exists() else []


def _stale_checkpoints(current: root.Root | None, platform: str) -> list[checkpoint.Checkpoint]:
    """Those of the image that is current; the others go with theirs."""
    try:
        return checkpoint.stale(current, runsc.find(platform)) if current else []
    except runsc.NoRunsc:  # it may come back, and nobody else can tell
        return []


def _docker() -> "APIClient | None":
    try:
        return daemon.connect()
    except daemon.NoDocker as error:
        _tell(f"without Docker: {error}")
        return None


def _tell(line: str) -> None:
    print(NOTE + line, file=sys.stderr, flush=True)
