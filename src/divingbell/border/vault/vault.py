"""Vaults: one for each conversation, with the tokens that its model has seen and their values."""

import asyncio
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from weakref import WeakValueDictionary

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
MOST_OF_USER = 1_000_000
"""The same of all conversations of one user that are in memory: who begins many, and lets none end,
takes what is his own."""
MOST_IN_MEMORY = 2_000_000
"""Values of all conversations. Those that were used least recently are only in the store then, but
for those that go on: what was learned there would be shown."""
ROUND = 60.0
"""Seconds between two looks at what is not used any more, at most."""
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


Clock = Callable[[], float]


class _Room:
    """The count of values of one user's conversations. Any thread may change it."""

    def __init__(self) -> None:
        self.count = 0
        self._guard = threading.Lock()

    @property
    def is_full(self) -> bool:
        return self.count >= MOST_OF_USER

    def add(self, count: int) -> None:
        with self._guard:
            self.count += count


class Vault:
    """The tokens of one conversation. Any thread may ask."""

    def __init__(
        self,
        name: str,
        keep: Callable[[str, Entry], None],
        clock: Clock = time.monotonic,
        room: _Room | None = None,
    ) -> None:
        self.name = name
        self._keep = keep
        self._clock = clock
        self.room = room or _Room()
        self._holders: set[object] = set()
        self.last_used = clock()
        self.is_gone = False
        """Whether its conversation is forgotten: then it is asked for no more."""
        self._tokens: dict[tuple[str, str], str] = {}
        self._entries: dict[str, Entry | None] = {}
        """None where a token has turned out to be another value's: it means nothing here."""
        self._counts: dict[str, int] = {}
        self._guard = threading.Lock()

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def is_held(self) -> bool:
        """Whether its conversation goes on, however long nothing has come of it."""
        return bool(self._holders)

    @property
    def is_full(self) -> bool:
        """Whether it takes no more values."""
        return len(self._entries) >= MOST_VALUES or self.room.is_full

    def leave(self) -> None:
        """Take it that it is in memory no more."""
        with self._guard:
            self.room.add(-len(self._entries))
            self.room = _Room()

    def hold(self) -> Callable[[], None]:
        """Have its conversation go on until what is returned is called."""
        holder = object()
        self._holders.add(holder)

        def release() -> None:
            if holder in self._holders:
                self.touch()  # before: it must not look unused in between
                self._holders.discard(holder)

        return release

    def touch(self) -> None:
        """Take it as used now."""
        self.last_used = self._clock()

    def token_of(self, value: str, kind: str, origin: str = "", *, sealed: bool = False) -> str:
        """Return the token that stands for a value, the same one each time."""
        key = (kind, value)
        self.touch()
        with self._guard:
            token = self._tokens.get(key)
            if token is None:
                if self.is_full:
                    return f"[{kind}_HIDDEN]"
                return self._drawn(Entry("", kind, value, frozenset({origin} - {""}), sealed))
            entry = self._entries[token]
            assert entry is not None, "what is withdrawn has another one"
            if (origin and origin not in entry.origins) or (sealed and not entry.sealed):
                origins = entry.origins | ({origin} - {""})
                self._add(replace(entry, origins=origins, sealed=entry.sealed or sealed))
            return token

    def entry_of(self, token: str) -> Entry | None:
        """Return what a token stands for, if it is one of this conversation."""
        entry = self._entries.get(token)
        if entry is not None:
            self.touch()
        return entry

    def entry_for(self, kind: str, value: str) -> Entry | None:
        """Return the entry of a value, if it has a token."""
        with self._guard:
            token = self._tokens.get((kind, value))
            return None if token is None else self._entries.get(token)

    def entries(self) -> list[Entry]:
        """Return all that is known of it here."""
        with self._guard:
            return [entry for entry in self._entries.values() if entry is not None]

    def take(self, entry: Entry) -> None:
        """Take back an entry that was kept."""
        with self._guard:
            if entry.token not in self._entries:
                self._counts[entry.kind] = self._counts.get(entry.kind, 0) + 1
                self._tokens.setdefault((entry.kind, entry.value), entry.token)
                self._entries[entry.token] = entry
                self.room.add(1)

    def withdraw(self, token: str) -> None:
        """Have a token mean nothing here any more, because another value has it: whoever writes it
        may mean either. What it stood for gets a token of its own."""
        with self._guard:
            entry = self._entries.get(token)
            self.room.add(token not in self._entries)
            self._entries[token] = None
            if entry is not None and self._tokens.get((entry.kind, entry.value)) == token:
                self._drawn(entry)

    def _drawn(self, entry: Entry) -> str:
        """Draw a token for an entry."""
        count = self._counts.get(entry.kind, 0)
        token = tokens.draw(entry.kind, count, self._entries)
        self._counts[entry.kind] = count + 1
        self.room.add(1)
        self._add(replace(entry, token=token))
        return token

    def _add(self, entry: Entry) -> None:
        self._tokens[entry.kind, entry.value] = entry.token
        self._entries[entry.token] = entry
        self._keep(self.name, entry)


