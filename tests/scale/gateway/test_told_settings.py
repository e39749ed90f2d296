"""What replicas are told of the settings: everything but what servers are given."""

import json
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.scale.gateway.told_settings import LoadedSettings, settings_told
from divingbell.settings.servers import Server, UnusableServer

FILE = """
max_sessions = 7
mcp_config = "mcp.json"
privacy = "secrets"

[policy]
calls_per_session = 5
default = "deny"

[servers.shop]
command = "/opt/shop/bin/serve"
args = ["--password", "kept-in-an-argument-1"]
env = { SHOP_TOKEN = "kept-in-a-variable-2", FROM = "${SHOP_SECRET}" }
per_session = true
timeout = 12

[servers.web]
url = "https://anne:kept-in-an-address-3@example.com/mcp"
headers = { Authorization = "Bearer kept-in-a-header-4" }

[servers.login]
url = "https://example.com/mcp"
oauth = { client_id = "us", client_secret = "kept-in-oauth-5", issuer = "https://example.com" }

[servers.unset]
command = "x"
env = { TOKEN = "${NOT_SET}" }

[servers.tables]
datasets = "tables"
"""
LISTED = {"mcpServers": {"notes": {"command": "y", "env": {"KEY": "kept-in-a-list-6"}}}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    (tmp_path / "tables").mkdir()
    (tmp_path / "mcp.json").write_text(json.dumps(LISTED))
    path = tmp_path / "divingbell.toml"
    path.write_text(FILE)
    return path


def test_a_replica_has_the_same_settings_and_nothing_that_a_server_is_given(config: Path) -> None:
    environment = {"SHOP_SECRET": "kept-in-the-environment-7", "DIVINGBELL_POOL": "3"}
    loaded = LoadedSettings.of(str(config), environment)
    told = loaded.told()
    for what in (b"kept-in", b"/opt/shop", b"example.com", b"password"):
        assert what not in told, what

    found = settings_told(told, {"DIVINGBELL_POOL": "3", "DIVINGBELL_CONFIG": "/not/here"})
    assert "kept-in" not in str(found)
    for name in ("max_sessions", "pool", "privacy", "policy", "limits"):
        assert getattr(found, name) == getattr(loaded.settings, name), name
    assert found.mcp_config == ""
    servers = {each.name: each for each in found.servers}
    assert servers.keys() == {each.name for each in loaded.settings.servers}
    assert servers["shop"] == Server("shop", per_session=True, timeout=12)
    assert isinstance(servers["unset"], UnusableServer)
    assert "NOT_SET" in servers["unset"].reason
    # Our own dataset server has no secret, and runs where its tables are needed.
    [tables] = [each for each in loaded.settings.servers if each.name == "tables"]
    assert servers["tables"] == tables


def test_the_variable_names_the_file_where_nothing_else_does(config: Path) -> None:
    loaded = LoadedSettings.of("", {"DIVINGBELL_CONFIG": str(config), "SHOP_SECRET": "x"})
    assert settings_told(loaded.told(), {}).max_sessions == 7
    assert settings_told(LoadedSettings.of("", {}).told(), {}).servers == ()
    with pytest.raises(ConfigError, match="there is no configuration file"):
        LoadedSettings.of("/not/here", {})
