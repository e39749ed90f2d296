"""The folder that every session sees, read-only, as /servers."""

import contextlib
import hashlib
import os
import secrets
import shutil
import stat
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from divingbell.gateway.catalog.naming import is_safe
from divingbell.gateway.catalog.wrappers import (
    awaited_readme,
    index_readme,
    module_source,
    package_source,
    readme,
)
from divingbell.tool import Tool

# Sessions run under users of their own, so everybody may read, whatever the umask says.
FOLDER_MODE = 0o755
FILE_MODE = 0o644
README, INIT = "README.md", "__init__.py"


class Folder:
    """A folder with a package of Python for each server, kept as the server's tools are.

    Sessions import from it while it changes, so each file is replaced as a whole, files that are
    the same are left alone, and links are never followed.
    """

    def __init__(self, path: Path) -> None:
        """Take a folder that belongs to nobody else; it is made if it is not there."""
        self.path = path
        self.generation = 0
        """Grows with each real change, so that a session can tell that it has to look again."""
        self._lock = threading.Lock()
        path.mkdir(parents=True, exist_ok=True)
        self._root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        os.fchmod(self._root, FOLDER_MODE)

    def write(
        self, server: str, package: str, tools: Sequence[Tool], instructions: str | None = None
    ) -> bool:
        """Make a server's package what its tools are; return whether anything changed.

        Raises:
            ValueError: the package or a function has a name that is no identifier, or two of the
                functions have the same one. Nothing was written.
        """
        files = {f"{tool.function}.py": module_source(tool).encode() for tool in tools}
        if not is_safe(package) or len(files) != len(tools):
            raise ValueError(f"the names of {package[:80]!r} must come from naming.unique")
        files[README] = readme(server, package, tools, instructions).encode()
        # Last, because it names the others.
        files[INIT] = package_source(server, package, tools, instructions).encode()
        with self._lock:
            folder = self._open_package(package)
            try:
                return self._count(_update(folder, files))
            finally:
                os.close(folder)

    def expect(self, server: str, package: str) -> bool:
        """Make the folder of a server that has not listed its tools; return whether it is new.

        Without an __init__.py: whoever imports it has to wait for the server.
        """
        content = awaited_readme(server, package).encode()
        with self._lock:
            folder = self._open_package(package)
            try:
                return not os.listdir(folder) and self._count(_update(folder, {README: content}))
            finally:
                os.close(folder)

    def remove(self, package: str) -> bool:
        """Remove a server's package; return whether there was one."""
        if not is_safe(package):
            return False
        with self._lock:
            return self._count(_remove(package, self._root))

    def write_index(self, servers: Iterable[tuple[str, str, int | None]]) -> bool:
        """Write the README of all servers: see `index_readme`."""
        content = index_readme(servers).encode()
        with self._lock:
            return self._count(_replace(self._root, README, content))

    # The same on another machine

    def contents(self) -> dict[str, bytes]:
        """Return all files by their paths: `README.md`, `shop/refund.py`."""
        found: dict[str, bytes] = {}
        with self._lock:
            for name in os.listdir(self._root):
                if is_safe(name):
                    found |= _files_in(self._open_package(name), f"{name}/")
                elif name == README and (content := _whole(self._root, name)) is not None:
                    found[name] = content
        return found

    def missing(self, digests: Mapping[str, str]) -> list[str]:
        """Return those of the paths whose content is not this here already, by its SHA-256.

        Raises:
            ValueError: one is no path of such a folder.
        """
        for path in digests:
            _parts_of(path)
        here = {path: digest_of(content) for path, content in self.contents().items()}
        return [path for path, digest in digests.items() if here.get(path) != digest]

    def take_over(self, digests: Mapping[str, str], new: Mapping[str, bytes]) -> None:
        """Make the folder one with exactly these files, of which those that were missing are given.

        Raises:
            ValueError: a content is not the one that was announced; nothing was written.
        """
        if any(digest_of(content) != digests.get(path) for path, content in new.items()):
            raise ValueError("a file of /servers is not the one that was announced")
        packages: dict[str, dict[str, bytes]] = {}
        files = {path: content for path, content in self.contents().items() if path in digests}
        for path, content in (files | dict(new)).items():
            package, name = _parts_of(path)
            packages.setdefault(package, {})[name] = content
        with self._lock:
            own = packages.pop("", {})
            for package, content_of in packages.items():
                # Last, because it names the others.
                init = {name: each for name, each in content_of.items() if name == INIT}
                rest = {name: each for name, each in content_of.items() if name != INIT}
                folder = self._open_package(package)
                try:
                    self._count(_update(folder, rest | init))
                finally:
                    os.close(folder)
            for name, content in own.items():
                self._count(_replace(self._root, name, content))
            for name in os.listdir(self._root):
                if name not in packages and name not in own:
                    self._count(_remove(name, self._root))

    def close(self) -> None:
        """Remove the folder and all that is in it. A second time does nothing."""
        with self._lock:
            if self._root >= 0:
                os.close(self._root)
                self._root = -1
                shutil.rmtree(self.path, ignore_errors=True)

    def _count(self, changed: bool) -> bool:
        self.generation += changed
        return changed

    def _open_package(self, package: str) -> int:
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            folder = os.open(package, flags, dir_fd=self._root)
        except OSError:
            _remove(package, self._root)  # a link or a file, which is none of ours
            os.mkdir(package, dir_fd=self._root)
            folder = os.open(package, flags, dir_fd=self._root)
        os.fchmod(folder, FOLDER_MODE)
        return folder


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _parts_of(path: str) -> tuple[str, str]:
    """Return the package of a path, empty for none, and the name of the file.

    Raises:
        ValueError: it is no path of such a folder.
    """
    package, slash, name = path.rpartition("/")
    is_ours = name in (README, INIT) if slash else name == README
    if not is_ours and not (slash and name.endswith(".py") and is_safe(name[:-3])):
        raise ValueError(f"{path[:80]!r} is no file of /servers")
    if slash and not is_safe(package):
        raise ValueError(f"{path[:80]!r} is no file of /servers")
    return package, name


