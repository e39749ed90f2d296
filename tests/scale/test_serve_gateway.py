"""The one gateway of the replicas of Ray Serve: servers are there once, and their secrets too."""

import asyncio
import json
import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import real_servers
from tests.libraries import need
from tests.scale import ray_machines
from tests.scale.test_serve import connected, run
from tests.surfaces.mcp.conftest import Era, Listener
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code
ANNE = "anne-has-a-long-token"
SECRET = "-".join(("hunter22", "of", "the", "shop", "4711"))
MARK = "--one-of-all-replicas"
"""Tells the process of the server from others of this machine."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve-gateway")


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    command, arguments = real_servers.fixture("workshop")
    (folder / "tokens").write_text(f"anne {ANNE}\n")
    (folder / "tokens").chmod(0o600)
    (folder / "divingbell.toml").write_text(
        'audit = "on"\nskills = "off"\nmax_sessions = 20\npool = 1\n'
        "[policy]\ncalls_per_session = 12\n"
        f"[servers.shop]\ncommand = {json.dumps(command)}\n"
        f"args = {json.dumps([*arguments, 'stdio', MARK])}\n"
        f'env = {{ SHOP_TOKEN = "{SECRET}" }}\n'
    )
    need("ray")
    with ray_machines.running() as machines, socket.socket() as found:
        import ray
        from ray import serve

        from divingbell.scale import ray_access
        from divingbell.scale import serve as ours

        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
        found.close()
        ray_access.connect(machines.address, insecure=False)
        serve.start(http_options={"port": port})
        given = {
            "config": str(folder / "divingbell.toml"),
            "token_file": str(folder / "tokens"),
            "replicas": "2",
        }
        try:
            serve.run(ours.app(given), name="mcp", route_prefix="/")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            serve.shutdown()
            ray.shutdown()


def processes(mark: str) -> list[int]:
    """The processes whose command line has this in it."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if mark in path.read_bytes().decode(errors="replace").split("\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_all_replicas_have_one_server_whose_questions_reach_the_person(
    url: str, era: Era
) -> None:
    async def talk(number: int) -> str:
        listener = Listener()
        listener.answer.content = {"colour": "red"}
        async with connected(url, era, number, listener=listener) as client:
            named = {"session_id": f"{era}-{number}"}
            said = await run(client, "from servers import shop\nshop.echo(text='a b')", **named)
            assert "a b" in said, said
            said = await run(client, "shop.paint()", **named)
            await client.call_tool("close_session", named)
        assert listener.asked == ["Which colour?"] or "Which colour?" in listener.asked[0]
        return said

    said = await asyncio.gather(*(talk(number) for number in range(4)))
    assert all("painted red" in each for each in said), said
    assert len(processes(MARK)) == 1
