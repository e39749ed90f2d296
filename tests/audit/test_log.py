"""The log as a subscriber: nothing is done that it can't write down."""

import asyncio
import contextlib
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from divingbell.audit import opening, segments, writer
from divingbell.audit.log import AuditLog
from divingbell.border.border import OpenBorder
from divingbell.errors import ConfigError, NotRecorded
from divingbell.journal.events import CellStarted
from divingbell.settings.config import load
from tests.audit import making
from tests.small_disk import AS_ROOT, filled, small_disk
from tests.waiting import until


@contextmanager
def full(folder: Path, room: int = 20) -> Iterator[None]:
    """No file of this process can be written far behind the log's end: of a record, only a part
    is, unless there is more room."""
    size = max(len(path.read_bytes().rstrip(b"\0")) for path in making.files(folder)) + room
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_an_intent_is_on_the_disk_before_its_call_leaves(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1, order=12))
        [_, record] = making.records(tmp_path)
    assert record["kind"] == "call.started" and record["arguments"]["text"] == '{"order": 12}'


async def test_whatever_is_written_to_a_file_of_the_log_is_synced(tmp_path: Path) -> None:
    """The kernel itself says so of the descriptor: a write returns when it is on the disk."""
    async with making.writing(tmp_path, audit_log={"segment": "1MB"}) as log:
        for call in range(300):  # into the second file
            await log.intend(making.sent(call, text="word " * 790))
            if call in (0, 299):
                [flags] = _flags(making.files(tmp_path)[-1])
                assert flags & os.O_DSYNC and flags & os.O_RDWR
    assert len(making.files(tmp_path)) == 2


def _flags(path: Path) -> list[int]:
    """The flags of each descriptor of this process for a file."""
    found = []
    for opened in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # the one that lists them is gone by now
            if opened.readlink() == path:
                words = Path("/proc/self/fdinfo", opened.name).read_text().split()
                found.append(int(words[words.index("flags:") + 1], 8))
    return found


async def test_one_sync_serves_all_that_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    syncs = []
    real = segments.Segments.write

    def counted(self: segments.Segments, records: list[segments.Record], *more: Any) -> None:
        syncs.append(len(records))
        real(self, records, *more)

    monkeypatch.setattr(segments.Segments, "write", counted)
    async with making.writing(tmp_path) as log:
        await asyncio.gather(*[log.intend(making.sent(call)) for call in range(100)])
    assert len(syncs) < 50 and making.verified(tmp_path).records == 102


