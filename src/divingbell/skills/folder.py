"""Folders of skills, read with care and written out.

Folders come from anywhere. Each name is opened in the folder before it and no link is followed, so
nothing outside is read, whatever is changed meanwhile. Everything is counted while it is read.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.skills import names, skill_file
from divingbell.skills.skill import SCRIPTS, Skill

MAX_ENTRIES = 2_000
"""Files and folders below one skill that are looked at."""
MAX_FOUND = 20_000
"""Names in a folder of skills that are looked at."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(folder: Path, *, foreign: bool = False) -> Skill:
    """Return the skill in a folder. It blocks: call it in a thread.

    Args:
        folder: The folder with SKILL.md; its name is that of the skill.
        foreign: It was made for another agent, see `skill_file.parse`.

    Raises:
        SkillMissing: there is no such folder, or no SKILL.md in it.
        SkillRefused: it is no skill, has links in it, or is larger than one may be.
    """
    with _opened(folder) as descriptor:
        files = read_files(descriptor)
    skill_md = files.pop(names.SKILL_FILE, None)
    if skill_md is None:
        raise _no_skill_itself(folder)
    skill = skill_file.parse(skill_md, files, foreign=foreign)
    if (called := folder.absolute().name) != skill.name:
        raise SkillRefused(
            f"the folder {called!r} holds the skill {skill.name}: the Agent Skills format wants "
            "one name for both, rename one of them"
        )
    return skill


def _no_skill_itself(folder: Path) -> SkillMissing:
    below = find(folder)
    if not below:
        return no_skill(folder)
    return SkillMissing(
        f"there is no {names.SKILL_FILE} in {folder}, but right below it, such as in "
        f"{below[0].name}: `divingbell skills import {folder}` takes over all of them"
    )


def no_skill(folder: Path) -> SkillMissing:
    """Return the error for a folder without any skill."""
    return SkillMissing(f"there is no {names.SKILL_FILE} in {folder}, nor right below it")


def read_files(folder: int) -> dict[str, bytes]:
    """Return all files below an open folder, by their paths.

    Raises:
        SkillRefused: there are links or special files in it, or more than a skill may have.
    """
    return _Reading().all_below(folder)


def find(folder: Path) -> list[Path]:
    """Return the folders with a SKILL.md right below one, or that one itself, by name.

    Raises:
        SkillMissing: there is no such folder.
        SkillRefused: there are more names in it than anyone has skills.
    """
    with _opened(folder) as descriptor:
        if _has_skill_file(".", descriptor):
            return [folder]
        found = _listed(descriptor, MAX_FOUND)
        return [folder / name for name in found if _has_skill_file(name, descriptor)]


def write(skill: Skill, above: Path) -> Path:
    """Write a skill out as a new folder of its name, all at once, and return that folder.

    Raises:
        SkillRefused: there is something of that name already, or `above` is a link.
        OSError: it can't be written.
    """
    names.check(skill.name)
    names.check_paths(skill.files)
    with _opened(above):  # a link as the target is refused
        target = above / skill.name
        if os.path.lexists(target):
            raise SkillRefused(f"{target} exists already: move it away, or name another folder")
        draft = Path(tempfile.mkdtemp(dir=above, prefix=f".{skill.name}."))
        try:
            for path, data in skill.all_files.items():
                (draft / path).parent.mkdir(parents=True, exist_ok=True)
                (draft / path).write_bytes(data)
                if path.startswith(f"{SCRIPTS}/") and data.startswith(b"#!"):
                    (draft / path).chmod(0o755)
            draft.chmod(0o755)
            draft.rename(target)  # fails where there is a folder with something in it meanwhile
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
    return target


class _Reading:
    """One folder that is read, with what it has cost so far."""

    def __init__(self) -> None:
        self._entries = 0
        self._bytes = 0
        self._files: dict[str, bytes] = {}

    def all_below(self, folder: int, prefix: str = "", depth: int = 1) -> dict[str, bytes]:
        if depth > names.MAX_DEPTH:
            raise SkillRefused(f"the skill's folders are more than {names.MAX_DEPTH} deep")
        for name in _listed(folder, MAX_ENTRIES):
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                raise SkillRefused(_too_many(MAX_ENTRIES))
            self._take(folder, name, f"{prefix}{name}", depth)
        return self._files

    def _take(self, folder: int, name: str, path: str, depth: int) -> None:
        kind = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        try:
            if stat.S_ISDIR(kind):
                with _descriptor(os.open(name, _FOLDER, dir_fd=folder)) as below:
                    self.all_below(below, f"{path}/", depth + 1)
            elif stat.S_ISREG(kind):
                self._read(folder, name, path)
            else:
                raise SkillRefused(_no_file(path))
        except OSError as error:  # a link by now, or gone
            raise SkillRefused(f"{path!r} can't be read: {error.strerror}") from None

    def _read(self, folder: int, name: str, path: str) -> None:
        with os.fdopen(os.open(name, _FILE, dir_fd=folder), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SkillRefused(_no_file(path))
            data = file.read(skill_file.MAX_FILE + 1)
        self._bytes += len(data)
        if len(data) > skill_file.MAX_FILE:
            raise SkillRefused(f"{path!r} is larger than {skill_file.MAX_FILE:,} bytes")
        if self._bytes > skill_file.MAX_BYTES + skill_file.MAX_SKILL_FILE:
            raise SkillRefused(f"the skill has more than {skill_file.MAX_BYTES:,} bytes")
        self._files[path] = data


def _no_file(path: str) -> str:
    return (
        f"{path!r} is a link or a special file: a skill has files and folders only, "
        "copy what it leads to"
    )


def _too_many(most: int) -> str:
    return f"there are more than {most:,} files and folders in it"


def _listed(folder: int, most: int) -> list[str]:
    found = []
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name not in names.LEFT_OUT:
                found.append(entry.name)
            if len(found) > most:
                raise SkillRefused(_too_many(most))
    return sorted(found)


def _has_skill_file(name: str, folder: int) -> bool:
    """Whether there is one in the folder of that name, which is no link."""
    try:
        with _descriptor(os.open(name, _FOLDER, dir_fd=folder)) as opened:
            found = os.stat(names.SKILL_FILE, dir_fd=opened, follow_symlinks=False)
    except OSError:
        return False
    return stat.S_ISREG(found.st_mode)


@contextlib.contextmanager
def _opened(folder: Path) -> Iterator[int]:
    try:
        descriptor = os.open(folder, _FOLDER)
    except FileNotFoundError:
        raise SkillMissing(f"there is no folder {folder}") from None
    except (OSError, ValueError) as error:
        reason = "it is a link" if folder.is_symlink() else getattr(error, "strerror", error)
        raise SkillRefused(f"{folder} can't be used: {reason}. Name a folder itself") from None
    with _descriptor(descriptor):
        yield descriptor


@contextlib.contextmanager
def _descriptor(opened: int) -> Iterator[int]:
    try:
        yield opened
    finally:
        os.close(opened)
