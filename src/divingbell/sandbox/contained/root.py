"""The root file system of containers: Python, the profile and the usual programs, and no more.

It is made from this machine, without a registry: the interpreter that the profile was made from,
the profile, programs of the system, and every library that one of them needs. A root is named by
what is in it and never changed. One whose origins have changed since is stale: another is made.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterable, Iterator
from compileall import compile_dir
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode

from divingbell import profile
from divingbell.errors import SandboxUnavailable
from divingbell.profile import Profile, Progress
from divingbell_inside import layout

FORMAT = 1
"""Raised when a root of the same content is to be made in another way."""
MARKER = "root.json"
FILES = "files"
PACKAGES = (
    "coreutils", "bash", "dash", "grep", "sed", "findutils", "mawk", "tar", "gzip", "diffutils",
    "procps", "hostname", "file", "less", "util-linux", "libc-bin",
)  # fmt: skip
"""The Debian packages whose programs are in it."""
PROGRAMS = (
    "sh", "bash", "ls", "cat", "cp", "mv", "rm", "mkdir", "rmdir", "ln", "touch", "chmod", "head",
    "tail", "sort", "uniq", "wc", "cut", "tr", "tee", "env", "echo", "printf", "true", "false",
    "test", "sleep", "date", "grep", "sed", "awk", "find", "xargs", "tar", "gzip", "diff", "ps",
    "kill", "id", "uname", "stat", "du", "df", "ldconfig",
)  # fmt: skip
"""Those that are looked for where there is no dpkg."""
_DATA = (
    "/usr/share/zoneinfo", "/usr/share/fonts", "/etc/fonts", "/usr/lib/locale/C.utf8",
    "/etc/mime.types", "/usr/share/misc/magic.mgc", "/usr/lib/file",
    "/usr/share/terminfo", "/lib/terminfo",
)  # fmt: skip
_LEFT_OUT = (
    "site-packages", "test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "config-*",
    "lib2to3",
)  # fmt: skip
_FOLDERS = ("proc", "sys", "dev", "etc", "tmp", "root", "run", "var/tmp", layout.DOOR_FOLDER)
_PLACES = (*layout.WRITABLE.values(), layout.SERVERS)
_LIBRARY = re.compile(r"(?:=>\s*)?(/\S+)\s+\(0x")
_LDD_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Root:
    """A whole root file system in a folder of the host."""

    path: Path
    version: str
    """Named after all that is in it."""


def folder() -> Path:
    return profile.home() / "images"


def find(prepared: Profile) -> Root | None:
    """The root for this profile, None if there is none that is current."""
    wanted = _key(prepared)
    for marker in _markers():
        content = _read(marker)
        if content.get("key") == wanted and _is_current(content):
            return _root(marker)
    return None


def exists() -> bool:
    """Whether there is any, current or not."""
    return bool(_markers())


def stale(prepared: Profile) -> list[Root]:
    """Roots that were made for something else, or of what has changed since."""
    current = find(prepared)
    found = [_root(marker) for marker in _markers()]
    return [root for root in found if root != current]


def prepare(prepared: Profile, progress: Progress | None = None) -> Root:
    """Return the root for this profile, making it where there is none. Blocks for half a minute.

    Raises:
        SandboxUnavailable: it can't be made.
    """
    report = progress or (lambda line: None)
    try:
        if root := find(prepared):
            return root
        above = folder()
        above.mkdir(parents=True, exist_ok=True)
        with profile.locked(above / ".lock", report):
            return find(prepared) or _build(above, prepared, report)
    except OSError as error:
        raise SandboxUnavailable(
            f"the root file system can't be made in {folder()}: {error}. Free some space there, "
            "or set DIVINGBELL_HOME to another folder"
        ) from error


def remove(root: Root) -> None:
    shutil.rmtree(root.path.parent, ignore_errors=True)


def _root(marker: Path) -> Root:
    return Root(marker.parent / FILES, marker.parent.name)


def _markers() -> list[Path]:
    return sorted(folder().glob(f"*/{MARKER}"))


def _read(marker: Path) -> dict[str, object]:
    try:
        content = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_current(content: dict[str, object]) -> bool:
    origins = content.get("origins")
    return isinstance(origins, dict) and all(
        _fingerprint(Path(path)) == known for path, known in origins.items()
    )


def _fingerprint(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "gone"
    return f"{found.st_size}-{found.st_mtime_ns}"


def _inside() -> Path:
    return Path(__file__).resolve().parents[3] / "divingbell_inside"


def _key(prepared: Profile) -> str:
    """What was asked for; what became of it also depends on the files of the machine."""
    parts: list[object] = [FORMAT, str(prepared.path), str(prepared.base_python), layout.ETC]
    for path in sorted(_inside().rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            parts.append((path.name, hashlib.sha256(path.read_bytes()).hexdigest()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _build(above: Path, prepared: Profile, report: Progress) -> Root:
    building = above / ".building"
    shutil.rmtree(building, ignore_errors=True)
    report("making the root file system for containers, once")
    try:
        origins = _fill(building / FILES, prepared)
        content = {"key": _key(prepared), "origins": origins}
        text = json.dumps(content, sort_keys=True)
        (building / MARKER).write_text(text)
        version = hashlib.sha256(text.encode()).hexdigest()[:16]
        (building / FILES).chmod(0o755)
        shutil.rmtree(above / version, ignore_errors=True)
        building.rename(above / version)
    finally:
        shutil.rmtree(building, ignore_errors=True)
    report(f"made it in {above / version}")
    return Root(above / version / FILES, version)


def _fill(root: Path, prepared: Profile) -> dict[str, str]:
    """Fill the folder; return the files of the system that went in, with their fingerprints."""
    for name in (*_FOLDERS, *_PLACES):
        (root / name.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            (root / path.readlink().as_posix().lstrip("/")).mkdir(parents=True, exist_ok=True)
            (root / name).symlink_to(path.readlink())
    for name in ("tmp", "var/tmp", "dev/shm"):
        (root / name).chmod(0o1777)  # Docker gives a tmpfs the mode of what it is mounted on
    for name, text in layout.ETC.items():
        (root / "etc" / name).write_text(text)
    programs = list(_programs())
    python = _interpreter(root, prepared)
    needing = [*programs, *python, *_shared_objects(prepared.path)]
    system = {*programs, *_libraries(needing)}
    for path in sorted(system):
        _copy(path, root)
    for data in _DATA:
        _copy_tree(Path(data), root)
    shutil.copytree(
        prepared.path, root / layout.PROFILE.lstrip("/"), symlinks=True, copy_function=_link
    )
    inside = root / layout.INSIDE.lstrip("/") / "divingbell_inside"
    shutil.copytree(_inside(), inside, ignore=shutil.ignore_patterns("__pycache__"))
    # By content, not by time: a time may change on the way into an image.
    compile_dir(
        str(inside),
        quiet=2,
        stripdir=str(root),
        prependdir="/",
        invalidation_mode=PycInvalidationMode.UNCHECKED_HASH,
    )
    _make_readable(inside)
    _link_libraries(root)
    return {str(path): _fingerprint(path) for path in sorted({*system, prepared.base_python})}


def _programs() -> Iterator[Path]:
    """The programs of the system that go in, none of which gives privileges there."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(
            ["dpkg-query", "--listfiles", *PACKAGES], capture_output=True, text=True, timeout=60
        ).stdout.split("\n")
        found = [Path(line) for line in listed if re.fullmatch(r"(/usr)?/s?bin/[^/]+", line)]
        if found:
            names = {"awk", "pager", "which"}
            found += [Path(path) for name in names if (path := shutil.which(name))]
            yield from (path for path in found if path.is_file())
            return
    yield from (Path(path) for name in PROGRAMS if (path := shutil.which(name)))


