"""The opening of the vault: its store and its key, as the settings say."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from divingbell import logs
from divingbell.border.vault.base import Store, VaultUnavailable
from divingbell.border.vault.memory import MemoryStore
from divingbell.border.vault.seal import Seal, load_key
from divingbell.border.vault.sqlite import FILE_NAME, SqliteStore
from divingbell.border.vault.vault import Vaults
from divingbell.host.kept_key import KEY_BYTES
from divingbell.settings.vault import VaultSettings

log = logs.logger("divingbell")


async def opened(chosen: VaultSettings, home: Path) -> Vaults:
    """Return the vaults of these settings, started. Where the usual place can't be written to, they
    are kept in memory, and the log says so.

    Raises:
        ConfigError: the key can't be used, or a store that was chosen can't be reached.
    """
    try:
        vaults = open_vaults(chosen, home)
        await vaults.start()
        return vaults
    except VaultUnavailable as error:
        if not chosen.is_default:
            raise
        log.warning("%s; what stands for hidden values is forgotten when this program ends", error)
        return await opened_in_memory(chosen)


async def opened_in_memory(chosen: VaultSettings) -> Vaults:
    """Return vaults that end with this process, started; nothing of them is written."""
    vaults = Vaults(MemoryStore(chosen.keep), Seal(secrets.token_bytes(KEY_BYTES)), chosen.keep)
    await vaults.start()
    return vaults


def open_vaults(
    chosen: VaultSettings,
    home: Path,
    environment: Mapping[str, str] = os.environ,
    tell: Callable[[str], None] | None = log.warning,
) -> Vaults:
    """Return the vaults of these settings, not started yet; `home` is the folder of what lasts.

    A key is made there when there is none, and told; without `tell` none is made.

    Raises:
        ConfigError: the key can't be used, or what the store needs is not installed.
    """
    store = make_store(chosen, home)
    key_file = Path(chosen.key_file) if chosen.key_file else None
    return Vaults(store, Seal(load_key(key_file, home, environment, tell)), chosen.keep)


def make_store(chosen: VaultSettings, home: Path) -> Store:
    """Return the store, not opened yet.

    Raises:
        ConfigError: what it needs is not installed, or the address is none of a Redis.
    """
    path = file_of(chosen, home)
    if path is not None:
        return SqliteStore(path, chosen.keep)
    from divingbell.border.vault.redis import RedisStore

    return RedisStore(chosen.store, chosen.keep)


def file_of(chosen: VaultSettings, home: Path) -> Path | None:
    """Return the file of the store; None where it is a Redis."""
    named = chosen.sqlite_path
    return None if named is None else Path(named) if named else home / FILE_NAME
