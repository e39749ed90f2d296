"""The image from a Dockerfile. No registry can be reached here: bases are local ones."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from divingbell import SandboxUnavailable
from divingbell.host.profile import FONTS
from divingbell.sandbox.contained import dockerfile
from divingbell.sandbox.docker import daemon
from tests.walls import DOCKER, need

if TYPE_CHECKING:
    from docker import APIClient

VERSION = "test-of-dockerfile"
NAME = f"{dockerfile.REPOSITORY}:{VERSION}"


@pytest.fixture
def client() -> "Iterator[APIClient]":
    need(DOCKER)
    client = daemon.connect()
    yield client
    for image in client.images(NAME):
        client.remove_image(image["Id"], force=True)
    client.close()


def _ids(client: "APIClient", name: str | None = None) -> set[str]:
    return {image["Id"] for image in client.images(name)}


def test_without_a_registry_it_says_what_to_do_instead(
    client: "APIClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dockerfile, "PYTHON", "registry.invalid/python:3")
    with pytest.raises(SandboxUnavailable) as caught:
        dockerfile.build(client, VERSION, (), lambda line: None)
    assert "registry.invalid" in str(caught.value)
    assert "`divingbell image build` without --from-registry" in str(caught.value)
    assert not client.images(NAME)


@pytest.mark.parametrize("package", ["--index-url https://evil.example", "-r /x", "a\nb", "; rm"])
def test_a_package_is_never_written_as_an_option(tmp_path: Path, package: str) -> None:
    with pytest.raises(ValueError, match="is not a requirement"):
        dockerfile.write(tmp_path / "image", [package])
    assert not (tmp_path / "image").exists()


def test_a_step_that_fails_is_named(client: "APIClient", monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dockerfile, "text", lambda: "FROM scratch\nCOPY no /\n")
    with pytest.raises(SandboxUnavailable, match="Step 2/2"):
        dockerfile.build(client, VERSION, (), lambda line: None)
    assert not client.images(NAME)


def test_it_has_the_name_that_the_backend_looks_for_and_replaces_what_had_it(
    client: "APIClient", monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(dockerfile, "text", lambda: "FROM scratch\nCOPY extra.txt /\n")
    assert dockerfile.build(client, VERSION, ("one",), said.append) == NAME
    assert any(line.startswith("Step 1/2") for line in said)
    [first] = _ids(client, NAME)
    dockerfile.build(client, VERSION, ("two",), said.append)
    [second] = _ids(client, NAME)
    assert first != second and first not in _ids(client)


def test_it_comes_with_all_that_it_copies(tmp_path: Path) -> None:
    dockerfile.write(tmp_path, ["scikit-learn>=1.5"])
    text = (tmp_path / "Dockerfile").read_text()
    for line in text.splitlines():
        if line.startswith("COPY"):
            for name in line.split()[1:-1]:
                assert (tmp_path / name).exists(), name
    assert (tmp_path / "extra.txt").read_text() == "scikit-learn>=1.5\n"
    assert "--require-hashes" in text and FONTS.name in text
