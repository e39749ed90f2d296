"""Files that settings come from: which are read, and what becomes of those nobody named."""

import json
import os
import socket
from pathlib import Path

import pytest

from divingbell import ConfigError
from divingbell.settings import sources
from divingbell.settings.sources import MAX_FOUND, Found, Source


def _lay(path: Path, content: str = "pool = 1\n") -> Path:
    path.write_text(content)
    path.chmod(0o644)
    return path


def test_a_file_that_lies_there_is_read_once(tmp_path: Path) -> None:
    path = _lay(tmp_path / "divingbell.toml")
    source = sources.lying_at(path)
    assert source == Source(path, b"pool = 1\n")
    path.write_text("pool = 2\n")
    assert source.settings() == {"pool": 1}
    assert sources.lying_at(tmp_path / "other.toml") is None


def _link(path: Path) -> None:
    path.symlink_to(_lay(path.with_name("real.toml")))


def _dangling_link(path: Path) -> None:
    path.symlink_to("nowhere")


def _socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as line:
        line.bind(str(path))


def _of_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a file away")
    os.chown(_lay(path), 4242, 4242)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_link, "is a link"),
        (_dangling_link, "is a link"),
        (os.mkfifo, "is no ordinary file"),
        (Path.mkdir, "is no ordinary file"),
        (_socket, "can't be read"),
        (_of_another, "belongs to another user"),
        (lambda path: _lay(path).chmod(0o666), "can be changed by every user"),
        (lambda path: _lay(path, "#" * (MAX_FOUND + 1)), "has more than 64 KB"),
    ],
    ids=["link", "dangling link", "fifo", "folder", "socket", "owner", "mode", "size"],
)
def test_what_nobody_could_trust_is_refused_and_never_waited_for(
    tmp_path: Path, make: object, reason: str
) -> None:
    path = tmp_path / "divingbell.toml"
    make(path)  # type: ignore[operator]
    with pytest.raises(ConfigError) as caught:
        sources.lying_at(path)
    assert str(path) in str(caught.value) and reason in str(caught.value)
    assert "--config FILE" in str(caught.value)


@pytest.mark.parametrize(
    "content", ["not toml", "a = " + "[" * 20_000, "a = " + "1" * 10_000, b"\xff"]
)
def test_settings_that_are_none_are_an_error_in_words(content: str | bytes) -> None:
    data = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(ConfigError, match=r"divingbell\.toml can't be read"):
        Source(Path("divingbell.toml"), data).settings()


def test_the_list_that_goes_with_settings_is_the_one_beside_or_the_one_they_name(
    tmp_path: Path,
) -> None:
    settings = sources.lying_at(_lay(tmp_path / "divingbell.toml"))
    assert settings is not None
    assert sources.with_list(settings) == Found(settings)
    beside = _lay(tmp_path / "mcp.json", "{}")
    assert sources.with_list(settings) == Found(settings, Source(beside, b"{}"))
    naming = Source(settings.path, b'mcp_config = "list.json"')
    with pytest.raises(ConfigError, match=r"there is no list\.json"):
        sources.with_list(naming)
    other = _lay(tmp_path / "list.json", '{"a": 1}')
    assert sources.with_list(naming) == Found(naming, Source(other, b'{"a": 1}'))
    other.unlink()
    other.symlink_to(beside)
    with pytest.raises(ConfigError, match=r"is a link.*--mcp-config FILE"):
        sources.with_list(naming)


def test_the_users_own_files_may_be_links(tmp_path: Path) -> None:
    folder = tmp_path / ".config/divingbell"
    folder.mkdir(parents=True)
    (folder / "divingbell.toml").symlink_to(_lay(tmp_path / "dotfiles.toml"))
    _lay(folder / "mcp.json", json.dumps({"mcpServers": {}}))
    found = sources.of_user({"HOME": str(tmp_path)})
    assert [source.path.name for source in found.all] == ["divingbell.toml", "mcp.json"]
    assert sources.of_user({"XDG_CONFIG_HOME": str(tmp_path / "none")}) == Found()


@pytest.mark.parametrize("opened", [".config/divingbell", ".config", ".config/divingbell/mcp.json"])
def test_the_users_own_files_are_refused_where_others_could_have_written_them(
    tmp_path: Path, opened: str
) -> None:
    folder = tmp_path / ".config/divingbell"
    folder.mkdir(parents=True)
    _lay(folder / "mcp.json", "{}")
    (tmp_path / opened).chmod(0o777)
    with pytest.raises(ConfigError) as caught:
        sources.of_user({"HOME": str(tmp_path)})
    assert f"{tmp_path / opened} can be written to by other users" in str(caught.value)
    assert f"`chmod go-w {tmp_path / opened}`" in str(caught.value)
    assert str(caught.value).endswith("or name the file to use: --mcp-config FILE")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
@pytest.mark.parametrize("given", [".config/divingbell", ".config/divingbell/divingbell.toml"])
def test_root_does_not_obey_the_settings_of_another_user(tmp_path: Path, given: str) -> None:
    folder = tmp_path / ".config/divingbell"
    folder.mkdir(parents=True)
    _lay(folder / "divingbell.toml")
    os.chown(tmp_path / given, 4242, 4242)
    with pytest.raises(ConfigError, match=r"belongs to the user with uid 4242.*--config FILE"):
        sources.of_user({"XDG_CONFIG_HOME": str(tmp_path / ".config")})


def test_a_folder_of_the_user_is_never_one_of_the_current_folder() -> None:
    environment = {"HOME": "/there", "XDG_CONFIG_HOME": "relative"}
    assert sources.user_folder(environment) == Path("/there/.config/divingbell")
