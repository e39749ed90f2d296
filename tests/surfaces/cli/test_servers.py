"""`divingbell servers`: how each is doing, and who is awaited meanwhile."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from divingbell.surfaces.cli import exit_status

from .command import Bell, runner

SERVERS = Path(__file__).parents[2] / "servers"


@pytest.fixture
def bell(tmp_path: Path) -> Bell:
    return runner(tmp_path)


def listed(folder: Path, **servers: dict[str, Any]) -> str:
    path = folder / "list.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def fixture(name: str, *arguments: str, **more: Any) -> dict[str, Any]:
    return {"command": sys.executable, "args": [str(SERVERS / f"{name}.py"), *arguments], **more}


def test_the_tools_of_all_are_counted_also_of_the_last_one(bell: Bell, tmp_path: Path) -> None:
    # A list that takes a while to take in, so that it is not counted by luck.
    many = fixture("paging", "ends")
    path = listed(tmp_path, **{f"many-{number}": many for number in range(3)})
    for _ in range(2):  # also with lists that are known from last time
        done = bell("servers", "--mcp-config", path)
        assert sorted(done.stdout.splitlines()) == [f"✓ many-{n}  20 tools" for n in range(3)]
        assert done.returncode == exit_status.OK


def test_who_is_awaited_is_said_and_the_others_are_not_held_up(bell: Bell, tmp_path: Path) -> None:
    path = listed(
        tmp_path, slow=fixture("hanging", start_timeout=4), good=fixture("paging", "ends")
    )
    done = bell("servers", "--mcp-config", path)
    assert done.returncode == exit_status.FAILED
    assert done.stdout.splitlines() == [
        "✓ good  20 tools",
        "✗ slow  it did not answer within 4 seconds of its start",
    ]
    assert done.stderr.splitlines()[0] == "· waiting for slow (2 s)"
    assert bell("servers", "--json", "--mcp-config", path).stdout.startswith("[")


def test_what_a_server_printed_is_said(bell: Bell, tmp_path: Path) -> None:
    code = "import sys; print('\x1b[31mListening on 8080', flush=True); sys.stdin.read()"
    entry = {"command": sys.executable, "args": ["-c", code], "start_timeout": 1}
    done = bell("servers", "--mcp-config", listed(tmp_path, web=entry))
    assert "where only messages of MCP belong: Listening on 8080" in done.stdout


def test_a_server_that_goes_on_printing_is_given_up_and_quoted(bell: Bell, tmp_path: Path) -> None:
    code = "while true; do echo 'hello I am garbage'; done"
    entry = {"command": "sh", "args": ["-c", code]}
    path = listed(tmp_path, garbage=entry)
    [state] = json.loads(bell("servers", "--json", "--mcp-config", path).stdout)
    assert state["state"] == "failed"
    assert state["reason"] == (
        "it sent more than 100 lines that are no messages of MCP; it printed this on its "
        "standard output, where only messages of MCP belong: hello I am garbage"
    )


def test_each_is_told_as_it_was_when_it_was_known_also_in_json(bell: Bell, tmp_path: Path) -> None:
    # The first is tried again, and connecting, when the second is given up.
    path = listed(
        tmp_path,
        quick=fixture("hanging", start_timeout=1),
        slow=fixture("hanging", start_timeout=1.9),
    )
    states = json.loads(bell("servers", "--json", "--mcp-config", path).stdout)
    assert [state["state"] for state in states] == ["failed", "failed"]


def test_without_servers_it_is_said_where_they_belong_and_a_list_that_lies_there_is_named(
    bell: Bell, tmp_path: Path
) -> None:
    own = {"XDG_CONFIG_HOME": str(tmp_path / "own")}
    told = bell("servers", **own).stdout
    assert told.startswith("No MCP server is configured. Add one to divingbell.toml, in the folder")
    assert f"for all folders, in {tmp_path}/own/divingbell:" in told
    (tmp_path / "mcp.json").write_text("this is never parsed")
    named = "(there is an mcp.json here: --mcp-config mcp.json)"
    assert named in bell("servers", **own).stdout
    listed(tmp_path, many=fixture("paging", "ends"))
    (tmp_path / "list.json").replace(tmp_path / "mcp.json")
    assert bell("servers", "--mcp-config", "mcp.json", **own).stdout == "✓ many  20 tools\n"
