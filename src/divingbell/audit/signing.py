"""The signing of heads: who has only the log can compute all its hashes again, and not these.

A head says how far a chain goes: the number and hash of its last record. It is signed with a key
(Ed25519), and verified with the public half of it.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell import logs
from divingbell.audit.chain import Link
from divingbell.errors import ConfigError
from divingbell.host.kept_key import KeptKey
from divingbell.host.signing_key import SigningKey, is_public_key, is_signed

log = logs.logger("divingbell")

VARIABLE = "DIVINGBELL_AUDIT_KEY"
FILE_NAME = "audit.key"
TAG = 12
"""Characters that tell one user from another whose name is not written."""
_KEY = KeptKey(
    "the audit log",
    VARIABLE,
    FILE_NAME,
    "whoever has it can sign a forged log: keep it where the log's readers can't read it",
)
_NO_HEAD = (ValueError, KeyError, TypeError, RecursionError, OverflowError)
"""What reading a line raises that somebody else has written."""


@dataclass(frozen=True, slots=True)
class Head:
    """How far a chain goes, at a time."""

    chain: str
    link: Link
    at: str

    def _signed_bytes(self) -> bytes:
        parts = ["divingbell audit head", self.chain, self.link.number, self.link.hash, self.at]
        return json.dumps(parts).encode()


class Key(SigningKey):
    """The key that signs heads."""

    def __init__(self, secret: bytes) -> None:
        super().__init__(secret)
        self._naming = hashlib.blake2b(secret, person=b"users", digest_size=32).digest()

    def signed(self, head: Head) -> bytes:
        """Return a head as a line of JSON with its signature."""
        signature = self.sign(head._signed_bytes())
        said = {
            "chain": head.chain,
            "number": head.link.number,
            "hash": head.link.hash,
            "at": head.at,
            "key": self.public,
            "signature": signature,
        }
        return json.dumps(said, separators=(",", ":")).encode() + b"\n"

    def tag(self, name: str) -> str:
        """Return what stands for a name that is not written: the same for the same one."""
        written = name.encode("utf-8", "surrogatepass")
        return hmac.new(self._naming, written, hashlib.sha256).hexdigest()[:TAG]


class NotSigned(Exception):
    """Raised for what is no head, or not signed by the key."""


def claimed_number(line: bytes) -> int:
    """Return how far a line says that its chain goes, signed or not; 0 for what is no head."""
    try:
        return int(json.loads(line)["number"])
    except _NO_HEAD:
        return 0


def head_in(line: bytes, public: str) -> Head:
    """Return the head of a line that the key has signed whose public half this is.

    Raises:
        NotSigned: it has not.
    """
    try:
        said = json.loads(line)
        link = Link(int(said["number"]), str(said["hash"]))
        head = Head(str(said["chain"]), link, str(said["at"]))
        signature = str(said["signature"])
    except _NO_HEAD as error:
        raise NotSigned(type(error).__name__) from None
    if not is_signed(head._signed_bytes(), signature, public):
        raise NotSigned("InvalidSignature")
    return head


def check_public(text: str) -> str:
    """Return a public key, as `audit head` shows it.

    Raises:
        ConfigError: it is none.
    """
    if not is_public_key(text):
        raise ConfigError(
            "--key is a public key as `divingbell audit head` shows it: 32 bytes in base64"
        )
    return text


def load_key(
    path: Path | None,
    folder: Path,
    environment: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] | None = log.warning,
) -> Key:
    """Return the key of the audit log: see `KeptKey.load`.

    Raises:
        ConfigError: it can't be used, or is not there and can't be made.
    """
    return Key(_KEY.load(path, folder, environment, tell))
