"""Catalogues: skills that others publish, as plain files in a folder or in a git repository.

`top-customers/` is the skill as it is, `top-customers.signed.json` beside it the statement of its
publisher. Reading runs nothing, imports nothing and follows no link.
"""

import contextlib
import os
import shutil
import stat
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import SkillMissing, SkillRefused
from divingbell.skills import folder, names, skill_file, statement
from divingbell.skills.git_command import checked_address, looks_like_address
from divingbell.skills.git_repository import FILE_MODES, Entry, Repository
from divingbell.skills.skill import Skill
from divingbell.skills.statement import Statement

COPIES = "catalogues"
"""The folder with the copies of repositories."""
MAX_NAMED = 20
"""Names that a message lists."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A skill in a catalogue. Its signature and its digest have been compared with its files."""

    catalogue: str
    skill: Skill
    statement: Statement


class Catalogue(ABC):
    """A catalogue. All of it blocks: call it in a thread."""

    def __init__(self, place: str) -> None:
        self.place = place
        """The address or the path that it is known by."""

    @abstractmethod
    def reading(self) -> "contextlib.AbstractContextManager[None]":
        """Enter a block in which it is read, as it is now.

        Raises:
            SkillRefused: it can't be, or was changed in a way that none may be.
        """

    @abstractmethod
    def _names(self) -> list[str]:
        """Return all names at its top."""

    @abstractmethod
    def _statement(self, name: str) -> bytes | None:
        """Return the file with the statement on a skill; None if there is none."""

    @abstractmethod
    def _skill(self, name: str) -> Skill:
        """Return a skill as it is there."""

    @abstractmethod
    def publish(self, skill: Skill, said: Statement) -> None:
        """Put a skill and its statement in place of those that are there.

        Raises:
            SkillRefused: they can't be put there.
        """

    def names(self) -> list[str]:
        """Return the names of the skills that somebody has signed."""
        found = set(self._names())
        return sorted(name for name in found if statement.file_name(name) in found)

    def said(self, name: str) -> Statement | None:
        """Return the statement on a skill; None if there is none.

        Raises:
            SkillRefused: it was not signed by the key that it names.
        """
        data = self._statement(names.check(name))
        return None if data is None else statement.read(data, name)

    def offer(self, name: str) -> Offer:
        """Return a skill, compared with the statement on it.

        Raises:
            SkillMissing: there is none of that name.
            SkillRefused: it is not signed, or its files are not those that were.
        """
        said = self.said(name)
        if said is None:
            raise self._unsigned(name)
        skill = self._skill(name)
        if skill.digest != said.digest:
            raise SkillRefused(
                f"the files of {name} in {self.place} are not those that its publisher signed: "
                f"they are {skill.digest}, signed was {said.digest}. Somebody changed them, or "
                "they are being published just now: try again, then tell the publisher"
            )
        return Offer(self.place, skill, said)

    def _unsigned(self, name: str) -> SkillMissing:
        if name in self._names():
            return SkillMissing(
                f"nobody has signed {name} in {self.place}: there is no {statement.file_name(name)}"
                " beside it. A folder that you have looked at yourself is taken over with "
                "`divingbell skills import`"
            )
        there = self.names()
        listed = ", ".join(there[:MAX_NAMED]) + (", …" if len(there) > MAX_NAMED else "")
        return SkillMissing(f"there is no skill {name} in {self.place}: it has {listed or 'none'}")


