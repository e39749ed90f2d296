"""The command and the MCP server, with sessions on nodes."""

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.scale import nodes
from tests.scale.taking_over import taken_from
from tests.surfaces.cli import test_running
from tests.surfaces.cli.command import PATIENCE, Bell, environment, runner
from tests.surfaces.mcp.conftest import Era, era, text_of  # noqa: F401 (a fixture)
from tests.surfaces.mcp.serving import QUIET, fixture, settings

ROOT = Path(__file__).parents[2]
PROGRAM = (sys.executable, "-m", "tests.scale.program")


@pytest.fixture
def bell(anyio_backend: str, two_nodes: list[nodes.RunningNode], tmp_path: Path) -> Bell:
    told = ",".join(nodes.told(node.address) for node in two_nodes)
    return runner(
        tmp_path, PROGRAM, TEST_NODES=told, DIVINGBELL_BACKEND="ray", PYTHONPATH=str(ROOT)
    )


OF_THIS_PROCESS = (
    "test_only_modules_that_the_code_names_are_imported_before_it",
    "test_without_servers_in_the_code_the_sdk_is_not_loaded",
    "test_python_can_run_it_as_a_module",
)
"""What a node has imported is for all of its sessions; how the command is started is tried once."""
globals().update(taken_from(test_running, OF_THIS_PROCESS, given=("bell",)))


def _environment(two_nodes: list[nodes.RunningNode], **more: str) -> Mapping[str, str]:
    told = ",".join(nodes.told(node.address) for node in two_nodes)
    return environment(TEST_NODES=told, DIVINGBELL_BACKEND="ray", PYTHONPATH=str(ROOT), **more)


async def _run(folder: Path, env: Mapping[str, str], *arguments: str) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *arguments,
        cwd=folder,
        env=env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(PATIENCE):
        out, error = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), error.decode()


async def test_the_command_runs_code_on_a_node(
    two_nodes: list[nodes.RunningNode], tmp_path: Path
) -> None:
    env = _environment(two_nodes)
    assert await _run(tmp_path, env, "exec", "print('hi'); 6 * 7") == (0, "hi\n42\n", "")
    status, out, error = await _run(tmp_path, env, "exec", "1 / 0")
    assert (status, out) == (1, "") and "ZeroDivisionError" in error


async def test_a_script_gets_its_arguments_and_files_and_leaves_files(
    two_nodes: list[nodes.RunningNode], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("given")
    (tmp_path / "script.py").write_text(
        "import sys\nopen('out.txt', 'w').write(open('in.txt').read() + sys.argv[1])"
    )
    arguments = ("run", "--put", "in.txt", "--get", "out.txt", "script.py", "more")
    status, _, error = await _run(tmp_path, _environment(two_nodes), *arguments)
    assert status == 0, error
    assert (tmp_path / "out.txt").read_text() == "givenmore"


async def test_a_client_runs_code_that_keeps_state_calls_a_tool_and_shows_a_picture(
    two_nodes: list[nodes.RunningNode],
    tmp_path: Path,
    era: Era,  # noqa: F811
) -> None:
    file = settings(tmp_path, {"shop": fixture("workshop")})
    env = {**os.environ, **_environment(two_nodes), **QUIET}
    parameters = StdioServerParameters(
        command=PROGRAM[0], args=[*PROGRAM[1:], "serve", "--config", str(file)], env=env
    )
    async with Client(parameters, mode=era) as client:

        async def run(code: str) -> Any:
            return await client.call_tool("execute_python", {"code": code})

        said = await run("from servers.shop import echo\nx = 5\nprint(echo(text='hello'))")
        assert "hello" in text_of(said)
        assert "25" in text_of(await run("x * x"))
        assert "ZeroDivisionError" in text_of(await run("1 / 0"))
        figure = await run("import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
        assert any(part.type == "image" for part in figure.content)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (
            {"DIVINGBELL_NODE_BACKEND": "docker", "DIVINGBELL_BACKEND_MINIMUM": "gvisor"},
            "below the backend_minimum",
        ),
        ({"DIVINGBELL_NODE_BACKEND": "none"}, "there is no backend 'none'"),
        ({"DIVINGBELL_NODE_SECRET": ""}, "a node needs a secret"),
        ({"DIVINGBELL_NODE_SECRET": "short"}, "at least 32 characters"),
        ({"DIVINGBELL_HOME": "/proc/nothing"}, "/proc/nothing"),
    ],
)
async def test_a_node_that_can_not_be_one_says_why(
    tmp_path: Path, more: dict[str, str], words: str
) -> None:
    env = environment(
        PYTHONPATH=str(ROOT),
        **{"DIVINGBELL_NODE_SECRET": "s" * 64, "DIVINGBELL_BACKEND": "ray", **more},
    )
    status, out, error = await _run(tmp_path, env, "node")
    assert status in (2, 3), error  # the settings, or the machine
    assert words in error and not out


async def test_a_node_that_fronts_elsewhere_would_reach_in_the_clear_does_not_start(
    tmp_path: Path,
) -> None:
    env = environment(PYTHONPATH=str(ROOT), DIVINGBELL_NODE_SECRET="s" * 64)
    status, out, error = await _run(tmp_path, env, "node", "--host", "0.0.0.0")
    assert (status, out) == (2, "") and "in the clear" in error


async def test_a_node_makes_its_secret_and_ends_cleanly(tmp_path: Path) -> None:
    secret = tmp_path / "own" / "secret"
    process = await asyncio.create_subprocess_exec(
        *PROGRAM,
        *("node", "--name", "n", "--secret-file", str(secret)),
        env=environment(PYTHONPATH=str(ROOT), TEST_NODES="n|127.0.0.1|1|s"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        line = (await process.stdout.readline()).decode()
    assert line.startswith("n 127.0.0.1:")
    kept = secret.read_text().strip()
    assert len(kept) == 64 and secret.stat().st_mode & 0o777 == 0o600
    assert kept not in line
    process.terminate()
    async with asyncio.timeout(PATIENCE):
        assert await process.wait() == 143
    with pytest.raises(ProcessLookupError):
        os.killpg(process.pid, 0)