def _files_in(folder: int, prefix: str) -> dict[str, bytes]:
    """Return the plain files in a folder, and close it."""
    try:
        found = {name: _whole(folder, name) for name in os.listdir(folder)}
    finally:
        os.close(folder)
    return {prefix + name: content for name, content in found.items() if content is not None}


def _whole(folder: int, name: str) -> bytes | None:
    """Return the content of a plain file; None for what is none."""
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        return None if name.startswith(".") else file.read()


def _update(folder: int, files: Mapping[str, bytes]) -> bool:
    changed = False
    for name, content in files.items():
        changed |= _replace(folder, name, content)
    for name in os.listdir(folder):
        if name not in files:
            changed |= _remove(name, folder)
    return changed


def _replace(folder: int, name: str, content: bytes) -> bool:
    """Give a file its content; return False if it has it already."""
    if _content(folder, name, len(content)) == content:
        return False
    temporary = f".{secrets.token_hex(8)}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(temporary, flags, FILE_MODE, dir_fd=folder)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(descriptor, FILE_MODE)
            file.write(content)
        _clear(folder, name)
        os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise
    return True


def _content(folder: int, name: str, size: int) -> bytes | None:
    """Return the content of a plain file of this size and of our mode, None if it is not one."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError:
        return None
    try:
        status = os.fstat(descriptor)
        if status.st_mode != stat.S_IFREG | FILE_MODE or status.st_size != size:
            return None
        return os.read(descriptor, size)
    finally:
        os.close(descriptor)


def _clear(folder: int, name: str) -> None:
    """Make way for a file where a folder stands."""
    with contextlib.suppress(FileNotFoundError):
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)


def _remove(name: str, folder: int) -> bool:
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            shutil.rmtree(name, dir_fd=folder)
        else:
            os.unlink(name, dir_fd=folder)
    except FileNotFoundError:
        return False
    return True
