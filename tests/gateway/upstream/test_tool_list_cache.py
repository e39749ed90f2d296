"""Tool lists on disk."""

import json
from pathlib import Path

import mcp_types
import pytest

from divingbell.gateway.upstream.tool_list_cache import Listing, ToolListCache
from divingbell.settings.servers import Server

SERVER = Server("shop", command="shop", args=("--token", "very-secret"))
TOOL = mcp_types.Tool(
    name="sell",
    input_schema={"type": "object", "properties": {"x": {"type": "integer"}}},
    annotations=mcp_types.ToolAnnotations(read_only_hint=True),
)


def test_a_list_comes_back_as_it_was(tmp_path: Path) -> None:
    cache = ToolListCache(tmp_path / "below")
    assert cache.load(SERVER) is None
    listing = Listing([TOOL], "Sells things.", "2025-11-25")
    cache.store(SERVER, listing)
    assert ToolListCache(tmp_path / "below").load(SERVER) == listing
    (file,) = (tmp_path / "below").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    assert file.parent.stat().st_mode & 0o777 == 0o700
    assert "very-secret" not in file.read_text()


def test_another_server_of_the_same_name_has_another_list(tmp_path: Path) -> None:
    cache = ToolListCache(tmp_path)
    cache.store(SERVER, Listing([TOOL]))
    assert cache.load(Server("shop", command="other")) is None
    cache.forget(SERVER)
    cache.forget(SERVER)
    assert cache.load(SERVER) is None


@pytest.mark.parametrize(
    "content",
    [
        b"", b"{", b"[]", b"null", b'{"format": 1}', b"\xff", b"[" * 100_000, b"x" * (33 << 20),
    ],
)  # fmt: skip
def test_a_spoilt_file_is_as_if_there_were_none(tmp_path: Path, content: bytes) -> None:
    cache = ToolListCache(tmp_path)
    cache.store(SERVER, Listing([TOOL]))
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    assert cache.load(SERVER) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tools", [{"name": 5}]), ("tools", 7), ("instructions", 5), ("identity", "x"),
        ("format", 99), ("protocol_version", {}),
    ],
)  # fmt: skip
def test_a_file_with_wrong_values_is_as_if_there_were_none(
    tmp_path: Path, name: str, value: object
) -> None:
    cache = ToolListCache(tmp_path)
    cache.store(SERVER, Listing([TOOL]))
    (file,) = tmp_path.iterdir()
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    assert cache.load(SERVER) is None


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    cache = ToolListCache(tmp_path / "cache")
    cache.store(SERVER, Listing([TOOL]))
    (file,) = (tmp_path / "cache").iterdir()
    file.rename(tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    assert cache.load(SERVER) is None


def test_a_folder_that_can_not_be_written_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    cache = ToolListCache(tmp_path / "file")
    cache.store(SERVER, Listing([TOOL]))
    assert cache.load(SERVER) is None
