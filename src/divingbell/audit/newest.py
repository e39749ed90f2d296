"""The newest records of the log, for those who look at it while it is written.

The log may be large, and whoever looks may look often. So only the end of it is read, of so many
bytes, and it is said whether there is more before.
"""

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from divingbell.audit.chain import Broken, record_in
from divingbell.audit.reading import Record, lines_of, segments_in

MOST_BYTES = 8 << 20
"""Of the log that are looked at. Measured: 15,000 records, in a third of a second."""
Place = tuple[str, str, int]
"""Where a record stands: its time, its chain and its number."""


@dataclass(frozen=True, slots=True)
class Newest:
    """Records, the newest first."""

    records: list[Record]
    is_whole: bool
    """Whether the whole log was looked at; else there may be older ones that fit."""


def newest(
    folder: Path,
    fits: Callable[[Record], bool],
    most: int,
    before: Place | None = None,
    size: int = MOST_BYTES,
) -> Newest:
    """Return the newest records that fit, at most so many; with `before`, older ones than that.

    `size` is how many bytes of the log are looked at.

    Raises:
        ConfigError: the log can't be read.
    """
    fitting = []
    for chain, path in _newest_first(folder):
        length = path.stat().st_size
        found = _records(chain, lines_of(path, max(0, length - size)))
        fitting += [
            (place, record)
            for place, record in found
            if (before is None or place < before) and fits(record)
        ]
        size -= length
        if size <= 0:
            break
    best = heapq.nlargest(most, fitting, key=lambda each: each[0])
    return Newest([record for _, record in best], size > 0)


def place_of(record: Record) -> Place:
    """Return where a record stands."""
    return str(record.get("at")), record["chain"], record["number"]


def _newest_first(folder: Path) -> list[tuple[str, Path]]:
    found = [
        (path.stat().st_mtime_ns, chain, path)
        for chain, files in segments_in(folder).items()
        for path in files.values()
    ]
    return [(chain, path) for _, chain, path in sorted(found, reverse=True)]


def _records(chain: str, lines: Iterator[bytes]) -> Iterator[tuple[Place, Record]]:
    for line in lines:
        try:
            record, _ = record_in(line, None)
        except Broken:  # the first one, of which the start was left out, or what is damaged
            continue
        record.pop("chain", None)  # a line that somebody has forged may say anything
        record = {"chain": chain} | record
        yield place_of(record), record
