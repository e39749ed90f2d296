"""The tools that skills call, compared with what they were when each skill was saved."""

import asyncio
import contextlib
from collections.abc import Iterable

from divingbell import logs
from divingbell.errors import SkillMissing, SkillRefused
from divingbell.gateway.catalog.catalog import split_name
from divingbell.gateway.gateway import Gateway
from divingbell.skills.record import OFFERED, Record, Summary
from divingbell.skills.store import Store

log = logs.logger("divingbell.skills")

PATIENCE = 5.0
"""Seconds to wait for servers that have not listed their tools yet, whoever asks."""


class ToolDigests:
    """Digests of the tools' definitions, as a gateway has them now."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    def of(self, tools: Iterable[str], session: str = "") -> dict[str, str]:
        """Return the digests of tools, by their full names; of those that are known."""
        catalog, host = self._gateway.catalog, self._gateway.host
        found = (host.find(name, session) or catalog.known(name) for name in tools)
        pins = self._gateway.pipeline.pins
        return {tool.full_name: pins.digest(tool) for tool in found if tool is not None}

    def changed(self, record: Record, session: str = "") -> list[str]:
        """Return the tools of a skill that are others than when it was saved."""
        known = self.of(record.tools, session)
        return sorted(name for name, seen in known.items() if record.tools.get(name) != seen)

    def untold(self, record: Record) -> set[str]:
        """Return the servers of a skill's tools that have not told which tools they have."""
        servers = {split_name(tool)[0] for tool in record.tools}
        fleet, catalog = self._gateway.fleet, self._gateway.catalog
        return {each for each in servers if fleet.server(each) and not catalog.has_list(each)}

    async def mark_changed(self, store: Store, summaries: Iterable[Summary]) -> None:
        """Mark the skills of which a tool has changed: whoever lists them sees it, and they are
        tried again before they are offered. A session's own tools change nothing for others."""
        found = [
            (summary, changed)
            for summary in summaries
            if summary.record.state in OFFERED and (changed := self.changed(summary.record))
        ]
        if found:
            await asyncio.to_thread(_mark, store, found)

    async def settle(self, records: Iterable[Record]) -> None:
        """Wait until the servers of these skills' tools have told, but not for long."""
        servers = {server for record in records for server in self.untold(record)}
        waiting = map(self._gateway.fleet.wait_for_tools, servers)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                await asyncio.gather(*waiting)


def why_changed(tools: list[str]) -> str:
    """Return the reason of a skill whose tools have changed."""
    return f"{', '.join(tools)} changed since it was saved"


def _mark(store: Store, found: list[tuple[Summary, list[str]]]) -> None:
    for summary, changed in found:
        try:
            store.mark(summary.name, summary.version, "changed", why_changed(changed))
        except SkillMissing:
            continue  # it was removed meanwhile
        except SkillRefused as error:  # it is not offered, marked or not
            log.warning("the skill %s could not be marked as changed: %s", summary.name, error)
            return
