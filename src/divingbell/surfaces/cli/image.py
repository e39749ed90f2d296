"""`divingbell image`: make the root file system of containers, see what there is, clear it up."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from divingbell.errors import ConfigError, SandboxUnavailable
from divingbell.host import profile
from divingbell.host.holding import InUse
from divingbell.sandbox.contained import dockerfile, root
from divingbell.sandbox.docker import daemon, images
from divingbell.sandbox.gvisor import checkpoint, runsc
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import tell

if TYPE_CHECKING:
    from docker import APIClient

_ELSEWHERE = "elsewhere"
"""Docker has it and this folder of images does not: it is another one's, or was left behind."""


def build(settings: Settings, *, from_registry: bool) -> int:
    """Make the image, and give it to Docker where there is one.

    Raises:
        DivingbellError: it can't be made, or not in the way that was asked for.
    """
    if from_registry:  # only Docker can: it says so before half a minute has gone by
        daemon.connect().close()
    prepared = profile.prepare(settings.packages, progress=tell)
    made = root.prepare(prepared, tell)
    with _docker() as client:
        if client is None:
            print(f"{made.version}  {made.path}")
            return exit_status.OK
        with daemon.translated("making the image"):
            if from_registry:
                # Two at once would give Docker the same twice, one of them without a name.
                with root.locked(tell):
                    name = dockerfile.build(client, made.version, settings.packages, tell)
            else:
                name = images.provide(client, made, tell)
    print(f"{made.version}  {made.path}  {name}")
    return exit_status.OK


def show(settings: Settings) -> int:
    """List what there is, and what of it is stale."""
    found = root.listed(profile.find(settings.packages))
    with _docker() as client:
        with_docker = _versions(client)
    states = dict.fromkeys(with_docker, _ELSEWHERE) | {each.version: state for each, state in found}
    for version, state in sorted(states.items()):
        path = [] if state == _ELSEWHERE else [os.fspath(root.folder() / version)]
        print(
            "  ".join([version, state, *path, *([images.HOLDER] if version in with_docker else [])])
        )
    if "current" not in states.values():
        tell("there is no current one: run `divingbell image build`")
    return exit_status.OK


def prune(settings: Settings) -> int:
    """Remove what is stale, and nothing that a running Divingbell uses."""
    prepared = profile.find(settings.packages)
    with root.locked(tell), _docker() as client:
        with_docker, found = _versions(client), root.listed(prepared)
        for each, state in found:
            if state == "stale":
                _remove(each, client if each.version in with_docker else None)
            elif state == "current":
                _remove_checkpoints(each, settings.platform)
    for version in sorted(set(with_docker) - {each.version for each, _ in found}):
        tell(
            f"{version} was kept: it is of another DIVINGBELL_HOME, or was left by one; "
            f"`docker rmi {images.REPOSITORY}:{version}` removes it"
        )
    return exit_status.OK


def write_dockerfile(folder: Path, settings: Settings) -> int:
    """Write a Dockerfile and what it needs.

    Raises:
        ConfigError: the folder can't be written to.
    """
    try:
        dockerfile.write(folder, settings.packages)
    except OSError as error:
        raise ConfigError(f"{folder} can't be written: {error.strerror or error}") from None
    prepared = profile.find(settings.packages)
    current = root.find(prepared) if prepared else None
    if current is None:
        tell("the name of the image is not known yet: run `divingbell image build`, then this")
    version = current.version if current else "VERSION"
    print(f"docker build --tag {images.REPOSITORY}:{version} {folder}")
    return exit_status.OK


def _remove_checkpoints(current: root.Root, platform: str) -> None:
    """Remove what this runsc can't use; the checkpoints of other images go with theirs."""
    try:
        stale = checkpoint.stale(current, runsc.find(platform))
    except runsc.NoRunsc:  # it may come back, and nobody else can tell
        return
    if not stale:
        return
    try:
        with root.unused(current):
            for each in stale:
                checkpoint.remove(each)
                print(f"removed {each.path}")
    except InUse:  # with another platform, for one, what is stale to us is not to them
        tell(f"checkpoints of {current.version} were kept: a Divingbell that runs uses it")


def _remove(stale: root.Root, client: "APIClient | None") -> None:
    """Remove a root, and first the image of it that Docker has; say why if one is kept."""
    try:
        with root.removing(stale):
            if client is not None:
                with daemon.translated():
                    images.remove(client, stale.version)
                print(f"removed {images.REPOSITORY}:{stale.version}")
        print(f"removed {stale.path.parent}")
    except InUse:
        tell(f"{stale.version} was kept: a Divingbell that runs uses it")
    except SandboxUnavailable as error:
        tell(f"{stale.version} was kept: {error}")


@contextmanager
def _docker() -> "Iterator[APIClient | None]":
    client = None
    try:
        client = daemon.connect()
    except daemon.NoDocker as error:
        tell(f"without Docker: {error}")
    try:
        yield client
    finally:
        if client is not None:
            client.close()


def _versions(client: "APIClient | None") -> list[str]:
    if client is None:
        return []
    with daemon.translated():
        return images.versions(client)
