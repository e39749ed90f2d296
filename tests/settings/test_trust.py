"""The record of files that are trusted."""

import json
import stat
from pathlib import Path

import pytest

from divingbell.errors import ConfigError
from divingbell.settings import trust
from divingbell.settings.sources import Found, Source
from divingbell.settings.trust import Trust
from tests.clones import Clone


@pytest.fixture
def record(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "kept" / "trusted.json")


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_a_file_is_trusted_where_it_lies_and_as_it_was(tmp_path: Path, record: Trust) -> None:
    source = Source(tmp_path / "divingbell.toml", b"pool = 1")
    assert record.standing(source) == "unknown"
    record.allow([source])
    assert record.standing(source) == "trusted"
    assert record.standing(Source(source.path, b"pool = 2")) == "changed"
    assert record.standing(Source(tmp_path / "other/divingbell.toml", b"pool = 1")) == "unknown"


def test_what_it_was_before_is_not_trusted_any_more(tmp_path: Path, record: Trust) -> None:
    first, second = (Source(tmp_path / "a", data) for data in (b"1", b"2"))
    record.allow([first])
    record.allow([second])
    assert record.standing(first) == "changed"


def test_links_on_the_way_to_it_make_no_difference(tmp_path: Path, record: Trust) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    record.allow([Source(tmp_path / "link/divingbell.toml", b"")])
    assert list(record.files()) == [str(tmp_path / "real/divingbell.toml")]
    assert record.revoke(tmp_path / "link") == [str(tmp_path / "real/divingbell.toml")]


def test_it_can_be_taken_back_for_a_file_or_a_folder(tmp_path: Path, record: Trust) -> None:
    files = [Source(tmp_path / name, b"") for name in ("divingbell.toml", "mcp.json")]
    other = Source(tmp_path / "below/mcp.json", b"")
    record.allow([*files, other])
    assert record.revoke(files[1].path) == [str(files[1].path)]
    assert record.revoke(tmp_path) == [str(files[0].path)]
    assert record.revoke(tmp_path) == []
    assert record.standing(other) == "trusted"


def test_the_record_is_private_and_bounded(
    tmp_path: Path, record: Trust, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trust, "MOST", 2)
    files = [Source(tmp_path / name, b"") for name in "abc"]
    for file in files:
        record.allow([file])
    assert [record.standing(file) for file in files] == ["unknown", "trusted", "trusted"]
    assert stat.S_IMODE((tmp_path / "kept/trusted.json").stat().st_mode) == 0o600


@pytest.mark.parametrize("content", [b"", b"no", b"[]", b"[" * 100_000, b'{"/a": 5}'])
def test_a_record_that_is_none_trusts_nothing(
    tmp_path: Path, record: Trust, content: bytes
) -> None:
    record.allow([Source(tmp_path / "a", b"")])
    (tmp_path / "kept/trusted.json").write_bytes(content)
    assert record.files() == {}
    record.allow([Source(tmp_path / "a", b"")])
    assert len(json.loads((tmp_path / "kept/trusted.json").read_text())) == 1


# What is found in a folder


def test_where_nobody_can_be_asked_it_is_refused_with_the_way_out(clone: Clone) -> None:
    with pytest.raises(ConfigError) as caught:
        clone.found()
    words = str(caught.value)
    assert str(clone.settings) in words and "is not trusted yet" in words
    assert "divingbell trust" in words and "--config FILE" in words


def test_a_yes_lasts_until_a_file_changes(clone: Clone) -> None:
    clone.list.write_text('{"mcpServers": {}}')
    assert [source.path for source in clone.found(True).all] == [clone.settings, clone.list]
    assert clone.found().all and len(clone.asked) == 1
    clone.list.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    with pytest.raises(ConfigError, match=r"mcp\.json changed since it was trusted.*--mcp-config"):
        clone.found()
    clone.found(True)
    assert "changed since you trusted it" in clone.asked[-1]
    clone.settings.write_text("pool = 1")
    with pytest.raises(ConfigError, match=r"divingbell\.toml changed since it was trusted"):
        clone.found()


def test_a_list_that_comes_later_is_asked_about(clone: Clone) -> None:
    clone.found(True)
    clone.list.write_text('{"mcpServers": {}}')
    with pytest.raises(ConfigError, match=r"mcp\.json is not trusted yet"):
        clone.found()
    assert clone.found(with_list=False).servers is None  # another one is named


def test_a_list_that_the_settings_name_is_asked_about_too(clone: Clone) -> None:
    clone.settings.write_text('mcp_config = "below/list.json"')
    listed = clone.folder / "below/list.json"
    listed.parent.mkdir()
    listed.write_text('{"mcpServers": {}}')
    assert clone.found(True).servers is not None
    listed.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    with pytest.raises(ConfigError, match=r"list\.json changed"):
        clone.found()


def test_a_no_goes_on_as_if_the_files_were_not_there(clone: Clone) -> None:
    own = clone.home / ".config/divingbell/divingbell.toml"
    own.parent.mkdir(parents=True)
    own.write_text("pool = 3")
    assert clone.found(False).all[0].path == own
    assert clone.told == [f"going on without {clone.settings}: not trusted"]
    with pytest.raises(ConfigError, match="is not trusted yet"):
        clone.found()


def test_what_is_not_trusted_is_not_even_parsed(clone: Clone) -> None:
    clone.settings.write_text("not toml")
    with pytest.raises(ConfigError, match="is not trusted yet"):
        clone.found()


def test_a_folder_without_settings_leaves_its_list_alone(clone: Clone) -> None:
    clone.settings.unlink()
    clone.list.write_text('{"mcpServers": {"evil": {"command": "touch"}}}')
    assert clone.found() == Found()


def test_where_a_list_is_named_the_command_goes_on_without_the_folders_settings(
    clone: Clone,
) -> None:
    clone.settings.write_text("not toml")
    assert clone.found(with_list=False) == Found()
    assert clone.told == [f"going on without {clone.settings}: not trusted"]
