"""The store of skills: every version of each, and which one is offered, for one user at a time.

A store is one SQLite file, in a folder that only its owner can enter: writing is all or nothing,
also for two processes at once and for one that is killed. The folder is named by a hash of the
user, who may be called anything. What was kept is checked against its digest when it is read.
"""

import contextlib
import difflib
import errno
import hashlib
import json
import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from divingbell.border.privacy.blotter import BLOTTER
from divingbell.errors import SkillMissing, SkillRefused
from divingbell.host import owned_folder
from divingbell.skills import names, skill_file
from divingbell.skills.record import Kept, Record, State, Summary, Usage
from divingbell.skills.skill import Skill, digest, script

FOLDER_NAME = "skills"
FILE_NAME = "skills.db"
BUSY_TIMEOUT = 10.0
MAX_SKILLS = 10_000
"""Of one user: code that saves in a loop fills no disk."""
MAX_VERSIONS = 1_000
MAX_STORE = 1 << 30
"""Bytes of one user's file."""
MAX_COMPARED = 500
"""Names that a missing one is compared with. Measured: that takes 5 ms."""
MAX_NEAR = 3
_PAGE = 4_096
_FORMAT = 1
_REVISION_AT = 68
"""Where the `application_id` is in the head of a file of SQLite; ours is the generation."""
_SCHEMA = f"""
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS versions (
    name TEXT NOT NULL, version INTEGER NOT NULL, description TEXT NOT NULL,
    digest TEXT NOT NULL, saved_at REAL NOT NULL, record TEXT NOT NULL,
    PRIMARY KEY (name, version)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS files (
    name TEXT NOT NULL, version INTEGER NOT NULL, path TEXT NOT NULL, data BLOB NOT NULL,
    PRIMARY KEY (name, version, path)
);
CREATE TABLE IF NOT EXISTS offered (
    name TEXT PRIMARY KEY, version INTEGER NOT NULL, changed INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_change ON offered (changed);
CREATE TABLE IF NOT EXISTS usage (
    name TEXT PRIMARY KEY, uses INTEGER NOT NULL, failures INTEGER NOT NULL,
    tokens_saved INTEGER NOT NULL
) WITHOUT ROWID;
INSERT OR IGNORE INTO about VALUES ('generation', 0);
PRAGMA user_version = {_FORMAT};
"""
_SUMMARY = """
SELECT name, version, description, digest, record, saved_at,
    ifnull(uses, 0), ifnull(failures, 0), ifnull(tokens_saved, 0),
    EXISTS (
        SELECT 1 FROM files WHERE files.name = versions.name
        AND files.version = versions.version AND path = script(versions.name)
    )
FROM versions LEFT JOIN usage USING (name)
"""
_OFFERED = (
    "WHERE (name, version) IN (SELECT name, version FROM offered WHERE changed > ? AND name > ? "
    "ORDER BY name LIMIT ?) ORDER BY name"
)
_NAMED = "WHERE (name, version) IN (SELECT name, version FROM offered WHERE name = ?)"


