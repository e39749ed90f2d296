"""A git repository of others, by a bare copy of it that is kept: what was seen of it is remembered.

The first fetch takes the newest commit alone. A later one must go on from the commit that was seen
last: a history that was rewritten is refused. Files are read out of the objects, by name.
"""

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import SkillRefused
from divingbell.host import lock_file
from divingbell.skills.git_command import MOST_FETCHED, Git, GitFailed
from divingbell.skills.git_local import BRANCH, local_repository

SEEN, OFFERED = "refs/heads/seen", "refs/heads/offered"
MOST_LISTED = 4 << 20
"""Bytes of a list of names."""
MOST_REFERENCES = 64 << 10
MOST_KEPT = 1 << 30
"""Bytes of all copies together."""
LOCK_TIMEOUT = 150.0
"""Seconds to wait for another process that fetches: a little more than git has for that."""
FILE_MODES = ("100644", "100755")
BRANCHES = ("main", "master")
"""The branches that are looked for where a repository does not say which is its first."""
_ASKING_FOR = ("HEAD", *(f"refs/heads/{name}" for name in BRANCHES))
_AUTHOR = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (("NAME", "divingbell"), ("EMAIL", "divingbell@localhost"))
}


class HistoryRewritten(SkillRefused):
    """Raised for a repository whose history no longer holds what was seen of it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A file of a commit."""

    mode: str
    object: str
    size: int


