"""A Dockerfile for the same root file system, for those who can reach a registry."""

import contextlib
import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from divingbell.errors import SandboxUnavailable
from divingbell.host import requirements
from divingbell.host.profile import DEFAULT_LOCK, FONTS, Progress
from divingbell_inside import layout

if TYPE_CHECKING:
    from docker import APIClient

REPOSITORY = "divingbell"
PYTHON = "python:3.11-slim-bookworm"

_TEXT = """\
# Made by `divingbell image dockerfile`.
FROM {python}
RUN apt-get update \\
 && apt-get install --yes --no-install-recommends procps file less \\
 && rm -rf /var/lib/apt/lists/*
COPY lock.txt extra.txt /tmp/
RUN python -m venv {profile} \\
 && {profile}/bin/pip install --no-cache-dir --only-binary :all: --require-hashes \\
      -r /tmp/lock.txt \\
 && {profile}/bin/pip install --no-cache-dir --only-binary :all: -r /tmp/extra.txt \\
 && find / -xdev -perm /6000 -type f -exec chmod a-s {{}} + \\
 && rm -rf /tmp/*
COPY {fonts} {profile}/cache/matplotlib/
COPY divingbell_inside {inside}/divingbell_inside
# With the packages in it, the interpreter of the profile runs in sessions only.
RUN python -I -S -m compileall -q --invalidation-mode unchecked-hash {inside} \\
 && mkdir -p {places} && chmod 1777 /tmp /dev/shm
"""


def text() -> str:
    places = (layout.SOCKET_FOLDER, layout.WORKSPACE, layout.HOME, layout.SERVERS)
    return _TEXT.format(
        python=PYTHON,
        profile=layout.PROFILE,
        inside=layout.INSIDE,
        fonts=FONTS.name,
        places=" ".join(places),
    )


def write(folder: Path, packages: Sequence[str]) -> None:
    """Write the Dockerfile and all that it copies.

    Raises:
        ValueError: a package is no requirement. pip would read it as an option.
        OSError: the folder can't be written to.
    """
    lines = [f"{package}\n" for package in requirements.checked(packages)]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "Dockerfile").write_text(text())
    (folder / "extra.txt").write_text("".join(lines))
    shutil.copy(DEFAULT_LOCK, folder / "lock.txt")
    shutil.copy(FONTS, folder)
    inside = Path(__file__).resolve().parents[3] / "divingbell_inside"
    shutil.copytree(
        inside,
        folder / "divingbell_inside",
        ignore=shutil.ignore_patterns("__pycache__"),
        dirs_exist_ok=True,
    )


def build(client: "APIClient", version: str, packages: Sequence[str], report: Progress) -> str:
    """Build the image from the registry, under the version that the backend looks for.

    Raises:
        SandboxUnavailable: it could not be built; the message has the daemon's words.
    """
    name = f"{REPOSITORY}:{version}"
    before = _ids(client, name)
    with TemporaryDirectory() as folder:
        write(Path(folder), packages)
        step = ""
        for line in client.build(path=folder, tag=name, rm=True, forcerm=True, decode=True):
            if "error" in line:
                raise SandboxUnavailable(_refusal(line["error"].strip(), step))
            if words := str(line.get("stream", "")).strip():
                step = words if words.startswith("Step ") else step
                report(words)
    _forget(client, [image for image in before if image not in _ids(client, name)])
    return name


def _refusal(words: str, step: str) -> str:
    if step.startswith("Step 1/"):
        return (
            f"Docker gets no {PYTHON} from a registry ({words}): run `divingbell image build` "
            "without --from-registry, which makes the image from this machine"
        )
    return f"docker build, {step.partition(' : ')[0] or 'before its first step'}: {words}"


def _ids(client: "APIClient", name: str) -> list[str]:
    return [image["Id"] for image in client.images(name)]


def _forget(client: "APIClient", images: Sequence[str]) -> None:
    """Remove images that have just lost their name, unless a container uses them."""
    from docker.errors import APIError

    for image in images:
        with contextlib.suppress(APIError):
            client.remove_image(image)