class Vaults:
    """The vaults of all conversations, in front of a store: filled at once, written behind."""

    def __init__(
        self, store: Store, seal: Seal, keep: float, clock: Clock = time.monotonic
    ) -> None:
        self._store = store
        self._seal = seal
        self._kept_for = keep
        self._clock = clock
        self._noted = clock()
        """When the store was last told what is in use."""
        self._gone: list[Callable[[Vault], None]] = []
        self._vaults: OrderedDict[str, Vault] = OrderedDict()
        self._rooms: WeakValueDictionary[str, _Room] = WeakValueDictionary()
        """By the name of the user."""
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
            left: list[Vault] = []
            if vault is None:
                room = self._rooms.setdefault(principal.user, _Room())
                left = self._leave_oldest(room)
                vault = self._vaults[name] = Vault(name, self._keep, self._clock, room)
            self._vaults.move_to_end(name)
            vault.touch()
        for each in left:
            self._tell_gone(each)
        return vault

    def on_gone(self, forget: Callable[[Vault], None]) -> None:
        """Have those told who hold something of a conversation that leaves the memory."""
        self._gone.append(forget)

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
            if vault.is_full:
                log.warning("a user has so many values that not all of what was kept is taken back")
                break
            vault.take(self._opened(row))

    def _opened(self, row: Row) -> Entry:
        kind, value, origins, sealed = self._seal.open(row.sealed, row.place)
        return Entry(row.token, kind, value, frozenset(origins), sealed)

    def _leave_oldest(self, room: _Room) -> list[Vault]:
        """Make room where there is too much, in all or of this user; looked at when a conversation
        begins."""
        surplus = sum(map(len, self._vaults.values())) - MOST_IN_MEMORY
        of_user = room.count - MOST_OF_USER + 1
        left: list[Vault] = []
        for vault in self._vaults.values() if surplus > 0 or of_user > 0 else ():
            is_users = vault.room is room
            if not vault.is_held and (surplus > 0 or (is_users and of_user > 0)):
                surplus -= len(vault)
                of_user -= len(vault) if is_users else 0
                left.append(vault)
        for vault in left:
            del self._vaults[vault.name]
        return left

    def _tell_gone(self, vault: Vault) -> None:
        vault.is_gone = True
        vault.leave()
        for forget in self._gone:
            forget(vault)

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
        if there := await self._store.put(rows):
            again, taken = await asyncio.to_thread(self._told_apart, there, some)
            if again:
                await self._store.replace(again)
            for name, token in taken:
                self._withdraw(name, token)
        with self._guard:
            for key, entry in some.items():
                if self._waiting.get(key) is entry:
                    del self._waiting[key]

    def _sealed(self, some: dict[tuple[str, str], Entry]) -> list[Row]:
        return [self._row(name, entry) for (name, _), entry in some.items()]

    def _row(self, name: str, entry: Entry) -> Row:
        place = Row(name, entry.token, b"").place
        content = [entry.kind, entry.value, sorted(entry.origins), entry.sealed]
        return Row(name, entry.token, self._seal.close(content, place))

    def _told_apart(
        self, there: Sequence[Row], some: dict[tuple[str, str], Entry]
    ) -> tuple[list[Row], list[tuple[str, str]]]:
        """Tell rows that stood in the places of some entries: those that have to be written again,
        because more is known of their value by now, and the places that are another value's."""
        again: list[Row] = []
        taken: list[tuple[str, str]] = []
        for row in there:
            ours = some[row.conversation, row.token]
            try:
                theirs = self._opened(row)
            except NotOpened:
                theirs = None
            if theirs is None or (theirs.kind, theirs.value) != (ours.kind, ours.value):
                taken.append((row.conversation, row.token))
                continue
            origins, sealed = ours.origins | theirs.origins, ours.sealed or theirs.sealed
            both = replace(ours, origins=origins, sealed=sealed)
            if both != theirs:
                again.append(self._row(row.conversation, both))
        return again, taken

    def _withdraw(self, name: str, token: str) -> None:
        with self._guard:
            vault = self._vaults.get(name)
        if vault is not None:
            vault.withdraw(token)
        log.warning(
            "%s was drawn twice in a conversation: it means nothing there now, and its value gets "
            "another one",
            token,
        )

    async def _stay_in_use(self) -> None:
        while True:
            await asyncio.sleep(min(ROUND, self._kept_for / 4))
            try:
                await self.round()
            except StoreFailed as error:
                log.warning("the vault did not answer: %s", error)

    async def round(self) -> None:
        """Tell the store what was used since the last time, and forget what was not for long.

        Raises:
            StoreFailed: the store does not answer; what is over is forgotten here all the same.
        """
        now = self._clock()
        used: list[str] = []
        idle: list[Vault] = []
        with self._guard:
            for vault in self._vaults.values():
                if vault.is_held:
                    vault.touch()
                if now - vault.last_used > self._kept_for:
                    idle.append(vault)
                elif vault.last_used >= self._noted:
                    used.append(vault.name)
        forgotten: set[str] = set()
        while idle:
            if self._has_left(vault := idle.pop()):
                forgotten.add(vault.name)
                self._tell_gone(vault)
            del vault
            await asyncio.sleep(0)  # one may have 200,000 values
        with self._guard:
            for key in [key for key in self._waiting if key[0] in forgotten]:
                del self._waiting[key]
        await self._store.used(used)
        self._noted = now

    def _has_left(self, vault: Vault) -> bool:
        """Take a vault out of the memory, unless it was used in the last moment."""
        with self._guard:
            if vault.is_held or self._clock() - vault.last_used <= self._kept_for:
                return False
            return self._vaults.pop(vault.name, None) is not None
