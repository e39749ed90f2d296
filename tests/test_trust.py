"""The record of files that are trusted."""

import json
import stat
from pathlib import Path

import pytest

from divingbell import trust
from divingbell.sources import Source
from divingbell.trust import Trust


@pytest.fixture
def record(tmp_path: Path) -> Trust:
    return Trust(tmp_path / "kept" / "trusted.json")


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
