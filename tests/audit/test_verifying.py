"""A log that was changed, cut, torn or can't be proven: each is told, and told apart."""

import fcntl
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest

from divingbell.audit import verifying
from divingbell.audit.chain import line_of, record_in
from divingbell.audit.segments import now
from divingbell.audit.signing import Head, Key, load_key
from tests.audit import making


async def test_a_log_as_it_was_written_is_whole_and_proven(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    found = making.verified(tmp_path)
    assert (found.verdict, found.why, found.closed) == ("whole", "", True)
    assert found.records == found.proven == 12  # begun, five calls with their ends, closed
    assert not found.open_calls and not found.running


async def test_a_changed_record_is_told_with_its_place(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    [path] = making.files(tmp_path)
    making.rewrite(path, lambda lines: [each.replace(b'"order', b'"other') for each in lines])
    found = making.verified(tmp_path)
    assert found.verdict == "changed" and f"{path.name}, record 2" in found.why


async def test_a_record_taken_out_of_the_middle_is_told(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    making.rewrite(making.files(tmp_path)[0], lambda lines: lines[:4] + lines[5:])
    found = making.verified(tmp_path)
    assert found.verdict == "changed" and "does not follow" in found.why


async def test_a_chain_whose_hashes_were_computed_again_is_told_by_its_head(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)

    def change(record: dict[str, object]) -> None:
        if record["kind"] == "call.started":
            record["user"] = "bob"

    making.rewrite(making.files(tmp_path)[0], lambda all: making.chained_again(all, change))
    found = making.verified(tmp_path)
    assert found.verdict == "changed" and "computed again" in found.why


async def test_records_cut_from_the_end_are_told(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    making.rewrite(making.files(tmp_path)[0], lambda lines: lines[:-3])
    found = making.verified(tmp_path)
    assert found.verdict == "cut" and "12 records were signed, and 9 are there" in found.why


async def test_a_cut_that_looks_like_a_crash_is_still_a_cut(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    path = making.files(tmp_path)[0]
    path.write_bytes(path.read_bytes()[:-40])
    assert making.verified(tmp_path).verdict == "cut"


async def test_a_log_that_was_removed_is_told_by_its_heads(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    shutil.rmtree(tmp_path / "log")
    found = making.verified(tmp_path)
    assert found.verdict == "cut" and "all of its 12 records are gone" in found.why


async def test_a_file_that_is_missing_is_a_cut(tmp_path: Path) -> None:
    await making.write_calls(tmp_path, 3)
    [path] = making.files(tmp_path)
    path.rename(path.with_name(path.name.replace("-000001", "-000002")))
    found = making.verified(tmp_path)
    assert found.verdict == "cut" and "file 1 of 2 is missing" in found.why


def _as_killed(folder: Path, *more: bytes) -> None:
    """Have the log end before it was closed, proven up to there, and with more after that."""
    [path] = making.files(folder)
    making.rewrite(path, lambda lines: lines[:-1])
    _, end = record_in(path.read_bytes().splitlines(keepends=True)[-1], None)
    [heads] = (folder / "heads").iterdir()
    heads.write_bytes(load_key(None, folder, {}).signed(Head(heads.stem, end, now())))
    making.rewrite(path, lambda lines: [*lines, *more])


def _added(folder: Path, at: str = "") -> bytes:
    """A record that follows the last one, as anybody can make it without a key."""
    lines = making.files(folder)[0].read_bytes().splitlines(keepends=True)
    last, end = record_in(lines[-1], None)
    return line_of({"at": at or last["at"], "kind": "call.started", "user": "bob"}, end)[0]


async def test_half_a_line_after_the_last_head_is_a_crash(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    _as_killed(tmp_path, b'{"number":12,"at":"2026')
    found = making.verified(tmp_path)
    assert found.verdict == "torn" and found.records == found.proven == 11


async def test_half_a_line_with_more_after_it_is_no_crash(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    making.rewrite(making.files(tmp_path)[0], lambda lines: [*lines, b'{"num\n', b"{}\n"])
    assert making.verified(tmp_path).verdict == "changed"


async def test_zeros_at_the_end_were_written_ahead(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    path = making.files(tmp_path)[0]
    assert b"\0" not in path.read_bytes()  # it was closed
    making.rewrite(path, lambda lines: [*lines, bytes(1 << 20)])
    assert making.verified(tmp_path).verdict == "whole"
    making.rewrite(path, lambda lines: [*lines, b"{}\n"])
    assert making.verified(tmp_path).verdict == "changed"


async def test_half_a_line_before_zeros_is_a_crash(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    _as_killed(tmp_path, b'{"number":12,"at":' + bytes(1 << 20))
    assert making.verified(tmp_path).verdict == "torn"


async def test_without_heads_nothing_is_proven(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    shutil.rmtree(tmp_path / "heads")
    assert making.verified(tmp_path).verdict == "unproven"


async def test_heads_of_another_key_prove_nothing(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    other = Key(bytes(32)).public
    [found] = verifying.verify(tmp_path / "log", tmp_path / "heads", other)
    assert found.verdict == "unproven"


@pytest.mark.parametrize("at", ["", "2099-01-01T00:00:00Z"])
async def test_records_added_to_a_closed_log_are_a_change(at: str, tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    added = _added(tmp_path, at)
    making.rewrite(making.files(tmp_path)[0], lambda lines: [*lines, added])
    found = making.verified(tmp_path)
    assert found.verdict == "changed" and "record 13: the log was closed before it" in found.why


async def test_half_a_line_after_a_closed_log_is_a_change(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    making.rewrite(making.files(tmp_path)[0], lambda lines: [*lines, b'{"number":13,"at":"2026'])
    assert making.verified(tmp_path).verdict == "changed"


@pytest.mark.parametrize("at", ["", "2099-01-01T00:00:00Z"])
async def test_records_without_a_head_are_unproven_whatever_time_they_say(
    at: str, tmp_path: Path
) -> None:
    await making.write_calls(tmp_path)
    _as_killed(tmp_path)
    assert making.verified(tmp_path).verdict == "whole"
    added = _added(tmp_path, at)
    making.rewrite(making.files(tmp_path)[0], lambda lines: [*lines, added])
    found = making.verified(tmp_path)
    assert found.verdict == "unproven" and "the last 1 records have no head" in found.why
    assert "whole up to record 11" in found.why


async def test_a_lock_excuses_nothing_that_is_not_signed_soon(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verifying, "PATIENCE", 0.2)
    await making.write_calls(tmp_path)
    _as_killed(tmp_path)
    added = _added(tmp_path)
    [path] = making.files(tmp_path)
    making.rewrite(path, lambda lines: [*lines, added])
    with path.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        found = making.verified(tmp_path)
    assert found.running and found.verdict == "unproven"
    assert "has not signed the last 1 records" in found.why


async def test_a_log_that_was_only_begun_is_a_crash(tmp_path: Path) -> None:
    await making.write_calls(tmp_path)
    making.rewrite(making.files(tmp_path)[0], lambda lines: lines[:1])
    assert making.verified(tmp_path).verdict == "cut"
    shutil.rmtree(tmp_path / "heads")
    assert making.verified(tmp_path).verdict == "torn"


async def test_a_log_that_is_being_written_is_told_as_running(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent())
        found = making.verified(tmp_path)
        assert found.running and not found.closed and not found.open_calls
        assert found.verdict == "whole" and found.proven >= 2  # it was waited for


async def test_a_clock_set_back_is_no_change(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        # An hour before: the clock that events have their times from was set back.
        await log.intend(replace(making.sent(2), at=time.time() - 3600))
    found = making.verified(tmp_path)
    assert found.verdict == "whole" and found.clock_set_back == 1
    numbers = [record["number"] for record in making.records(tmp_path)]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))


async def test_calls_without_an_end_are_told(tmp_path: Path) -> None:
    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(7))
        await log.intend(making.sent(8))
        log.note(making.ended(7))
    assert making.verified(tmp_path).open_calls == [8]