def _interpreter(root: Path, prepared: Profile) -> list[Path]:
    """Copy Python itself; return what of it needs libraries."""
    base = prepared.base_prefix
    major, minor = prepared.version.split(".")[:2]
    library = base / "lib" / f"python{major}.{minor}"
    shutil.copytree(
        library,
        root / str(library).lstrip("/"),
        symlinks=True,
        ignore=shutil.ignore_patterns(*_LEFT_OUT),
        dirs_exist_ok=True,
    )
    shared = list((base / "lib").glob(f"libpython{major}.{minor}.so*"))
    programs = [prepared.base_python, prepared.base_python.resolve(), *shared]
    for path in programs:
        _copy(path, root)
    # On the way to it every folder must be open to a session's uid.
    for path in (root / str(library).lstrip("/")).parents:
        if path == root.parent:
            break
        path.chmod(0o755)
    return [*programs, *_shared_objects(library / "lib-dynload")]


def _shared_objects(above: Path) -> list[Path]:
    return [path for path in above.rglob("*.so*") if path.is_file() and not path.is_symlink()]


def _libraries(needing: Iterable[Path]) -> set[Path]:
    """Every library of the system that one of these needs, and the loader."""
    found: set[Path] = set()
    objects = sorted({path.resolve() for path in needing if _is_elf(path)})
    for start in range(0, len(objects), _LDD_AT_ONCE):
        answer = subprocess.run(
            ["ldd", *objects[start : start + _LDD_AT_ONCE]],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=300,
        ).stdout
        found |= {Path(path) for path in _LIBRARY.findall(answer)}
    # Their own libraries packages bring along.
    system = (
        Path("/lib"),
        Path("/lib64"),
        Path("/usr/lib"),
        Path("/usr/lib64"),
        Path("/usr/local"),
    )
    return {path for path in found if any(path.is_relative_to(above) for above in system)}


def _is_elf(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def _copy(path: Path, root: Path) -> None:
    """Copy a file with the links that lead to it."""
    for _ in range(10):
        target = _place(path, root)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink():
            break
        if not target.is_symlink() and not target.exists():
            target.symlink_to(path.readlink())
        path = path.parent / path.readlink()
    if path.is_file() and not target.exists():
        shutil.copy2(path, target)
        target.chmod(0o755 if path.stat().st_mode & stat.S_IXUSR else 0o644)


def _place(path: Path, root: Path) -> Path:
    """Where a file belongs; /bin and its like may be links."""
    return root / str(path.parent.resolve() / path.name).lstrip("/")


def _copy_tree(path: Path, root: Path) -> None:
    target = root / str(path.parent.resolve() / path.name).lstrip("/")
    if path.is_dir():
        shutil.copytree(path, target, symlinks=True, dirs_exist_ok=True, copy_function=_read_copy)
    elif path.is_file():
        _copy(path, root)


def _read_copy(source: str, target: str) -> None:
    # What only root may read is no business of a session.
    if os.path.islink(source) or os.stat(source).st_mode & stat.S_IROTH:
        shutil.copy2(source, target, follow_symlinks=False)


def _link(source: str, target: str) -> None:
    """A profile is never changed, so that its files need not be there twice."""
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _make_readable(above: Path) -> None:
    for path in (above, *above.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _link_libraries(root: Path) -> None:
    """Write the loader's list; without it a library in a folder of its own is not found."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(["ldconfig", "-r", root], capture_output=True, timeout=60)
