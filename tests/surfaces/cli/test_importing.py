"""Taking the servers of other clients over."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import ConfigError
from divingbell.settings.mcp_json import read_mcp_json
from divingbell.settings.servers import Server
from divingbell.surfaces.cli.importing import Counts, take_over


class Desk:
    """A home and a project folder, and what is said while importing."""

    def __init__(self, above: Path) -> None:
        self.home, self.project = above / "home", above / "home/project"
        self.project.mkdir(parents=True)
        self.said: list[str] = []

    def put(self, path: str, document: Any) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(document if isinstance(document, str) else json.dumps(document))
        return file

    def take(self, source: str, **more: Any) -> Counts:
        return take_over(
            source,
            environment={"HOME": str(self.home)},
            folder=self.project,
            say=self.said.append,
            **more,
        )

    def written(self, path: str = "project/mcp.json") -> dict[str, Any]:
        document: dict[str, Any] = json.loads((self.home / path).read_text())
        return document["mcpServers"]  # type: ignore[no-any-return]

    @property
    def words(self) -> str:
        return "\n".join(self.said)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(tmp_path)
    desk.put("project/divingbell.toml", "")
    return desk


def one(**more: Any) -> dict[str, Any]:
    return {"mcpServers": {"time": {"command": "uvx", "args": ["mcp-server-time"], **more}}}


@pytest.mark.parametrize(
    ("client", "path"),
    [
        ("claude", ".config/Claude/claude_desktop_config.json"),
        ("claude", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("claude", ".claude.json"),
        ("cursor", ".cursor/mcp.json"),
        ("vscode", ".config/Code/User/mcp.json"),
        ("vscode", "Library/Application Support/Code/User/mcp.json"),
    ],
)
def test_the_list_of_each_client_is_found(desk: Desk, client: str, path: str) -> None:
    document = one() if client != "vscode" else {"servers": one()["mcpServers"]}
    desk.put(path, document)
    assert desk.take(client) == Counts(found=1, added=1)
    assert desk.written() == {"time": {"command": "uvx", "args": ["mcp-server-time"]}}
    assert stat.S_IMODE((desk.project / "mcp.json").stat().st_mode) == 0o600
    (entry,) = read_mcp_json(desk.project / "mcp.json", {})
    assert isinstance(entry, Server)


@pytest.mark.parametrize(
    ("client", "path"),
    [("claude", ".mcp.json"), ("cursor", ".cursor/mcp.json"), ("vscode", ".vscode/mcp.json")],
)
def test_a_list_that_came_with_the_folder_must_be_named(desk: Desk, client: str, path: str) -> None:
    entry = {"command": "tools/serve", "args": ["./data", "--log=../log", "@scope/time"]}
    file = desk.put(f"project/{path}", {"mcpServers": {"time": entry}})
    assert desk.take(client) == Counts()
    assert f"{file}: left out" in desk.words and f"divingbell import {file}" in desk.words
    assert not (desk.project / "mcp.json").exists()
    assert desk.take(path) == Counts(found=1, added=1)
    assert desk.written()["time"] == {
        "command": f"{desk.project}/tools/serve",
        "args": [f"{desk.project}/data", f"--log={desk.home}/log", "@scope/time"],
    }


def test_the_entries_of_a_project_go_before_those_of_the_user(desk: Desk) -> None:
    projects = {
        str(desk.project): one(cwd="below"),
        "/somewhere/else": {"mcpServers": {"other": {"command": "x"}}},
    }
    desk.put(".claude.json", {"projects": projects, **one(cwd="/user")})
    assert desk.take("claude") == Counts(found=1, added=1)
    assert desk.written()["time"]["cwd"] == str(desk.project / "below")
    assert "time: left out, there is a nearer one" in desk.words


def test_nothing_that_is_there_is_overwritten(desk: Desk) -> None:
    desk.put("project/mcp.json", {"mcpServers": {"time": {"command": "mine"}}, "other": 1})
    desk.put(
        "list.json",
        {"mcpServers": {"time": {"command": "theirs"}, "git": {"command": "g"}}},
    )
    assert desk.take(str(desk.home / "list.json")) == Counts(found=2, added=1, there=1)
    assert desk.written() == {"time": {"command": "mine"}, "git": {"command": "g"}}
    assert "time: stays as it is; the one found is different" in desk.words
    assert desk.take(str(desk.home / "list.json")) == Counts(found=2, there=2)
    assert "git: is there already" in desk.words
    assert "nothing to add" in desk.said[-1]


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "divingbell", "args": ["serve"]},
        {"command": "/opt/x/bin/bell", "args": ["serve"]},
        {"command": "uvx", "args": ["divingbell@latest", "serve"]},
        {"command": "python", "args": ["-m", "divingbell", "serve"]},
    ],
)
def test_divingbell_does_not_import_itself(desk: Desk, entry: dict[str, Any]) -> None:
    desk.put(".cursor/mcp.json", {"mcpServers": {"sandbox": entry}})
    assert desk.take("cursor") == Counts(found=1, skipped=1)
    assert not (desk.project / "mcp.json").exists()
    assert "it is Divingbell itself" in desk.words


def test_variables_stay_and_plain_secrets_are_pointed_out_but_not_shown(desk: Desk) -> None:
    entry = {
        "command": "x",
        "args": ["--token", "argument-secret"],
        "env": {"GITHUB_TOKEN": "ghp_plain-secret", "KEY": "${KEY}", "LEVEL": "debug"},
    }
    web = {"url": "https://h/mcp", "headers": {"Authorization": "Bearer header-secret"}}
    desk.put(".cursor/mcp.json", {"mcpServers": {"hub": entry, "web": web}})
    desk.take("cursor")
    assert desk.written() == {"hub": entry, "web": web}
    assert "GITHUB_TOKEN is a secret in plain text" in desk.words
    assert "write ${GITHUB_TOKEN}" in desk.words
    assert "Authorization is a secret" in desk.words
    assert "`args` holds a secret" in desk.words
    assert "-secret" not in desk.words
    assert "LEVEL" not in desk.words and "hub: KEY" not in desk.words


def test_what_vs_code_asks_for_becomes_a_variable(desk: Desk) -> None:
    desk.put(
        "project/.vscode/mcp.json",
        """{
        // asked once
        "inputs": [{"id": "api-key", "type": "promptString"}],
        "servers": {
            "my server": {
                "type": "stdio",
                "command": "${workspaceFolder}/server",
                "args": ["${userHome}/x", "${env:OTHER}"],
                "env": {"API_KEY": "${input:api-key}"},
                "envFile": ".env",
            },
        },
    }""",
    )
    desk.take(".vscode/mcp.json")
    assert desk.written() == {
        "my-server": {
            "type": "stdio",
            "command": f"{desk.project}/server",
            "args": ["${HOME}/x", "${env:OTHER}"],
            "env": {"API_KEY": "${API_KEY}"},
        }
    }
    assert "set the variable API_KEY" in desk.words
    assert "`envFile` is not read here" in desk.words


def test_a_dry_run_writes_nothing(desk: Desk) -> None:
    desk.put(".cursor/mcp.json", one())
    assert desk.take("cursor", dry_run=True) == Counts(found=1, added=1)
    assert not (desk.project / "mcp.json").exists()
    assert "time: would be added (a command)" in desk.words


def test_the_list_goes_beside_the_settings_or_where_it_is_told(desk: Desk) -> None:
    desk.put(".cursor/mcp.json", one())
    (desk.project / "divingbell.toml").unlink()
    desk.take("cursor")
    assert desk.written(".config/divingbell/mcp.json")
    desk.put("project/divingbell.toml", "")
    desk.take("cursor")
    assert desk.written("project/mcp.json")
    desk.take("cursor", to="new/list.json")
    assert desk.written("project/new/list.json")


def test_when_nothing_is_found_it_says_where_it_looked(desk: Desk) -> None:
    with pytest.raises(ConfigError) as caught:
        desk.take("cursor")
    assert str(desk.home / ".cursor/mcp.json") in str(caught.value)
    assert str(desk.project / ".cursor/mcp.json") in str(caught.value)
    with pytest.raises(ConfigError, match="there is no file clod; name a file, or one of claude"):
        desk.take("clod")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"mcpServers": []}', '{"x": 1}'])
def test_a_file_that_is_no_list_is_told(desk: Desk, content: str) -> None:
    path = desk.put("list.json", content)
    with pytest.raises(ConfigError):
        desk.take(str(path))


def test_entries_that_make_no_sense_are_left_out(desk: Desk) -> None:
    servers = {"text": "x", "empty": {}, "good": {"command": "x", "args": None}}
    path = desk.put("list.json", {"mcpServers": servers})
    assert desk.take(str(path)).added == 1
    assert list(desk.written()) == ["good"]


def test_a_list_that_can_not_be_written_is_told(desk: Desk) -> None:
    desk.put(".cursor/mcp.json", one())
    desk.put("project/file", "")
    with pytest.raises(ConfigError, match="can't be written"):
        desk.take("cursor", to="file/mcp.json")


def test_paths_mean_the_folder_that_the_list_came_from(desk: Desk) -> None:
    entries = {
        "script": {"command": "python", "args": ["./s.py", "plain.db"]},
        "files": {"command": "./bin/serve", "args": ["."]},
        "placed": {"command": "python", "args": ["s.py"], "cwd": "."},
        "bare": {"command": "serve-it"},
    }
    file = desk.put("elsewhere/list.json", {"mcpServers": entries})
    desk.take(str(file))
    there, written = file.parent, desk.written()
    assert written["script"]["args"] == [f"{there}/s.py", "plain.db"]
    assert written["files"] == {"command": f"{there}/bin/serve", "args": [str(there)]}
    assert written["placed"]["cwd"] == str(there)
    assert written["bare"] == {"command": "serve-it"}
