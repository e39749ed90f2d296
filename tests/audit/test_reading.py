"""Reading a log: of many processes, and with lines that others have written."""

import resource
from pathlib import Path

import pytest

from divingbell.audit import reading
from divingbell.audit.chain import Broken, Link, line_of, record_in
from tests.audit import making

MOST_OPEN = 64


def _chain(folder: Path, number: int, records: int = 2) -> None:
    end, lines = Link(), []
    for second in range(records):
        said = {"at": f"2026-11-17T10:00:{second:02}.{number:06}Z", "text": "word " * 400}
        line, end = line_of(said, end)
        lines.append(line)
    (folder / f"20261117T100000Z-{number:08x}-000001.jsonl").write_bytes(b"".join(lines))


def test_more_processes_have_written_than_files_may_be_open(tmp_path: Path) -> None:
    tmp_path.chmod(0o700)
    for number in range(2 * MOST_OPEN):
        _chain(tmp_path, number, 20 if number == 7 else 2)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_OPEN, before[1]))
    try:
        found = [record["at"] for record in reading.records(tmp_path)]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert len(found) == 4 * MOST_OPEN + 18 and found == sorted(found)


@pytest.mark.parametrize("number", ["5", 5.0, True, None, [5]])
def test_a_number_that_is_none_is_no_record(number: object) -> None:
    # The name is there twice: the later one counts.
    line, _ = line_of({"kind": "call.started", "number": number}, Link())
    with pytest.raises(Broken):
        record_in(line, None)


async def test_what_was_read_is_not_read_again_and_nothing_is_left_out(tmp_path: Path) -> None:
    ends: reading.Ends = {}

    def new() -> list[object]:
        return [
            record["call"] for record in reading.records(tmp_path / "log", ends) if "call" in record
        ]

    async with making.writing(tmp_path) as log:
        await log.intend(making.sent(1))
        await log.intend(making.sent(2))
        assert new() == [1, 2] and new() == []
        [path] = making.files(tmp_path)
        lines = path.read_bytes().rstrip(b"\0").splitlines(keepends=True)
        assert ends == {path: sum(map(len, lines))}
        await log.intend(making.sent(3))
        assert new() == [3]
    # A line that is only half there is read when it is whole; those behind one that is damaged are
    # read each time.
    whole = path.read_bytes().splitlines(keepends=True)
    ends.clear()
    path.write_bytes(b"".join(whole[:2]) + whole[2][:50] + bytes(100))
    assert new() == [1] and new() == []
    path.write_bytes(b"".join(whole))
    assert new() == [2, 3]
    ends.clear()
    path.write_bytes(b"".join([*whole[:2], b"damaged\n", *whole[3:]]))
    assert new() == [1, 3] and new() == [3]
