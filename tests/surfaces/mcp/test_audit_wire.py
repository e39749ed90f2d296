"""The audit log of a real `divingbell serve` over stdio, read by the commands as users run them."""

import asyncio
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from tests.surfaces.cli.command import Bell, environment, runner
from tests.surfaces.mcp.serving import COMMAND, fixture, settings
from tests.waiting import PATIENCE, until

CODE = "from servers.galley import add\nadd(20, 22)"


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    made = runner(tmp_path)

    def run(*arguments: str, **more: str) -> "subprocess.CompletedProcess[str]":
        config = ("--config", str(tmp_path / "divingbell.toml"))
        return made("audit", *arguments, *config, XDG_DATA_HOME=str(tmp_path / "data"), **more)

    return run


def _serve(folder: Path) -> StdioServerParameters:
    """The command, with nothing said about an audit log; its process id is left in a file."""
    config = settings(folder, {"galley": fixture("galley")})
    told = {"XDG_DATA_HOME": str(folder / "data"), "DIVINGBELL_PRELOAD": ""}
    script = f'echo $$ > "{folder}/pid"; exec "$0" "$@"'
    arguments = ["-c", script, COMMAND, "serve", "--config", str(config)]
    return StdioServerParameters(command="sh", args=arguments, env=environment(**told))


def _records(bell: Bell, *arguments: str) -> list[dict[str, Any]]:
    done = bell("search", "--json", *arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _is_recorded(bell: Bell) -> bool:
    return bool(_records(bell, "--kind", "call.ended"))


async def test_a_server_keeps_a_log_of_calls_without_being_told_to(
    bell: Bell, tmp_path: Path
) -> None:
    async with Client(_serve(tmp_path)) as client:
        result = await client.call_tool("execute_python", {"code": CODE})
        assert "42" in str(result.content)
    [started] = _records(bell, "--kind", "call.started")
    [ended] = _records(bell, "--kind", "call.ended")
    assert started["tool"] == ended["tool"] == "galley.add" and ended["outcome"] == "ok"
    assert json.loads(started["arguments"]["text"]) == {"a": 20, "b": 22}
    assert "galley.add" in bell("tail", "--lines", "20").stdout
    done = bell("verify")
    # A client that has no patience kills it: then its last second is not proven.
    assert "whole" in done.stdout and "closed" in done.stdout, done.stdout
    assert done.returncode == (1 if "unproven" in done.stdout else 0)


async def test_a_server_that_is_killed_leaves_a_log_that_verifies(
    bell: Bell, tmp_path: Path
) -> None:
    is_killed = False
    async with asyncio.timeout(PATIENCE * 3):
        try:
            async with Client(_serve(tmp_path)) as client:
                await client.call_tool("execute_python", {"code": CODE})
                await until(lambda: asyncio.to_thread(_is_recorded, bell), "the end is written")
                os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
                is_killed = True
        except Exception:  # its connection is gone, as was meant
            if not is_killed:
                raise
    assert is_killed
    [found] = json.loads(bell("verify", "--json").stdout)["chains"]
    assert found["verdict"] in ("whole", "torn", "unproven"), found
    assert found["proven"] >= 1
    assert ("whole up to" in found["why"]) == (found["verdict"] == "unproven")
    assert not found["closed"] and not found["running"] and found["open_calls"] == []
    assert "not closed" in bell("verify").stdout
