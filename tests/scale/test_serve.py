"""MCP through Ray Serve with two replicas, to which requests come at random, for both eras."""

import asyncio
import contextlib
import json
import math
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

from divingbell import Divingbell
from divingbell.scale.replica_ids import HEADER as HEADER_BYTES
from divingbell.scale.replica_ids import replica_of
from tests.libraries import need
from tests.scale.ray_machines import SETTINGS, START_TIMEOUT, Machines
from tests.surfaces.mcp.conftest import Era, Listener, text_of
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code
PATIENCE = 60.0
CLIENTS = 8
HEADER = HEADER_BYTES.decode()
ANNE, BERT = "anne-has-a-long-token", "bert-has-a-long-token"


class Served:
    """Ray Serve on the cluster, with two replicas of the MCP application at its root."""

    def __init__(self, machines: Machines, folder: Path) -> None:
        self.folder = folder
        self.arguments = {
            "config": str(folder / "divingbell.toml"),
            "token_file": str(folder / "tokens"),
            "replicas": "2",
        }
        self._address = machines.address
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            self._port = found.getsockname()[1]

    def url(self, prefix: str = "") -> str:
        return f"http://127.0.0.1:{self._port}{prefix}/mcp"

    def start(self) -> None:
        from ray import serve

        from divingbell.scale import ray_access

        ray_access.connect(self._address, insecure=False)
        serve.start(http_options={"port": self._port})
        subprocess.run(
            [
                *("serve", "run", "--address", self._address, "--non-blocking", "--name", "mcp"),
                "divingbell.scale.serve:app",
                *(f"{name}={value}" for name, value in self.arguments.items()),
            ],
            check=True,
            timeout=START_TIMEOUT,
        )


@contextlib.asynccontextmanager
async def serving(machines: Machines, folder: Path) -> AsyncIterator[Served]:
    """Ray Serve with what is set up in a folder, until the block ends."""
    served = Served(machines, folder)
    try:
        await asyncio.to_thread(served.start)
        await until(proxies_are_up, "every machine answers", START_TIMEOUT)
        yield served
    finally:
        from ray import serve

        await asyncio.to_thread(serve.shutdown)
        await end_sessions(machines)


@pytest.fixture(scope="module")
async def served(
    machines: Machines, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Served]:
    folder = tmp_path_factory.mktemp("serve")
    (folder / "tokens").write_text(f"anne {ANNE}\nbert {BERT}\n")
    (folder / "tokens").chmod(0o600)
    settings = "".join(f"{name} = {value}\n" for name, value in SETTINGS.items())
    (folder / "divingbell.toml").write_text(
        f'audit = "off"\nskills = "off"\n{settings}[review.rules]\nprocess = "ask"\n'
    )
    async with serving(machines, folder) as served:
        yield served


def proxies_are_up() -> bool:
    """Whether the proxies of Serve are, of which each machine with a replica has one."""
    from ray import serve

    return "STARTING" not in serve.status().proxies.values()


async def end_sessions(machines: Machines) -> None:
    """End the sessions of all clients, which go on without replicas."""
    async with Divingbell("ray", ray_address=machines.address, **SETTINGS) as bell:
        cluster = bell._engine.cluster  # type: ignore[union-attr]
        for user in ("anne", "bert"):
            for id in await cluster.held(user):
                session = await bell.open(id, user=user)
                await session.close()


@pytest.fixture
def url(served: Served) -> str:
    return served.url()


@contextlib.asynccontextmanager
async def connected(
    url: str,
    era: Era,
    number: int = 0,
    token: str = ANNE,
    listener: Listener | None = None,
    places: set[str] | None = None,
) -> AsyncIterator[Client]:
    """A client each of whose requests may come to another replica.

    A token stays at one replica as long as it can, so each request is given as another spelling
    of it. `places` takes the names of the replicas that its connections of the older protocol are
    at.
    """
    options: dict[str, Any] = {} if listener is None else listener.options()
    spellings = iter(range(number, 1 << 30))

    async def spell(request: httpx2.Request) -> None:
        request.headers["Authorization"] = f"Bearer {' ' * (next(spellings) % 7)}{token}"

    async def note(response: httpx2.Response) -> None:
        if places is not None and HEADER in response.headers:
            places.add(replica_of(response.headers[HEADER]))

    hooks = {"request": [spell], "response": [note]}
    async with httpx2.AsyncClient(timeout=PATIENCE, event_hooks=hooks) as inner:
        transport = streamable_http_client(url, http_client=inner)
        async with Client(transport, mode=era, **options) as client:
            yield client


@contextlib.asynccontextmanager
async def at_both(url: str) -> AsyncIterator[dict[str, Client]]:
    """Clients of the older protocol, by the names of the two replicas that they are at."""
    found: dict[str, Client] = {}
    async with contextlib.AsyncExitStack() as stack:
        for number in range(100):
            places: set[str] = set()
            client = await stack.enter_async_context(
                connected(url, "legacy", number, places=places)
            )
            [place] = places
            found.setdefault(place, client)
            if len(found) == 2:
                break
        assert len(found) == 2
        yield found


