"""The statement beside a skill in a catalogue: who publishes these files, as which version.

It is signed with the publisher's key. A signature says that the holder of that key published this;
whether the key is the one that is meant, `seen.py` knows from the first time on.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import SkillRefused
from divingbell.host.kept_key import KeptKey
from divingbell.host.signing_key import SigningKey, is_public_key, is_signed
from divingbell.skills import names

VARIABLE = "DIVINGBELL_SKILLS_KEY"
FILE_NAME = "skills.key"
ENDING = ".signed.json"
"""Of the statement's file: no name of a skill has a dot, so none is taken for the other."""
MAX_STATEMENT = 4_000
MAX_VERSION = 1_000_000
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_KEY = KeptKey(
    "published skills",
    VARIABLE,
    FILE_NAME,
    "whoever has it can publish skills in your name, and without it you can't publish newer "
    "versions of yours: keep a copy where nobody else reads it",
)


@dataclass(frozen=True, slots=True)
class Statement:
    """What a publisher says of a skill."""

    name: str
    version: int
    digest: str
    """Of all files: see `Skill.digest`."""
    key: str
    """The public half of the publisher's key."""
    signature: str

    def to_bytes(self) -> bytes:
        """Return the file."""
        said = {
            "name": self.name,
            "version": self.version,
            "digest": self.digest,
            "key": self.key,
            "signature": self.signature,
        }
        return json.dumps(said, indent=1).encode() + b"\n"


def file_name(name: str) -> str:
    """Return the name of the statement's file, beside the folder of the skill."""
    return f"{name}{ENDING}"


def sign(name: str, version: int, digest: str, key: SigningKey) -> Statement:
    """Return the statement that the holder of a key makes of a skill."""
    signature = key.sign(_signed_bytes(name, version, digest))
    return Statement(name, version, digest, key.public, signature)


def read(data: bytes, name: str) -> Statement:
    """Return the statement in a file, which must be about the skill of this name.

    Raises:
        SkillRefused: it is none, is about another, or was not signed by the key that it names.
    """
    statement = _parsed(data, name)
    signed = _signed_bytes(statement.name, statement.version, statement.digest)
    if not is_signed(signed, statement.signature, statement.key):
        raise SkillRefused(
            f"the statement on {name} is not signed by the key that it names: it was changed after "
            "it was published, or forged. Tell its publisher"
        )
    return statement


def _parsed(data: bytes, name: str) -> Statement:
    try:
        said = json.loads(data if len(data) <= MAX_STATEMENT else b"")
        fields = {field: said[field] for field in Statement.__slots__}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise SkillRefused(f"{file_name(name)} is no statement on a skill") from None
    version, texts = fields["version"], [fields[each] for each in fields if each != "version"]
    is_fit = (
        type(version) is int
        and 0 < version <= MAX_VERSION
        and all(isinstance(text, str) for text in texts)
        and names.check(fields["name"]) == name
        and _DIGEST.fullmatch(fields["digest"])
        and is_public_key(fields["key"])
    )
    if not is_fit:
        raise SkillRefused(f"{file_name(name)} is no statement on a skill called {name}")
    return Statement(**fields)


def _signed_bytes(name: str, version: int, digest: str) -> bytes:
    return json.dumps(["divingbell skill", name, version, digest]).encode()


def load_key(
    folder: Path,
    tell: Callable[[str], None],
    environment: Mapping[str, str] = os.environ,
) -> SigningKey:
    """Return the key that this user publishes with; it is made and told of when there is none.

    Raises:
        ConfigError: it can't be used, or made.
    """
    return SigningKey(_KEY.load(None, folder, environment, tell))
