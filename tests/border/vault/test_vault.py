"""Vaults: tokens are stable in a conversation, unknown elsewhere, and come back from the store."""

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from divingbell.border.vault import vault as vault_module
from divingbell.border.vault.base import Store, StoreFailed
from divingbell.border.vault.redis import RedisStore
from divingbell.border.vault.seal import Seal
from divingbell.border.vault.sqlite import SqliteStore
from divingbell.border.vault.vault import Vaults
from divingbell.errors import ConfigError, UnknownToken
from divingbell.principal import Principal
from tests.border.vault.conftest import Server
from tests.waiting import until

KEEP = 3600.0
ANN = Principal("ann", "first")
Stores = Callable[[], Store]


@pytest.fixture(params=["sqlite", "redis"])
def stores(request: pytest.FixtureRequest, tmp_path: Path) -> Stores:
    if request.param == "sqlite":
        return lambda: SqliteStore(tmp_path / "vault.db", KEEP)
    server: Server = request.getfixturevalue("redis_server")
    return lambda: RedisStore(server.url, KEEP)


async def opened(store: Store, key: bytes = bytes(32)) -> Vaults:
    vaults = Vaults(store, Seal(key), KEEP)
    await vaults.start()
    return vaults


async def test_a_value_has_one_token_in_its_conversation_and_none_elsewhere(stores: Stores) -> None:
    vaults = await opened(stores())
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL", "crm")
    assert vaults.of(ANN).token_of("ann@x.org", "EMAIL") == token
    assert vaults.of(ANN).token_of("bob@x.org", "EMAIL") != token
    assert vaults.of(Principal("ann", "second")).token_of("ann@x.org", "EMAIL") != token
    found = await vaults.entries(ANN, [token])
    assert found[token].value == "ann@x.org" and found[token].origins == {"crm"}
    assert "ann@x.org" not in repr(found)
    for other in (Principal("ann", "second"), Principal("bob", "first")):
        with pytest.raises(UnknownToken, match="not known in this conversation"):
            await vaults.entries(other, [token])
    with pytest.raises(UnknownToken):
        await vaults.entries(ANN, [token, "[EMAIL_999999]"])
    await vaults.close()


async def test_what_was_kept_is_there_after_a_restart(stores: Stores) -> None:
    vaults = await opened(stores())
    tokens = [vaults.of(ANN).token_of(f"{number}@x.org", "EMAIL") for number in range(2500)]
    vaults.of(ANN).token_of("7@x.org", "EMAIL", "crm")
    await vaults.close()
    again = await opened(stores())
    found = await again.entries(ANN, tokens)
    assert [found[token].value for token in tokens] == [f"{number}@x.org" for number in range(2500)]
    assert found[tokens[7]].origins == {"crm"}
    assert again.of(ANN).token_of("7@x.org", "EMAIL") == tokens[7]
    found_anywhere = await again.anywhere([*tokens, "[EMAIL_999999999]"])
    assert len(found_anywhere) == len(tokens)
    [entry] = found_anywhere[tokens[3]].values()
    assert entry.value == "3@x.org"
    counts = await again.counts()
    assert (counts.conversations, counts.values) == (1, {"EMAIL": 2500})
    await again.close()


async def test_another_key_is_refused(stores: Stores) -> None:
    await (await opened(stores())).close()
    with pytest.raises(ConfigError, match="made with another key"):
        await opened(stores(), bytes(range(32)))


async def test_values_are_written_while_it_runs_and_never_in_the_clear(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "vault.db", KEEP)
    vaults = await opened(store)
    token = vaults.of(ANN).token_of("ann@example.org", "EMAIL", "crm")
    await until(lambda: not vaults._waiting, "it is kept")
    written = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert token.encode() in written
    assert b"ann@" not in written and b"crm" not in written
    assert os.stat(tmp_path / "vault.db").st_mode & 0o077 == 0
    await vaults.close()


async def test_what_nobody_has_used_for_long_is_gone_at_the_next_start(tmp_path: Path) -> None:
    vaults = await opened(SqliteStore(tmp_path / "vault.db", KEEP))
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await vaults.close()
    with sqlite3.connect(tmp_path / "vault.db") as database:
        database.execute("UPDATE conversations SET used = used - ?", (KEEP + 1,))
    database.close()
    again = await opened(SqliteStore(tmp_path / "vault.db", KEEP))
    with pytest.raises(UnknownToken):
        await again.entries(ANN, [token])
    assert (await again.counts()).values == {}
    await again.close()


