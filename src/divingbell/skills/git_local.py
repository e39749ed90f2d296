"""A git repository on this machine, shown to git without its settings and hooks.

git starts a second git in a repository that is named by a path, and `-c` does not reach that one:
hooks, `core.alternateRefsCommand` and a promisor's `uploadpack` would run as whoever publishes. So
git is given a folder of ours, in which objects and references alone lead to those of others.
"""

import contextlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from divingbell.errors import SkillRefused
from divingbell.skills.git_command import Git, GitFailed

SCHEME = "file://"
BRANCH = re.compile(r"refs/heads/[A-Za-z0-9][A-Za-z0-9._/-]{0,200}")
"""The full name of a branch, as far as such names are used here."""
MOST_HEAD = 1_024
_LED = ("objects", "refs", "packed-refs", "shallow")
"""All that git reads and writes there; where one is missing, the link leads nowhere."""
_HEAD = re.compile(rf"ref: {BRANCH.pattern}\n?|[0-9a-f]{{40}}\n?")
_SHARED = re.compile(r"group|all|world|everybody|umask|true|false|0[0-7]{3}|[012]")


@dataclass(frozen=True, slots=True)
class LocalRepository:
    """The folder of a repository, as git finds it below a path."""

    folder: Path

    @property
    def has_checkout(self) -> bool:
        """Whether somebody's files are beside it, which a new commit would leave behind."""
        return self.folder.name == ".git"

    @contextlib.contextmanager
    def shown(self, above: Path) -> Iterator[str]:
        """Enter a block in which git finds it at the path that is given; its settings are ours.

        Raises:
            SkillRefused: it is no repository that can be used.
        """
        with tempfile.TemporaryDirectory(dir=above, suffix=".shown") as name:
            shown = Path(name)
            for part in _LED:
                (shown / part).symlink_to(self.folder / part)
            (shown / "HEAD").write_text(self._head())
            (shown / "config").write_text(
                "[core]\n\trepositoryformatversion = 0\n\tbare = true\n"
                f"\tsharedRepository = {self._sharing(shown)}\n"
            )
            yield name

    def _head(self) -> str:
        said = _read(self.folder / "HEAD").decode("utf-8", "replace")
        if not _HEAD.fullmatch(said):
            raise SkillRefused(f"{self.folder / 'HEAD'} is not one of a git repository")
        return said

    def _sharing(self, shown: Path) -> str:
        """Return who else may write what is added: the one setting of it that is taken over."""
        file = str(self.folder / "config")
        try:
            said = Git(shown)("config", "--file", file, "--get", "core.sharedRepository")
        except GitFailed:
            return "umask"
        found = said.decode("utf-8", "replace").strip()
        return found if _SHARED.fullmatch(found) else "umask"


def local_repository(address: str) -> LocalRepository | None:
    """Return the repository that an address names; None for one on another machine.

    Raises:
        SkillRefused: there is none.
    """
    if not address.startswith(SCHEME):
        return None
    path = unquote(address.removeprefix(SCHEME))  # as git does
    for folder in (Path(path, ".git"), Path(path), Path(f"{path}.git")):
        if (folder / "objects").is_dir() and (folder / "refs").is_dir():
            return LocalRepository(folder)
    raise SkillRefused(
        f"there is no git repository at {path}: make one there with `git init --bare {path}`"
    )


def _read(path: Path) -> bytes:
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        with os.fdopen(os.open(path, flags), "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise SkillRefused(f"{path} is no ordinary file")
            return file.read(MOST_HEAD)
    except OSError as error:
        raise SkillRefused(f"{path} can't be read: {error.strerror}") from None
