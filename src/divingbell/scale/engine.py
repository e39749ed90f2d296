"""The engine of a front: sessions that are on nodes."""

import asyncio
import secrets
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from divingbell import logs
from divingbell.border.border import Border
from divingbell.errors import CapacityError, DivingbellError, SandboxUnavailable
from divingbell.gateway.catalog.folder import Folder
from divingbell.gateway.context import key_of
from divingbell.journal.journal import Journal
from divingbell.journal.readings import Readings
from divingbell.models import Limits
from divingbell.principal import Principal
from divingbell.scale.cluster import Cluster, NodeAddress
from divingbell.scale.line import LineLost
from divingbell.scale.link import Link, Opened
from divingbell.scale.remote import RemoteSession
from divingbell.session.accounted import Ledgers
from divingbell.session.calls import ToolGateway
from divingbell.session.keeper import SessionKeeper
from divingbell.session.loop_guard import LoopGuard
from divingbell.session.options import SessionOptions
from divingbell.settings import config
from divingbell.settings.config import Settings

log = logs.logger("divingbell")

MAX_TRIES = 8
"""Nodes that are tried for one session, one after the other, where each is lost meanwhile."""


class RemoteEngine(SessionKeeper[RemoteSession]):
    """The sessions of one front, on the nodes of a cluster."""

    def __init__(
        self,
        settings: Settings,
        cluster: Cluster,
        servers: Folder,
        gateway: ToolGateway | None = None,
        journal: Journal | None = None,
        border: Border | None = None,
        ledgers: Ledgers | None = None,
        guard: LoopGuard | None = None,
    ) -> None:
        super().__init__(settings, gateway, journal, border, ledgers, guard)
        self.cluster = cluster
        self._servers = servers
        self._links: dict[str, Link] = {}
        self._losing: dict[str, asyncio.Task[bool]] = {}
        self._watching: asyncio.Task[None] | None = None
        self._made = 0
        """Sessions that nodes have made for this front."""
        self.ends_sessions = True
        """Whether its sessions end with it, where no other front holds them."""

    async def start(self) -> None:
        await self.cluster.start()
        if not await self.cluster.nodes():
            log.warning("the cluster has no node yet: sessions wait for one to join")
        if self._services.rates.counts_cpu:
            self._watching = asyncio.create_task(self._account())

    async def stop(self) -> None:
        try:
            if self._watching is not None:
                self._watching.cancel()
            ending = [
                session.close("Divingbell was closed") if self.ends_sessions else session.leave()
                for session in self._open()
            ]
            for outcome in await asyncio.gather(*ending, return_exceptions=True):
                if isinstance(outcome, Exception):
                    log.error("a session was not closed well", exc_info=outcome)
            for link in self._links.values():
                link.close()
            for losing in self._losing.values():
                losing.cancel()
        finally:
            await self.cluster.stop()

    async def read(self) -> Readings:
        sessions = self._open()
        busy = sum(session.busy for session in sessions)
        return Readings(
            busy=busy,
            idle=len(sessions) - busy,
            memory=sum(session.consumption().memory or 0 for session in sessions),
            copies=sum(session.copied_cell is not None for session in sessions),
            made=self._made,
        )

    async def _make(
        self,
        identifier: str,
        principal: Principal,
        changes: Mapping[str, Any],
        options: SessionOptions | None,
        door: ToolGateway | None,
        key: str | None,
    ) -> RemoteSession:
        limits = config.with_limits(self._settings.limits, changes)
        if principal.client == "library":
            principal = replace(principal, conversation=identifier)
        options = options or SessionOptions()
        name = key or f"{key_of(principal, identifier)}#{secrets.token_hex(8)}"
        link, opened = await self.place(principal, identifier, name, limits, options)
        if not _is_named_right(opened, name, principal, identifier):
            # Calls of its code would count as those of another session.
            link.line.lose(f"{link.line.name} gave a session the name of another")
            raise SandboxUnavailable(f"the node {link.node.name} gave a session a wrong name")
        self._made += opened.made
        place = (principal.user, identifier)
        session = RemoteSession(
            identifier,
            principal,
            self._services,
            self,
            door or self._gateway,
            options,
            link,
            opened,
            lambda closed: self._forget(place, closed),
        )
        self._sessions[place] = session
        return session

    # Places (divingbell.scale.remote.Placer)

    async def place(
        self, principal: Principal, id: str, key: str, limits: Limits, options: SessionOptions
    ) -> tuple[Link, Opened]:
        """Open or join a session on the node that the cluster names.

        Raises:
            CapacityError: there is no place, and none became free in time.
            SandboxUnavailable: there is no node, or none that can make it.
        """
        why = "there is no node"
        for _ in range(MAX_TRIES):
            if self._losing:  # else the cluster might name one of these
                await asyncio.wait(list(self._losing.values()))
            placement = await self.cluster.place(principal.user, id)
            node = placement.node
            try:
                link = await self._link_to(node)
                opened = await link.open(
                    principal.user, id, key, placement.number, asdict(limits), options
                )
            except LineLost as error:
                why = str(error)
                if not await self._lose(node.name):
                    raise SandboxUnavailable(
                        f"the session is on the node {node.name}, which can't be reached from "
                        f"here: {error}"
                    ) from None
                continue
            except CapacityError as error:
                raise CapacityError(f"the node {node.name} has no place left: {error}") from None
            if opened is not None:
                return link, opened
        raise SandboxUnavailable(f"no node could take the session: {why}")

    async def _link_to(self, node: NodeAddress) -> Link:
        link = self._links.get(node.name)
        if link is None or link.given_up is not None:
            link = self._links[node.name] = Link(node, self.cluster, self._servers, self._given_up)
        else:
            await link.again()
        await link.lay()
        return link

    def _given_up(self, link: Link) -> None:
        """Tell the cluster, before anybody asks for another place."""
        name = link.node.name
        if self._links.get(name) is link:
            del self._links[name]
        self._begin_to_lose(name)

    def _begin_to_lose(self, name: str) -> "asyncio.Task[bool]":
        losing = self._losing.get(name)
        if losing is None:
            losing = self._losing[name] = asyncio.create_task(self.cluster.lost(name))
            losing.add_done_callback(lambda task: self._lost_for_good(name, task))
        return losing

    def _lost_for_good(self, name: str, task: "asyncio.Task[bool]") -> None:
        self._losing.pop(name, None)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.warning("the cluster was not told that the node %s is lost: %s", name, error)

    async def _lose(self, name: str) -> bool:
        try:
            return await asyncio.shield(self._begin_to_lose(name))
        except DivingbellError:
            return False


def _is_named_right(opened: Opened, asked: str, principal: Principal, id: str) -> bool:
    """Whether a session has the name that was asked for, or one that another front has asked for it
    with."""
    if opened.made:
        return opened.key == asked
    return opened.key.rpartition("#")[0] == key_of(principal, id)
