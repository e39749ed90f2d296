"""Vaults: one for each conversation, with the tokens that its model has seen and their values."""

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from divingbell import logs
from divingbell.border.vault import tokens
from divingbell.border.vault.base import Counts, Row, Store, StoreFailed, VaultUnavailable
from divingbell.border.vault.seal import NotOpened, Seal
from divingbell.errors import ConfigError, UnknownToken
from divingbell.principal import Principal
from divingbell.shares import weight

log = logs.logger("divingbell")

MOST_VALUES = 200_000
"""Values of one conversation; those that come after are hidden for good."""
MOST_IN_MEMORY = 2_000_000
"""Values of all conversations. Those that were used least recently are only in the store then."""
WRITE_AFTER = 0.05
AT_ONCE = 1000
RETRY_LEAST, RETRY_MOST = 1.0, 60.0
CLOSE_PATIENCE = 5.0
OTHER_KEY = (
    "the vault was made with another key than the one at hand: bring that key back, or remove the "
    "vault and all that it keeps"
)
_CHECK = "check of the key"


@dataclass(frozen=True, slots=True)
class Entry:
    """A value that a token stands for."""

    token: str
    kind: str
    value: str
    origins: frozenset[str] = frozenset()
    """The tools that it came from, as `server.tool`; none where code or a person has brought it."""
    sealed: bool = False
    """Whether code gets the token too, and only tools the value."""

    def __repr__(self) -> str:
        return f"<{self.token}>"

    @property
    def servers(self) -> frozenset[str]:
        """The servers that it came from."""
        return frozenset(origin.partition(".")[0] for origin in self.origins)


class Vault:
    """The tokens of one conversation. Any thread may ask."""

    def __init__(self, name: str, keep: Callable[[str, Entry], None]) -> None:
        self.name = name
        self._keep = keep
        self._tokens: dict[tuple[str, str], str] = {}
        self._entries: dict[str, Entry] = {}
        self._counts: dict[str, int] = {}
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    def token_of(self, value: str, kind: str, origin: str = "", *, sealed: bool = False) -> str:
        """Return the token that stands for a value, the same one each time."""
        key = (kind, value)
        with self._guard:
            token = self._tokens.get(key)
            if token is None:
                if len(self._entries) >= MOST_VALUES:
                    return f"[{kind}_HIDDEN]"
                count = self._counts.get(kind, 0)
                token = tokens.draw(kind, count, self._entries)
                self._counts[kind] = count + 1
                self._add(Entry(token, kind, value, frozenset({origin} - {""}), sealed))
                return token
            entry = self._entries[token]
            if (origin and origin not in entry.origins) or (sealed and not entry.sealed):
                origins = entry.origins | ({origin} - {""})
                self._add(replace(entry, origins=origins, sealed=entry.sealed or sealed))
            return token

    def entry_of(self, token: str) -> Entry | None:
        """Return what a token stands for, if it is one of this conversation."""
        return self._entries.get(token)

    def entries(self) -> list[Entry]:
        """Return all that is known of it here."""
        with self._guard:
            return list(self._entries.values())

    def take(self, entry: Entry) -> None:
        """Take back an entry that was kept."""
        with self._guard:
            if entry.token not in self._entries:
                self._counts[entry.kind] = self._counts.get(entry.kind, 0) + 1
                self._tokens.setdefault((entry.kind, entry.value), entry.token)
                self._entries[entry.token] = entry

    def _add(self, entry: Entry) -> None:
        self._tokens[entry.kind, entry.value] = entry.token
        self._entries[entry.token] = entry
        self._keep(self.name, entry)