async def run(client: Client, code: str, **more: Any) -> str:
    return text_of(await client.call_tool("execute_python", {"code": code, **more}))


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_every_answer_is_right(url: str, era: Era) -> None:
    async def talk(number: int) -> list[bool]:
        named = {"session_id": f"{era}-{number}"} if number % 2 or era == "auto" else {}
        async with connected(url, era, number) as client:
            await run(client, f"x = {number * 1000}", **named)
            return [
                str(number * 1000 + plus) in await run(client, f"x + {plus}", **named)
                for plus in range(4)
            ]

    answers = await asyncio.gather(*(talk(number) for number in range(CLIENTS)))
    assert all(all(right) for right in answers), answers
    async with connected(url, "auto") as client:
        for number in range(CLIENTS):
            if number % 2 or era == "auto":
                await client.call_tool("close_session", {"session_id": f"{era}-{number}"})


async def test_the_default_session_is_the_users_own_at_every_replica(url: str) -> None:
    async with connected(url, "auto") as anne, connected(url, "auto", token=BERT) as bert:
        await run(anne, "who = 'anne'")
        await run(bert, "who = 'bert'")
        for _ in range(4):
            assert "anne" in await run(anne, "who")
            assert "bert" in await run(bert, "who")


async def test_sessions_are_listed_and_closed_through_any_replica(url: str) -> None:
    async with connected(url, "auto") as client:
        for name in ("one", "two"):
            await run(client, "x = 1", session_id=name)
        for _ in range(4):
            listed = await client.call_tool("list_sessions", {})
            names = {each["session_id"] for each in listed.structured_content["sessions"]}
            assert {"one", "two"} <= names
        assert "has ended" in text_of(
            await client.call_tool("close_session", {"session_id": "one"})
        )
        assert "NameError" in await run(client, "x", session_id="one")
        for name in ("one", "two"):
            await client.call_tool("close_session", {"session_id": name})


async def test_a_question_is_answered_at_whichever_replica(url: str) -> None:
    listener = Listener()
    async with connected(url, "auto", listener=listener) as client:
        code = "import subprocess; print(subprocess.run(['echo', 'yes']).returncode)"
        for number in range(6):
            assert "0" in await run(client, f"{code}  # {number}")
    assert len(listener.asked) >= 6


async def test_a_user_has_32_sessions_in_all_of_the_cluster(url: str) -> None:
    async with connected(url, "auto", token=BERT) as client:
        await run(client, "1")
        names = [f"many-{number}" for number in range(31)]
        for name in names:
            assert "you have 32" not in await run(client, "1", session_id=name)
        for _ in range(3):
            assert "you have 32 sessions" in await run(client, "1", session_id="one-more")
        for name in names:
            await client.call_tool("close_session", {"session_id": name})


async def test_a_stream_of_changes_hears_those_made_at_another_replica(url: str) -> None:
    told: list[str] = []
    # At one of the two the stream is, so one of the two changes is made elsewhere.
    uris = [f"divingbell://sessions/shared/files/{number}.txt" for number in range(2)]

    async def listen(events: Any) -> None:
        async for event in events:
            told.append(event.uri)

    async with (
        at_both(url) as clients,
        connected(url, "auto") as listener,
        listener.listen(resource_subscriptions=uris) as events,
    ):
        listening = asyncio.create_task(listen(events))
        try:
            for number, client in enumerate(clients.values()):
                code = f"with open('{number}.txt', 'a') as f: f.write('x')"

                async def is_told(
                    client: Client = client, code: str = code, uri: str = uris[number]
                ) -> bool:
                    await run(client, code, session_id="shared")
                    return uri in told

                await until(is_told, "the change is told")
        finally:
            listening.cancel()
        await client.call_tool("close_session", {"session_id": "shared"})


