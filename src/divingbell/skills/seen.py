"""What was seen of catalogues: the key that each skill was first signed with, and its versions.

A key is believed when it is first seen, if the person who is shown it agrees, and from then on no
other one is for that skill in that catalogue. A version stays what it was, and no older one comes
after it.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from divingbell.errors import ConfigError, SkillRefused
from divingbell.host import lock_file, private_file
from divingbell.skills.statement import Statement

FILE_NAME = "catalogues.json"
MAX_FILE = 32 << 20
LOCK_TIMEOUT = 10.0
"""Seconds to wait for another process that writes to it, which takes milliseconds."""
MAX_VERSIONS = 200
"""Versions of a skill that are remembered; the oldest are forgotten, and never taken again."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a skill in a catalogue."""

    key: str
    versions: Mapping[str, str] = field(default_factory=dict)
    """The digest of each version that was seen."""

    @property
    def newest(self) -> int:
        """The newest version that was seen."""
        return max(map(int, self.versions), default=0)


class Seen:
    """The record, in a private file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE_NAME

    def of(self, catalogue: str, name: str) -> Known | None:
        """Return what is known of a skill in a catalogue.

        Raises:
            ConfigError: the record can't be read.
        """
        return self._read().get(catalogue, {}).get(name)

    def keys(self, catalogue: str) -> set[str]:
        """Return the keys that skills of a catalogue are known to be signed with.

        Raises:
            ConfigError: the record can't be read.
        """
        return {known.key for known in self._read().get(catalogue, {}).values()}

    def check(self, catalogue: str, said: Statement, named_key: str = "") -> Known | None:
        """Compare a statement with what was seen; return what is known, None if it is the first.

        `named_key` is one that the person has named: it takes the place of the one that is known.

        Raises:
            SkillRefused: another key, an older version, or other files under a version's number.
            ConfigError: the record can't be read.
        """
        known = self.of(catalogue, said.name)
        if named_key and said.key != named_key:
            raise SkillRefused(
                f"{said.name} is signed with the key {said.key}, and not with {named_key}: ask its "
                "publisher which key is theirs"
            )
        if known is None:
            return None
        if known.key != said.key and not named_key:
            raise SkillRefused(
                f"{said.name} in {catalogue} was signed with the key {known.key} when it was first "
                f"seen, and now with {said.key}: somebody else may have put it there. If its "
                "publisher tells you, by another way than this catalogue, that this is their new "
                f"key, name it: --key {said.key}"
            )
        if said.version < known.newest:
            raise SkillRefused(
                f"{catalogue} offers version {said.version} of {said.name}, but version "
                f"{known.newest} was seen there: it was set back, or an old copy is shown to you. "
                "Nothing was installed; ask its publisher to publish what is meant as a newer one"
            )
        before = known.versions.get(str(said.version))
        if before is not None and before != said.digest:
            raise SkillRefused(
                f"version {said.version} of {said.name} in {catalogue} was {before} when it was "
                f"seen, and is {said.digest} now: a version must stay what it was. Ask its "
                "publisher to publish what is meant as a newer one"
            )
        return known

    def remember(self, catalogue: str, said: Statement) -> None:
        """Write down that a statement was seen, and its key believed.

        Raises:
            ConfigError: it can't be written.
        """
        with lock_file.alone(self._path.with_suffix(".lock"), LOCK_TIMEOUT):
            found = self._read()
            known = found.setdefault(catalogue, {}).get(said.name, Known(said.key))
            versions = {**known.versions, str(said.version): said.digest}
            newest = sorted(versions, key=int)[-MAX_VERSIONS:]
            kept = {version: versions[version] for version in newest}
            found[catalogue][said.name] = Known(said.key, kept)
            self._write(found)

    def _read(self) -> dict[str, dict[str, Known]]:
        data = private_file.read(self._path, MAX_FILE)
        if data is None and not os.path.lexists(self._path):
            return {}
        try:
            return {
                catalogue: {name: _known(each) for name, each in skills.items()}
                for catalogue, skills in json.loads(data or b"").items()
            }
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            # Without it every key would be a first one: nothing is taken until it is mended.
            raise ConfigError(
                f"{self._path} can't be read: it says which keys you have agreed to. It must be a "
                "file of yours; bring it back from a copy, or remove it to begin anew"
            ) from None

    def _write(self, found: Mapping[str, Mapping[str, Known]]) -> None:
        plain = {
            catalogue: {name: asdict(known) for name, known in skills.items()}
            for catalogue, skills in found.items()
        }
        try:
            private_file.write(self._path, json.dumps(plain, indent=1).encode())
        except OSError as error:
            raise ConfigError(f"{self._path} can't be written: {error.strerror}") from None


def _known(plain: Any) -> Known:
    versions = {str(int(version)): str(digest) for version, digest in plain["versions"].items()}
    return Known(str(plain["key"]), versions)
