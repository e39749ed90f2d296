"""Divingbell under Ray Serve: replicas of the MCP application, and of the dataset server.

`serve run divingbell.scale.serve:app` and `serve run divingbell.scale.serve:datasets`. Arguments
follow as `name=value`: see `Arguments`.
"""

import asyncio
import hashlib
import hmac
import os
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Self

from divingbell import logs
from divingbell.app import Divingbell
from divingbell.datasets.opening import opened
from divingbell.datasets.sealed_reader import default_limits
from divingbell.errors import ConfigError
from divingbell.models import Limits
from divingbell.scale.disconnects import Disconnects
from divingbell.scale.gateway.shared import SharedGateway
from divingbell.scale.replica_ids import ReplicaIds
from divingbell.settings import config
from divingbell.settings.config import Settings
from divingbell.shares import loop_thread
from divingbell.surfaces import auth
from divingbell.surfaces.auth import Tokens
from divingbell.surfaces.cli import serving
from divingbell.surfaces.cli.tokens import store
from divingbell.surfaces.http.application import Application, application_of, mcp_application
from divingbell.surfaces.mcp.replicas import expired
from divingbell.surfaces.mcp.server import Surface

try:
    import ray
    from ray import serve
    from ray.exceptions import RayError
    from ray.serve.config import RequestRouterConfig
    from ray.serve.exceptions import RayServeException

    from divingbell.scale import ray_access, ray_gateway
    from divingbell.scale.ray_router import ReplicaRouter
except ImportError as error:
    raise ConfigError(
        f"Ray Serve is not installed ({error}): run pip install 'divingbell[ray]'"
    ) from None

log = logs.logger("divingbell")

ONGOING = 1_000
"""Requests of one replica at once: each stream of changes is one for as long as it is open."""
TARGET_ONGOING = 20
"""Requests of one replica at once, in the mean, above which there is another one."""


@dataclass(frozen=True)
class Arguments:
    """What stands behind `serve run …`, as `name=value`. No secret is among it."""

    config: str = ""
    """The divingbell.toml: on the head, where the gateway reads it; for datasets on every machine
    on which a replica runs."""
    token_file: str = ""
    """Who may call, as for `divingbell serve --http`; DIVINGBELL_TOKENS and the tokens of
    `divingbell token` are taken, too."""
    allow_host: str = ""
    """Names under which clients reach it, with commas between them."""
    no_token: bool = False
    """Let everybody in who reaches Serve's port."""
    replicas: int = 0
    """So many replicas; 0: as many as there is work for."""
    most: int = 8
    """Replicas at most, where there are as many as there is work for."""
    folder: str = ""
    """For datasets: the folder, on every machine on which a replica runs."""

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Self:
        """Return the arguments as `serve run` gives them, which are texts.

        Raises:
            ConfigError: one is unknown, or of a wrong kind.
        """
        kinds = {field.name: type(field.default) for field in fields(cls)}
        found: dict[str, Any] = {}
        for name, value in given.items():
            if name not in kinds:
                raise ConfigError(f"there is no argument {name!r}: there is {', '.join(kinds)}")
            try:
                found[name] = _read(str(value), kinds[name])
            except ValueError:
                raise ConfigError(f"{name}={value}: this takes {_KINDS[kinds[name]]}") from None
        return cls(**found)


_KINDS: Mapping[type, str] = {str: "a text", int: "a number", bool: "true or false"}


def _read(value: str, kind: type) -> Any:
    if kind is bool:
        return {"true": True, "false": False}[value.lower()] if value else False
    return kind(value)


def app(args: dict[str, str]) -> serve.Application:
    """Return the MCP application, for `serve run`."""
    return _application(Replica, "mcp", Arguments.of(args), ray_gateway.new_name())


def datasets(args: dict[str, str]) -> serve.Application:
    """Return the dataset server, for `serve run`.

    Raises:
        ConfigError: no folder is named.
    """
    given = Arguments.of(args)
    if not given.folder:
        raise ConfigError("name the folder: serve run divingbell.scale.serve:datasets folder=/data")
    return _application(DatasetsReplica, "datasets", given)


def _application(kind: type, name: str, given: Arguments, *more: str) -> serve.Application:
    replicas: dict[str, Any] = {"num_replicas": given.replicas}
    if not given.replicas:
        scaling = {"min_replicas": 1, "max_replicas": given.most}
        replicas = {"autoscaling_config": {**scaling, "target_ongoing_requests": TARGET_ONGOING}}
    deployment = serve.deployment(
        serve.ingress()(kind),
        name=name,
        max_ongoing_requests=ONGOING,
        request_router_config=RequestRouterConfig(
            request_router_class=f"{ReplicaRouter.__module__}.{ReplicaRouter.__name__}"
        ),
        **replicas,
    )
    return deployment.bind(asdict(given), *more)


