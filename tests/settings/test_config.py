"""Settings: arguments over environment over file over defaults; nothing wrong slips through."""

import json
import re
from pathlib import Path

import pytest

from divingbell import ConfigError, Divingbell, Limits
from divingbell.models import parse_size
from divingbell.settings import config
from divingbell.settings.servers import Server, UnusableServer
from divingbell.settings.sources import Found, Source


def _load(tmp_path: Path, text: str, environment: dict[str, str] | None = None, **given: object):
    file = tmp_path / "divingbell.toml"
    file.write_text(text)
    return config.load(file, given, {"HOME": str(tmp_path), **(environment or {})})


def test_defaults_are_those_of_the_documentation(tmp_path: Path) -> None:
    settings = config.load(environment={"HOME": str(tmp_path)})
    assert settings.backend == "local"
    assert settings.limits == Limits()
    assert (settings.limits.timeout, settings.limits.memory) == (30, 512 << 20)
    assert settings.limits.output == 1 << 20


def test_each_source_wins_over_the_next(tmp_path: Path) -> None:
    text = 'pool = 5\nmax_sessions = 7\n[limits]\nmemory = "1GB"\ntimeout = 10'
    settings = _load(tmp_path, text)
    assert (settings.pool, settings.limits.memory, settings.limits.timeout) == (5, 1 << 30, 10)
    environment = {"DIVINGBELL_POOL": "6", "DIVINGBELL_MEMORY": "2GB"}
    settings = _load(tmp_path, text, environment)
    assert (settings.pool, settings.max_sessions, settings.limits.memory) == (6, 7, 2 << 30)
    settings = _load(tmp_path, text, environment, pool=8, memory="3GB", timeout=None)
    assert (settings.pool, settings.limits.memory, settings.limits.timeout) == (8, 3 << 30, 10)