class Stores:
    """The stores of all users, below one folder."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def of(self, user: str) -> "Store":
        """Return the store of a user; what is not there yet is made when something is saved."""
        hashed = hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()
        return Store(self.root / hashed[:32], user)


class Store:
    """The skills of one user. All of it blocks: call it in a thread.

    Every method raises SkillRefused where the file can't be used, and says why.
    """

    def __init__(self, folder: Path, user: str = "") -> None:
        self.folder = folder
        self._user = user
        self._path = folder / FILE_NAME

    @property
    def generation(self) -> int:
        """A number that grows with every change of what is offered."""
        with self._reading() as database:
            if database is None:
                return 0
            [(number,)] = database.execute("SELECT value FROM about WHERE name = 'generation'")
            return int(number)

    @property
    def revision(self) -> int:
        """Another number after every change of what is offered, in whatever process; 0 where
        nothing was saved.

        It stands in the head of the file, which is read without a lock, in some 10 µs.
        """
        try:
            file = os.open(self._path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return 0
        try:
            return int.from_bytes(os.pread(file, 4, _REVISION_AT))
        finally:
            os.close(file)

    def names(self) -> list[str]:
        """Return the names of all skills, in order."""
        with self._reading() as database:
            if database is None:
                return []
            return [name for (name,) in database.execute("SELECT name FROM offered ORDER BY name")]

    def summaries(self, since: int = -1, after: str = "", most: int = MAX_SKILLS) -> list[Summary]:
        """Return what lists and searches need of every skill, in the order of their names; of
        those that have changed after a generation, where one is given, and come after a name."""
        with self._reading() as database:
            if database is None:
                return []
            rows = database.execute(f"{_SUMMARY} {_OFFERED}", (since, after, most))
            return [_summary(row) for row in rows]

    def summaries_of(self, wanted: Iterable[str]) -> list[Summary]:
        """Return the same of skills by their names, in this order; of those that are there."""
        with self._reading() as database:
            if database is None:
                return []
            asked = f"{_SUMMARY} {_NAMED}"
            found = (database.execute(asked, (name,)).fetchone() for name in wanted)
            return [_summary(row) for row in found if row is not None]

    def get(self, name: str, version: int | None = None) -> Kept:
        """Return a version of a skill; without a number the one that is offered.

        Raises:
            SkillMissing: there is none of that name, or no such version.
            SkillRefused: what is kept of it is not what was saved.
        """
        name = names.of_module(name)
        with self._reading() as database:
            row = None if database is None else _row(database, name, version)
            if database is None or row is None:
                raise _missing(database, name, version)
            files = dict(
                database.execute(
                    "SELECT path, data FROM files WHERE name = ? AND version = ?", (name, row[0])
                ).fetchall()
            )
        return _kept(name, row, files)

    def versions(self, name: str) -> list[Summary]:
        """Return all versions of a skill, the oldest first, without their files: of those there
        may be a gigabyte.

        Raises:
            SkillMissing: there is none of that name.
        """
        name = names.of_module(name)
        with self._reading() as database:
            asked = f"{_SUMMARY} WHERE name = ? ORDER BY version"
            rows = [] if database is None else database.execute(asked, (name,)).fetchall()
            if not rows:
                raise _missing(database, name)
            return [_summary(row) for row in rows]

    def numbers(self, name: str) -> list[int]:
        """Return the numbers of all versions of a skill, in order.

        Raises:
            SkillMissing: there is none of that name.
        """
        name = names.of_module(name)
        with self._reading() as database:
            rows = [] if database is None else _numbers(database, name)
            if not rows:
                raise _missing(database, name)
            return rows

    def save(self, skill: Skill, record: Record) -> Kept:
        """Keep a skill as a new version, which is offered from now on.

        One that is the same to the byte as what is offered makes no new version; its record is
        written anew. Flow labels of all versions are the new one's too: its number tells of them.

        Raises:
            SkillRefused: this user has as many skills, versions or bytes as one may have.
        """
        [kept] = self.save_all([(skill, record)])
        return kept

    def labels(self, name: str) -> tuple[str, ...]:
        """Return the flow labels of all versions of a skill; none where there is no such skill.

        Raises:
            SkillRefused: what is kept of it is damaged.
        """
        name = names.of_module(name)
        with self._reading() as database:
            return () if database is None else _labels(database, name)

    def save_all(self, given: Iterable[tuple[Skill, Record]]) -> list[Kept]:
        """Keep skills as `save` does, all of them or none: for many it takes no longer than one.

        Raises:
            SkillRefused: as `save`.
        """
        with self._writing() as database:
            return [_save(database, skill, record) for skill, record in given]

    def rollback(self, name: str, version: int | None = None) -> Kept:
        """Offer an earlier version again; without a number the one before what is offered.

        Raises:
            SkillMissing: there is no such version.
        """
        name = names.of_module(name)
        with self._writing() as database:
            known = _numbers(database, name)
            if not known:
                raise _missing(database, name)
            [(now,)] = database.execute("SELECT version FROM offered WHERE name = ?", (name,))
            if version is None:
                version = max((each for each in known if each < now), default=None)
                if version is None:
                    raise SkillMissing(f"there is no version of {name} before {now}")
            if version not in known:
                raise _missing(database, name, version)
            _offer(database, name, version)
        return self.get(name, version)

    def remove(self, name: str) -> int:
        """Remove a skill with all its versions, and return how many there were.

        Raises:
            SkillMissing: there is none of that name.
        """
        name = names.of_module(name)
        with self._writing() as database:
            gone = database.execute("DELETE FROM versions WHERE name = ?", (name,)).rowcount
            if not gone:
                raise _missing(database, name)
            for table in ("files", "offered", "usage"):
                database.execute(f"DELETE FROM {table} WHERE name = ?", (name,))
            _changed(database)
        return gone

    def mark(self, name: str, version: int, state: State, reason: str = "") -> None:
        """Say what state a version of a skill is in from now on.

        Raises:
            SkillMissing: there is no such version.
        """
        self.write_record(name, version, state=state, reason=reason)

    def write_record(self, name: str, version: int, **changes: object) -> Record:
        """Change fields of what is known of a version, and return all that is.

        Raises:
            SkillMissing: there is no such version.
        """
        name = names.of_module(name)
        with self._writing() as database:
            row = database.execute(
                "SELECT record FROM versions WHERE name = ? AND version = ?", (name, version)
            ).fetchone()
            if row is None:
                raise _missing(database, name, version)
            record = replace(_record(name, row[0]), **changes)  # type: ignore[arg-type]
            database.execute(
                "UPDATE versions SET record = ? WHERE name = ? AND version = ?",
                (record.to_json(), name, version),
            )
            database.execute(
                "UPDATE offered SET changed = ? WHERE name = ?", (_changed(database), name)
            )
        return record

    def add_usage(self, added: Mapping[str, Usage]) -> None:
        """Count uses of skills; those that are gone by now are passed over."""
        with self._writing() as database:
            for name, usage in added.items():
                database.execute(
                    "INSERT INTO usage SELECT name, ?2, ?3, ?4 FROM offered WHERE name = ?1 "
                    "ON CONFLICT (name) DO UPDATE SET uses = uses + ?2, "
                    "failures = failures + ?3, tokens_saved = tokens_saved + ?4",
                    (name, usage.uses, usage.failures, usage.tokens_saved),
                )

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection | None]:
        """A connection that only reads; None where nothing was ever saved."""
        with self._translated():
            self._refuse_links()
            # In a folder that nobody else can write to, the file is nobody else's either.
            if not (owned_folder.check(self.folder) and self._path.exists()):
                yield None
                return
            with contextlib.closing(self._connected()) as database:
                yield database

    @contextlib.contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction that no other process writes beside."""
        with self._translated():
            self._refuse_links()
            owned_folder.make(self.folder, 0o700)
            with contextlib.closing(self._connected()) as database:
                database.execute("BEGIN IMMEDIATE")
                with database:
                    yield database

    def _refuse_links(self) -> None:
        """Refuse a store that is a link to another one: then two users would have the same."""
        for path in (self.folder, self._path):
            if path.is_symlink():
                raise SkillRefused(
                    f"{path} is a link, and skills are not kept behind one: remove it"
                )

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            if _is_full(error) and self._is_disk_full():
                # Not where it is: whoever asks may be code, or have come over HTTP.
                raise SkillRefused(
                    "the disk that has the skills is full: nothing was changed; make room there, "
                    "then do it again"
                ) from None
            if _is_full(error):
                raise SkillRefused(
                    "there is no more room for skills: remove some that are not used "
                    "(divingbell skills list shows them)"
                ) from None
            raise SkillRefused(f"the skills in {self.folder} can't be used: {error}") from None

    def _is_disk_full(self) -> bool:
        """Whether the disk has less room than this user may still take: SQLite says the same of
        both, and what has less is what was met."""
        folder = next(each for each in (self.folder, *self.folder.parents) if each.exists())
        disk = os.statvfs(folder)
        size = self._path.stat().st_size if self._path.exists() else 0
        return disk.f_bavail * disk.f_frsize < MAX_STORE - size

    def _connected(self) -> sqlite3.Connection:
        database = sqlite3.connect(self._path, timeout=BUSY_TIMEOUT, isolation_level=None)
        try:
            database.execute("PRAGMA trusted_schema = OFF")
            database.create_function("script", 1, script, deterministic=True)
            database.execute(f"PRAGMA max_page_count = {MAX_STORE // _PAGE}")
            [(version,)] = database.execute("PRAGMA user_version")
            if version == 0:
                database.executescript(_SCHEMA)
                database.execute("INSERT OR IGNORE INTO about VALUES ('user', ?)", (self._shown,))
            elif version != _FORMAT:
                raise sqlite3.DatabaseError(f"they are of another version ({version})")
        except BaseException:
            database.close()
            raise
        return database

    @property
    def _shown(self) -> str:
        """The user for people who look into the file; of one that is an address, its kind."""
        return BLOTTER.blotted(self._user.encode("utf-8", "replace").decode()[:1_000])


