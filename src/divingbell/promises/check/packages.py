"""Packages of others: what of them runs on the host while a profile is made, and afterwards."""

import asyncio
import base64
import hashlib
import os
import struct
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

from divingbell.errors import ProfileError
from divingbell.host import installer
from divingbell.promises.check.rig import CheckRig, PromiseBroken, checks, expect
from divingbell.sandbox.contained import libraries

NAMESPACES = ("user", "mnt", "net", "ipc")


@checks("G20", alone=True)
async def hostile_wheel(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        return await asyncio.to_thread(_install_hostile_wheel, Path(name))


@checks("G22", alone=True)
async def hostile_surroundings_of_uv(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        for planted in ("uv.toml", "pyproject.toml"):
            Path(name, planted).write_text("[this is no TOML\n")
        os.environ["UV_COMPILE_BYTECODE"] = "1"
        try:
            return await asyncio.to_thread(_install_hostile_wheel, Path(name))
        except ProfileError as error:
            raise PromiseBroken(f"obeyed: {error}") from None
        finally:
            del os.environ["UV_COMPILE_BYTECODE"]


def _install_hostile_wheel(folder: Path) -> str:
    sprung = folder / "sprung"
    trap = f"import os; os.close(os.open({str(sprung)!r}, os.O_CREAT))\n"
    wheel = write_wheel(
        folder,
        {
            "trap.pth": trap,
            "sitecustomize.py": trap,
            "usercustomize.py": trap,
            "encodings/__init__.py": trap,
            "divingbell_trap-1.0.data/scripts/uv": f"#!/bin/sh\ntouch {sprung}\n",
            "divingbell_trap-1.0.data/data/pyvenv.cfg": f"home = {folder}/building/lib\n",
        },
    )
    _fill(folder, f"divingbell-trap @ {wheel.as_uri()}")
    [installed] = folder.glob("building/lib/python*/site-packages/trap.pth")
    compiled = [path.name.partition(".")[0] for path in installed.parent.glob("__pycache__/*.pyc")]
    expect("sitecustomize" in compiled, f"not compiled: {compiled}")
    expect(not sprung.exists(), "a file of the wheel has run on the host")
    return "it lies there, compiled, and has not run"


@checks("G21", alone=True)
async def package_to_be_built(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        source, sprung = Path(name, "trap"), Path(name, "sprung")
        source.mkdir()
        build = '[build-system]\nrequires = []\nbuild-backend = "trap"\nbackend-path = ["."]\n'
        (source / "pyproject.toml").write_text(build)
        (source / "trap.py").write_text(f"open({str(sprung)!r}, 'w').close()\n")
        try:
            await asyncio.to_thread(_fill, Path(name), str(source))
        except ProfileError:
            expect(not sprung.exists(), "its build has begun")
            return "refused"
    raise PromiseBroken("it was installed")


def _fill(folder: Path, requirement: str) -> None:
    (folder / "lock.txt").touch()
    building = folder / "building"
    building.mkdir()
    base = Path(getattr(sys, "_base_executable", None) or sys.executable).resolve()
    installer.fill(building, base, folder / "lock.txt", [requirement], lambda line: None)


def write_wheel(folder: Path, files: Mapping[str, str]) -> Path:
    """Write the wheel of a package `divingbell-trap` that is made of these files."""
    information = "divingbell_trap-1.0.dist-info"
    files = {
        **files,
        f"{information}/METADATA": "Metadata-Version: 2.1\nName: divingbell-trap\nVersion: 1.0\n",
        f"{information}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, text in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).decode()
        record += f"{path},sha256={digest.rstrip('=')},{len(text)}\n"
    wheel = folder / "divingbell_trap-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{information}/RECORD", f"{record}{information}/RECORD,,\n")
    return wheel


@checks("G23")
async def walls_of_the_zygote(rig: CheckRig) -> str:
    zygote = rig.zygote
    if zygote is None:
        return "there is none: the interpreter of each session starts in its container"
    await zygote.start()
    pid = zygote.pid
    for name in NAMESPACES:
        shared = os.readlink(f"/proc/{pid}/ns/{name}") == os.readlink(f"/proc/self/ns/{name}")
        expect(not shared, f"the zygote is in the host's namespace {name}")
    inside = Path(f"/proc/{pid}/uid_map").read_text().split()
    expect(os.geteuid() != 0 or inside[1] != "0", "the zygote is root of the host")
    return f"namespaces of its own: {', '.join(NAMESPACES)}"


@checks("G27")
async def hostile_shared_object(rig: CheckRig) -> str:
    with tempfile.TemporaryDirectory(prefix="divingbell-") as name:
        file = Path(name, "trap.so")
        names = ("../../trap.so", "/tmp/trap.so", "$ORIGIN/trap.so", "a b", "x" * 500, "libc.so.6")
        file.write_bytes(shared_object(names))
        found = libraries.needed(file)
        expect(found == {"libc.so.6"}, f"names that came of it: {found}")
        for count, length in ((0xFFFF, 64), (2, 1 << 62), (2, 1 << 40)):
            file.write_bytes(shared_object(names, count, length))
            expect(libraries.needed(file) <= {"libc.so.6"}, "read past its tables")
    return "one plain name of six"


def shared_object(names: tuple[str, ...], count: int = 2, length: int | None = None) -> bytes:
    """A file of 64 bits that asks for libraries, and says that its tables are so large."""
    strings = b"\0" + b"".join(name.encode() + b"\0" for name in names)
    offsets = [strings.index(name.encode() + b"\0") for name in names]
    dynamic = b"".join(struct.pack("<qQ", 1, offset) for offset in offsets)
    dynamic += struct.pack("<qQ", 5, 4096)
    at = 64 + 2 * 56
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 3, 62, 1, 0, 64, 0, 0, 64, 56, count, 0, 0, 0)
    size = len(dynamic) if length is None else length
    segments = struct.pack("<IIQQQQQQ", 2, 6, at, 0, 0, size, size, 8)
    start = at + len(dynamic)
    segments += struct.pack("<IIQQQQQQ", 1, 6, start, 4096, 0, len(strings), len(strings), 8)
    return header + segments + dynamic + strings
