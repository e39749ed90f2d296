"""The seal: values are encrypted before they are written anywhere, each bound to its place."""

import base64
import binascii
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
from divingbell.errors import ConfigError
from divingbell.host import private_file

log = logs.logger("divingbell")

VARIABLE = "DIVINGBELL_VAULT_KEY"
FILE_NAME = "vault.key"
KEY_BYTES = 32
NONCE_BYTES = 12
MOST_FILE = 1000
HOW_TO_MAKE = (
    "make one with: python3 -c 'import base64, os; "
    "print(base64.b64encode(os.urandom(32)).decode())'"
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
    """Return the key: from the environment, from a file that was named, or from the folder of what
    is kept, where it is made and told when there is none; without `tell` none is made.

    Raises:
        ConfigError: it is there and can't be used.
    """
    if text := environment.get(VARIABLE, ""):
        return _decoded(text, f"the variable {VARIABLE}")
    chosen = path or folder / FILE_NAME
    found = private_file.read(chosen, MOST_FILE)
    if found is not None:
        return _decoded(found.decode("ascii", "replace"), str(chosen))
    if path is not None or tell is None or os.path.lexists(chosen):
        raise ConfigError(
            f"the key of the vault can't be read from {chosen}: it must be a file of yours that "
            f"nobody else can write to, with 32 bytes in base64; {HOW_TO_MAKE}"
        )
    key = secrets.token_bytes(KEY_BYTES)
    try:
        private_file.write(chosen, base64.b64encode(key) + b"\n", replace=False)
    except FileExistsError:  # another Divingbell has made one at the same time
        return load_key(path, folder, environment, None)
    except OSError as error:
        raise VaultUnavailable(
            f"the key of the vault can't be written to {chosen} ({error.strerror}): "
            f"set {VARIABLE}, or XDG_DATA_HOME to another folder"
        ) from error
    tell(f"a key for the vault was made: {chosen}; without it nobody can read what is kept there")
    return key


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{where} must hold 32 bytes in base64; {HOW_TO_MAKE}")
    return key
