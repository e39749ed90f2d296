"""The way of requests to the replicas of Ray Serve: each to the one that its connection is at.

Every machine with a replica has a proxy of Serve's, and each proxy hears by itself which replicas
there are. So a connection may be known here before its replica is.
"""

import asyncio
import hashlib
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

import ray
from ray.exceptions import RayError
from ray.serve._private.common import ReplicaID
from ray.serve._private.constants import SERVE_NAMESPACE
from ray.serve.experimental.consistent_hash_router import ConsistentHashRouter

from divingbell import logs
from divingbell.scale.replica_ids import HEADER, header_in, replica_of

log = logs.logger("divingbell")

MAX_TOKEN = 1_000
"""Characters of a header with a token that are looked at."""
MAX_NAME = 32
"""Characters of a replica's name; Serve gives them eight."""
PATIENCE = 5.0
"""Seconds to hear of a replica that lives, and that a connection names."""
LEFT = 1_000
"""Replicas that are remembered to be gone, or about to go. Serve never takes one back."""
LOOK_AGAIN = 0.5
"""Seconds after which it is looked again whether it lives."""
FULL = 0.05
"""Seconds after which a replica is asked again that has too many requests."""


class ReplicaRouter(ConsistentHashRouter):  # type: ignore[misc]
    """Routes a request to the replica that its connection is at, as long as that one lives.

    Without a connection those of one token go to one replica, as long as the replicas are the same:
    so budgets, approvals and ledgers of a user are in one place. With neither to any.
    """

    on_change: ClassVar[list[Callable[[], object]]] = []
    """Called when the replicas that this process knows of are others; in a thread of Serve's."""

    def __init__(self, *given: Any, **more: Any) -> None:
        super().__init__(*given, **more)
        self._changed = asyncio.Event()
        self._left: deque[str] = deque(maxlen=LEFT)

    def update_replicas(self, replicas: list[Any]) -> None:
        before = set(self._replica_id_set)
        super().update_replicas(replicas)
        if self._replica_id_set != before:
            self._left += [gone.unique_id for gone in before - self._replica_id_set]
            self._changed.set()
            self._changed = asyncio.Event()
            for told in self.on_change:
                told()

    # Not `choose_replicas`: who waits there is one of the few tasks that route at all, two for each
    # replica, and connections that nobody has opened would keep all requests from their way.
    async def _choose_replica_for_request(
        self, pending_request: Any, *, is_retry: bool = False
    ) -> Any:
        name = replica_of(connection_of(pending_request))
        if name:
            if is_retry:
                await asyncio.sleep(FULL)
            replica = await self._named(name)
            if replica is not None:
                return replica
        return await super()._choose_replica_for_request(pending_request, is_retry=is_retry)

    async def _named(self, name: str) -> Any:
        """Return the replica of that name; None where there is none."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + PATIENCE
        while True:
            changed = self._changed
            for replica in self._replicas_list:
                if replica.replica_id.unique_id == name:
                    return replica
            left = deadline - loop.time()
            if left <= 0 or name in self._left or not await self._lives(name, left):
                return None
            try:
                await asyncio.wait_for(changed.wait(), min(LOOK_AGAIN, left))
            except TimeoutError:
                continue

    async def _lives(self, name: str, seconds: float) -> bool:
        """Return whether a replica of that name may live, whoever knows it."""
        if not (name.isascii() and name.isalnum() and len(name) <= MAX_NAME):
            return False
        actor = ReplicaID(name, self._deployment_id).to_full_id_str()
        try:
            await asyncio.wait_for(
                asyncio.to_thread(ray.get_actor, actor, namespace=SERVE_NAMESPACE), seconds
            )
        except ValueError:
            return False
        except (RayError, TimeoutError) as error:  # of a head that is being started anew
            log.debug("it is not known whether the replica %s lives: %s", name, error)
        return True

    def _routing_key(self, pending_request: Any = None) -> str | None:
        if pending_request is not None:
            token = _header(pending_request, b"authorization")[:MAX_TOKEN]
            if token:
                return hashlib.sha256(token.encode()).hexdigest()
        found: str | None = super()._routing_key(pending_request)
        return found


def connection_of(pending_request: Any) -> str:
    """Return the connection of a request, or what another replica calls the one that it asks."""
    called: str = pending_request.metadata.session_id
    return _header(pending_request, HEADER) or called


def _header(pending_request: Any, name: bytes) -> str:
    """Return a header of the request that the proxy passes on; empty where there is none."""
    if not (pending_request.metadata.is_http_request and pending_request.args):
        return ""
    return header_in(pending_request.args[0], name)
