"""Vaults: tokens are stable in a conversation, unknown elsewhere, and come back from the store."""

import asyncio
import os
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from divingbell.border.vault import sqlite as sqlite_module
from divingbell.border.vault import tokens as tokens_module
from divingbell.border.vault import vault as vault_module
from divingbell.border.vault.base import Row, Store, StoreFailed
from divingbell.border.vault.memory import MemoryStore
from divingbell.border.vault.redis import RedisStore
from divingbell.border.vault.seal import Seal
from divingbell.border.vault.sqlite import SqliteStore
from divingbell.border.vault.vault import Entry, Vaults
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


class Clock:
    """Seconds that pass when the test says so."""

    now = 1e9

    def __call__(self) -> float:
        return self.now


async def opened(
    store: Store, key: bytes = bytes(32), keep: float = KEEP, clock: Clock | None = None
) -> Vaults:
    vaults = Vaults(store, Seal(key), keep, clock or Clock())
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


async def test_what_one_user_holds_is_bounded_and_is_their_own_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vault_module, "MOST_OF_USER", 4)
    vaults = await opened(SqliteStore(tmp_path / "vault.db", KEEP))
    first, second = (Principal("ann", name) for name in ("first", "second"))
    releases = [vaults.of(each).hold() for each in (first, second)]
    for number in range(3):
        vaults.of(first).token_of(f"{number}@x.org", "EMAIL")
    token = vaults.of(second).token_of("3@x.org", "EMAIL")
    assert vaults.of(second).token_of("4@x.org", "EMAIL") == "[EMAIL_HIDDEN]"
    assert vaults.of(Principal("bob", "b")).token_of("4@x.org", "EMAIL") != "[EMAIL_HIDDEN]"
    assert vaults.of(second).token_of("3@x.org", "EMAIL") == token

    releases[0]()  # what goes on no more makes room for what begins
    assert vaults.of(Principal("ann", "third")).token_of("4@x.org", "EMAIL") != "[EMAIL_HIDDEN]"
    assert vaults.of(second).token_of("5@x.org", "EMAIL") != "[EMAIL_HIDDEN]"
    await until(lambda: not vaults._waiting, "all is kept")
    monkeypatch.setattr(vault_module, "MOST_OF_USER", 1)
    vaults.of(Principal("ann", "fourth"))
    assert len(await vaults.recall(first)) == 0  # its user has as many already
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


async def age(store: RedisStore, seconds: float) -> None:
    """Have so many seconds pass for a Redis, whose clock nobody can turn on."""
    async for name in store._redis.scan_iter("divingbell:vault:*"):
        await store._redis.pexpire(name, round(await store._redis.pttl(name) - 1000 * seconds))


@pytest.mark.parametrize("kind", ["sqlite", "memory", "redis"])
async def test_what_is_not_used_is_forgotten_while_the_process_goes_on(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    clock = Clock()
    if kind == "redis":
        store: Store = RedisStore(request.getfixturevalue("redis_server").url, KEEP)
    elif kind == "sqlite":
        store = SqliteStore(tmp_path / "vault.db", KEEP, clock)
    else:
        store = MemoryStore(KEEP, clock)

    async def pass_by(seconds: float) -> None:
        clock.now += seconds
        if isinstance(store, RedisStore):
            await age(store, seconds)

    vaults = await opened(store, clock=clock)
    gone: list[str] = []
    vaults.on_gone(lambda vault: gone.append(vault.name))
    idle, used, held = (Principal("ann", name) for name in ("idle", "used", "held"))
    tokens = {each: vaults.of(each).token_of("ann@x.org", "EMAIL") for each in (idle, used, held)}
    release = vaults.of(held).hold()
    await until(lambda: not vaults._waiting, "all is kept")
    name = vaults.of(idle).name
    for _ in range(6):
        await pass_by(KEEP / 4)
        vaults.of(used)
        await vaults.round()
    assert gone == [name]
    assert (await vaults.counts()).conversations == 2
    with pytest.raises(UnknownToken):
        await vaults.entries(idle, [tokens[idle]])
    for each in (used, held):
        found = await vaults.entries(each, [tokens[each]])
        assert found[tokens[each]].value == "ann@x.org"
    # From its end on it is kept as long as any.
    await pass_by(KEEP / 2)
    release()
    await pass_by(KEEP - 1)
    await vaults.round()
    assert vaults.of(held).entry_of(tokens[held]) is not None and len(gone) < 4
    await pass_by(KEEP + 1)
    await vaults.round()
    assert not vaults._vaults and len(gone) == 4, "the first was asked for once more"
    await vaults.close()


async def test_what_is_over_is_not_read_even_before_it_is_deleted(tmp_path: Path) -> None:
    clock = Clock()
    vaults = await opened(SqliteStore(tmp_path / "vault.db", KEEP, clock), clock=clock)
    token = vaults.of(ANN).token_of("ann@x.org", "EMAIL")
    await vaults.close()
    clock.now += KEEP + 1
    later = Vaults(SqliteStore(tmp_path / "vault.db", KEEP, clock), Seal(bytes(32)), KEEP, clock)
    assert await later.recall(ANN) == []
    with pytest.raises(UnknownToken):
        await later.entries(ANN, [token])
    await later.close()


async def test_a_large_conversation_is_deleted_in_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "FORGOTTEN_AT_ONCE", 7)
    clock = Clock()
    store = SqliteStore(tmp_path / "vault.db", KEEP, clock)
    vaults = await opened(store, clock=clock)
    for number in range(25):
        vaults.of(ANN).token_of(f"{number}@x.org", "EMAIL")
    await until(lambda: not vaults._waiting, "all is kept")
    steps = 0

    def counted(database: sqlite3.Connection) -> bool:
        nonlocal steps
        steps += 1
        return SqliteStore._forget_some(store, database)

    monkeypatch.setattr(store, "_forget_some", counted)
    clock.now += KEEP + 1
    await vaults.round()
    counts = await vaults.counts()
    assert (counts.conversations, counts.values, steps) == (0, {}, 5)
    await vaults.close()


