"""Bearer tokens: who may call over HTTP, and under which name."""

import hashlib
import os
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, get_args

from divingbell import logs
from divingbell.errors import ConfigError
from divingbell.host import owned_folder

log = logs.logger("divingbell")

VARIABLE = "DIVINGBELL_TOKENS"
HASHED = "sha256:"
SHORTEST = 16
"""Characters of a token; shorter ones can be guessed."""
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")


ScopeWord = Literal["run", "read", "approve", "reveal", "metrics", "admin", "private"]
"""What a token lets its user do. run: run code, which includes read. approve: answer questions
about calls. reveal: see the values behind tokens such as `[EMAIL_482715]`. metrics: read /metrics.
admin: see what is everybody's. private allows nothing: personal data is kept from the models of its
user, whatever `privacy` says."""
WORDS: tuple[ScopeWord, ...] = get_args(ScopeWord)
PRIVATE: ScopeWord = "private"
SCOPES: tuple[ScopeWord, ...] = tuple(word for word in WORDS if word != PRIVATE)
"""All that allow something."""
USUAL: frozenset[ScopeWord] = frozenset({"run", "read", "approve"})
"""What a token gives of which nothing else is said."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What a token gives: the name of a user, and what may be done under it."""

    user: str
    scopes: frozenset[ScopeWord] = USUAL


class Store(Protocol):
    """Tokens that come and go while they are used."""

    def __len__(self) -> int: ...

    def grant_of(self, digest: bytes) -> Grant | None: ...

    def private_users(self) -> frozenset[str]: ...


class Tokens:
    """The grants of tokens, by their hashes; the tokens themselves are not kept."""

    def __init__(
        self,
        hashes: Mapping[str, str],
        scopes: frozenset[ScopeWord] = USUAL,
        store: "Store | None" = None,
    ) -> None:
        """`hashes` are by the name of the user; `store` has more, which may change at any time."""
        self._store = store
        self._grants = {bytes.fromhex(value): Grant(name, scopes) for name, value in hashes.items()}

    def __len__(self) -> int:
        return len(self._grants) + (0 if self._store is None else len(self._store))

    def private_users(self) -> frozenset[str]:
        """Return those whose tokens say that personal data is kept from their models."""
        own = frozenset(each.user for each in self._grants.values() if PRIVATE in each.scopes)
        return own | (frozenset() if self._store is None else self._store.private_users())

    def grant_of(self, token: str) -> Grant | None:
        """Return what a token gives; None for one that is none."""
        return self.grant_by_digest(digest_of(token))

    def grant_by_digest(self, digest: bytes) -> Grant | None:
        """Return what the token of a hash gives, at this moment."""
        # Looked up by its hash: how long that takes tells nothing about any token.
        found = self._grants.get(digest)
        return self._store.grant_of(digest) if found is None and self._store is not None else found


def made(store: Store | None = None) -> tuple[Tokens, str]:
    """Make a token for one user, `local`, who may do everything; return it too."""
    token = secrets.token_urlsafe(32)
    return Tokens({"local": hash_of(token)}, frozenset(SCOPES), store), token


def load(
    file: Path | None,
    given: tuple[str, ...],
    environment: Mapping[str, str] = os.environ,
    store: Store | None = None,
) -> Tokens | None:
    """Read the tokens of a file, of the command line and of the environment; None for none, also in
    the store.

    Each is `name token` or `name sha256:…`; in the environment commas stand between them.

    Raises:
        ConfigError: one can't be used; the message does not repeat it.
    """
    lines: list[tuple[str, str]] = []
    if file is not None:
        lines += [(f"{file}, line {at}", line) for at, line in enumerate(_read(file), 1)]
    lines += [("--token", line.replace("=", " ", 1)) for line in given]
    lines += [(VARIABLE, line) for line in environment.get(VARIABLE, "").split(",")]
    hashes: dict[str, str] = {}
    for where, line in lines:
        words = [] if line.lstrip().startswith("#") else line.split()
        if not words:
            continue
        name, value = words if len(words) == 2 else ("", "")
        if not _NAME.fullmatch(name):
            raise ConfigError(f"{where}: write a token as `name token`, with a plain name")
        if name in hashes:
            raise ConfigError(f"{where}: there is a token for {name} already")
        hashes[name] = _hash(value, where)
    if file is not None and not hashes:
        raise ConfigError(f"{file} holds no token: write lines of `name token`")
    is_any = hashes or (store is not None and len(store))
    return Tokens(hashes, store=store) if is_any else None


def check_user(name: str) -> None:
    """Raise ConfigError for what can't be the name of a user."""
    if not _NAME.fullmatch(name):
        raise ConfigError(
            f"{name[:80]!r} can't be the name of a user: take a plain name of letters, digits, "
            "`.`, `_`, `@` and `-`"
        )


def hash_of(token: str) -> str:
    """Return what stands in a file of tokens after `sha256:`."""
    return digest_of(token).hex()


def digest_of(token: str) -> bytes:
    """Return the hash of a token, or of anything that is as good as one."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()


def _hash(value: str, where: str) -> str:
    if value.startswith(HASHED):
        digest = value.removeprefix(HASHED).lower()
        if not _HASH.fullmatch(digest):
            raise ConfigError(f"{where}: {HASHED} needs 64 hexadecimal digits after it")
        return digest
    if len(value) < SHORTEST:
        raise ConfigError(f"{where}: a token has at least {SHORTEST} characters")
    return hash_of(value)


def _read(file: Path) -> list[str]:
    try:
        with file.open(encoding="utf-8") as opened:
            if not owned_folder.is_ours(opened.fileno()):
                raise ConfigError(
                    f"another user could add tokens to {file}: make it yours, and chmod 600 it"
                )
            if os.fstat(opened.fileno()).st_mode & 0o077:
                log.warning("others on this machine can read %s: chmod 600 it", file)
            return opened.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"the tokens in {file} can't be read: {reason}") from None
