"""The settings of the vault: where values are kept that tokens stand for, and for how long."""

from dataclasses import dataclass, field
from typing import Annotated, Any
from urllib.parse import urlsplit

from divingbell.errors import ConfigError
from divingbell.settings import variables
from divingbell.settings.markers import Check, Described, FilePath, IsPath, ReadBy
from divingbell.settings.tables import Place

SQLITE = "sqlite"
REDIS = ("redis://", "rediss://", "unix://")
DAY = 86_400.0
LEAST_KEEP = 60.0
_MUST_BE = (
    'store must be "sqlite", "sqlite:" and the path of a file, or the address of a Redis that '
    'begins with "redis://", "rediss://" or "unix://"'
)


def read_store(value: Any, place: Place) -> str:
    """Return where a store is: paths from the root on, variables filled in.

    Raises:
        ConfigError: it is neither a file nor a Redis. An address is not shown, for its password.
    """
    if not isinstance(value, str):
        raise ConfigError(place.told(_MUST_BE))
    if value.startswith(f"{SQLITE}:"):
        try:
            path = IsPath().absolute(value.removeprefix(f"{SQLITE}:"), place.folder)
        except ValueError as error:
            raise ConfigError(place.told(f"store: {error}")) from None
        store = f"{SQLITE}:{path}" if path else value
    else:
        store = str(variables.expanded(value, place.environment, place.told("store"), {}))
    check_store(store, place)
    return store


def check_store(store: str, place: Place) -> None:
    """Raise ConfigError for what is neither a file nor the address of a Redis."""
    if store.startswith(f"{SQLITE}:"):
        is_one = store != f"{SQLITE}:"
    else:
        is_one = store == SQLITE or store.startswith(REDIS)
    if not is_one:
        raise ConfigError(place.told(_MUST_BE))


@dataclass(frozen=True, slots=True)
class VaultSettings:
    """The `[vault]` table."""

    store: Annotated[str, ReadBy(read_store)] = field(default=SQLITE, repr=False)
    """A file, or a Redis that several hosts share."""
    keep: Annotated[
        float,
        Described("a number of seconds"),
        Check("60 or more and less than 1,000,000,000", lambda value: LEAST_KEEP <= value < 1e9),
    ] = DAY
    """Seconds after the end of a conversation, or its last use, until its values are forgotten."""
    key_file: FilePath = ""
    """A file with the key; the variable DIVINGBELL_VAULT_KEY comes before it."""

    def __post_init__(self) -> None:
        check_store(self.store, Place(""))

    @property
    def is_default(self) -> bool:
        """Whether nobody has said where it is kept."""
        return self.store == SQLITE and not self.key_file

    @property
    def sqlite_path(self) -> str | None:
        """The file that was named; empty for the usual one, None for a Redis."""
        name, _, path = self.store.partition(":")
        return path if name == SQLITE else None

    @property
    def address(self) -> str:
        """The address of a Redis without its password, for people."""
        parts = urlsplit(self.store)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
