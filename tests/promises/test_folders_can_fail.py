"""The checks of folders and packages see it when what they check is taken away."""

import os
import re
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell import Divingbell
from divingbell.gateway.upstream.transport import orphan_groups
from divingbell.host import folders, installer, owned_folder
from divingbell.promises.check.self_check import check
from divingbell.sandbox.contained import libraries
from divingbell.sandbox.local import zygote


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=[]) as bell:
        yield bell


async def _broken(bell: Divingbell, *rows: str) -> set[str]:
    verdicts = [verdict async for verdict in check(bell, set(rows))]
    assert {verdict.promise.id for verdict in verdicts} == set(rows)
    return {verdict.promise.id for verdict in verdicts if not verdict.kept}


async def test_packages_that_run_on_the_host_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was: compiled by uv, in whatever environment and with whatever settings lie there."""
    run = installer._Runner.__call__

    def as_it_was(self, failure, command, arguments):  # type: ignore[no-untyped-def]
        swapped = {"--no-compile-bytecode": "--compile-bytecode", "--only-binary": "--no-binary"}
        if "--python" in command:
            command = [swapped.get(word, word) for word in command]
        run(self, failure, [word for word in command if word != "--no-config"], arguments)

    monkeypatch.setattr(installer._Runner, "__call__", as_it_was)
    monkeypatch.setattr(installer, "_clean_environment", lambda: dict(os.environ))
    assert await _broken(own_bell, "G20", "G21", "G22") == {"G20", "G21", "G22"}


async def test_folders_that_nobody_looks_at_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owned_folder, "_judge", lambda *_, **__: None)
    assert await _broken(own_bell, "G24", "G25") == {"G24", "G25"}


async def test_a_note_that_is_believed_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(orphan_groups, "_identity", lambda pid: "known")
    monkeypatch.setattr(orphan_groups.private_file, "read", lambda *_: b"known")
    assert await _broken(own_bell, "G25") == {"G25"}


async def test_a_link_that_is_followed_is_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def follow(name: Path, above: int | None = None) -> int:
        os.chmod(name, 0o700, dir_fd=above)
        return os.open(name, folders._FOLDER, dir_fd=above)

    monkeypatch.setattr(folders, "_open_up", follow)
    assert await _broken(own_bell, "G26") == {"G26"}


async def test_a_zygote_with_the_network_of_the_host_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inside = tmp_path / "divingbell_inside"
    shutil.copytree(zygote._STAGE_ONE.parent, inside)
    source = (inside / "root.py").read_text()
    (inside / "root.py").write_text(source.replace("| kernel.CLONE_NEWNET", ""))
    monkeypatch.setattr(zygote, "_STAGE_ONE", inside / "root.py")
    async with Divingbell(pool=0, preload=[]) as bell:
        assert await _broken(bell, "G23") == {"G23"}


async def test_names_that_are_paths_are_noticed(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(libraries, "_NAME", re.compile(rb"([^\0]*)\0"))
    assert await _broken(own_bell, "G27") == {"G27"}
