"""Sessions on a real Ray cluster: where they are, who is let in, and what dies with whom."""

import asyncio
import contextlib
import json
import os
import re
import signal
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trustme

from divingbell import Divingbell, Result, Session
from divingbell.errors import CapacityError, ConfigError, SandboxUnavailable
from divingbell.scale import certificates
from divingbell.settings.config import Settings
from tests.libraries import need
from tests.scale import ray_machines
from tests.scale.ray_machines import PLACES, SETTINGS, START_TIMEOUT, Machines
from tests.surfaces.cli.command import COMMAND
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code


def front(machines: Machines, **settings: Any) -> Divingbell:
    return Divingbell("ray", ray_address=machines.address, **{**SETTINGS, **settings})


@pytest.fixture(scope="module")
async def bell(machines: Machines) -> AsyncIterator[Divingbell]:
    async with front(machines) as bell:
        await until(lambda: two_nodes(bell), "both nodes are up", START_TIMEOUT)
        yield bell


async def overview(bell: Divingbell) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = await bell._engine.cluster.overview()  # type: ignore[union-attr]
    return found


async def two_nodes(bell: Divingbell) -> bool:
    return [node["state"] for node in await overview(bell)] == ["up", "up"]


def node_of(session: Session) -> str:
    return str(session._seen.node)  # type: ignore[attr-defined]


async def process_of(bell: Divingbell, name: str) -> int:
    """The process in which a node is."""
    [process] = [node["process"] for node in await overview(bell) if node["name"] == name]
    return int(process)


@contextlib.asynccontextmanager
async def apart(bell: Divingbell) -> AsyncIterator[tuple[Session, Session]]:
    """A session on each of the two nodes. The next one goes where there is more room by memory, so
    it is not always the other."""
    found: dict[str, Session] = {}
    others = []
    while len(found) < 2:
        session = await bell.open()
        if node_of(session) in found:
            others.append(session)
            assert len(others) < 2 * PLACES
        found.setdefault(node_of(session), session)
    for session in others:
        await bell.release(session)
    first, second = found.values()
    yield first, second
    for session in (first, second):
        await bell.release(session)


async def said(session: Session, code: str) -> str:
    return (await session.run(code)).text.strip()


def test_ray_is_not_loaded_by_the_library() -> None:
    code = "import sys, divingbell, divingbell.app; assert 'ray' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_the_extra_the_command_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("divingbell.scale.ray")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigError, match=r"pip install 'divingbell\[ray\]'"):
        from divingbell.scale import clusters

        clusters.cluster_of(Settings(backend="ray"))


# Who is let in