class _Others:
    """The other replicas, through Serve (divingbell.surfaces.mcp.replicas.Replicas)."""

    def __init__(self, changed: Callable[[], None]) -> None:
        """`changed` is called when this replica knows of others than before."""
        context = serve.get_replica_context()
        self.name: str = context.replica_tag
        self.key = sealing_key()
        self._place = context.deployment, context.app_name
        self._tasks: set[asyncio.Task[None]] = set()
        loop = asyncio.get_running_loop()
        ReplicaRouter.on_change = [lambda: loop.call_soon_threadsafe(changed)]

    async def resume(self, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        handle = self._handle().options(session_id=f"{name}.", method_name="resume")
        try:
            found: Mapping[str, Any] = await handle.remote(name, dict(request))
        except (RayError, RayServeException) as error:
            log.info("the replica %s does not go on with a call: %s", name, error)
            raise expired() from None
        return found

    def tell(self, told: Mapping[str, Any]) -> None:
        self._spawn(self._tell({**told, "from": self.name}))

    async def _tell(self, told: Mapping[str, Any]) -> None:
        try:
            await self._handle().broadcast("heard", dict(told)).results_async()
        except (RayError, RayServeException) as error:  # it is a notice, and one has gone
            log.debug("not every replica was told: %s", error)

    def _handle(self) -> Any:
        return serve.get_deployment_handle(*self._place)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def sealing_key() -> bytes:
    """Return the key with which all replicas seal what clients carry.

    It is made of the cluster's token, so nobody has to keep it or pass it on. A cluster without a
    token runs anybody's code; there the key is as good as known.
    """
    secret = ray_access.token() or ray.get_runtime_context().gcs_address
    return hmac.digest(secret.encode(), b"divingbell serve: request states", hashlib.sha256)


class Replica:
    """One process that answers MCP clients; the sessions are on nodes, and servers behind the
    gateway that all replicas share."""

    async def __init__(  # type: ignore[misc]
        self, given: Mapping[str, Any], gateway: str
    ) -> None:
        self._given = Arguments(**given)
        self._undo = AsyncExitStack()
        loop_thread.go_first()
        link = await ray_gateway.link_to(gateway, self._given.config)
        self._undo.push_async_callback(link.stop)
        settings = replace(serving.for_a_model(await link.settings()), backend="ray")
        if settings.mode != "code":
            raise ConfigError(
                f'mode = "{settings.mode}" passes tools through, which replicas of Serve do not do '
                'yet: use mode = "code", or divingbell serve --http'
            )
        settings = serving.with_private_users(settings, _tokens(self._given))
        shared = SharedGateway(link, settings.policy)
        await shared.start()
        self._undo.push_async_callback(shared.stop)
        bell = Divingbell.of(settings)
        bell._share_gateway(shared)
        self._bell = await self._undo.enter_async_context(bell)
        self._bell._share_sessions()
        self._surface: Surface | None = None
        self._others = _Others(self._tell_again)

    def __serve_build_asgi_app__(self) -> Application:
        given, others = self._given, self._others
        made, self._surface = mcp_application(
            self._bell,
            _tokens(given),
            _hosts(given),
            others,
            lambda endpoint: ReplicaIds(endpoint, others.name),
        )
        made.put_within(Disconnects)
        others.tell({"kind": "here"})
        return made

    async def resume(self, name: str, request: Mapping[str, Any]) -> Mapping[str, Any]:
        """Go on with a call that is kept here, for another replica."""
        if self._surface is None or name != self._others.name:
            # The one that kept it has gone, and the router has chosen another.
            return {"error": expired().error.model_dump(mode="json", exclude_none=True)}
        return await self._surface.suspended.resume_for(request)

    async def heard(self, told: Mapping[str, Any]) -> None:
        """Take what another replica has told all."""
        if self._surface is not None and told["from"] != self._others.name:
            self._surface.subscriptions.heard(told)

    def _tell_again(self) -> None:
        """Have all others know who listens here: one of them may be new, or heard of only now."""
        if self._surface is not None:
            self._surface.subscriptions.heard({"kind": "here"})

    async def __del__(self) -> None:
        ReplicaRouter.on_change = []
        await self._undo.aclose()


class DatasetsReplica:
    """One process that answers clients of a dataset server; it reads in sessions of its own."""

    async def __init__(self, given: Mapping[str, Any]) -> None:  # type: ignore[misc]
        self._given = Arguments(**given)
        self._undo = AsyncExitStack()
        settings = _settings(self._given)
        if settings.limits == Limits():
            settings = replace(settings, limits=default_limits())
        folder = Path(self._given.folder)
        self._made, bell = await self._undo.enter_async_context(opened(folder, settings))
        await bell.ready()

    def __serve_build_asgi_app__(self) -> Application:
        name = serve.get_replica_context().replica_tag
        made = application_of(
            self._made.server,
            _tokens(self._given),
            _hosts(self._given),
            lambda endpoint: ReplicaIds(endpoint, name),
        )
        made.put_within(Disconnects)
        return made

    async def __del__(self) -> None:
        await self._undo.aclose()


def _settings(given: Arguments) -> Settings:
    return config.load(given.config or None)


def _hosts(given: Arguments) -> tuple[str, ...]:
    return tuple(name.strip() for name in given.allow_host.split(",") if name.strip())


def _tokens(given: Arguments) -> Tokens | None:
    """Return who may call.

    Raises:
        ConfigError: nobody may, and it was not said that all may.
    """
    file = Path(given.token_file) if given.token_file else None
    known = auth.load(file, (), os.environ, store())
    if known is None and not given.no_token:
        raise ConfigError(
            "there are no tokens, so everybody would be let in who reaches Serve: give "
            f"token_file=…, set {auth.VARIABLE} where Ray is started, or say no_token=true"
        )
    return None if given.no_token else known
