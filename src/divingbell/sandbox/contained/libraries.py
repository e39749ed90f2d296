"""The libraries of the system that programs and packages need.

What the system brings is asked about with `ldd`. Packages are strangers' files, and the loader is
made for files that are trusted: mapping one may run it. Those are read here, and only the names
that they ask for are given to the loader.
"""

import re
import struct
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO

TIMEOUT = 300.0
_AT_ONCE = 200
_SYSTEM = tuple(map(Path, ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local")))
_LIBRARY = re.compile(r"(?:=>\s*)?(/\S+)\s+\(0x")

MOST_SEGMENTS, MOST_ENTRIES, LONGEST_NAME = 256, 4096, 128
_START = b"\x7fELF\x02\x01"  # 64 bits, little-endian: both machines that there are images for
_HEADER = struct.Struct("<32xQ14xHH")
_SEGMENT = struct.Struct("<I4xQQ8xQ16x")
_ENTRY = struct.Struct("<qQ")
_LOAD, _DYNAMIC = 1, 2
_NEEDED, _STRINGS = 1, 5
_NAME = re.compile(rb"([A-Za-z0-9][\w.+-]*)\0")


def of_our_own(needing: Iterable[Path]) -> set[Path]:
    """Return every library of the system that one of its own files needs, and the loader."""
    found: set[Path] = set()
    objects = sorted({path.resolve() for path in needing if _is_elf(path)})
    for start in range(0, len(objects), _AT_ONCE):
        found |= _answered(["ldd", *objects[start : start + _AT_ONCE]])
    return found


def of_strangers(needing: Iterable[Path], program: Path) -> set[Path]:
    """Return every library of the system that one of these needs; the files are only read.

    `program` is one of ours: the loader says what it would load for it, and runs nothing.
    """
    found: set[Path] = set()
    names = sorted({name for path in needing for name in needed(path)})
    for start in range(0, len(names), _AT_ONCE):
        asked = " ".join(names[start : start + _AT_ONCE])
        found |= _answered([program], {"LD_TRACE_LOADED_OBJECTS": "1", "LD_PRELOAD": asked})
    return found


def _answered(command: list[str | Path], environment: dict[str, str] | None = None) -> set[Path]:
    answer = subprocess.run(
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=TIMEOUT,
    ).stdout
    found = {Path(path) for path in _LIBRARY.findall(answer)}
    # Their own libraries packages bring along.
    return {path for path in found if any(path.is_relative_to(above) for above in _SYSTEM)}


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def needed(path: Path) -> set[str]:
    """Return the plain names of the libraries that a file asks for; none if it is no such file."""
    try:
        with path.open("rb") as file:
            return _needed(file)
    except (OSError, ValueError, struct.error, OverflowError):
        return set()


def _needed(file: BinaryIO) -> set[str]:
    if file.read(len(_START)) != _START:
        return set()
    table, size, count = _HEADER.unpack(_read(file, 0, _HEADER.size))
    if size != _SEGMENT.size or count > MOST_SEGMENTS:
        return set()
    segments = list(_SEGMENT.iter_unpack(_read(file, table, size * count)))
    entries = [
        entry
        for kind, offset, _, length in segments
        if kind == _DYNAMIC and length <= MOST_ENTRIES * _ENTRY.size
        for entry in _ENTRY.iter_unpack(_read(file, offset, length // _ENTRY.size * _ENTRY.size))
    ]
    strings = next((value for tag, value in entries if tag == _STRINGS), 0)
    names = {value for tag, value in entries if tag == _NEEDED}
    # Strings are at an address: the segment that is loaded there says where in the file it is.
    for kind, offset, address, length in segments:
        if kind == _LOAD and address <= strings < address + length:
            at = offset + strings - address
            found = (_NAME.match(_read(file, at + name, LONGEST_NAME)) for name in names)
            return {match[1].decode() for match in found if match}
    return set()


def _read(file: BinaryIO, at: int, size: int) -> bytes:
    file.seek(at)
    return file.read(size)
