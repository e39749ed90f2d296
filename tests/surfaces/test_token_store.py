"""The token store: made, found again, expired and revoked without a restart."""

from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.surfaces.auth import Tokens, digest_of, hash_of
from divingbell.surfaces.token_store import TokenStore


def test_a_token_holds_at_once_in_another_process_and_no_longer_once_revoked(
    tmp_path: Path,
) -> None:
    path = tmp_path / "kept" / "tokens.json"
    serving = Tokens({}, store=TokenStore(path))
    assert len(serving) == 0
    token, made = TokenStore(path).create("anne", frozenset({"read"}), note="laptop")
    second, _ = TokenStore(path).create("anne")
    grant = serving.grant_of(token)
    assert grant is not None and grant.user == "anne" and grant.scopes == {"read"}
    assert serving.grant_of(second) is not None and len(serving) == 2
    assert token not in path.read_text() and path.stat().st_mode & 0o077 == 0
    TokenStore(path).revoke(made.id)
    assert serving.grant_of(token) is None and serving.grant_of(second) is not None
    path.unlink()
    assert serving.grant_of(second) is None


def test_a_token_expires(tmp_path: Path) -> None:
    now = 1000.0
    store = TokenStore(tmp_path / "tokens.json", lambda: now)
    token, _ = store.create("anne", seconds=60)
    assert store.grant_of(digest_of(token)) is not None
    now = 1060.0
    assert store.grant_of(digest_of(token)) is None


def test_what_can_not_be_meant_is_refused(tmp_path: Path) -> None:
    store = TokenStore(tmp_path / "tokens.json")
    with pytest.raises(ConfigError, match="plain name"):
        store.create("../anne")
    with pytest.raises(ConfigError, match="token list"):
        store.revoke("nothing")


@pytest.mark.parametrize("text", ["{", "[1]", '[{"id": 1}]', "\0"])
def test_a_file_that_is_damaged_lets_nobody_in(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    token, _ = TokenStore(path).create("anne")
    path.write_text(text)
    assert TokenStore(path).grant_of(digest_of(token)) is None
    with pytest.raises(ConfigError, match="can't be read"):
        TokenStore(path).kept()


def test_a_file_to_which_others_could_add_lets_nobody_in(tmp_path: Path) -> None:
    path = tmp_path / "tokens.json"
    token, _ = TokenStore(path).create("anne")
    path.chmod(0o666)
    assert TokenStore(path).grant_of(digest_of(token)) is None


def test_who_has_a_private_token_is_known_until_it_goes(tmp_path: Path) -> None:
    now = 1000.0
    store = TokenStore(tmp_path / "tokens.json", lambda: now)
    tokens = Tokens({"carl": hash_of("c" * 20)}, frozenset({"run", "private"}), store)
    store.create("anne", frozenset({"run", "private"}), seconds=60)
    _, kept = store.create("bert", frozenset({"read", "private"}))
    store.create("dora")
    assert tokens.private_users() == {"anne", "bert", "carl"}
    now += 61
    store.revoke(kept.id)
    assert tokens.private_users() == {"carl"}
