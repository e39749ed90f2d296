"""The opening of the vault, as the settings say."""

import base64
import threading
from pathlib import Path

import pytest

from divingbell.border.vault import seal
from divingbell.border.vault.opening import file_of, make_store, open_vaults
from divingbell.border.vault.redis import RedisStore
from divingbell.errors import ConfigError
from divingbell.principal import Principal
from divingbell.settings.vault import VaultSettings

ANN = Principal("ann", "first")


async def test_what_one_process_has_kept_another_finds_with_the_key_that_was_made(
    tmp_path: Path,
) -> None:
    told = list[str]()
    vaults = open_vaults(VaultSettings(), tmp_path, {}, told.append)
    await vaults.start()
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await vaults.close()
    assert [str(tmp_path / "vault.key") in line for line in told] == [True]
    again = open_vaults(VaultSettings(), tmp_path, {}, told.append)
    await again.start()
    assert (await again.entries(ANN, [token]))[token].value == "ann@x.org"
    await again.close()
    assert len(told) == 1
    assert b"ann@x.org" not in (tmp_path / "vault.db").read_bytes()


async def test_a_file_that_was_named_is_used(tmp_path: Path) -> None:
    chosen = VaultSettings(f"sqlite:{tmp_path}/other/v.db")
    vaults = open_vaults(chosen, tmp_path, {seal.VARIABLE: base64.b64encode(bytes(32)).decode()})
    await vaults.start()
    await vaults.close()
    assert file_of(chosen, tmp_path) == tmp_path / "other/v.db"
    assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_an_address_is_one_of_a_redis(tmp_path: Path) -> None:
    chosen = VaultSettings("redis://127.0.0.1:1/0")
    assert isinstance(make_store(chosen, tmp_path), RedisStore)
    assert file_of(chosen, tmp_path) is None


async def test_a_store_that_can_not_be_used_is_an_error_of_the_settings(tmp_path: Path) -> None:
    (tmp_path / "v.db").write_bytes(b"no database at all" * 100)
    for store in (f"sqlite:{tmp_path}/v.db", f"unix://{tmp_path}/no.sock"):
        vaults = open_vaults(VaultSettings(store), tmp_path, {}, lambda _: None)
        with pytest.raises(ConfigError, match="the vault can't be used"):
            await vaults.start()


def test_no_key_is_made_for_those_who_only_look(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the key of the vault can't be read"):
        open_vaults(VaultSettings(), tmp_path, {}, tell=None)
    assert not list(tmp_path.iterdir())


def test_those_who_start_together_have_one_key(tmp_path: Path) -> None:
    keys, together = list[bytes](), threading.Barrier(8)

    def start() -> None:
        together.wait()
        keys.append(seal.load_key(None, tmp_path, {}, lambda _: None))

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(keys) == 8 and len(set(keys)) == 1
    assert [path.name for path in tmp_path.iterdir()] == [seal.FILE_NAME]