async def test_a_cluster_without_tokens_is_refused_before_anything_is_sent(
    machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    with pytest.raises(ConfigError, match=r"RAY_AUTH_MODE is not `token`.*ray_insecure"):
        async with front(machines):
            pass


async def test_a_wrong_token_and_a_missing_one_are_called_so(
    machines: Machines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from divingbell.scale import ray_access

    monkeypatch.setenv("RAY_AUTH_TOKEN", "b" * 64)
    with pytest.raises(ConfigError, match="has another token than the one here"):
        ray_access.check(machines.address, insecure=False)
    monkeypatch.delenv("RAY_AUTH_TOKEN")
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(ConfigError, match="asks for a token, and there is none here"):
        ray_access.check(machines.address, insecure=False)


async def test_where_no_head_is_it_says_so() -> None:
    need("ray")
    from divingbell.scale import ray_access

    with pytest.raises(SandboxUnavailable, match=r"no Ray head answers at 127\.0\.0\.1:1 "):
        ray_access.check("127.0.0.1:1", insecure=False)


def test_certificates_that_are_missing_or_none_are_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("RAY_USE_TLS", "1")
    with pytest.raises(ConfigError, match="RAY_TLS_CA_CERT"):
        certificates.contexts()
    (tmp_path / "none").write_text("no certificate")
    for name in ("RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY", "RAY_TLS_CA_CERT"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="can't be used"):
        certificates.contexts()


async def test_lines_take_certificates_of_the_cluster_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    authority = trustme.CA()
    shown = authority.issue_cert("127.0.0.1")
    files = {
        "RAY_TLS_SERVER_CERT": shown.cert_chain_pems[0],
        "RAY_TLS_SERVER_KEY": shown.private_key_pem,
        "RAY_TLS_CA_CERT": authority.cert_pem,
    }
    for name, content in files.items():
        content.write_to_path(tmp_path / name)
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("RAY_USE_TLS", "1")
    contexts = certificates.contexts()
    assert contexts is not None

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(await reader.readexactly(4))
        writer.close()

    async def echoed(context: ssl.SSLContext) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(b"1234")
        found = await reader.read()
        writer.close()
        return found

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=contexts.server)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await echoed(contexts.client) == b"1234"
        without = ssl.create_default_context()
        authority.configure_trust(without)
        of_others = ssl.create_default_context()
        for context in (without, of_others):
            with contextlib.suppress(ssl.SSLError, ConnectionError):
                assert await echoed(context) == b""


# Where sessions are


async def test_sessions_are_spread_and_run_code(bell: Divingbell) -> None:
    async with apart(bell) as (first, second):
        assert await said(first, "1 + 1") == "2"
        assert await said(second, "2 + 2") == "4"


async def test_two_fronts_that_open_one_id_at_once_have_one_session(
    machines: Machines, bell: Divingbell
) -> None:
    async with front(machines) as other:
        both = await asyncio.gather(bell.open("same"), other.open("same"))
        await both[0].run("x = 41")
        assert await said(both[1], "x + 1") == "42"
        assert both[0].key == both[1].key
        async with other.session("same", user="anne") as of_another:
            assert await said(of_another, "'x' in globals()") == "False"
        await other.release(both[1])
        await bell.release(both[0])


def nodes_asked_for() -> int:
    """The nodes that Ray's autoscaler would see to."""
    from ray.autoscaler._private.constants import AUTOSCALER_RESOURCE_REQUEST_CHANNEL
    from ray.experimental.internal_kv import _internal_kv_get

    asked = json.loads(_internal_kv_get(AUTOSCALER_RESOURCE_REQUEST_CHANNEL) or b"[]")
    assert all(bundle == {"divingbell": 1} for bundle in asked)
    return len(asked)


async def test_when_all_is_full_the_nodes_are_named_and_a_place_is_waited_for(
    machines: Machines, bell: Divingbell
) -> None:
    sessions = [await bell.open() for _ in range(2 * PLACES)]
    names = {node_of(session) for session in sessions}
    with pytest.raises(CapacityError) as refused:
        await bell.open()
    assert len(names) == 2 and all(
        f"{name} has all of {PLACES}" in str(refused.value) for name in names
    )
    async with front(machines, open_timeout=PATIENCE) as patient:
        waiting = asyncio.create_task(patient.open())
        await until(lambda: nodes_asked_for() == 3, "Ray's autoscaler is asked for one more")
        await bell.release(sessions[0])
        await patient.release(await waiting)
    await until(lambda: nodes_asked_for() == 0, "no more are asked for than are used")
    for session in sessions[1:]:
        await bell.release(session)
    await until(lambda: all_free(bell), "all places are free again")


async def all_free(bell: Divingbell) -> bool:
    return all(node["sessions"] == 0 for node in await overview(bell))


async def test_a_node_reserves_in_ray_what_its_sessions_may_take(bell: Divingbell) -> None:
    from ray._private.state import available_resources_per_node, total_resources_per_node

    total, wanted = total_resources_per_node(), PLACES * Settings().limits.memory

    def reserved() -> list[float]:
        left = available_resources_per_node()
        return [total[id]["memory"] - left[id]["memory"] for id in ids]

    ids = [node["ray_node"] for node in await overview(bell)]
    least = [min(wanted, 0.7 * total[id]["memory"]) for id in ids]
    assert len(ids) == 2
    await until(lambda: reserved() == pytest.approx(least, rel=0.01), "Ray knows of it")


async def test_counts_of_nodes_are_among_rays_metrics(bell: Divingbell) -> None:
    import ray

    urls = [
        f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics"
        for node in ray.nodes()
        if node["Alive"]
    ]

    async with bell.session("counted") as session, httpx2.AsyncClient() as client:
        counted = re.compile(
            rf'^ray_divingbell_node_sessions{{.*node="{node_of(session)}".*}} 1\.0$', re.MULTILINE
        )

        async def is_there() -> bool:
            texts = [(await client.get(url)).text for url in urls]
            return any(counted.search(text) for text in texts)

        await until(is_there, "the session is counted")
        names = await overview(bell)
        texts = "".join([(await client.get(url)).text for url in urls])
        for key in ("sessions", "busy", "free_places", "free_memory"):
            for node in names:
                assert re.search(rf'ray_divingbell_node_{key}{{.*node="{node["name"]}"', texts)


async def test_a_front_of_another_version_is_told_which(
    machines: Machines, bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    from divingbell.scale import ray as of_ray
    from divingbell.scale import ray_actors

    there = ray_actors.versions()
    monkeypatch.setattr(of_ray, "versions", lambda: {**there, "Divingbell": "9.9"})
    told = rf"the cluster has Divingbell {there['Divingbell']}, and this machine 9\.9: install"
    with pytest.raises(ConfigError, match=told):
        async with front(machines):
            pass


LONG = 60.0
"""Seconds that a command may take on a machine that is very busy."""
FRONT = """
import asyncio, sys
from divingbell import Divingbell
from divingbell.errors import SandboxUnavailable
from divingbell.scale import ray

async def main(address):
    ray.PATIENCE = 1.0
    async with Divingbell("ray", ray_address=address, ray_insecure=True, open_timeout=1) as bell:
        session = await bell.open()
        await session.run("x = 41")
        print("opened", flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        print((await session.run("x + 1")).text.strip(), flush=True)
        try:
            while True:
                await bell.release(await bell.open())
        except SandboxUnavailable as error:
            print(error, flush=True)
        print((await session.run("x + 2")).text.strip(), flush=True)
        await asyncio.Event().wait()

asyncio.run(main(sys.argv[1]))
"""


async def test_a_cluster_without_tokens_is_used_where_that_is_said_and_its_head_may_die(
    machines: Machines,
) -> None:
    from divingbell.scale import ray_access

    async def executed(**more: str) -> tuple[int | None, str]:
        ours = {f"DIVINGBELL_{name.upper()}": str(value) for name, value in SETTINGS.items()}
        given = {"DIVINGBELL_BACKEND": "ray", "DIVINGBELL_RAY_ADDRESS": other.address}
        return await commanded("exec", "print(6 * 7)", env={**env, **ours, **given, **more})

    with ray_machines.folder_for_ray() as folder:
        env = ray_machines.environment(folder, auth="disabled") | {
            "DOCKER_HOST": "tcp://0.0.0.0:1",
            "RAY_gcs_rpc_server_reconnect_timeout_s": "10",  # usually a minute
        }
        with ray_machines.started(env, 1) as other:
            with pytest.raises(ConfigError, match=r"asks for no token.*ray_insecure"):
                ray_access.check(other.address, insecure=False)
            status, out = await executed()
            assert status == 2 and "RAY_AUTH_MODE is not `token`" in out
            # A node that can't be one says why; and with other settings it can.
            insecure = {"DIVINGBELL_RAY_INSECURE": "true"}
            status, out = await executed(DIVINGBELL_NODE_BACKEND="docker", **insecure)
            assert status == 3 and "no node could be started: DOCKER_HOST is" in out, out
            status, out = await executed(**insecure)
            assert (status, out.strip()) == (0, "42"), out
            # Its head dies.
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", FRONT, other.address),
                env=env,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            assert process.stdout is not None
            async with asyncio.timeout(LONG):
                assert await process.stdout.readline() == b"opened\n"
            await asyncio.to_thread(other.behead)
            async with asyncio.timeout(LONG):
                told, words = await process.communicate(b"go on\n")
            before, refused, after = told.decode().splitlines()
            assert (before, after) == ("42", "43") and "not answer" in refused
            assert b"the nodes were started with other settings" in words
            # In the end Ray itself ends those who have used it, and says why.
            assert process.returncode == 1 and b"Failed to connect to GCS" in words, words
            status, out = await executed(**insecure)
            assert status == 3 and "no Ray head answers" in out, out


async def test_no_secret_of_a_node_is_in_what_ray_writes(bell: Divingbell) -> None:
    cluster = bell._engine.cluster  # type: ignore[union-attr]
    secrets = [address.secret.encode() for address in await cluster.nodes()]
    read = 0
    for path in Path(os.environ["RAY_TMPDIR"]).rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            read += len(content)
            assert not any(secret in content for secret in secrets), path
    assert read


async def commanded(*words: str, env: Mapping[str, str] | None = None) -> tuple[int | None, str]:
    process = await asyncio.create_subprocess_exec(
        *(COMMAND, *words), env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    async with asyncio.timeout(LONG):
        out, _ = await process.communicate()
    return process.returncode, out.decode()


async def test_the_commands_say_how_the_nodes_are(
    machines: Machines, bell: Divingbell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIVINGBELL_RAY_ADDRESS", machines.address)
    monkeypatch.setenv("DIVINGBELL_BACKEND", "ray")
    names = [node["name"] for node in await overview(bell)]
    status, out = await commanded("nodes")
    assert status == 0 and all(f"{name}  up  0 of {PLACES} sessions" in out for name in names), out
    status, out = await commanded("nodes", "drain", "nobody")
    assert status == 2 and "there is no node 'nobody'" in out
    monkeypatch.setenv("DIVINGBELL_MAX_SESSIONS", str(PLACES))
    status, out = await commanded("doctor")
    assert status == 0, out
    assert all(f"Line to {name}" in out for name in names) and "Divingbell 0" in out, out


# What dies with whom


async def test_a_directory_that_dies_is_made_again_from_what_nodes_hold(bell: Divingbell) -> None:
    import ray

    async with apart(bell) as (session, other):
        await session.run("x = 1")
        ray.kill(bell._engine.cluster._directory, no_restart=False)  # type: ignore[union-attr]
        async with bell.session("new") as new:
            assert await said(new, "2") == "2"
        held = {node_of(session): 1, node_of(other): 1}

        async def is_known() -> bool:
            return {node["name"]: node["sessions"] for node in await overview(bell)} == held

        await until(is_known, "the two that are left are known, and no other")
        assert await said(session, "x") == "1"


async def test_a_node_that_dies_costs_its_own_sessions_and_says_so(bell: Divingbell) -> None:
    async with apart(bell) as (here, there):
        await here.run("x = 1")
        await there.run("x = 2")
        name = node_of(here)
        begun = asyncio.Event()

        async def stream() -> Result | None:
            result = None
            async for event in here.stream("print(1, flush=True)\nimport time\ntime.sleep(60)"):
                begun.set()
                result = event.result
            return result

        running = asyncio.create_task(stream())
        await begun.wait()
        os.kill(await process_of(bell, name), signal.SIGKILL)
        result = await running
        assert result is not None and result.status == "killed" and name in str(result.error)
        fresh = await here.run("'x' in globals()")
        assert fresh.text.strip() == "False"
        assert fresh.state == "fresh" and node_of(here) != name
        assert await said(there, "x") == "2"
    await until(lambda: two_nodes(bell), "the node is started again", START_TIMEOUT)


async def test_a_node_that_hangs_is_given_up_and_serves_again_without_what_it_held(
    bell: Divingbell,
) -> None:
    async with bell.session("hung") as session:
        await session.run("x = 1")
        name = node_of(session)
        process = await process_of(bell, name)
        os.kill(process, signal.SIGSTOP)
        try:
            result = await session.run("x")
            assert result.status == "killed" and name in str(result.error)
            again = await session.run("'x' in globals()")
            assert again.state == "fresh" and node_of(session) != name
        finally:
            os.kill(process, signal.SIGCONT)
        await until(lambda: two_nodes(bell), "it is there again")
        assert "NameError" in str((await session.run("x")).error)
        nodes = {node["name"]: node["sessions"] for node in await overview(bell)}
        assert nodes[name] == 0
