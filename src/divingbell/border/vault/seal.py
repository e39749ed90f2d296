"""The seal: values are encrypted before they are written anywhere, each bound to its place."""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from divingbell import logs
from divingbell.border.vault.base import VaultUnavailable
from divingbell.host.kept_key import KeptKey

log = logs.logger("divingbell")

VARIABLE = "DIVINGBELL_VAULT_KEY"
FILE_NAME = "vault.key"
NONCE_BYTES = 12
_KEY = KeptKey(
    "the vault",
    VARIABLE,
    FILE_NAME,
    "without it nobody can read what is kept there",
    VaultUnavailable,
)


class NotOpened(Exception):
    """Raised for what this key has not sealed, or not for this place."""


class Seal:
    """Seals and opens what is kept, with one key."""

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(hashlib.blake2b(key, person=b"values", digest_size=32).digest())
        self._naming = hashlib.blake2b(key, person=b"names", digest_size=32).digest()

    def name_of(self, *parts: str) -> str:
        """Return a name for something whose own name is not to be known."""
        written = json.dumps(parts).encode("utf-8", "surrogatepass")
        return hmac.new(self._naming, written, hashlib.sha256).hexdigest()[:40]

    def close(self, value: Any, place: str) -> bytes:
        """Return JSON data sealed for a place; elsewhere it can't be opened."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        written = json.dumps(value, separators=(",", ":")).encode()
        return nonce + self._cipher.encrypt(nonce, written, place.encode())

    def open(self, sealed: bytes, place: str) -> Any:
        """Return what was sealed for a place.

        Raises:
            NotOpened: by another key, or for another place, or it was changed.
        """
        nonce, closed = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        try:
            return json.loads(self._cipher.decrypt(nonce, closed, place.encode()))
        except (InvalidTag, ValueError) as error:
            raise NotOpened(place) from error


def load_key(
    path: Path | None,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] | None = log.warning,
) -> bytes:
    """Return the key of the vault: see `KeptKey.load`.

    Raises:
        ConfigError: it is there and can't be used.
    """
    return _KEY.load(path, folder, environment, tell)
