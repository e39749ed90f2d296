"""The token store: tokens that were made by command, as hashes, in a file that may change at any
time."""

import contextlib
import fcntl
import os
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.host import owned_folder
from divingbell.surfaces.auth import PRIVATE, USUAL, WORDS, Grant, ScopeWord, check_user, digest_of

log = logs.logger("divingbell")

FILE_NAME = "tokens.json"
MOST = 10_000
"""Tokens that are kept; those that have expired go first."""
MAX_FILE = 8 << 20
_Seen = tuple[int, int, int]


class KeptToken(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is kept: its hash, and what it gives."""

    id: str
    user: str
    hash: str
    scopes: tuple[ScopeWord, ...]
    created: float
    expires: float | None = None
    note: str = ""

    def has_expired(self, now: float) -> bool:
        """Whether it is good no longer."""
        return self.expires is not None and self.expires <= now


class TokenStore:
    """The tokens of one file. What others change in it holds at once."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._seen: _Seen | None = None
        self._grants: dict[bytes, tuple[Grant, float | None]] = {}

    def __len__(self) -> int:
        self._look()
        return len(self._grants)

    def grant_of(self, digest: bytes) -> Grant | None:
        """Return what the token of a hash gives, if it is there and has not expired."""
        self._look()
        found = self._grants.get(digest)
        if found is None or (found[1] is not None and found[1] <= self._clock()):
            return None
        return found[0]

    def private_users(self) -> frozenset[str]:
        """Return those of whom a token has the scope `private`, and has not expired."""
        self._look()
        now = self._clock()
        return frozenset(
            grant.user
            for grant, expires in self._grants.values()
            if PRIVATE in grant.scopes and (expires is None or expires > now)
        )

    def kept(self) -> list[KeptToken]:
        """Return the tokens, the oldest first.

        Raises:
            ConfigError: the file can't be read, or could be changed by others.
        """
        try:
            with self._path.open("rb") as file:
                if not owned_folder.is_ours(file.fileno()):
                    raise ConfigError(
                        f"another user could add tokens to {self._path}: chmod 600 it"
                    )
                return list(msgspec.json.decode(file.read(MAX_FILE), type=tuple[KeptToken, ...]))
        except FileNotFoundError:
            return []
        except (OSError, msgspec.MsgspecError) as error:
            raise ConfigError(f"the tokens in {self._path} can't be read: {error}") from None

    def create(
        self,
        user: str,
        scopes: frozenset[ScopeWord] = USUAL,
        seconds: float | None = None,
        note: str = "",
    ) -> tuple[str, KeptToken]:
        """Make a token; return it, and what is kept of it.

        Raises:
            ConfigError: the name can't be one, or the file can't be written.
        """
        check_user(user)
        token, now = f"db_{secrets.token_urlsafe(32)}", self._clock()
        made = KeptToken(
            id=secrets.token_hex(4),
            user=user,
            hash=digest_of(token).hex(),
            scopes=tuple(word for word in WORDS if word in scopes),
            created=now,
            expires=None if seconds is None else now + seconds,
            note=note,
        )
        with self._writing() as kept:
            kept[:] = [each for each in kept if len(kept) < MOST or not each.has_expired(now)]
            if len(kept) >= MOST:
                raise ConfigError(f"there are {MOST:,} tokens: revoke some first")
            kept.append(made)
        return token, made

    def revoke(self, identifier: str) -> KeptToken:
        """Remove a token; it lets nobody in from now on.

        Raises:
            ConfigError: there is none of that id, or the file can't be written.
        """
        with self._writing() as kept:
            for each in kept:
                if each.id == identifier:
                    kept.remove(each)
                    return each
        raise ConfigError(
            f"there is no token {identifier[:40]!r}: divingbell token list names them"
        )

    @contextlib.contextmanager
    def _writing(self) -> Iterator[list[KeptToken]]:
        """Give the tokens to be changed; they are written at the end of the block, by nobody else
        at the same time."""
        try:
            owned_folder.make(self._path.parent, 0o700)
            lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX)
                kept = self.kept()
                yield kept
                self._write(kept)
            finally:
                os.close(lock)
        except OSError as error:
            raise ConfigError(
                f"the tokens in {self._path} can't be written: {error.strerror}"
            ) from None

    def _write(self, kept: list[KeptToken]) -> None:
        new = self._path.with_suffix(".new")
        with contextlib.suppress(FileNotFoundError):
            new.unlink()
        opened = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(opened, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(kept), indent=1) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._path)

    def _look(self) -> None:
        """Read the file again if it is another than before."""
        try:
            found = os.stat(self._path)
        except OSError:
            self._seen, self._grants = None, {}
            return
        seen = (found.st_mtime_ns, found.st_ino, found.st_size)
        if seen == self._seen:
            return
        self._seen, self._grants = seen, {}
        try:
            kept = self.kept()
        except ConfigError as error:
            log.error("no token that was made by command lets anybody in: %s", error)
            return
        self._grants = {
            bytes.fromhex(each.hash): (Grant(each.user, frozenset(each.scopes)), each.expires)
            for each in kept
        }
