"""Which libraries of the system go into a root; files of packages are only read for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.host import profile
from divingbell.promises.check.packages import shared_object
from divingbell.sandbox.contained import libraries


def test_names_are_read_from_a_real_file() -> None:
    [program] = {Path(sys.executable).resolve()}
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    names = libraries.needed(program)
    assert names and all(name in listed for name in names)


def test_what_packages_need_of_the_system_is_found_without_a_look_at_them_by_the_loader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "trap.so"
    file.write_bytes(shared_object(("libm.so.6", "../trap.so", "libnowhere.so.1")))
    asked: list[object] = []
    run = subprocess.run

    def note(command: list[object], **more: object) -> object:
        asked.extend([*command, more["env"]])
        return run(command, **more)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "run", note)
    program = profile.prepare().base_python
    found = libraries.of_strangers([file], program)
    assert any(path.name == "libm.so.6" for path in found)
    assert asked and str(tmp_path) not in str(asked)


def test_the_default_profile_gets_all_that_ldd_would_name() -> None:
    """These packages are locked, so that `ldd` may look at them for once."""
    prepared = profile.prepare()
    objects = [path for path in prepared.path.rglob("*.so*") if not path.is_symlink()]
    with_loader = libraries.of_our_own([*objects, prepared.base_python])
    read = libraries.of_strangers(objects, prepared.base_python)
    assert with_loader <= read | libraries.of_our_own([prepared.base_python])


@pytest.mark.parametrize(
    "content", [b"", b"\x7fELF", b"\x7fELF\x02\x01" + b"\xff" * 100, b"#!/bin/sh"]
)
def test_what_is_no_shared_object_needs_nothing(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "file.so"
    file.write_bytes(content)
    assert libraries.needed(file) == set()
    assert libraries.needed(tmp_path / "nowhere") == set()


def test_no_byte_of_it_can_make_the_reader_fail(tmp_path: Path) -> None:
    whole = shared_object(("libm.so.6", "libc.so.6"))
    file = tmp_path / "file.so"
    for at in range(len(whole)):
        for byte in (0x00, 0x7F, 0xFF):
            file.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            libraries.needed(file)
        file.write_bytes(whole[:at])
        libraries.needed(file)