def _is_full(error: Exception) -> bool:
    if isinstance(error, OSError):
        return error.errno in (errno.ENOSPC, errno.EDQUOT)
    return getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL


def _save(database: sqlite3.Connection, skill: Skill, record: Record) -> Kept:
    hashed, known = skill.digest, _numbers(database, skill.name)
    if not known:
        _check_room(database)
    same = database.execute(
        "SELECT version FROM offered JOIN versions USING (name, version) "
        "WHERE name = ? AND digest = ?",
        (skill.name, hashed),
    ).fetchone()
    if not same and len(known) >= MAX_VERSIONS:
        raise SkillRefused(
            f"there are {MAX_VERSIONS:,} versions of {skill.name}: export it, remove it and add "
            "it again"
        )
    labels = {*record.labels, *_labels(database, skill.name)}
    record = replace(record, labels=tuple(sorted(labels)))
    number = same[0] if same else max(known, default=0) + 1
    now = time.time()
    database.execute(
        "INSERT OR REPLACE INTO versions VALUES (?, ?, ?, ?, ?, ?)",
        (skill.name, number, skill.description, hashed, now, record.to_json()),
    )
    database.executemany(
        "INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?)",
        [(skill.name, number, path, data) for path, data in skill.all_files.items()],
    )
    _offer(database, skill.name, number)
    return Kept(skill, number, record, now)


