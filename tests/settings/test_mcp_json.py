"""Lists of servers that other clients keep."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import ConfigError
from divingbell.settings.mcp_json import entries_of_list, read_mcp_json
from divingbell.settings.servers import Server, UnusableServer


def entry(raw: Any) -> Server | UnusableServer:
    [made] = entries_of_list({"mcpServers": {"a": raw}}, Path("/there/mcp.json"), {})
    return made


def test_a_file_of_a_client_is_read_with_its_habits(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(
        """{
        // servers of the team
        "mcpServers": {
            "files": {"command": "npx", "args": ["http://not//a comment", "/* nor this */",],
                      "autoApprove": ["x"], "timeout": 60000, "cwd": "."},
            "web app.v2": {"type": "http", "serverUrl": "https://host/mcp"}, /* two
            lines */
            "off": {"command": "x", "disabled": true},
            "wrong": {"args": []},
            "a__b": {"command": "x"},
        },
    }"""
    )
    caplog.set_level(logging.INFO)
    files, web, off, wrong, doubled = read_mcp_json(path, {})
    assert isinstance(files, Server)
    assert files.args == ("http://not//a comment", "/* nor this */")
    assert (files.timeout, files.cwd) == (60.0, str(tmp_path))
    assert isinstance(web, Server)
    assert (web.name, web.url, web.transport) == ("web-app-v2", "https://host/mcp", "http")
    assert isinstance(off, Server) and not off.enabled
    assert isinstance(wrong, UnusableServer)
    assert doubled.name == "a_b"
    assert "'autoApprove' is not used here" in caplog.text


def test_the_list_of_vs_code_has_another_name(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"inputs": [], "servers": {"a": {"command": "x"}}}))
    assert [entry.name for entry in read_mcp_json(path, {})] == ["a"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'"x"',
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"mcpServers": 5}',
        b"9" * 10_000,
        b"/*" * 100_000,
        b'"' + b'\\"' * 100_000,
    ],
)
def test_a_file_that_is_none_is_an_error_in_words(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mcp.json"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=r"mcp\.json"):
        read_mcp_json(path, {})
    with pytest.raises(ConfigError, match="No such file"):
        read_mcp_json(tmp_path / "other.json", {})


def test_other_names_and_other_clocks_are_understood() -> None:
    made = entry({"httpUrl": "https://host/x", "type": "sse", "timeout": 1500, "enabled": None})
    assert isinstance(made, Server)
    assert (made.url, made.transport, made.timeout) == ("https://host/x", "sse", 1.5)
    assert made.enabled


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (5, "it must be a table"),
        ({"command": "x", "disabled": "yes"}, "disabled must be true or false"),
        ({"command": "x", "args": {}}, "args must be a list of texts"),
        ({"url": "https://host/", "oauth": {"clientId": "x"}}, "there is no setting 'clientId'"),
    ],
)
def test_what_can_not_be_used_is_told_and_hurts_no_other(raw: Any, reason: str) -> None:
    made = entry(raw)
    assert isinstance(made, UnusableServer)
    assert made.reason.startswith("/there/mcp.json, server 'a'") and reason in made.reason


def test_how_another_client_signs_in_is_no_matter_for_a_command() -> None:
    made = entry({"command": "x", "oauth": {"clientId": "x"}})
    assert isinstance(made, Server) and made.oauth is None