class Repository:
    """A repository by its address, and the copy of it in a folder of ours."""

    def __init__(self, address: str, above: Path) -> None:
        self.address = address
        self.folder = above / f"{hashlib.sha256(address.encode()).hexdigest()[:32]}.git"
        self._git = Git(self.folder)

    @contextlib.contextmanager
    def _there(self) -> Iterator[str]:
        """Enter a block with what git is told to find the repository."""
        local = local_repository(self.address)
        if local is None:
            yield self.address
        else:
            with local.shown(self.folder.parent) as path:
                yield path

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Enter a block in which no other process uses the copy.

        Raises:
            ConfigError: the copy can't be made, or another process uses it for too long.
        """
        with lock_file.alone(self.folder.with_suffix(".lock"), LOCK_TIMEOUT):
            if not (self.folder / "HEAD").exists():  # again, where it was interrupted
                self._git("init", "--quiet", "--bare", "--template=")
            self._sweep()
            try:
                yield
            finally:
                self._sweep()

    def _sweep(self) -> None:
        """Remove what a fetch has left that failed, or was ended: git leaves it for weeks."""
        for path in [*self.folder.glob("objects/**/tmp_*")]:
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def fetch(self) -> str | None:
        """Return the newest commit of the repository's first branch; None if it has none yet.

        Raises:
            HistoryRewritten: it does not go on from what was seen.
            GitFailed: it can't be fetched.
        """
        seen = self._commit(SEEN)
        with self._there() as there:
            branch = self._branch(there)
            if branch is not None:
                self._take(there, branch, is_first=seen is None)
        if branch is None:
            if seen is not None:
                raise self._rewritten(seen)
            return None
        offered = self._commit(OFFERED)
        if seen and not self._git.says("merge-base", "--is-ancestor", seen, OFFERED):
            raise self._rewritten(seen)
        self._git("update-ref", SEEN, OFFERED)
        return offered

    def _take(self, there: str, branch: str, *, is_first: bool) -> None:
        self._git(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules"),
            *(("--depth=1",) if is_first else ()),
            *("--", there, f"+{branch}:{OFFERED}"),
            most=min(MOST_FETCHED, self._room()),
        )

    def _room(self) -> int:
        """Return the bytes that may still be fetched.

        Raises:
            SkillRefused: there are none.
        """
        above = self.folder.parent
        kept = sum(map(_size, above.glob("*.git/objects/**/*")))
        if kept >= MOST_KEPT:
            raise SkillRefused(
                f"the copies of catalogues in {above} have {kept >> 20:,} MB; they may have "
                f"{MOST_KEPT >> 20:,} MB: remove those that you do not need, or that are too large"
            )
        return MOST_KEPT - kept

    def _rewritten(self, seen: str) -> HistoryRewritten:
        return HistoryRewritten(
            f"the history of {self.address} was rewritten: it no longer holds the commit "
            f"{seen[:12]}, which was its newest when it was last seen. Ask its owner whether that "
            f"was meant. If it was, remove {self.folder} and try again: keys and versions that "
            "were seen are compared all the same"
        )

    def _branch(self, there: str) -> str | None:
        """Return the first branch of the repository, by its full name; None if it has none.

        Raises:
            GitFailed: the repository can't be asked.
        """
        said = self._git("ls-remote", "--symref", "--", there, *_ASKING_FOR, most=MOST_REFERENCES)
        found: list[str] = []
        for line in said.decode("utf-8", "replace").splitlines():
            target, _, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: "):
                found.insert(0, target.removeprefix("ref: "))
            elif name.startswith("refs/heads/"):
                found.append(name)
        return next((name for name in found if BRANCH.fullmatch(name)), None)

    def _first_branch(self, there: str) -> str:
        """Return the branch that an empty repository names as its first, else `main`.

        `ls-remote` says nothing of a branch without commits; a clone is told.
        """
        with tempfile.TemporaryDirectory(dir=self.folder.parent, suffix=".first") as folder:
            Git(Path(folder))(
                *("clone", "--quiet", "--bare", "--no-local", "--template=", "--depth=1"),
                *("--no-tags", "--", there, folder),
            )
            said = Git(Path(folder))("symbolic-ref", "HEAD").decode("utf-8", "replace").strip()
        return said if BRANCH.fullmatch(said) else f"refs/heads/{BRANCHES[0]}"

    def _commit(self, reference: str) -> str | None:
        try:
            said = self._git("rev-parse", "--verify", "--quiet", f"{reference}^{{commit}}")
        except GitFailed:
            return None
        return said.decode().strip()

    # Reading

    def names(self, commit: str) -> list[str]:
        """Return the names at the top of a commit.

        Raises:
            GitFailed: there are too many.
        """
        said = self._git("ls-tree", "-z", "--name-only", commit, most=MOST_LISTED)
        return [name.decode("utf-8", "replace") for name in said.split(b"\0") if name]

    def entries(self, commit: str, *paths: str) -> dict[str, Entry]:
        """Return the files at and below these paths, by their own.

        Raises:
            GitFailed: there are too many.
        """
        said = self._git(
            "ls-tree", "-r", "-z", "-l", "--full-tree", commit, "--", *paths, most=MOST_LISTED
        )
        found = {}
        for line in said.split(b"\0")[:-1]:
            about, _, path = line.partition(b"\t")
            mode, _, name, size = about.split()
            entry = Entry(mode.decode(), name.decode(), int(size) if size.isdigit() else 0)
            found[path.decode("utf-8", "surrogateescape")] = entry
        return found

    def contents(self, entries: Mapping[str, Entry]) -> dict[str, bytes]:
        """Return the files' bytes. Whoever asks has looked at how many and how large they are.

        Raises:
            GitFailed: they can't be read.
        """
        wanted = b"".join(f"{entry.object}\n".encode() for entry in entries.values())
        most = sum(entry.size + 200 for entry in entries.values())
        said = self._git("cat-file", "--batch", given=wanted, most=most + 1024)
        found, at = {}, 0
        for path, entry in entries.items():
            begin = said.index(b"\n", at) + 1
            if said[at:begin].split() != [entry.object.encode(), b"blob", b"%d" % entry.size]:
                raise GitFailed(f"git cat-file does not give {path!r} as it was listed", 0)
            found[path] = said[begin : begin + entry.size]
            at = begin + entry.size + 1
        return found

    # Writing

    def add(
        self, parent: str | None, gone: Mapping[str, Entry], files: Mapping[str, bytes], words: str
    ) -> str:
        """Return a new commit: the parent's files without some, and with these.

        Raises:
            GitFailed: it can't be written.
        """
        lines = [f"0 {'0' * 40}\t{path}" for path in gone]
        for path, content in files.items():
            name = self._git("hash-object", "-w", "--stdin", given=content).decode().strip()
            lines.append(f"100644 {name}\t{path}")
        with tempfile.TemporaryDirectory(dir=self.folder) as folder:
            index = {"GIT_INDEX_FILE": f"{folder}/index"}
            self._git("read-tree", parent or "--empty", variables=index)
            listed = "".join(f"{line}\0" for line in lines).encode("utf-8", "surrogateescape")
            self._git("update-index", "-z", "--index-info", given=listed, variables=index)
            tree = self._git("write-tree", variables=index).decode().strip()
        parents = ("-p", parent) if parent else ()
        said = self._git("commit-tree", *parents, "-m", words, tree, variables=_AUTHOR)
        return said.decode().strip()

    def push(self, commit: str) -> None:
        """Make a commit the newest of the repository's first branch.

        Raises:
            SkillRefused: it was; for one, somebody else was faster.
        """
        local = local_repository(self.address)
        if local is not None and local.has_checkout:
            raise SkillRefused(
                f"{self.address} has files checked out, which a new commit would leave behind: "
                "name a repository that was made with `git init --bare`"
            )
        with self._there() as there:
            branch = self._branch(there) or self._first_branch(there)
            self._git("push", "--quiet", "--no-verify", "--", there, f"{commit}:{branch}")
        self._git("update-ref", SEEN, commit)


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except FileNotFoundError:  # another process has removed it meanwhile
        return 0