class Vaults:
    """The vaults of all conversations, in front of a store: filled at once, written behind."""

    def __init__(self, store: Store, seal: Seal, keep: float) -> None:
        self._store = store
        self._seal = seal
        self._refresh = keep / 4
        self._vaults: OrderedDict[str, Vault] = OrderedDict()
        self._waiting: dict[tuple[str, str], Entry] = {}
        self._guard = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Open the store, and forget in it what nobody has used for long.

        Raises:
            ConfigError: it can't be used, or was made with another key.
        """
        try:
            kept = await self._store.open(self._seal.close(_CHECK, _CHECK))
            self._seal.open(kept, _CHECK)
            await self._store.used(())
        except StoreFailed as error:
            await self._store.close()
            raise VaultUnavailable(f"the vault can't be used: {error}") from error
        except NotOpened:
            await self._store.close()
            raise ConfigError(OTHER_KEY) from None
        self._loop = asyncio.get_running_loop()
        self._tasks = [
            asyncio.create_task(self._write_behind()),
            asyncio.create_task(self._stay_in_use()),
        ]

    async def close(self) -> None:
        """Write what waits, for a limited time, and let go of the store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_PATIENCE):
                while self._waiting:
                    await self._write()
        except (StoreFailed, TimeoutError) as error:
            log.warning("%d values of the vault were not kept: %s", len(self._waiting), error)
        await self._store.close()

    def of(self, principal: Principal) -> Vault:
        """Return the vault of a conversation."""
        name = self._seal.name_of(principal.user, principal.conversation)
        with self._guard:
            vault = self._vaults.get(name)
            if vault is None:
                self._forget_oldest()
                vault = self._vaults[name] = Vault(name, self._keep)
            self._vaults.move_to_end(name)
            return vault

    def end(self, principal: Principal) -> None:
        """Let a conversation that is over leave the memory; the store keeps it for a while."""
        with self._guard:
            self._vaults.pop(self._seal.name_of(principal.user, principal.conversation), None)

    async def entries(self, principal: Principal, wanted: Iterable[str]) -> dict[str, Entry]:
        """Return what tokens stand for in a conversation.

        Raises:
            UnknownToken: one of them is not of this conversation, or the store does not answer.
        """
        asked = set(wanted)
        found = await self.known(principal, asked)
        for token in asked - found.keys():
            raise UnknownToken(
                f"{token[1:-1]} in brackets is not known in this conversation: use only what "
                "stood in its results, to the letter"
            )
        return found

    async def known(self, principal: Principal, wanted: Iterable[str]) -> dict[str, Entry]:
        """Return what tokens stand for, of those that this conversation has.

        Raises:
            UnknownToken: the store does not answer.
        """
        vault = self.of(principal)
        asked = set(wanted)
        missing = [token for token in asked if vault.entry_of(token) is None]
        if missing:
            try:
                for row in await self._store.get(vault.name, missing):
                    vault.take(self._opened(row))
            except (StoreFailed, NotOpened) as error:
                log.warning("the vault did not answer: %s", error)
                raise UnknownToken(
                    f"{missing[0]} can't be looked up now, because the vault does not answer: "
                    "try again later"
                ) from None
        found = {token: vault.entry_of(token) for token in asked}
        return {token: entry for token, entry in found.items() if entry is not None}

    async def recall(self, principal: Principal) -> list[Entry]:
        """Take back all that was kept of a conversation, so that a value has the token that it had
        before a restart; return all that is known of it.

        Where the store does not answer, values get new tokens beside those that they have.
        """
        vault = self.of(principal)
        try:
            rows = await self._store.all_of(vault.name, MOST_VALUES)
            # 200,000 of them take seconds to open.
            await weight.in_thread(lambda: self._take_all(vault, rows))
        except (StoreFailed, NotOpened) as error:
            log.warning("what was kept of a conversation can't be read: %s", error)
        return vault.entries()

    async def anywhere(self, wanted: Iterable[str]) -> dict[str, dict[str, Entry]]:
        """Return what tokens stand for in all conversations of the store: for a person.

        Each token that is known has a mapping from the names of conversations to its entries. They
        need not be started for that, and then nothing is made or forgotten in the store.

        Raises:
            StoreFailed: the store does not answer.
            NotOpened: it was filled with another key.
        """
        found: dict[str, dict[str, Entry]] = {}
        for row in await self._store.anywhere(wanted):
            found.setdefault(row.token, {})[row.conversation] = self._opened(row)
        return found

    async def counts(self) -> Counts:
        """Return how much the store holds. Raises: StoreFailed."""
        return await self._store.counts()

    def _take_all(self, vault: Vault, rows: Iterable[Row]) -> None:
        for row in rows:
            vault.take(self._opened(row))

    def _opened(self, row: Row) -> Entry:
        kind, value, origins, sealed = self._seal.open(row.sealed, row.place)
        return Entry(row.token, kind, value, frozenset(origins), sealed)

    def _forget_oldest(self) -> None:
        """Make room where there is too much; looked at when a conversation begins."""
        held = sum(map(len, self._vaults.values()))
        while self._vaults and held > MOST_IN_MEMORY:
            held -= len(self._vaults.popitem(last=False)[1])

    def _keep(self, name: str, entry: Entry) -> None:
        with self._guard:
            self._waiting[name, entry.token] = entry
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake.set)

    async def _write_behind(self) -> None:
        pause = RETRY_LEAST
        while True:
            await self._wake.wait()
            self._wake.clear()
            await asyncio.sleep(WRITE_AFTER)  # those that come together are written together
            try:
                while self._waiting:
                    await self._write()
                pause = RETRY_LEAST
            except StoreFailed as error:
                # Nothing is lost while this process runs: what waits is in its memory.
                log.warning("values of the vault could not be kept, and are kept later: %s", error)
                await asyncio.sleep(pause)
                pause = min(2 * pause, RETRY_MOST)
                self._wake.set()

    async def _write(self) -> None:
        with self._guard:
            some = dict(list(self._waiting.items())[:AT_ONCE])
        rows = await asyncio.to_thread(self._sealed, some)
        await self._store.put(rows)
        with self._guard:
            for key, entry in some.items():
                if self._waiting.get(key) is entry:
                    del self._waiting[key]

    def _sealed(self, some: dict[tuple[str, str], Entry]) -> list[Row]:
        rows = []
        for (name, token), entry in some.items():
            place = Row(name, token, b"").place
            content = [entry.kind, entry.value, sorted(entry.origins), entry.sealed]
            rows.append(Row(name, token, self._seal.close(content, place)))
        return rows

    async def _stay_in_use(self) -> None:
        while True:
            await asyncio.sleep(self._refresh)
            with self._guard:
                names = list(self._vaults)
            try:
                await self._store.used(names)
            except StoreFailed as error:
                log.warning("the vault did not answer: %s", error)
