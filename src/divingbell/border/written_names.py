"""Names of users as they are written to the disk, where sums must still be told apart by user.

In place of what is personal in a name stands its kind; then follows what only the key of the vault
makes of the name, so that nobody who reads the file can try out whose it is.
"""

import functools
import re
from collections.abc import Callable
from pathlib import Path

from divingbell import logs
from divingbell.border.privacy.blotter import BLOTTER, could_be, replaced
from divingbell.errors import ConfigError
from divingbell.settings.vault import VaultSettings

log = logs.logger("divingbell")

TAG = 12
"""Characters that tell one user from another."""
MOST_KNOWN = 1024
"""Names that are remembered as they are written."""
NOT_SEARCHED = "[HIDDEN]"
"""What is written of a name that can't be searched, because a package is missing."""
# Letters alone: digits could be somebody's number when the name is looked at again.
_LETTERS = str.maketrans("0123456789abcdef", "abcdefghijklmnop")
_WRITTEN = re.compile(rf"[^\n]*\[[A-Z0-9_]+\][^\n]* [a-p]{{{TAG}}}")


class WrittenNames:
    """Names as they are written, always the same for the same name. May be used by several
    threads; it loads what searches when the first name comes that could be personal."""

    def __init__(
        self, chosen: VaultSettings, home: Path, tell: Callable[[str], None] | None = None
    ) -> None:
        """`home` is the folder of what lasts; a key is made there, and told by `tell`, where there
        is none; without `tell` none is made."""
        self._chosen, self._home, self._tell = chosen, home, tell
        self.of = functools.lru_cache(MOST_KNOWN)(self._of)

    def _of(self, name: str) -> str:
        if not could_be(name) or _WRITTEN.fullmatch(name):
            return name
        try:
            shown = replaced(name, BLOTTER.scanner().finds(name))
        except ConfigError:
            shown = NOT_SEARCHED
        return name if shown == name else f"{shown} {self._tag(name)}".rstrip()

    def _tag(self, name: str) -> str:
        # Here, because most names are not personal, and cryptography takes long to be loaded.
        from divingbell.border.vault.seal import Seal, load_key

        file = Path(self._chosen.key_file) if self._chosen.key_file else None
        try:
            seal = Seal(load_key(file, self._home, tell=self._tell))
        except ConfigError as error:
            log.warning("users whose names are personal can't be told apart: %s", error)
            return ""
        return seal.name_of("user", name)[:TAG].translate(_LETTERS)