class FolderCatalogue(Catalogue):
    """A catalogue in a folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(os.path.realpath(path))
        self._path = Path(self.place)

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        if (self._path / "HEAD").is_file() and (self._path / "objects").is_dir():
            raise SkillRefused(f"{self._path} is a git repository: name it as file://{self._path}")
        if not self._path.is_dir():
            raise SkillMissing(f"there is no folder {self._path}")
        yield

    def _names(self) -> list[str]:
        return os.listdir(self._path)

    def _statement(self, name: str) -> bytes | None:
        path = self._path / statement.file_name(name)
        try:
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(path, flags), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise SkillRefused(f"{path} is no ordinary file")
                return file.read(statement.MAX_STATEMENT + 1)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SkillRefused(f"{path} can't be read: {error.strerror}") from None

    def _skill(self, name: str) -> Skill:
        return folder.read(self._path / name, foreign=True)

    def publish(self, skill: Skill, said: Statement) -> None:
        try:
            with self._moved_away(skill.name):
                folder.write(skill, self._path)
                self._write(statement.file_name(skill.name), said.to_bytes())
        except OSError as error:
            raise SkillRefused(
                f"{skill.name} can't be written to {self._path}: {error.strerror}"
            ) from None

    @contextlib.contextmanager
    def _moved_away(self, name: str) -> Iterator[None]:
        """Enter a block in which there is no folder of that name; what fails puts it back."""
        target = self._path / name
        if not os.path.lexists(target):
            yield
            return
        away = Path(tempfile.mkdtemp(dir=self._path, prefix=f".{name}."))
        try:
            target.rename(away / name)
            try:
                yield
            except BaseException:
                shutil.rmtree(target, ignore_errors=True)
                (away / name).rename(target)
                raise
        finally:
            shutil.rmtree(away, ignore_errors=True)

    def _write(self, name: str, data: bytes) -> None:
        descriptor, draft = tempfile.mkstemp(dir=self._path, prefix=f".{name}.")
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchmod(descriptor, 0o644)
        os.replace(draft, self._path / name)


class GitCatalogue(Catalogue):
    """A catalogue in a git repository."""

    def __init__(self, repository: Repository) -> None:
        super().__init__(repository.address)
        self._repository = repository
        self._commit: str | None = None

    @contextlib.contextmanager
    def reading(self) -> Iterator[None]:
        with self._repository.alone():
            self._commit = self._repository.fetch()
            yield

    def _names(self) -> list[str]:
        return [] if self._commit is None else self._repository.names(self._commit)

    def _entries(self, path: str) -> dict[str, Entry]:
        return {} if self._commit is None else self._repository.entries(self._commit, path)

    def _statement(self, name: str) -> bytes | None:
        path = statement.file_name(name)
        entry = self._entries(path).get(path)
        if entry is None:
            return None
        if entry.mode not in FILE_MODES or entry.size > statement.MAX_STATEMENT:
            raise SkillRefused(f"{path} in {self.place} is no statement on a skill")
        return self._repository.contents({path: entry})[path]

    def _skill(self, name: str) -> Skill:
        entries = {
            path.removeprefix(f"{name}/"): entry
            for path, entry in self._entries(f"{name}/").items()
            if not names.LEFT_OUT.intersection(path.split("/"))
        }
        _check(entries)
        files = self._repository.contents(entries)
        skill_md = files.pop(names.SKILL_FILE, None)
        if skill_md is None:
            raise SkillMissing(f"there is no {name}/{names.SKILL_FILE} in {self.place}")
        skill = skill_file.parse(skill_md, files, foreign=True)
        if skill.name != name:
            raise SkillRefused(f"the folder {name} in {self.place} holds the skill {skill.name}")
        return skill

    def publish(self, skill: Skill, said: Statement) -> None:
        name = skill.name
        gone = self._entries(f"{name}/")
        files = {f"{name}/{path}": data for path, data in skill.all_files.items()}
        files[statement.file_name(name)] = said.to_bytes()
        words = f"{name}, version {said.version}\n\n{said.digest}"
        self._repository.push(self._repository.add(self._commit, gone, files, words))


def _check(entries: Mapping[str, Entry]) -> None:
    """Refuse what is no file, and more than a skill may have, before any of it is read."""
    if len(entries) > skill_file.MAX_FILES + 1:
        raise SkillRefused(f"the skill has more than {skill_file.MAX_FILES} files")
    for path, entry in entries.items():
        if entry.mode not in FILE_MODES:
            raise SkillRefused(
                f"{path!r} is a link or a submodule: a skill has files and folders only"
            )
        if entry.size > skill_file.MAX_FILE:
            raise SkillRefused(f"{path!r} is larger than {skill_file.MAX_FILE:,} bytes")
    if sum(entry.size for entry in entries.values()) > skill_file.MAX_BYTES:
        raise SkillRefused(f"the skill has more than {skill_file.MAX_BYTES:,} bytes")


def open_catalogue(place: str, data: Path) -> Catalogue:
    """Return the catalogue at an address of a git repository, or in a folder.

    Raises:
        SkillRefused: it is an address of a kind that is not used here.
    """
    if looks_like_address(place):
        return GitCatalogue(Repository(checked_address(place), data / COPIES))
    return FolderCatalogue(Path(place))
