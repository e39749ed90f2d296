"""The root file system as an image of the Docker daemon."""

import subprocess
from collections.abc import Iterator
from typing import TYPE_CHECKING

from divingbell.errors import SandboxUnavailable
from divingbell.host import beside
from divingbell.host.profile import Progress
from divingbell.sandbox.contained.root import Root, locked

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "divingbell"
HOLDER = "docker"
"""How lists of images name the daemon."""
IMPORT_TIMEOUT = 600
"""Seconds that the daemon may be silent about it."""


def name_of(root: Root) -> str:
    return f"{REPOSITORY}:{root.version}"


def versions(client: "APIClient") -> list[str]:
    """The versions that the daemon has."""
    tags = [tag for image in client.images(REPOSITORY) for tag in image.get("RepoTags") or ()]
    return sorted(tag.partition(":")[2] for tag in tags)


def provide(client: "APIClient", root: Root, report: Progress) -> str:
    """Return the name of the image with this root, importing it where the daemon lacks it.

    Raises:
        SandboxUnavailable: the daemon did not take it.
    """
    if root.version in versions(client):
        return name_of(root)
    with locked(report):
        # Whoever held the lock may have given it in the meantime.
        if root.version not in versions(client):
            _give(client, root, report)
    return name_of(root)


def _give(client: "APIClient", root: Root, report: Progress) -> None:
    report(f"giving the image {name_of(root)} to Docker, once")
    command = ["tar", "--create", "--numeric-owner", "--owner=0", "--group=0", "."]
    usual, client.timeout = client.timeout, IMPORT_TIMEOUT
    try:
        with (
            subprocess.Popen(
                command, cwd=root.path, stdout=subprocess.PIPE, process_group=0
            ) as packing,
            beside.ending(packing),
        ):
            answer = client.import_image(
                src=_pieces(packing),
                repository=REPOSITORY,
                tag=root.version,
                changes=[f"LABEL org.divingbell.version={root.version}"],
                stream_src=True,
            )
    finally:
        client.timeout = usual
    if root.version not in versions(client):
        raise SandboxUnavailable(f"Docker did not take the image: {str(answer)[-300:]}")


def _pieces(packing: "subprocess.Popen[bytes]") -> Iterator[bytes]:
    assert packing.stdout is not None
    while piece := packing.stdout.read(1 << 20):
        yield piece
    if packing.wait():  # before its end is told, so that the daemon never has half of it
        raise SandboxUnavailable(f"the image could not be packed: tar ended with {packing.wait()}")


def remove(client: "APIClient", version: str) -> None:
    client.remove_image(f"{REPOSITORY}:{version}")
