"""The recipes for agent frameworks run as they stand, each in an environment of its own."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.host import profile
from tests import real_servers

ROOT = Path(__file__).parents[1]
RECIPES = ROOT / "examples" / "clients"
PAGE = ROOT / "docs" / "clients.md"
COMMAND = Path(sys.executable).with_name("divingbell")
PATIENCE = 120.0
ENVIRONMENTS = {
    "with_fastmcp.py": "clients",
    "with_langchain.py": "clients-langchain",
    "with_openai_agents.py": "clients",
    "with_pydantic_ai.py": "clients",
    "with_smolagents.py": "clients-smolagents",
}
VERSIONS = {
    "Pydantic AI": "pydantic-ai-slim",
    "LangChain's adapters": "langchain-mcp-adapters",
    "OpenAI Agents": "openai-agents",
    "FastMCP": "fastmcp",
    "smolagents": "smolagents",
}
"""Of the table of time limits, and what each is called on the package index."""
TOLD = "The model is told: True\n"
"""Its model reads the instructions, which most frameworks do not pass on by themselves."""
ANSWER = "The cell answered: 59\n"
"""The sum of a list that an earlier cell has made: both ran in one session."""

EACH_FOR_ITSELF = """
import asyncio
from langchain_mcp_adapters.client import MultiServerMCPClient

async def main():
    entry = {"transport": "stdio", "command": "divingbell", "args": ["serve"]}
    tools = await MultiServerMCPClient({"divingbell": entry}).get_tools()
    execute = next(tool for tool in tools if tool.name == "execute_python")
    await execute.ainvoke({"code": "depths = [12, 40, 7]"})
    print(await execute.ainvoke({"code": "print(sum(depths))"}))

asyncio.run(main())
"""
DEFAULTS = """
import inspect
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from pydantic_ai.mcp import MCPToolset

for server in (MCPServerStdio, MCPServerStreamableHttp):
    print(inspect.signature(server).parameters["client_session_timeout_seconds"].default)
for client in (MCPToolset(StdioTransport("x", [])).client, Client(StdioTransport("x", []))):
    print(client._init_timeout, client._session_kwargs["read_timeout_seconds"])
"""
SMOLAGENTS = """
import inspect
from mcpadapt import core

named = inspect.signature(core.MCPAdapt).parameters
print(named["connect_timeout"].default, named["client_session_timeout_seconds"].default)
print("if isinstance(client_session_timeout_seconds, float)" in inspect.getsource(core.mcptools))
"""
INSTRUCTIONS = """
import asyncio
from agents.mcp import MCPServerStdio

async def main():
    async with MCPServerStdio({"command": "divingbell", "args": ["serve"]}) as bell:
        print(bell.session.instructions)

asyncio.run(main())
"""


def run(lock: str, folder: Path, *arguments: str | Path) -> str:
    """Run a program of an environment; `divingbell` is found on its path, as people have it."""
    # Clients hand few variables on to what they start, and PATH is one of them.
    command = folder / "bin" / "divingbell"
    command.parent.mkdir()
    command.write_text(
        f"#!/bin/sh\nexport DIVINGBELL_HOME='{profile.home()}' XDG_DATA_HOME='{folder}/data'\n"
        f"exec '{COMMAND}' \"$@\"\n"
    )
    command.chmod(0o755)
    done = subprocess.run(
        [real_servers.framework_python(lock), *arguments],
        env={**os.environ, "PATH": f"{command.parent}:{os.environ['PATH']}"},
        capture_output=True, text=True, cwd=folder, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_a_recipe_runs_and_its_cells_share_a_session(name: str, tmp_path: Path) -> None:
    shown = run(ENVIRONMENTS[name], tmp_path, RECIPES / name)
    assert ANSWER in shown
    if name == "with_fastmcp.py":  # it also fetches a file of the workspace
        assert (tmp_path / "depths.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    else:
        assert TOLD in shown


def test_langchain_left_to_itself_keeps_nothing_from_call_to_call(tmp_path: Path) -> None:
    assert "NameError" in run("clients-langchain", tmp_path, "-c", EACH_FOR_ITSELF)


def test_the_instructions_are_where_the_recipe_takes_them_from(tmp_path: Path) -> None:
    assert "execute_python" in run("clients", tmp_path, "-c", INSTRUCTIONS)


def test_the_time_limits_of_frameworks_are_those_that_the_docs_name(tmp_path: Path) -> None:
    assert run("clients", tmp_path, "-c", DEFAULTS) == "5\n5\n5.0 300.0\nNone None\n"


def test_the_time_limit_of_smolagents_is_what_the_docs_say(tmp_path: Path) -> None:
    assert run("clients-smolagents", tmp_path, "-c", SMOLAGENTS) == "30 5\nTrue\n"


@pytest.mark.parametrize("block", re.findall(r"```text\n(.*?)```", PAGE.read_text("utf-8"), re.S))
def test_what_the_page_shows_stands_in_a_recipe(block: str) -> None:
    assert any(block in (RECIPES / name).read_text("utf-8") for name in ENVIRONMENTS)


def test_the_versions_on_the_page_are_those_that_are_tested() -> None:
    locks = [ROOT / "requirements" / f"{name}.txt" for name in set(ENVIRONMENTS.values())]
    pinned = "\n".join(lock.read_text("utf-8") for lock in locks)
    for label, package in VERSIONS.items():
        [version] = re.findall(rf"^\| {label} ([\d.]+)", PAGE.read_text("utf-8"), re.M)
        assert f"\n{package}=={version}" in pinned, label


def test_every_recipe_is_run_here() -> None:
    assert {path.name for path in RECIPES.glob("*.py")} == {*ENVIRONMENTS}