async def test_a_connection_waits_for_its_replica_where_it_is_not_heard_of_yet(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ray import serve
    from ray.serve._private.common import DeploymentHandleSource, DeploymentID, RequestMetadata
    from ray.serve._private.request_router.common import PendingRequest

    from divingbell.scale import ray_router

    handle = serve.get_deployment_handle("mcp", "mcp")
    await handle.broadcast("heard", {"from": "nobody", "kind": "here"}).results_async()
    both = handle._router._asyncio_router._request_router._replicas_list
    place = DeploymentID("mcp", "mcp")
    routers = []

    def router_that_knows(*replicas: Any) -> Any:
        routers.append(ray_router.ReplicaRouter(place, DeploymentHandleSource.UNKNOWN))
        routers[-1].update_replicas(list(replicas))
        return routers[-1]

    async def chosen(router: Any, connection: str, number: int = 0) -> Any:
        words = RequestMetadata(str(number), str(number), session_id=connection)
        request = PendingRequest(args=[], kwargs={}, metadata=words)
        return await router._choose_replica_for_request(request)

    for named, other in (both, both[::-1]):
        connection = f"{named.replica_id.unique_id}.1234"
        monkeypatch.setattr(ray_router, "PATIENCE", math.inf)
        router = router_that_knows(other)
        waiting = asyncio.create_task(chosen(router, connection))
        assert await chosen(router, f"{other.replica_id.unique_id}.1234", 1) is other
        done, _ = await asyncio.wait({waiting}, timeout=0.5)
        assert not done  # it has not gone to the other one
        router.update_replicas(both)
        assert await waiting is named
        # It is not waited for one that is being stopped, nor for one that nobody has.
        router.update_replicas([other])
        for number, gone in enumerate((connection, "nobody00.1", "a#b.1", "x" * 10_000 + ".1")):
            assert await chosen(router, gone, 2 + number) is other
        # Nor without end for one that lives and is never heard of.
        monkeypatch.setattr(ray_router, "PATIENCE", 0.1)
        assert await chosen(router_that_knows(other), connection) is other


async def test_without_a_token_nothing_is_answered(url: str) -> None:
    async with httpx2.AsyncClient(timeout=PATIENCE) as client:
        answer = await client.post(url, json={}, headers={"Accept": "application/json"})
        assert answer.status_code == 401
        health = await client.get(url.replace("/mcp", "/healthz"))
        assert json.loads(health.text) == {"status": "ok"}


async def test_the_dataset_server_answers_through_serve(served: Served) -> None:
    from ray import serve

    from divingbell.scale import serve as ours

    folder = served.folder / "data"
    folder.mkdir()
    (folder / "flights.csv").write_text("origin,delay\nJFK,5\nLGA,7\n")
    served.folder.chmod(0o755)
    given = {**served.arguments, "folder": str(folder), "replicas": "1"}
    await asyncio.to_thread(
        serve.run, ours.datasets(given), name="datasets", route_prefix="/datasets"
    )
    async with connected(served.url("/datasets"), "auto") as client:
        told = await client.call_tool(
            "query_dataset", {"sql": "SELECT sum(delay) AS total FROM flights"}
        )
        assert "12" in text_of(told)
    async with httpx2.AsyncClient(timeout=PATIENCE) as stranger:
        answer = await stranger.post(served.url("/datasets"), json={})
        assert answer.status_code == 401
    await asyncio.to_thread(serve.delete, "datasets")


async def test_clients_of_a_replica_that_goes_are_told_and_others_go_on(served: Served) -> None:
    import ray
    from ray import serve
    from ray.serve._private.common import DeploymentID
    from ray.serve._private.constants import SERVE_CONTROLLER_NAME, SERVE_NAMESPACE

    from divingbell.scale import serve as ours

    await asyncio.to_thread(
        serve.run,
        ours.app(served.arguments),
        name="scaled",
        route_prefix="/scaled",
        external_scaler_enabled=True,
    )
    url = served.url("/scaled")
    place = DeploymentID("mcp", "scaled")
    controller = ray.get_actor(SERVE_CONTROLLER_NAME, namespace=SERVE_NAMESPACE)

    async def scale(count: int) -> None:
        await controller.update_deployment_replicas.remote(place, count)

    def running() -> int:
        [deployment] = serve.status().applications["scaled"].deployments.values()
        return int(deployment.replica_states.get("RUNNING", 0))

    async with connected(url, "auto") as any_replica, at_both(url) as clients:
        await run(any_replica, "x = 1", session_id="scaled")
        for name, client in clients.items():
            await run(client, f"name = {name!r}")
        await scale(1)
        told: dict[str, str] = {}

        async def one_is_told() -> bool:
            for name, client in clients.items():
                try:
                    told[name] = await run(client, "name")
                except MCPError as error:
                    told[name] = str(error)
            return "Session not found" in told.values()

        await until(one_is_told, "a client is told that its replica goes")
        [gone] = [name for name, words in told.items() if words == "Session not found"]
        [left] = clients.keys() - {gone}
        assert left in told[left]
        for _ in range(4):
            assert "1" in await run(any_replica, "x", session_id="scaled")
        await scale(2)
        await until(lambda: running() == 2, "there are two again", START_TIMEOUT)
        assert left in await run(clients[left], "name")
        ray.kill(ray.get_actor(f"SERVE_REPLICA::scaled#mcp#{left}", namespace=SERVE_NAMESPACE))
        with pytest.raises(MCPError, match="Session not found"):
            await run(clients[left], "name")
        for _ in range(4):
            assert "1" in await run(any_replica, "x", session_id="scaled")
        await any_replica.call_tool("close_session", {"session_id": "scaled"})
    await asyncio.to_thread(serve.delete, "scaled")


def test_arguments_are_checked_and_no_tokens_are_refused(tmp_path: Path) -> None:
    need("ray")
    from divingbell.errors import ConfigError
    from divingbell.scale import serve as ours

    with pytest.raises(ConfigError, match="there is no argument 'token'"):
        ours.Arguments.of({"token": "secret"})
    with pytest.raises(ConfigError, match="replicas=many: this takes a number"):
        ours.Arguments.of({"replicas": "many"})
    with pytest.raises(ConfigError, match="name the folder"):
        ours.datasets({})
    assert ours.Arguments.of({"no_token": "true", "most": "3"}) == ours.Arguments(
        no_token=True, most=3
    )
