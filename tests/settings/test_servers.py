"""Entries of servers in our own file."""

from pathlib import Path
from typing import Any

import pytest

from divingbell.errors import ConfigError
from divingbell.settings.servers import (
    OAuth,
    Server,
    UnusableServer,
    read_entries,
    read_server,
    secrets_of,
)
from divingbell.settings.tables import Place

NAMES = ["github", "my-server_2", "A", "x" * 64]
BAD_NAMES = ["", "-x", "_x", "a.b", "a b", "a__b", "x" * 65, "../../x", "ü", "a\n", "import os;"]


def read(
    raw: Any, environment: dict[str, str] | None = None, folder: Path = Path("/there")
) -> Server:
    place = Place("divingbell.toml", folder=folder, environment=environment or {})
    return read_server("github", raw, place)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_letters_digits_and_dashes(name: str) -> None:
    assert read_server(name, {"command": "x"}, Place("here")).name == name


@pytest.mark.parametrize("name", BAD_NAMES)
def test_other_names_are_refused(name: str) -> None:
    with pytest.raises(ConfigError, match="can't be the name of a server"):
        read_server(name, {"command": "x"}, Place("here"))


def test_a_table_of_ours_has_every_setting() -> None:
    server = read(
        {
            "command": "npx",
            "args": ["-y", "server", 3],
            "env": {"DEBUG": True},
            "cwd": "work",
            "timeout": 5,
            "start_timeout": 2.5,
            "per_session": True,
            "direct": ["*"],
            "enabled": False,
        },
        folder=Path("/etc/bell"),
    )
    assert server == Server(
        "github",
        command="npx",
        args=("-y", "server", "3"),
        env={"DEBUG": "true"},
        cwd="/etc/bell/work",
        timeout=5.0,
        start_timeout=2.5,
        per_session=True,
        direct=("*",),
        enabled=False,
    )


def test_a_misspelt_setting_of_ours_is_an_error_with_a_hint() -> None:
    with pytest.raises(ConfigError, match="no setting 'comand'; did you mean 'command'"):
        read({"comand": "npx"})


@pytest.mark.parametrize(
    "raw",
    [
        "npx",
        {},
        {"command": "x", "url": "http://host/"},
        {"command": ""},
        {"command": 5},
        {"command": "a\0b"},
        {"command": "x", "args": "one two"},
        {"command": "x", "args": [{}]},
        {"command": "x", "env": ["A=1"]},
        {"command": "x", "env": {"A=B": "1"}},
        {"command": "x", "timeout": 0},
        {"command": "x", "timeout": "5"},
        {"command": "x", "timeout": True},
        {"command": "x", "per_session": "yes"},
        {"command": "x", "transport": "http"},
        {"url": "ftp://host/"},
        {"url": "http://"},
        {"url": "http://ho st/"},
        {"url": "http://host:99999/"},
        {"url": "http://host/", "transport": "pigeon"},
        {"url": "http://host/", "transport": "stdio"},
        {"url": "http://host/", "headers": {"A": "b\r\nC: d"}},
        {"url": "http://host/", "oauth": {"scope": "x"}},
        {"url": "http://host/", "oauth": {"port": 99999}},
        {"url": "http://host/", "oauth": {"client_id": "me"}},
        {"url": "http://host/", "oauth": {"client_secret": "mine"}},
        {"url": "http://host/", "oauth": {"issuer": "auth.example.com"}},
        {"url": "http://host/", "oauth": {"issuer": "http://auth.example.com"}},
        {"url": "http://host/", "oauth": {"issuer": "https://auth.example.com/?a=b"}},
        {"url": "http://host/", "oauth": {"issuer": "https://me@auth.example.com"}},
    ],
)
def test_an_entry_that_makes_no_sense_is_refused_with_the_name_of_the_server(raw: Any) -> None:
    with pytest.raises(ConfigError, match=r"divingbell.toml, server 'github'"):
        read(raw)


@pytest.mark.parametrize(
    ("raw", "transport"),
    [
        ({"url": "https://host/mcp"}, "http"),
        ({"url": "https://host/sse"}, "sse"),
        ({"url": "https://host/sse", "transport": "http"}, "http"),
        ({"url": "https://host/x", "transport": "streamable-http"}, "http"),
        ({"url": "https://host/x", "transport": "SSE"}, "sse"),
        ({"command": "x"}, "stdio"),
    ],
)
def test_the_transport_is_named_or_clear(raw: dict[str, Any], transport: str) -> None:
    assert read(raw).transport == transport


def test_signing_in_is_for_addresses_without_a_token() -> None:
    assert read({"url": "https://host/mcp"}).oauth == OAuth()
    assert read({"url": "https://host/mcp", "headers": {"authorization": "x"}}).oauth is None
    assert read({"url": "https://host/mcp", "oauth": False}).oauth is None
    assert read({"command": "x"}).oauth is None
    issuer = "https://auth.example.com/tenant"
    table = {"scopes": ["read", "write"], "client_id": "me", "port": 8080, "issuer": issuer}
    given = read({"url": "https://host/mcp", "oauth": table}).oauth
    assert given == OAuth(("read", "write"), "me", None, 8080, issuer)


