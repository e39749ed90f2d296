"""The one gateway of the replicas of Ray Serve: servers are there once, and their secrets too."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from tests import real_servers
from tests.scale.ray_machines import SETTINGS, Machines
from tests.scale.test_serve import connected, run, serving
from tests.surfaces.mcp.conftest import Era, Listener
from tests.waiting import until

pytestmark = pytest.mark.filterwarnings("default")  # of Ray's own code
ANNE = "anne-has-a-long-token"
SECRET = "-".join(("hunter22", "of", "the", "shop", "4711"))
PIECE = 16 << 20
MARK = f"--one-of-all-replicas-{os.getpid()}"
"""Tells the process of the server from others of this machine."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("serve-gateway")


@pytest.fixture(scope="module")
async def url(machines: Machines, folder: Path) -> AsyncIterator[str]:
    command, arguments = real_servers.fixture("workshop")
    (folder / "tokens").write_text(f"anne {ANNE}\n")
    (folder / "tokens").chmod(0o600)
    settings = "".join(f"{name} = {value}\n" for name, value in SETTINGS.items())
    (folder / "divingbell.toml").write_text(
        f'audit = "on"\nskills = "off"\n{settings}'
        "[policy]\ncalls_per_session = 12\n"
        f"[servers.shop]\ncommand = {json.dumps(command)}\n"
        f"args = {json.dumps([*arguments, 'stdio', MARK])}\n"
        f'env = {{ SHOP_TOKEN = "{SECRET}" }}\n'
    )
    async with serving(machines, folder) as served:
        yield served.url()


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
            said = await run(client, "from servers import shop\nshop.echo(text='a' + 'b')", **named)
            assert "'ab'" in said, said
            said = await run(client, "shop.paint()", **named)
            await client.call_tool("close_session", named)
        assert listener.asked == ["Which colour?"] or "Which colour?" in listener.asked[0]
        return said

    said = await asyncio.gather(*(talk(number) for number in range(4)))
    assert all("painted red" in each for each in said), said
    assert len(processes(MARK)) == 1


def ray_processes() -> dict[str, list[int]]:
    """The processes of this cluster on this machine, by what they say they are."""
    ours = f"RAY_TMPDIR={os.environ['RAY_TMPDIR']}".encode()
    found: dict[str, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if ours not in path.with_name("environ").read_bytes().split(b"\0"):
                continue
            words = path.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        name = words[0].rpartition("/")[2]
        if name.startswith("ray::") or name in ("raylet", "gcs_server"):
            found.setdefault(name, []).append(int(path.parent.name))
    return found


def gateway_of(process: int) -> int:
    """The gateway that has started a server: that of another application may go on for a while."""
    gateways = ray_processes()["ray::GatewayActor"]
    while process not in gateways:
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.partition("PPid:")[2].split()[0])
        assert process > 1, "no gateway has started it"
    return process


def holds(process: int, secret: bytes) -> bool:
    """Whether a process has this in the memory that it can write to."""
    with (
        Path(f"/proc/{process}/maps").open() as maps,
        Path(f"/proc/{process}/mem").open("rb", 0) as memory,
    ):
        for line in maps:
            place, rights, *_ = line.split()
            begin, end = (int(each, 16) for each in place.split("-"))
            if not rights.startswith("rw"):
                continue
            before = b""
            for at in range(begin, end, PIECE):
                try:
                    piece = os.pread(memory.fileno(), min(PIECE, end - at), at)
                except OSError:  # of a device
                    break
                if secret in before + piece:
                    return True
                before = piece[-len(secret) :]
    return False


async def test_only_the_gateway_has_the_secret_of_a_server(url: str) -> None:
    async with connected(url, "auto") as client:
        code = "from servers import shop\nshop.environment()['SHOP_TOKEN']"
        for _ in range(4):  # at both replicas
            assert "[secret of shop]" in await run(client, code)
        await client.call_tool("close_session", {})
    found = ray_processes()
    replicas = [name for name in found if name.startswith("ray::ServeReplica:mcp:mcp")]
    assert sum(len(found[name]) for name in replicas) == 2, found
    assert any(name.startswith("ray::NodeActor") for name in found)
    having = {
        name
        for name, processes in found.items()
        for process in processes
        if await asyncio.to_thread(holds, process, SECRET.encode())
    }
    assert {name.partition(".")[0] for name in having} == {"ray::GatewayActor"}
    written = Path(os.environ["RAY_TMPDIR"])
    files = [path for path in written.rglob("*") if path.is_file() and not path.is_symlink()]
    assert any("GatewayActor" in path.read_text(errors="replace") for path in files)
    assert not [path for path in files if SECRET.encode() in path.read_bytes()]


async def test_a_gateway_that_is_killed_is_started_again_and_so_is_its_server(url: str) -> None:
    code = "from servers import shop\nshop.echo(text='a' + 'b')"
    async with connected(url, "auto") as client:
        assert "'ab'" in await run(client, code)
        [before] = processes(MARK)
        os.kill(gateway_of(before), signal.SIGKILL)

        async def is_back() -> bool:
            said = await run(client, code)
            assert "'ab'" in said or "all replicas" in said, said
            return "'ab'" in said

        await until(is_back, "the gateway is there again")
        await until(lambda: before not in processes(MARK), "what it had left behind is ended")
        assert len(processes(MARK)) == 1
        await client.call_tool("close_session", {})


async def test_a_gateway_ends_when_its_replicas_have_gone(url: str, folder: Path) -> None:
    import ray

    from divingbell.scale import ray_gateway

    def is_there() -> bool:
        named = ray.util.list_named_actors(all_namespaces=True)
        return name in [each["name"] for each in named]

    name = ray_gateway.new_name()
    link = await ray_gateway.link_to(name, str(folder / "divingbell.toml"), 0.5)
    assert [each.name for each in (await link.settings()).servers] == ["shop"]
    assert is_there()
    await link.stop()
    await until(lambda: not is_there(), "its end")


async def test_a_gateway_that_can_not_be_set_up_says_why_and_ends(url: str, folder: Path) -> None:
    import ray

    from divingbell.scale import ray_gateway

    name = ray_gateway.new_name()
    with pytest.raises(ConfigError, match=r"there is no configuration file .*nowhere\.toml"):
        await ray_gateway.link_to(name, str(folder / "nowhere.toml"), 0.5)

    def is_there() -> bool:
        named = ray.util.list_named_actors(all_namespaces=True)
        return name in [each["name"] for each in named]

    await until(lambda: not is_there(), "its end")


async def test_calls_through_any_replica_count_against_one_budget(url: str) -> None:
    code = "from servers import shop\nshop.echo(text='a' + 'b')"
    async with connected(url, "auto") as client:
        for number in range(12):
            assert "'ab'" in await run(client, code, session_id="frugal"), number
        for _ in range(4):
            said = await run(client, code, session_id="frugal")
            assert "all 12 calls are used (calls_per_session in [policy])" in said, said
        await client.call_tool("close_session", {"session_id": "frugal"})
