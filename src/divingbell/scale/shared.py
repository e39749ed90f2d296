"""Sessions that several fronts of a cluster serve: found by their user, and joined."""

from collections.abc import Awaitable, Callable

from divingbell.principal import Principal
from divingbell.scale.cluster import Cluster
from divingbell.session.base import SessionHandle


class ClusterSessions:
    """The sessions of a cluster (divingbell.session.ownership.SharedSessions)."""

    def __init__(
        self, cluster: Cluster, join: Callable[[str, Principal], Awaitable[SessionHandle | None]]
    ) -> None:
        self._cluster = cluster
        self._join = join

    async def ids_of(self, user: str) -> list[str]:
        return await self._cluster.held(user)

    async def join(self, id: str, principal: Principal) -> SessionHandle | None:
        return await self._join(id, principal)