async def test_a_token_of_another_value_is_not_written_over_and_another_is_drawn(
    stores: Stores, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = await opened(stores())
    token = first.of(ANN).token_of("ann@x.org", "EMAIL")
    await until(lambda: not first._waiting, "it is kept")
    # Another host, which has not heard of it, draws the same one.
    draw = tokens_module.draw
    monkeypatch.setattr(tokens_module, "draw", lambda *_: token)
    second = await opened(stores())
    vault = second.of(ANN)
    assert vault.token_of("bob@x.org", "EMAIL", "crm.find", sealed=True) == token
    monkeypatch.setattr(tokens_module, "draw", draw)
    await until(lambda: "drawn twice" in caplog.text and not second._waiting, "it is told")
    assert "x.org" not in caplog.text
    # Who writes it may mean either: here it is nobody's, and there it is who it was.
    assert vault.entry_of(token) is None
    with pytest.raises(UnknownToken):
        await second.entries(ANN, [token])
    another = vault.token_of("bob@x.org", "EMAIL")
    assert another != token
    entry = vault.entry_of(another)
    assert entry is not None and entry.sealed and entry.origins == {"crm.find"}
    third = await opened(stores())
    found = await third.entries(ANN, [token, another])
    assert [found[each].value for each in (token, another)] == ["ann@x.org", "bob@x.org"]
    for each in (first, second, third):
        await each.close()


async def test_what_two_hosts_know_of_one_value_is_put_together(stores: Stores) -> None:
    first, second = await opened(stores()), await opened(stores())
    token = first.of(ANN).token_of("ann@x.org", "EMAIL", "crm.find")
    await until(lambda: not first._waiting, "it is kept")
    await second.recall(ANN)
    second.of(ANN).token_of("ann@x.org", "EMAIL", "shop.list", sealed=True)
    await until(lambda: not second._waiting, "it is kept")
    first.of(ANN).token_of("ann@x.org", "EMAIL", "mail.read")
    await until(lambda: not first._waiting, "it is kept")
    third = await opened(stores())
    entry = (await third.entries(ANN, [token]))[token]
    assert entry.sealed and entry.origins == {"crm.find", "shop.list", "mail.read"}
    for each in (first, second, third):
        await each.close()


async def test_a_row_that_can_not_be_opened_is_another_values(stores: Stores) -> None:
    store = stores()
    vaults = await opened(store)
    vault = vaults.of(ANN)
    token = vault.token_of("ann@x.org", "EMAIL")
    forged = Row(vault.name, token, bytes(40))
    await store.replace([forged])
    vaults._keep(vault.name, Entry(token, "EMAIL", "ann@x.org"))
    await until(lambda: not vaults._waiting, "it is settled")
    assert vault.entry_of(token) is None and vault.token_of("ann@x.org", "EMAIL") != token
    assert [row for row in await store.get(vault.name, [token])] == [forged]
    await vaults.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of its own with room for little."""
    if os.geteuid():
        pytest.skip("only root can mount one")
    place = tmp_path / "small"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "vault", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


async def test_a_disk_that_is_really_full_costs_nothing_and_is_made_up_for(
    small_disk: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(vault_module, "RETRY_LEAST", 0.01)
    monkeypatch.setattr(vault_module, "RETRY_MOST", 0.05)
    vaults = await opened(SqliteStore(small_disk / "vault.db", KEEP))
    early = vaults.of(ANN).token_of("early@x.org", "EMAIL")
    await until(lambda: not vaults._waiting, "it is kept")
    filler = small_disk / "filler"
    with pytest.raises(OSError, match="No space"), filler.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1024))
    given = {f"{number}@x.org" * 20: "" for number in range(300)}
    given = {value: vaults.of(ANN).token_of(value, "EMAIL") for value in given}
    await until(lambda: "could not be kept" in caplog.text, "the log says so")
    assert "full" in caplog.text and "@x.org" not in caplog.text
    assert len(await vaults.entries(ANN, given.values())) == len(given)
    assert (await vaults.entries(ANN, [early]))[early].value == "early@x.org"
    filler.unlink()
    larger = ["mount", "-o", "remount,size=8m", str(small_disk)]
    await asyncio.to_thread(subprocess.run, larger, check=True)
    await until(lambda: not vaults._waiting, "it is kept after all")
    await vaults.close()
    again = await opened(SqliteStore(small_disk / "vault.db", KEEP))
    found = await again.entries(ANN, given.values())
    assert {entry.value: token for token, entry in found.items()} == given
    await again.close()


async def test_a_disk_that_is_full_from_the_start_is_a_clear_error(small_disk: Path) -> None:
    with pytest.raises(OSError, match="No space"), (small_disk / "filler").open("wb", 0) as file:
        while True:
            file.write(bytes(1024))
    with pytest.raises(ConfigError, match=r"the vault can't be used: .*full"):
        await opened(SqliteStore(small_disk / "vault.db", KEEP))
