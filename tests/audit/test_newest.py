"""The newest records, of a log that may be large."""

from pathlib import Path

from divingbell.audit.newest import newest, place_of
from tests.audit.making import ended, sent, writing

CALLS = 40


async def _written(folder: Path) -> Path:
    async with writing(folder) as log:
        for call in range(1, CALLS + 1):
            await log.intend(sent(call))
            log.note(ended(call))
    return folder / "log"


async def test_the_newest_come_first_and_older_ones_after_them(tmp_path: Path) -> None:
    folder = await _written(tmp_path)
    first = newest(folder, lambda record: record["kind"] == "call.ended", 3)
    assert [record["kind"] for record in first.records] == ["call.ended"] * 3
    numbers = [record["number"] for record in first.records]
    assert numbers == sorted(numbers, reverse=True)
    before = place_of(first.records[-1])
    more = newest(folder, lambda record: record["kind"] == "call.ended", CALLS, before)
    assert len(more.records) == CALLS - 3
    assert {each["number"] for each in more.records}.isdisjoint(numbers)


async def test_only_the_end_of_a_large_log_is_read(tmp_path: Path) -> None:
    folder = await _written(tmp_path)
    looked: list[int] = []

    def fits(record: dict[str, object]) -> bool:
        looked.append(1)
        return True

    whole = newest(folder, fits, CALLS * 4)
    assert whole.is_whole
    in_all = len(looked)
    looked.clear()
    part = newest(folder, fits, CALLS * 4, size=4_000)
    assert not part.is_whole
    assert 0 < len(looked) < in_all / 2
    assert part.records == whole.records[: len(part.records)]
