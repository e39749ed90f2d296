"""What `serve` says at its start: at a terminal (a real one, a pty) to the person who typed it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.surfaces.cli.command import COMMAND, PATIENCE, environment
from tests.surfaces.cli.test_shell import CTRL_C, CTRL_D, Screen, at_a_terminal
from tests.surfaces.mcp.conftest import text_of
from tests.surfaces.mcp.held_back import held_back

UP = "· The sandbox is up."


def entry_shown(screen: Screen) -> dict[str, Any]:
    """The entry for a client's list that is shown next."""
    screen.expect("\n{")
    entry: dict[str, Any] = json.loads("{" + screen.expect("\n}") + "}")["mcpServers"]["divingbell"]
    return entry


async def test_whoever_types_serve_is_told_what_it_is_and_what_it_waits_for(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "serve", "--backend", "local") as screen:
        screen.expect("This is an MCP server: a client starts it")
        screen.expect("Ctrl-C ends it. A prompt for people: divingbell shell")
        screen.expect(f"claude mcp add divingbell -- {COMMAND} serve --backend local\n")
        entry = entry_shown(screen)
        screen.expect("It has no MCP servers yet")
        screen.expect(UP)
        screen.type(CTRL_C)
        assert screen.leave() == 130
    # What is shown works as it stands, in another folder.
    assert entry["args"] == ["serve", "--backend", "local"]
    parameters = StdioServerParameters(
        command=entry["command"], args=entry["args"], env=environment(), cwd="/"
    )
    async with Client(parameters) as client:
        assert text_of(await client.call_tool("execute_python", {"code": "6 * 7"})) == "42\n"


def test_started_as_a_module_the_entry_starts_the_module(tmp_path: Path) -> None:
    command = tmp_path / "python-m"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m divingbell "$@"\n')
    command.chmod(0o755)
    with at_a_terminal(tmp_path, "serve", program=command) as screen:
        entry = entry_shown(screen)
    assert entry == {"command": sys.executable, "args": ["-m", "divingbell", "serve"]}


def test_the_end_of_input_at_a_terminal_ends_it(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "serve") as screen:
        screen.expect(UP)
        screen.type(CTRL_D)
        assert screen.leave() == 0


def test_files_that_were_named_are_named_in_full(tmp_path: Path) -> None:
    servers = "[servers.a]\ncommand = 'none'\n[servers.b]\ncommand = 'none'\n"
    (tmp_path / "mine.toml").write_text(servers)
    with at_a_terminal(tmp_path, "serve", "--config", "mine.toml", "--mode", "code") as screen:
        entry = entry_shown(screen)
        screen.expect("It uses 2 MCP servers. How they are doing: divingbell servers")
    assert entry["args"] == ["serve", "--mode", "code", "--config", str(tmp_path / "mine.toml")]


def test_settings_of_the_folder_are_named_because_a_client_has_another_one(
    tmp_path: Path,
) -> None:
    (tmp_path / "divingbell.toml").write_text("pool = 0\n")
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"a": {"command": "none"}}}')
    with at_a_terminal(tmp_path, "serve") as screen:
        screen.expect("Trust this, until it changes? [y/N]")
        screen.type("y\r")
        named = ["serve", "--config", f"{tmp_path}/divingbell.toml"]
        named += ["--mcp-config", f"{tmp_path}/mcp.json"]
        screen.expect(f"claude mcp add divingbell -- {COMMAND} {' '.join(named)}\n")
        assert entry_shown(screen)["args"] == named
        screen.expect("It uses 1 MCP server.")


async def test_over_http_the_address_and_the_way_to_a_token_are_told(tmp_path: Path) -> None:
    with at_a_terminal(tmp_path, "serve", "--http", "--port", "0") as screen:
        screen.expect("· listening at http://127.0.0.1:")
        entry = entry_shown(screen)
        screen.expect("The token is for this run. Others stay: --token-file FILE")
        screen.expect("Ctrl-C ends it.")
        screen.expect(UP)
        async with (
            httpx2.AsyncClient(headers=entry["headers"], timeout=PATIENCE) as inner,
            Client(streamable_http_client(entry["url"], http_client=inner)) as client,
        ):
            assert text_of(await client.call_tool("execute_python", {"code": "6 * 7"})) == "42\n"
        screen.type(CTRL_C)
        assert screen.leave() == 130


def test_tokens_that_were_given_and_their_lack_are_spoken_of(tmp_path: Path) -> None:
    arguments = ("serve", "--http", "--port", "0")
    with at_a_terminal(tmp_path, *arguments, "--token", "anne=a-token-of-some-length") as screen:
        screen.expect("Write one of the tokens that you have given it in place of YOUR-TOKEN.")
    with at_a_terminal(tmp_path, *arguments, "--no-token") as screen:
        screen.expect("Every program on this machine is let in")


def test_a_dataset_server_speaks_of_tokens_too(tmp_path: Path) -> None:
    arguments = ("datasets", "serve", ".", "--http", "--port", "0")
    with at_a_terminal(tmp_path, *arguments, "--token", "anne=a-token-of-some-length") as screen:
        screen.expect("Write one of the tokens that you have given it in place of YOUR-TOKEN.")
        screen.expect("Ctrl-C ends it.")


def test_at_a_terminal_it_ends_where_the_sandbox_can_not_start(tmp_path: Path) -> None:
    with held_back(tmp_path) as held:
        held.abandon()
        more = {"UV_OFFLINE": "1", "UV_CACHE_DIR": str(tmp_path / "cache"), **held.environment}
        with at_a_terminal(tmp_path, "serve", **more) as screen:
            screen.expect("divingbell: The packages of the profile can't be installed")
            assert screen.leave() == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "Secrets are kept from models. Personal data is not replaced: --private "),
        (["--privacy", "off"], "Nothing is kept from models, neither secrets nor personal data: "),
        (["--private"], ""),
    ],
)
def test_to_a_client_it_says_only_what_models_see(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    done = subprocess.run(
        [COMMAND, "serve", *arguments], cwd=tmp_path, env=environment(), stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert len(done.stderr.splitlines()) == bool(told)
    assert done.stderr.startswith(f"· {told}" if told else "")