def test_a_client_of_ours_is_for_one_issuer_and_the_words_say_so() -> None:
    with pytest.raises(ConfigError, match="needs issuer too, the authorization server that they"):
        read({"url": "https://host/mcp", "oauth": {"client_id": "me"}})
    with pytest.raises(ConfigError, match="needs issuer too"):
        OAuth(client_secret="mine")


def test_variables_are_expanded_everywhere() -> None:
    environment = {"TOKEN": "abc", "HOME": "/home/bo"}
    raw = {
        "command": "${HOME}/bin/server",
        "args": ["--root=${ROOT:-/srv}", "${env:TOKEN}", "$TOKEN", "${EMPTY:-}"],
        "env": {"KEY": "x-${TOKEN}-${TOKEN}"},
    }
    server = read(raw, environment)
    assert server.command == "/home/bo/bin/server"
    assert server.args == ("--root=/srv", "abc", "$TOKEN", "")
    assert server.env == {"KEY": "x-abc-abc"}


def test_paths_of_a_command_mean_the_folder_of_the_file_and_packages_mean_packages() -> None:
    words = ["./data", "../up", ".", "--root=./data", "data", "@scope/server", "-m", "/abs", "..x"]
    server = read({"command": "bin/serve", "args": words}, folder=Path("/there/project"))
    assert server.command == "/there/project/bin/serve"
    assert server.args == (
        "/there/project/data",
        "/there/up",
        "/there/project",
        "--root=/there/project/data",
        *words[4:],
    )
    assert read({"command": "python"}, folder=Path("/there")).command == "python"
    assert read({"command": "/bin/sh"}, folder=Path("/there")).command == "/bin/sh"


def test_in_a_folder_that_an_entry_names_its_paths_are_left_alone() -> None:
    raw = {"command": "bin/serve", "args": ["./data"], "cwd": "below"}
    server = read(raw, folder=Path("/there"))
    assert (server.command, server.args) == ("bin/serve", ("./data",))
    assert server.cwd == "/there/below"


def test_a_missing_variable_breaks_its_own_server_only() -> None:
    table = {
        "github": {"command": "x", "env": {"A": "${GITHUB_TOKEN}"}},
        "asking": {"command": "x", "args": ["${input:key}"]},
        "time": {"command": "y"},
    }
    github, asking, time = read_entries(table, Place("divingbell.toml"))
    assert isinstance(github, UnusableServer)
    assert github.name == "github"
    assert "the variable GITHUB_TOKEN is not set" in github.reason
    assert isinstance(asking, UnusableServer)
    assert "${input:key}" in asking.reason
    assert isinstance(time, Server)


def test_a_typing_error_in_our_own_file_stops_the_start() -> None:
    with pytest.raises(ConfigError, match="no setting"):
        read_entries({"a": {"command": "x", "argz": []}}, Place("divingbell.toml"))


def test_secrets_are_known_and_not_shown() -> None:
    environment = {"GH": "from-the-environment", "HOME": "/home/bob-the-builder", "PORT": "80"}
    local = read(
        {
            "command": "${HOME}/x",
            "args": ["--api-key", "argument-secret", "--token=equals-secret", "--verbose", "word"],
            "env": {
                "ANY": "${GH}",
                "API_KEY": "plain-secret",
                "DATABASE_URL": "postgres://me:pass-word@host/db",
                "REGION": "eu-west-1",
                "PORT": "${PORT}",
            },
        },
        environment,
    )
    found = secrets_of(local)
    for secret in (
        "from-the-environment", "plain-secret", "argument-secret", "equals-secret", "pass-word"
    ):  # fmt: skip
        assert secret in found
        assert secret not in repr(local) + str(local) + local.identity
    assert not {"eu-west-1", "80", "/home/bob-the-builder", "word"} & set(found)
    remote = read(
        {
            "url": "https://user:url-password@host/mcp?api_key=query-secret&page=front-page",
            "headers": {"Authorization": "Bearer header-secret", "Accept": "text/plain"},
        }
    )
    found = secrets_of(remote)
    for secret in ("url-password", "query-secret", "header-secret", "Bearer header-secret"):
        assert secret in found
        assert secret not in repr(remote) + remote.identity
    assert not {"front-page", "text/plain"} & set(found)
    assert repr(remote) == "Server('github', https://host/mcp)"


def test_the_identity_changes_with_the_server_and_not_with_its_secrets() -> None:
    def server(**more: Any) -> str:
        raw = {"command": "x", "args": ["--token", "secret-one"], "env": {"KEY": "secret-two"}}
        return read(raw | more).identity

    assert server() == server(args=["--token", "another-secret"])
    assert server() == server(env={"KEY": "another-secret"})
    assert server() != server(args=["--token", "secret-one", "/srv"])
    assert server() != server(command="y")
