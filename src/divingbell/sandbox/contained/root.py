"""The root file system of containers: Python, the profile and the usual programs, and no more.

It is made from this machine, without a registry: the interpreter that the profile was made from,
the profile, programs of the system, and every library that one of them needs. A root is named by
what is in it and never changed. One whose origins have changed since is stale: another is made.
A process that uses a root holds a lock on its folder for as long as it lives, so that nobody
removes what another has a use for.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Iterator
from compileall import compile_dir
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from py_compile import PycInvalidationMode
from typing import Literal

from divingbell.errors import SandboxUnavailable
from divingbell.host import beside, holding, owned_folder, profile
from divingbell.host.profile import Profile, Progress
from divingbell.sandbox.contained import libraries
from divingbell_inside import layout

FORMAT = 2
"""Raised when a root of the same content is to be made in another way."""
MARKER = "root.json"
FILES = "files"
BUILDING, REMOVING = ".building", ".removing"
"""What is not whole yet, or not any more; the next one to build or remove clears it up."""
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
_FOLDERS = ("proc", "sys", "dev", "etc", "tmp", "root", "run", "var/tmp", layout.SOCKET_FOLDER)
_PLACES = (*layout.WRITABLE.values(), layout.SERVERS)


@dataclass(frozen=True, slots=True)
class Root:
    """A whole root file system in a folder of the host."""

    path: Path
    version: str
    """Named after all that is in it."""


State = Literal["current", "other", "stale"]
"""current: what is asked for; other: as good, for other packages; stale: of no more use."""


def folder() -> Path:
    return profile.home() / "images"


def find(prepared: Profile) -> Root | None:
    """The root for this profile, None if there is none that is current."""
    maker = _maker()
    for marker in _markers():
        content = _read(marker)
        if content.get("profile") == str(prepared.path) and not _is_stale(content, maker):
            return _root(marker)
    return None


def listed(prepared: Profile | None) -> list[tuple[Root, State]]:
    """Every root that there is, and what it is to those who want this profile."""
    maker, current = _maker(), find(prepared) if prepared else None
    found = [(_root(marker), _is_stale(_read(marker), maker)) for marker in _markers()]
    return [
        (root, "current" if root == current else "stale" if stale else "other")
        for root, stale in found
    ]


def prepare(prepared: Profile, progress: Progress | None = None) -> Root:
    """Return the root for this profile, making it where there is none. Blocks for half a minute.

    It stays until this process ends, whatever others remove.

    Raises:
        SandboxUnavailable: it can't be made.
    """
    report = progress or (lambda line: None)
    try:
        if (root := find(prepared)) and _hold(root):
            return root
        with locked(report):
            root = find(prepared) or _build(folder(), prepared, report)
            _hold(root)
            return root
    except OSError as error:
        raise SandboxUnavailable(
            f"the root file system can't be made in {folder()}: {error}. Free some space there, "
            "or set DIVINGBELL_HOME to another folder"
        ) from error


@contextlib.contextmanager
def locked(report: Progress) -> Iterator[None]:
    """Be the only one who makes or removes images; others are waited for."""
    above = folder()
    owned_folder.make(above)
    with profile.locked(
        above / ".lock", lambda _: report("waiting for another process that works on the images")
    ):
        _clear_up(above)
        yield


def unused(root: Root) -> AbstractContextManager[None]:
    """A block in which nobody uses this root; the caller has all `locked`.

    Raises:
        InUse: a process that runs has a use for it.
    """
    return holding.unused(root.path.parent)


def removing(root: Root) -> AbstractContextManager[None]:
    """Remove a root when the block has ended, unless it fails; the caller has all `locked`.

    Raises:
        InUse: a process that runs has a use for it.
    """
    above = root.path.parent
    return holding.removing(above, above.with_name(f"{REMOVING}-{root.version}"))


def _hold(root: Root) -> bool:
    """Keep a root until this process ends; it may be asked for again and again."""
    above = root.path.parent
    held = holding.hold(above)
    if held and holding.times(above) > 1:
        holding.release(above)
    return held


def _clear_up(above: Path) -> None:
    """Remove what killed processes have left half done."""
    for kind in (BUILDING, REMOVING):
        for left in above.glob(f"{kind}*"):
            shutil.rmtree(left, ignore_errors=True)


def _root(marker: Path) -> Root:
    return Root(marker.parent / FILES, marker.parent.name)


def _markers() -> list[Path]:
    try:
        if not owned_folder.check(folder()):
            return []
    except NotADirectoryError:  # nothing can be below a file
        return []
    return sorted(folder().glob(f"[!.]*/{MARKER}"))  # those with a dot are not whole


def _read(marker: Path) -> dict[str, object]:
    try:
        content = json.loads(marker.read_bytes())
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def _is_stale(content: dict[str, object], maker: str) -> bool:
    origins = content.get("origins")
    return (
        content.get("made_by") != maker
        or not isinstance(origins, dict)
        or any(_fingerprint(Path(path)) != known for path, known in origins.items())
    )


def _fingerprint(path: Path) -> str:
    try:
        found = path.stat()
    except OSError:
        return "gone"
    return f"{found.st_size}-{found.st_mtime_ns}"


def _inside() -> Path:
    return Path(__file__).resolve().parents[3] / "divingbell_inside"


def _maker() -> str:
    """The parts of Divingbell itself that decide what becomes of the files of the machine."""
    parts: list[object] = [FORMAT, layout.ETC]
    for path in sorted(_inside().rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = str(path.relative_to(_inside()))
            parts.append((name, hashlib.sha256(path.read_bytes()).hexdigest()))
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _build(above: Path, prepared: Profile, report: Progress) -> Root:
    """Make it in a folder beside, and rename that: under its name it is whole or not there."""
    building = above / BUILDING
    report("making the root file system for containers, once: half a minute or so")
    try:
        owned_folder.make(building, 0o700)  # until it is whole, and has the modes that it should
        origins = _fill(building / FILES, prepared)
        content = {"made_by": _maker(), "profile": str(prepared.path), "origins": origins}
        text = json.dumps(content, sort_keys=True)
        (building / MARKER).write_text(text)
        version = hashlib.sha256(text.encode()).hexdigest()[:16]
        _set_modes(building)
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
        (root / "etc" / name).chmod(0o644)
    programs = list(_programs())
    python = _interpreter(root, prepared)
    packages = libraries.of_strangers(_shared_objects(prepared.path), prepared.base_python)
    system = {*programs, *libraries.of_our_own([*programs, *python]), *packages}
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
    origins = {*system, prepared.base_python, prepared.path / profile.MARKER, *_data_folders()}
    return {str(path): _fingerprint(path) for path in sorted(origins)}


def _data_folders() -> Iterator[Path]:
    """The folders of data, not their thousands of files: an update puts files into them anew."""
    for data in map(Path, _DATA):
        if data.is_dir():
            yield from (Path(above) for above, _, _ in os.walk(data))
        elif data.exists():
            yield data


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


def _copy(path: Path, root: Path) -> None:
    """Copy a file with the links that lead to it."""
    beside.check()
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
    """The place that a file belongs to; /bin and its like may be links."""
    return root / str(path.parent.resolve() / path.name).lstrip("/")


def _copy_tree(path: Path, root: Path) -> None:
    target = root / str(path.parent.resolve() / path.name).lstrip("/")
    if path.is_dir():
        shutil.copytree(
            path,
            target,
            symlinks=True,
            ignore=_closed,
            copy_function=_read_copy,
            dirs_exist_ok=True,
        )
    elif path.is_file():
        _copy(path, root)


def _closed(parent: str, names: list[str]) -> list[str]:
    """The folders that others may not look into: nor may a session."""
    paths = {name: os.lstat(os.path.join(parent, name)).st_mode for name in names}
    return [name for name, mode in paths.items() if stat.S_ISDIR(mode) and mode & 0o005 != 0o005]


def _read_copy(source: str, target: str) -> None:
    beside.check()
    # What only root may read is no business of a session.
    if os.path.islink(source) or os.stat(source).st_mode & stat.S_IROTH:
        shutil.copy2(source, target, follow_symlinks=False)


def _link(source: str, target: str) -> None:
    """Link a file of a profile, which is never changed: it need not be there twice."""
    beside.check()
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _make_readable(above: Path) -> None:
    for path in (above, *above.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _set_modes(building: Path) -> None:
    """Let others look into each folder and write to nothing, whatever the umask was."""
    for parent, _, files in os.walk(building, topdown=False):  # what is around it opens last
        for path in (os.path.join(parent, name) for name in files):
            mode = stat.S_IMODE(os.lstat(path).st_mode)
            if mode & 0o022 and not os.path.islink(path):
                os.chmod(path, mode & ~0o022)
        if not os.stat(parent).st_mode & stat.S_ISVTX:  # /tmp is as it must be
            os.chmod(parent, 0o755)


def _link_libraries(root: Path) -> None:
    """Write the loader's list; without it a library in a folder of its own is not found."""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        subprocess.run(["ldconfig", "-r", root], capture_output=True, timeout=60)
