"""`divingbell image`, as it is typed."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from divingbell.sandbox.contained import root
from divingbell.sandbox.docker import daemon, images
from divingbell.sandbox.gvisor import checkpoint, runsc
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli import image as image_command
from tests.walls import DOCKER, need

COMMAND = Path(sys.executable).with_name("divingbell")
PATIENCE = 120.0
VERSION = "0test0of0image00"
NOWHERE = "unix:///nowhere/docker.sock"
Image = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


@pytest.fixture
def image(tmp_path: Path, home: Path) -> Image:
    """Runs `divingbell image …` with a home of its own, without Docker unless that is wanted."""

    def run(*arguments: str, docker: bool = False) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "DIVINGBELL_HOME": str(home)}
        if not docker:
            environment["DOCKER_HOST"] = NOWHERE
        return subprocess.run(
            [COMMAND, "image", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    return run


@pytest.fixture
def with_docker() -> Iterator[Callable[[], bool]]:
    """Docker has an image of ours that is empty; tells whether it still has it."""
    need(DOCKER)
    client = daemon.connect()
    empty = io.BytesIO()
    tarfile.open(fileobj=empty, mode="w").close()
    client.import_image(src=empty.getvalue(), repository=images.REPOSITORY, tag=VERSION)
    yield lambda: VERSION in images.versions(client)
    if VERSION in images.versions(client):
        images.remove(client, VERSION)
    client.close()


def _stale(home: Path) -> root.Root:
    above = home / "images" / VERSION
    (above / root.FILES).mkdir(parents=True)
    (above / root.MARKER).write_text(json.dumps({"made_by": "another version"}))
    return root.Root(above / root.FILES, VERSION)


def test_where_there_is_nothing_looking_makes_nothing(image: Image, home: Path) -> None:
    done = image("list")
    assert done.returncode == exit_status.OK and done.stdout == ""
    assert "run `divingbell image build`" in done.stderr
    assert not (home / "profiles").exists()


def test_what_is_stale_is_listed_and_removed(image: Image, home: Path) -> None:
    stale = _stale(home)
    (home / "images" / root.BUILDING).mkdir()
    assert image("list").stdout.split() == [VERSION, "stale", str(stale.path.parent)]
    assert image("prune").stdout == f"removed {stale.path.parent}\n"
    assert os.listdir(home / "images") == [".lock"]


def test_what_a_running_divingbell_uses_is_kept(
    image: Image, home: Path, with_docker: Callable[[], bool]
) -> None:
    stale = _stale(home)
    assert root._hold(stale)
    done = image("prune", docker=True)
    assert f"{VERSION} was kept: a Divingbell that runs uses it" in done.stderr
    assert stale.path.exists() and with_docker()


def test_checkpoints_that_a_running_divingbell_may_use_are_kept(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    here = _stale(home)
    saved = home / "images" / VERSION / checkpoint.FOLDER / "one"
    saved.mkdir(parents=True)
    (saved / checkpoint.MARKER).write_text('{"program": "another runsc", "refusal": ""}')
    ours = runsc.Runsc("/bin/true", "1", "ptrace", ())
    monkeypatch.setattr(runsc, "find", lambda platform: ours)
    with root.unused(here):  # as any other process that holds it would
        image_command._remove_checkpoints(here, "auto")
    assert saved.exists() and "were kept" in capsys.readouterr().err
    image_command._remove_checkpoints(here, "auto")
    assert not saved.exists() and str(saved) in capsys.readouterr().out


def test_what_is_stale_goes_from_docker_too(
    image: Image, home: Path, with_docker: Callable[[], bool]
) -> None:
    stale = _stale(home)
    done = image("prune", docker=True)
    assert f"removed {images.REPOSITORY}:{VERSION}\n" in done.stdout
    assert not stale.path.exists() and not with_docker()


def test_images_of_others_are_kept_in_docker(image: Image, with_docker: Callable[[], bool]) -> None:
    listed = image("list", docker=True).stdout.splitlines()
    assert f"{VERSION}  elsewhere  docker" in listed
    done = image("prune", docker=True)
    assert done.returncode == exit_status.OK and with_docker()
    assert f"`docker rmi {images.REPOSITORY}:{VERSION}` removes it" in done.stderr


def test_a_registry_is_of_no_use_without_docker(image: Image, home: Path) -> None:
    done = image("build", "--from-registry")
    assert done.returncode == exit_status.UNAVAILABLE and done.stdout == ""
    assert NOWHERE in done.stderr and "apt-get install docker.io" in done.stderr
    assert not home.exists()  # and nothing was made before that was said


def test_a_dockerfile_is_written_where_that_is_possible(image: Image, tmp_path: Path) -> None:
    done = image("dockerfile", "here")
    assert done.returncode == exit_status.OK and (tmp_path / "here/Dockerfile").exists()
    assert "run `divingbell image build`" in done.stderr
    done = image("dockerfile", "/proc/nowhere")
    assert done.returncode == exit_status.USAGE and "/proc/nowhere can't be written" in done.stderr