def test_lists_and_mounts_come_from_file_and_environment(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    text = 'packages = ["scikit-learn"]\nmounts = {"/data" = "data"}'
    settings = _load(tmp_path, text)
    assert settings.packages == ("scikit-learn",)
    assert settings.mounts == {"/data": str(tmp_path / "data")}
    environment = {
        "DIVINGBELL_PACKAGES": "a, b",
        "DIVINGBELL_MOUNTS": f"/more={tmp_path}",
        "DIVINGBELL_HOME": "elsewhere",
    }
    settings = _load(tmp_path, text, environment)
    assert settings.packages == ("a", "b")
    assert settings.mounts == {"/more": str(tmp_path)}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("memroy = 1", "did you mean 'memory'"),
        ("[limits]\npool = 1", "no setting 'pool'"),
        ("limits = 5", "must be a table"),
        ("pool = 'many'", "pool must be a whole number, 0 or more, not 'many'"),
        ("pool = true", "pool must be a whole number, 0 or more, not True"),
        ("pool = '6'", "pool must be a whole number, 0 or more, not '6'"),
        ("pool = -1", "pool must be a whole number, 0 or more, not -1"),
        ("pool_most = -1", "pool_most must be a whole number, 0 or more, not -1"),
        ("idle_timeout = 0", "idle_timeout must be a number of seconds, more than 0, not 0"),
        ("idle_timeout = nan", "idle_timeout must be a number of seconds, more than 0, not nan"),
        ("copy_after = -1", "copy_after must be a number of seconds, 0 or more, not -1"),
        ("runtime = 'runsc'", 'write backend = "docker-runsc"'),
        ("cgroups = 'maybe'", 'must be "auto" or "require" or "off", not \'maybe\''),
        ("memory = 'lots'", "is not a size"),
        ("memory = '1MB'", "at least 32MB"),
        ("timeout = 0", "more than 0"),
        ("packages = 'one'", "packages must be a list of texts, not 'one'"),
        ("packages = ['--index-url=https://evil.example']", "packages: '--index-url"),
        ("packages = ['-r other.txt']", "is not a requirement"),
        ("packages = ['a; rm']", "is not a requirement"),
        ("mcp_config = []", "mcp_config must be a path, not []"),
        ("mcp_config = 5", "mcp_config must be a path, not 5"),
        ("mcp_config = '~nobody-of-that-name/x'", "there is no such home directory"),
        ("search_model = '~nobody-of-that-name/x'", "there is no such home directory"),
        ("workspace = 5", 'workspace must be "memory" or a path, not 5'),
        ("mounts = 5", "mounts must be a table of texts, not 5"),
        ("uid_base = 0", "uid_base must be a whole number, 1000 or more, not 0"),
        ("mounts = {'relative' = '/'}", "absolute path"),
        ("mounts = {'/' = '/'}", "absolute path"),
        ("mounts = {'/usr/x' = '/'}", "is taken"),
        ("mounts = {'/a/../usr' = '/'}", "absolute path"),
        ("mounts = {'/data' = '/no/such/folder'}", "does not exist"),
        ("not toml at all", "can't be read"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("poool = 1", "divingbell.toml: there is no setting 'poool'"),
        ("pool = -1", "divingbell.toml: pool must be"),
        ("timeout = 0", "divingbell.toml: the limit timeout"),
        ("[limits]\nmemory = []", "divingbell.toml, [limits]: memory: a list is not a size"),
        ("[policy]\npin = 1", "divingbell.toml, [policy]: pin must be true or false"),
        ("[servers.a]\nurl = 'x'", "divingbell.toml, server 'a': url must be an address"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(tmp_path: Path, text: str, place: str) -> None:
    with pytest.raises(ConfigError) as caught:
        _load(tmp_path, text)
    assert str(caught.value).startswith(f"{tmp_path}/{place}")


def test_what_is_wrong_in_the_environment_and_in_arguments_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"the environment: pool must be .*, not 'many'"):
        _load(tmp_path, "", {"DIVINGBELL_POOL": "many"})
    with pytest.raises(ConfigError, match="the environment: mounts must be a table of texts"):
        _load(tmp_path, "", {"DIVINGBELL_MOUNTS": "/data"})
    with pytest.raises(ConfigError, match="the environment: there is no setting 'policy'"):
        _load(tmp_path, "", {"DIVINGBELL_POLICY": "{}"})
    with pytest.raises(ConfigError, match=r"the arguments: pool must be .*, not 'many'"):
        _load(tmp_path, "", pool="many")


def test_a_file_that_was_named_must_exist(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no configuration file"):
        config.load(tmp_path / "missing.toml")
    with pytest.raises(ConfigError, match="no configuration file"):
        config.load(environment={"DIVINGBELL_CONFIG": str(tmp_path / "missing.toml")})


def test_arguments_are_checked_before_anything_starts() -> None:
    with pytest.raises(ConfigError, match="did you mean 'memory'"):
        Divingbell(memmory="1GB")


@pytest.mark.parametrize(
    ("text", "size"),
    [("512MB", 512 << 20), ("1.5 GiB", 3 << 29), ("10k", 10 << 10), ("77", 77), (5, 5)],
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_a_runtime_beside_the_backend_is_told_the_one_word_for_both() -> None:
    with pytest.raises(ConfigError, match=r'the environment: .* write backend = "docker-runsc"'):
        config.load(None, {}, {"DIVINGBELL_RUNTIME": "runsc"})
    with pytest.raises(ConfigError, match=r'the arguments: .* write backend = "docker-runsc"'):
        Divingbell(backend="docker", runtime="runsc")


def test_the_order_of_backends_comes_from_the_environment_too() -> None:
    environment = {"DIVINGBELL_BACKEND_ORDER": "local,docker"}
    assert config.load(None, {}, environment).backend_order == ("local", "docker")


# Servers and policy


def test_servers_and_policy_are_tables_of_the_file(tmp_path: Path) -> None:
    settings = _load(
        tmp_path,
        '[servers.shop]\ncommand = "shop"\nargs = ["${WHERE}"]\n'
        '[policy]\ndefault = "deny"\n[[policy.rules]]\ntools = ["shop.*"]\naction = "allow"\n',
        {"WHERE": "here"},
    )
    (shop,) = settings.servers
    assert isinstance(shop, Server) and (shop.command, shop.args) == ("shop", ("here",))
    assert settings.policy.default == "deny" and len(settings.policy.rules) == 1


def test_a_variable_that_is_not_set_breaks_one_server_alone(tmp_path: Path) -> None:
    text = '[servers.a]\ncommand = "${GONE}"\n[servers.b]\ncommand = "b"\n'
    first, second = _load(tmp_path, text).servers
    assert isinstance(first, UnusableServer) and "GONE" in first.reason
    assert isinstance(second, Server)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[servers.a]\ncomand = "x"\n', "did you mean 'command'"),
        ('[servers."a.b"]\ncommand = "x"\n', "can't be the name of a server"),
        ('[policy]\ndefalt = "deny"\n', "did you mean 'default'"),
        ('[policy]\ndefault = "maybe"\n', "default"),
        ('mode = "magic"\n', 'must be "code" or "hybrid" or "direct", not'),
        ('search = "magic"\n', 'must be "auto" or "words" or "meaning", not'),
        ('mcp_config = "nowhere.json"\n', "nowhere.json"),
    ],
)
def test_mistakes_in_servers_and_policy_are_named(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        _load(tmp_path, text)


def test_no_file_is_read_that_nobody_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of the current folder nor of the user's, and no list beside a file that is named."""
    listed = json.dumps({"mcpServers": {"a": {"command": "a"}}})
    own = tmp_path / ".config/divingbell"
    own.mkdir(parents=True)
    for folder in (tmp_path, own):
        (folder / "divingbell.toml").write_text("pool = 7")
        (folder / "mcp.json").write_text(listed)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert config.load() == config.Settings()
    assert Divingbell().settings == config.Settings()
    named = Divingbell(config="divingbell.toml").settings
    assert (named.pool, named.servers) == (7, ())
    monkeypatch.setenv("DIVINGBELL_CONFIG", str(own / "divingbell.toml"))
    assert (Divingbell().settings.pool, Divingbell().settings.servers) == (7, ())


def test_servers_that_are_given_are_all_there_are(tmp_path: Path) -> None:
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"mcpServers": {"listed": {"command": "a"}}}))
    text = 'mcp_config = "list.json"\n[servers.filed]\ncommand = "b"\n'
    environment = {"DIVINGBELL_MCP_CONFIG": str(listed)}

    def names(**given: object) -> list[str]:
        return [entry.name for entry in _load(tmp_path, text, environment, **given).servers]

    assert names() == ["filed", "listed"]
    assert names(servers={}) == []
    assert names(servers={"own": {"command": "c"}}) == ["own"]
    assert names(servers={"own": {"command": "c"}}, mcp_config=str(listed)) == ["own", "listed"]


