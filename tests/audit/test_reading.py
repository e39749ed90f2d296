"""Reading a log: of many processes, and with lines that others have written."""

import resource
from pathlib import Path

import pytest

from divingbell.audit import reading
from divingbell.audit.chain import Broken, Link, line_of, record_in

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
