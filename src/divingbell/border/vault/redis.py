"""The store of several hosts: Redis, where each conversation is a hash that expires."""

import contextlib
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any

from divingbell.border.vault.base import Counts, Row, Store, StoreFailed
from divingbell.errors import ConfigError

PREFIX = "divingbell:vault:"
CHECK = "divingbell:vault-check"
PATIENCE = 5.0
AT_ONCE = 1000


class RedisStore(Store):
    """Rows in a Redis that several hosts share."""

    def __init__(self, url: str, keep: float) -> None:
        """Raises: ConfigError, where the client is not installed or the address is none."""
        try:
            from redis.asyncio import Redis
        except ImportError:
            raise ConfigError(
                "a vault in Redis needs its client: pip install 'divingbell[redis]'"
            ) from None
        try:
            self._redis: Any = Redis.from_url(
                url, socket_timeout=PATIENCE, socket_connect_timeout=PATIENCE
            )
        except ValueError as error:
            raise ConfigError(f"the address of the vault is none of a Redis: {error}") from None
        self._keep = max(round(keep), 1)

    async def open(self, check: bytes) -> bytes:
        async with _failing():
            await self._redis.set(CHECK, check, nx=True)
            return bytes(await self._redis.get(CHECK) or b"")

    async def put(self, rows: Sequence[Row]) -> list[Row]:
        async with _failing(), self._redis.pipeline(transaction=False) as asked:
            for row in rows:
                asked.hsetnx(PREFIX + row.conversation, row.token, row.sealed)
            for name in {row.conversation for row in rows}:
                asked.expire(PREFIX + name, self._keep)
            written = await asked.execute()
        refused = [row for row, is_new in zip(rows, written, strict=False) if not is_new]
        there: list[Row] = []
        for name in {row.conversation for row in refused}:
            of_this = [row.token for row in refused if row.conversation == name]
            there += await self.get(name, of_this)
        return there

    async def replace(self, rows: Sequence[Row]) -> None:
        async with _failing(), self._redis.pipeline(transaction=False) as asked:
            for row in rows:
                asked.hset(PREFIX + row.conversation, row.token, row.sealed)
            for name in {row.conversation for row in rows}:
                asked.expire(PREFIX + name, self._keep)
            await asked.execute()

    async def get(self, conversation: str, tokens: Iterable[str]) -> list[Row]:
        wanted = list(tokens)
        if not wanted:
            return []
        async with _failing():
            found: list[Any] = await self._redis.hmget(PREFIX + conversation, wanted)
        return [
            Row(conversation, token, bytes(sealed))
            for token, sealed in zip(wanted, found, strict=True)
            if sealed is not None
        ]

    async def all_of(self, conversation: str, most: int) -> list[Row]:
        found: dict[str, Row] = {}  # a scan may meet a name twice
        async with _failing():
            rows = self._redis.hscan_iter(PREFIX + conversation, count=AT_ONCE)
            async for token, sealed in rows:
                found[token.decode()] = Row(conversation, token.decode(), bytes(sealed))
                if len(found) >= most:
                    break
        return list(found.values())

    async def anywhere(self, tokens: Iterable[str]) -> list[Row]:
        wanted, found = list(tokens), list[Row]()
        async with _failing():
            names = {name async for name in self._names()}
        for name in names:
            found += await self.get(name, wanted)
        return found

    async def used(self, conversations: Iterable[str]) -> None:
        async with _failing(), self._redis.pipeline(transaction=False) as asked:
            for name in conversations:
                asked.expire(PREFIX + name, self._keep)
            await asked.execute()

    async def counts(self) -> Counts:
        conversations, kinds = 0, dict[str, int]()
        async with _failing():
            async for name in self._names():
                conversations += 1
                async for token, _ in self._redis.hscan_iter(PREFIX + name, count=AT_ONCE):
                    text = token.decode()
                    kind = text[1 : text.rfind("_")]
                    kinds[kind] = kinds.get(kind, 0) + 1
        return Counts(conversations, kinds)

    async def close(self) -> None:
        with contextlib.suppress(OSError):
            await self._redis.aclose()

    async def _names(self) -> AsyncIterator[str]:
        async for key in self._redis.scan_iter(f"{PREFIX}*", count=AT_ONCE):
            yield key.decode().removeprefix(PREFIX)


@contextlib.asynccontextmanager
async def _failing() -> AsyncIterator[None]:
    from redis.exceptions import RedisError

    try:
        yield
    except (RedisError, OSError) as error:
        raise StoreFailed(f"the vault's Redis did not answer: {error}") from error