def test_a_list_that_was_found_with_the_settings_is_used_as_it_was_read(tmp_path: Path) -> None:
    listed = {"mcpServers": {"a": {"command": "theirs"}, "b": {"url": "https://b.example/mcp"}}}
    (tmp_path / "mcp.json").write_text('{"mcpServers": {"changed": {"command": "x"}}}')
    found = Found(
        Source(tmp_path / "divingbell.toml", b'[servers.a]\ncommand = "mine"\n'),
        Source(tmp_path / "mcp.json", json.dumps(listed).encode()),
    )
    settings = config.load(None, {}, {}, found)
    assert [(entry.name, getattr(entry, "command", None)) for entry in settings.servers] == [
        ("a", "mine"),
        ("b", None),
    ]


def test_an_mcp_json_can_be_named_in_each_way(tmp_path: Path) -> None:
    listed = tmp_path / "list.json"
    listed.write_text(json.dumps({"mcpServers": {"a": {"command": "a"}}}))
    by_file = _load(tmp_path, 'mcp_config = "list.json"\n')
    by_argument = _load(tmp_path, "", mcp_config=str(listed))
    by_environment = _load(tmp_path, "", {"DIVINGBELL_MCP_CONFIG": str(listed)})
    for settings in (by_file, by_argument, by_environment):
        assert [entry.name for entry in settings.servers] == ["a"]


def test_the_folder_of_a_model_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    assert _load(tmp_path, 'search_model = "models/mine"\n').search_model == str(
        tmp_path / "models" / "mine"
    )
    given = config.load(overrides={"search_model": "mine"}, environment={})
    assert given.search_model == str(Path.cwd() / "mine")
    home = config.load(environment={"DIVINGBELL_SEARCH_MODEL": "~/mine"})
    assert home.search_model == str(Path.home() / "mine")
    assert config.load(environment={}).search_model == ""
