"""Tables that are kept: found as long as their file is the same."""

import os
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from divingbell.datasets import cache as caches
from divingbell.datasets.cache import Cache
from divingbell.datasets.folder import DataFile
from divingbell.datasets.spool import MOST_FILES, Spool

FILE = DataFile("a.csv", "csv", 10, 1)


async def content(size: int = 4) -> AsyncIterator[bytes]:
    yield b"x" * size


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path, Path("/data"))


async def test_a_table_is_found_until_its_file_changes(cache: Cache) -> None:
    assert cache.find(FILE, None) is None
    path = await cache.keep(FILE, None, {"rows": 3}, content())
    assert cache.find(FILE, None) == (path, {"rows": 3})
    for other in (replace(FILE, size=11), replace(FILE, modified=2), replace(FILE, path="b.csv")):
        assert cache.find(other, None) is None
    assert cache.find(FILE, 0) is None


async def test_nobody_else_gets_to_it_and_sessions_can_read_it(
    cache: Cache, tmp_path: Path
) -> None:
    path = await cache.keep(FILE, None, {}, content())
    assert (tmp_path / "datasets").stat().st_mode & 0o777 == 0o700
    assert path.stat().st_mode & 0o777 == 0o644


async def test_folders_share_nothing(cache: Cache, tmp_path: Path) -> None:
    await cache.keep(FILE, None, {}, content())
    other = Cache(tmp_path, Path("/other"))
    assert other.find(FILE, None) is None
    assert list(other.tables.iterdir()) == []


async def test_what_breaks_off_is_not_kept(cache: Cache) -> None:
    async def broken() -> AsyncIterator[bytes]:
        yield b"half"
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        await cache.keep(FILE, None, {}, broken())
    assert cache.find(FILE, None) is None
    assert list(cache.tables.iterdir()) == []


async def test_the_oldest_go_when_it_is_full(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", 100)
    for number in range(4):
        await cache.keep(replace(FILE, modified=number), None, {}, content(40))
    assert [cache.find(replace(FILE, modified=n), None) is None for n in range(4)] == [
        True,
        True,
        False,
        False,
    ]


def test_a_spool_has_an_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for _ in range(2 * MOST_FILES):
        spool.new().write_bytes(b"x")
    assert len(list(tmp_path.iterdir())) <= MOST_FILES


def test_a_spool_finds_its_own_files_alone(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    (tmp_path / "spool").mkdir()
    (tmp_path / "x.parquet").write_bytes(b"x")
    path = spool.link(tmp_path / "x.parquet")
    assert spool.find(path.stem) == path
    assert spool.find("../x") is None
    assert spool.find("") is None


async def test_folders_share_one_largest_size(
    cache: Cache, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", 100)
    other = Cache(tmp_path, Path("/other"))
    old = await cache.keep(FILE, None, {}, content(60))
    os.utime(old, (1, 1))
    await other.keep(FILE, None, {}, content(60))
    assert cache.find(FILE, None) is None
    assert other.find(FILE, None) is not None
    # What is known of the table has gone with it.
    assert [path.name for path in old.parents[1].iterdir()] == [caches.TABLES]


async def test_one_table_that_is_larger_than_all_may_be_stays(
    cache: Cache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(caches, "MOST_BYTES", 10)
    await cache.keep(FILE, None, {}, content(60))
    assert cache.find(FILE, None) is not None


async def test_the_cache_of_a_folder_that_nobody_uses_goes(cache: Cache, tmp_path: Path) -> None:
    await cache.keep(FILE, None, {}, content())
    place = cache.tables.parent
    long_ago = time.time() - caches.UNUSED - 60
    os.utime(place, (long_ago, long_ago))
    Cache(tmp_path, Path("/other"))
    assert not place.exists()


async def test_the_cache_of_a_folder_that_was_used_stays(cache: Cache, tmp_path: Path) -> None:
    await cache.keep(FILE, None, {}, content())
    place = cache.tables.parent
    long_ago = time.time() - caches.UNUSED - 60
    os.utime(place, (long_ago, long_ago))
    assert cache.find(FILE, None) is not None  # this is a use
    Cache(tmp_path, Path("/other"))
    assert cache.find(FILE, None) is not None
    os.utime(place, (long_ago, long_ago))
    assert Cache(tmp_path, Path("/data")).find(FILE, None) is not None  # and so is this


def test_a_spool_takes_the_values_beside_a_table_along(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    for _ in range(2 * MOST_FILES):
        path = spool.new()
        path.write_bytes(b"x")
        path.with_suffix(".json").write_bytes(b"{}")
    assert len(list(tmp_path.glob("*.json"))) <= MOST_FILES
