"""Keys that are kept: 32 bytes in base64, in a variable or in a file of their owner's."""

import base64
import binascii
import os
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from divingbell.errors import ConfigError
from divingbell.host import private_file

KEY_BYTES = 32
MOST_FILE = 1000
HOW_TO_MAKE = (
    "make one with: python3 -c 'import base64, os; "
    "print(base64.b64encode(os.urandom(32)).decode())'"
)


@dataclass(frozen=True, slots=True)
class KeptKey:
    """A key by its use: where it is looked for, and what is said about it."""

    use: str
    """What it is the key of, in messages: "the vault"."""
    variable: str
    file_name: str
    """Its file in the folder of what is kept, where no other is named."""
    when_made: str
    """What whoever runs this has to know when one was made."""
    unwritable: type[ConfigError] = ConfigError

    def load(
        self,
        path: Path | None,
        folder: Path,
        environment: Mapping[str, str],
        tell: Callable[[str], None] | None,
    ) -> bytes:
        """Return the key: from the environment, from a file that was named, or from the folder of
        what is kept, where it is made and told when there is none; without `tell` none is made.

        Raises:
            ConfigError: it is there and can't be used, or is not there and can't be made.
        """
        if text := environment.get(self.variable, ""):
            return _decoded(text, f"the variable {self.variable}")
        chosen = path or folder / self.file_name
        is_there = os.path.lexists(chosen)  # before it is read: another may make it meanwhile
        found = private_file.read(chosen, MOST_FILE)
        if found is not None:
            return _decoded(found.decode("ascii", "replace"), str(chosen))
        if path is not None or tell is None or is_there:
            raise ConfigError(
                f"the key of {self.use} can't be read from {chosen}: it must be a file of yours "
                f"that nobody else can write to, with 32 bytes in base64; {HOW_TO_MAKE}"
            )
        key = secrets.token_bytes(KEY_BYTES)
        try:
            private_file.write(chosen, base64.b64encode(key) + b"\n", replace=False)
        except FileExistsError:  # another Divingbell has made one at the same time
            return self.load(path, folder, environment, None)
        except OSError as error:
            raise self.unwritable(
                f"the key of {self.use} can't be written to {chosen} ({error.strerror}): "
                f"set {self.variable}, or XDG_DATA_HOME to another folder"
            ) from error
        tell(f"a key for {self.use} was made: {chosen}; {self.when_made}")
        return key


def _decoded(text: str, where: str) -> bytes:
    try:
        key = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        key = b""
    if len(key) != KEY_BYTES:
        raise ConfigError(f"{where} must hold 32 bytes in base64; {HOW_TO_MAKE}")
    return key