async def test_a_full_disk_refuses_calls_until_there_is_room(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        with full(tmp_path):
            with pytest.raises(NotRecorded, match=r"can't be written .* make room for it$"):
                await log.intend(making.sent(2))
            await log.intend(CellStarted(making.ANNA, "key", 2, "1 + 1"))  # code may run
            log.note(making.ended(1))
        await log.intend(making.sent(3))
    kinds = [(each["kind"], each.get("call")) for each in making.records(tmp_path)]
    assert ("call.started", 2) not in kinds
    assert {("call.ended", 1), ("call.started", 3), ("execution.started", None)} <= {*kinds}
    assert making.verified(tmp_path).verdict == "whole"


@AS_ROOT
async def test_a_disk_that_is_really_full_refuses_calls_until_there_is_room(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with small_disk(tmp_path / "log", 256 << 10) as disk:
        async with making.writing(tmp_path) as log:
            await log.intend(making.sent(1))
            with filled(disk):
                kept, refused = await _until_refused(log)
                log.note(making.ended(1))
                with pytest.raises(NotRecorded):
                    await log.intend(making.sent(refused + 1))
            assert "No space left on device" in caplog.text and str(disk) in caplog.text
            await log.intend(making.sent(refused + 2))
        started = [
            each["call"] for each in making.records(tmp_path) if each["kind"] == "call.started"
        ]
        assert started == [1, *kept, refused + 2]
        assert ("call.ended", 1) in [
            (each["kind"], each.get("call")) for each in making.records(tmp_path)
        ]
        assert making.verified(tmp_path).verdict == "whole"


async def _until_refused(log: AuditLog) -> tuple[list[int], int]:
    """The calls that the last page has still room for, and the one for which it has none."""
    kept = list[int]()
    for call in range(2, 100):
        try:
            await log.intend(making.sent(call))
        except NotRecorded as error:
            assert "No space left on device" in str(error)
            return kept, call
        kept.append(call)
    raise AssertionError("the disk is never full")


async def test_a_little_room_is_enough_for_a_record(tmp_path: Path) -> None:
    """The zeros that are written ahead need not find any."""
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        with full(tmp_path), pytest.raises(NotRecorded):
            await log.intend(making.sent(2))
        with full(tmp_path, room=20_000):
            for call in range(3, 10):
                await log.intend(making.sent(call))
        for call in range(10, 20):
            await log.intend(making.sent(call))
    found = making.verified(tmp_path)
    assert found.verdict == "whole" and found.open_calls == [1, *range(3, 20)]


async def test_a_required_log_refuses_code_as_well(tmp_path: Path) -> None:
    key = tmp_path / "named.key"
    key.write_text("A" * 43 + "=\n")
    table = {"key_file": str(key)}
    async with making.writing(tmp_path, audit="required", audit_log=table) as log:
        await log.intend(CellStarted(making.ANNA, "key", 1, "1 + 1"))
        with full(tmp_path), pytest.raises(NotRecorded):
            await log.intend(CellStarted(making.ANNA, "key", 2, "1 + 1"))


async def test_a_required_log_needs_its_second_place_all_the_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "HEAD_EVERY", 0.01)
    key = tmp_path / "named.key"
    key.write_text("A" * 43 + "=\n")
    table = {"key_file": str(key)}
    async with making.writing(tmp_path, audit="required", audit_log=table) as log:
        (tmp_path / "heads").rmdir()
        (tmp_path / "heads").write_text("no folder")

        async def is_refused() -> bool:
            try:
                await log.intend(making.sent())
            except NotRecorded:
                return True
            return False

        await until(is_refused, "calls are refused")
        (tmp_path / "heads").unlink()

        async def is_made() -> bool:
            return not await is_refused()

        await until(is_made, "calls are made again")


@pytest.mark.parametrize(
    ("table", "words"),
    [({}, "needs a key"), ({"key_file": "named.key", "heads": ""}, "needs a second place")],
)
async def test_a_required_log_does_not_start_without_what_proves_it(
    table: dict[str, str], words: str, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match=words):
        async with making.writing(tmp_path, audit="required", audit_log=table):
            pass
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"heads": "log"}, "second place"),
        ({"heads": "log/heads"}, "second place"),
        ({"heads": "."}, "second place"),
        ({"heads": "heads/../log/x/../heads"}, "second place"),
        ({"heads": "link"}, "second place"),
        ({"heads": "link/heads"}, "second place"),
        ({"folder": "link/deeper", "heads": "log"}, "second place"),
        ({"heads": "round"}, "can't be followed|can't be kept"),
        ({"key_file": "log/audit.key"}, "does not lie beside the log"),
        ({"key_file": "link/audit.key"}, "does not lie beside the log"),
        ({"key_file": "log"}, "does not lie beside the log"),
        ({"key_file": "inward.key"}, "does not lie beside the log"),
    ],
)
async def test_a_required_log_has_its_heads_and_key_elsewhere(
    table: dict[str, str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "log")
    (tmp_path / "round").symlink_to(tmp_path / "round")
    (tmp_path / "inward.key").symlink_to(tmp_path / "log" / "audit.key")
    (tmp_path / "named.key").write_text("A" * 43 + "=\n")
    named = {"key_file": str(tmp_path / "named.key")}
    named |= {name: f"{tmp_path}/{path}" for name, path in table.items()}
    with pytest.raises(ConfigError, match=words):
        async with making.writing(tmp_path, audit="required", audit_log=named):
            pass
    assert not (tmp_path / "log").exists()


async def test_a_key_in_the_environment_is_not_looked_for_in_a_file(tmp_path: Path) -> None:
    table = {"folder": str(tmp_path / "log"), "heads": str(tmp_path / "heads")}
    table["key_file"] = str(tmp_path / "log" / "audit.key")  # which the variable comes before
    chosen = load(None, {"audit": "required", "audit_log": table}, environment={})
    variables = {"DIVINGBELL_AUDIT_KEY": "A" * 43 + "="}
    log = await opening.opened(chosen, OpenBorder(), tmp_path, variables)
    await log.intend(making.sent(1))
    await log.close()
    assert [each["kind"] for each in making.records(tmp_path)][1] == "call.started"


async def test_a_folder_that_others_can_write_to_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log").chmod(0o777)
    with pytest.raises(ConfigError, match="can be written to by other users"):
        async with making.writing(tmp_path):
            pass


async def test_files_and_folders_are_the_owners_alone(tmp_path: Path) -> None:
    await making.write_calls(tmp_path, 1)
    found = [*(tmp_path / "log").iterdir(), *(tmp_path / "heads").iterdir()]
    assert {path.stat().st_mode & 0o777 for path in found} == {0o600}
    assert (tmp_path / "log").stat().st_mode & 0o777 == 0o700


async def test_a_place_that_is_not_there_yet_refuses_calls_and_is_used_once_it_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "log").write_text("no folder")
    async with making.writing(tmp_path) as log:
        with pytest.raises(NotRecorded):
            await log.intend(making.sent(1))
        (tmp_path / "log").unlink()
        await log.intend(making.sent(2))
    assert making.verified(tmp_path).verdict == "whole"


async def test_a_chain_goes_on_in_the_next_file(tmp_path: Path) -> None:
    async with making.writing(tmp_path, audit_log={"segment": "1MB"}) as log:
        for call in range(300):
            await log.intend(making.sent(call, text="word " * 790))
    assert len(making.files(tmp_path)) == 2
    found = making.verified(tmp_path)
    assert found.verdict == "whole" and found.records == found.proven == 303


async def test_what_finds_no_room_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "MOST_WAITING", 3)
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        with full(tmp_path):
            for call in range(10):
                log.note(making.ended(call))
            with pytest.raises(NotRecorded):
                await log.intend(making.sent(2))
        await log.intend(making.sent(3))
    gaps = [each["count"] for each in making.records(tmp_path) if each["kind"] == "log.gap"]
    assert gaps == [7] and making.verified(tmp_path).dropped == 7


async def test_what_nobody_waits_for_any_more_is_not_written_as_sent(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        leaving = [asyncio.create_task(log.intend(making.sent(call))) for call in (2, 3)]
        await asyncio.sleep(0)  # both wait now
        leaving[0].cancel()
        log.note(making.ended(2, "cancelled", was_sent=False))
        await leaving[1]
    assert making.verified(tmp_path).open_calls == [1, 3]