async def test_in_redis_a_conversation_expires(redis_server: Server) -> None:
    store = RedisStore(redis_server.url, KEEP)
    vaults = await opened(store)
    vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await until(lambda: not vaults._waiting, "it is kept")
    [name] = [name async for name in store._names()]
    assert 0 < await store._redis.ttl(f"divingbell:vault:{name}") <= KEEP
    await vaults.close()


class FullDisk(SqliteStore):
    """A store whose disk is full until it is told otherwise."""

    full = True

    async def put(self, rows: object) -> None:
        if self.full:
            raise StoreFailed("database or disk is full")
        await super().put(rows)  # type: ignore[arg-type]


async def test_a_full_disk_costs_nothing_while_it_runs_and_is_made_up_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vault_module, "RETRY_LEAST", 0.01)
    store = FullDisk(tmp_path / "vault.db", KEEP)
    vaults = await opened(store)
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await until(lambda: "disk is full" in caplog.text, "the log says so")
    assert "ann@x.org" not in caplog.text
    assert (await vaults.entries(ANN, [token]))[token].value == "ann@x.org"
    store.full = False
    await until(lambda: not vaults._waiting, "it is kept after all")
    await vaults.close()


async def test_a_redis_that_is_gone_is_said_and_nothing_is_guessed(redis_server: Server) -> None:
    vaults = await opened(RedisStore(redis_server.url, KEEP))
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await until(lambda: not vaults._waiting, "it is kept")
    redis_server.stop()
    assert (await vaults.entries(ANN, [token]))[token].value == "ann@x.org"
    with pytest.raises(UnknownToken, match="does not answer"):
        await vaults.entries(ANN, ["[EMAIL_123456]"])
    vaults.of(ANN).token_of("bob@x.org", "EMAIL")
    redis_server.start()
    await vaults.close()
    with pytest.raises(ConfigError, match="can't be used"):
        redis_server.stop()
        await opened(RedisStore(redis_server.url, KEEP))


async def test_a_vault_that_is_full_hides_what_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "MOST_VALUES", 2)
    vaults = await opened(SqliteStore(tmp_path / "vault.db", KEEP))
    known = vaults.of(ANN).token_of("a@x.org", "EMAIL")
    vaults.of(ANN).token_of("b@x.org", "EMAIL")
    assert vaults.of(ANN).token_of("c@x.org", "EMAIL") == "[EMAIL_HIDDEN]"
    assert vaults.of(ANN).token_of("a@x.org", "EMAIL") == known
    await vaults.close()


async def test_conversations_that_leave_the_memory_come_back_from_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "MOST_IN_MEMORY", 3)
    vaults = await opened(SqliteStore(tmp_path / "vault.db", KEEP))
    token = vaults.of(ANN).token_of("a@x.org", "EMAIL")
    for number in range(8):
        other = vaults.of(Principal("bob", str(number)))
        other.token_of("b@x.org", "EMAIL")
    assert len(vaults._vaults) <= 5
    await until(lambda: not vaults._waiting, "all is kept")
    assert (await vaults.entries(ANN, [token]))[token].value == "a@x.org"
    await vaults.close()


def test_an_address_that_is_none_is_refused() -> None:
    with pytest.raises(ConfigError, match="none of a Redis"):
        RedisStore("http://host", KEEP)


async def test_a_value_has_its_token_again_once_a_conversation_is_recalled(stores: Stores) -> None:
    vaults = await opened(stores())
    tokens = [vaults.of(ANN).token_of(f"{number}@x.org", "EMAIL") for number in range(2500)]
    vaults.of(ANN).token_of("Ann", "NAME", "crm.find", sealed=True)
    vaults.of(Principal("ann", "second")).token_of("bob@x.org", "EMAIL")
    await vaults.close()

    again = await opened(stores())
    entries = await again.recall(ANN)
    assert len(entries) == 2501 and "bob@x.org" not in {entry.value for entry in entries}
    assert [entry.origins for entry in entries if entry.sealed] == [{"crm.find"}]
    vault = again.of(ANN)
    assert [vault.token_of(f"{number}@x.org", "EMAIL") for number in range(2500)] == tokens
    # A new one is none of those that were given out, which a model may still write.
    assert vault.token_of("new@x.org", "EMAIL") not in tokens and len(vault) == 2502
    assert len(await again.recall(ANN)) == 2502
    await again.close()


async def test_a_store_that_does_not_answer_keeps_nobody_from_going_on(
    stores: Stores, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = stores()
    vaults = await opened(store)
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")

    async def fail(*_: object) -> None:
        raise StoreFailed("it is away")

    monkeypatch.setattr(store, "all_of", fail)
    assert [entry.token for entry in await vaults.recall(ANN)] == [token]
    assert "can't be read: it is away" in caplog.text
    await vaults.close()
