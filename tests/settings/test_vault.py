"""The settings of the vault: where it is, how long it keeps, where its key is."""

from pathlib import Path

import pytest

from divingbell import ConfigError
from divingbell.settings import config, disclosure
from divingbell.settings.sources import Found, Source
from divingbell.settings.vault import VaultSettings


def _load(tmp_path: Path, text: str, **environment: str) -> VaultSettings:
    file = tmp_path / "divingbell.toml"
    file.write_text(f"[vault]\n{text}")
    return config.load(file, {}, environment).vault


def test_paths_are_relative_to_the_file_and_variables_are_filled_in(tmp_path: Path) -> None:
    assert _load(tmp_path, "") == VaultSettings()
    chosen = _load(tmp_path, 'store = "sqlite:kept/v.db"\nkey_file = "key"\nkeep = 60')
    assert chosen.sqlite_path == f"{tmp_path}/kept/v.db"
    assert (chosen.key_file, chosen.keep) == (f"{tmp_path}/key", 60.0)
    chosen = _load(tmp_path, 'store = "redis://:${PASS}@kept.example/2"', PASS="s3cret")
    assert chosen.store == "redis://:s3cret@kept.example/2" and chosen.sqlite_path is None


def test_a_password_is_not_shown(tmp_path: Path) -> None:
    chosen = VaultSettings("rediss://ann:s3cret@kept.example:6379/2?password=s3cret")
    assert chosen.address == "rediss://kept.example:6379/2"
    assert "s3cret" not in repr(chosen)
    assert VaultSettings("unix://ann:s3cret@/run/r.sock?db=1").address == "unix:///run/r.sock"
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, 'store = "http://:s3cret@kept.example"')
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('store = "vault.db"', '[vault]: store must be "sqlite", "sqlite:" and the path'),
        ("store = 5", "store must be"),
        ('store = "sqlite:"', "store must be"),
        ('store = "sqlite:~nobody-of-that-name/x"', "store: there is no such home directory"),
        ('store = "${NOT_THERE}"', "store: the variable NOT_THERE is not set"),
        ("keep = 59", "keep must be a number of seconds, 60 or more"),
        ('keep = "1 day"', "keep must be a number of seconds"),
        ("key_file = 5", "key_file must be a path"),
        ('key = "x"', "there is no setting 'key': there are store, keep, key_file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)


def test_a_vault_that_no_table_was_read_for_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="store must be"):
        VaultSettings("elsewhere")


def test_the_key_is_no_setting(tmp_path: Path) -> None:
    assert _load(tmp_path, "", DIVINGBELL_VAULT_KEY="x") == VaultSettings()


def test_who_looks_at_a_strangers_file_sees_where_values_would_go(tmp_path: Path) -> None:
    text = b'[vault]\nstore = "redis://${HOST_TOKEN}@evil.example"'
    lines = disclosure.lines(Found(Source(tmp_path / "divingbell.toml", text)))
    assert "    redis://${HOST_TOKEN}@evil.example" in lines[lines.index("It connects to:") :]
    assert "It uses these variables of your environment: HOST_TOKEN" in lines