def _numbers(database: sqlite3.Connection, name: str) -> list[int]:
    asked = "SELECT version FROM versions WHERE name = ? ORDER BY version"
    return [number for (number,) in database.execute(asked, (name,))]


def _labels(database: sqlite3.Connection, name: str) -> tuple[str, ...]:
    # By SQLite: of a thousand versions, what else is in their records takes long to read.
    asked = "SELECT DISTINCT json_extract(record, '$.labels') FROM versions WHERE name = ?"
    try:
        lists = [json.loads(labels) for (labels,) in database.execute(asked, (name,))]
    except (sqlite3.OperationalError, TypeError) as error:
        raise _damaged(name, error) from None
    return tuple(sorted({label for labels in lists for label in labels}))


def _check_room(database: sqlite3.Connection) -> None:
    [(count,)] = database.execute("SELECT count(*) FROM offered")
    if count >= MAX_SKILLS:
        raise SkillRefused(
            f"there are {count:,} skills, as many as one user may have: remove some that are not "
            "used (divingbell skills list shows them)"
        )


def _offer(database: sqlite3.Connection, name: str, version: int) -> None:
    row = (name, version, _changed(database))
    database.execute("INSERT OR REPLACE INTO offered VALUES (?, ?, ?)", row)


def _changed(database: sqlite3.Connection) -> int:
    """Begin a generation, and return its number."""
    database.execute("UPDATE about SET value = value + 1 WHERE name = 'generation'")
    [(number,)] = database.execute("SELECT value FROM about WHERE name = 'generation'")
    database.execute(f"PRAGMA application_id = {int(number) & 0x7FFFFFFF}")
    return int(number)


def _missing(
    database: sqlite3.Connection | None, name: str, version: int | None = None
) -> SkillMissing:
    if version is not None:
        return SkillMissing(f"there is no version {version} of the skill {name}")
    near = () if database is None else _near(database, name)
    meant = f"did you mean {', '.join(near)}? " if near else ""
    missing = SkillMissing(f"there is no skill {name}: {meant}`divingbell skills list` shows all")
    missing.near = near
    return missing


def _near(database: sqlite3.Connection, name: str) -> tuple[str, ...]:
    """Return the names like one that is missing, of those that begin with the same letter."""
    rows = database.execute(
        "SELECT name FROM offered WHERE name >= ? AND name < ? LIMIT ?",
        (name[0], chr(ord(name[0]) + 1), MAX_COMPARED),
    )
    return tuple(difflib.get_close_matches(name, [known for (known,) in rows], MAX_NEAR, 0.7))


def _row(
    database: sqlite3.Connection, name: str, version: int | None
) -> tuple[int, str, float, str, int] | None:
    row: tuple[int, str, float, str, int] | None = database.execute(
        "SELECT v.version, digest, saved_at, record, o.version "
        "FROM offered o JOIN versions v USING (name) "
        "WHERE name = ? AND v.version = ifnull(?, o.version)",
        (name, version),
    ).fetchone()
    return row


def _kept(name: str, row: tuple[int, str, float, str, int], files: dict[str, bytes]) -> Kept:
    number, hashed, saved_at, record, offered = row
    try:
        if digest(files) != hashed:
            raise ValueError("its files are not those that were saved")
        skill_md = files.pop(names.SKILL_FILE)
        skill = skill_file.parse(skill_md, files, foreign=True)
        if skill.name != name:
            raise ValueError("it is another one")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _damaged(name, error) from None
    return Kept(skill, number, _record(name, record), saved_at, number == offered)


def _record(name: str, text: str) -> Record:
    try:
        return Record.from_json(text)
    except (ValueError, TypeError) as error:
        raise _damaged(name, error) from None


def _damaged(name: str, error: Exception) -> SkillRefused:
    return SkillRefused(
        f"the skill {name} is damaged: {error}. Roll it back to an earlier version, or remove it"
    )


def _summary(row: tuple[str, int, str, str, str, float, int, int, int, int]) -> Summary:
    name, version, description, hashed, record, saved_at, *usage, has_code = row
    known = _record(name, record)
    return Summary(
        name, version, description, hashed, known, saved_at, Usage(*usage), bool(has_code)
    )
