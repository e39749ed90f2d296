"""Processes that are killed while they write, and several at once on one folder."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.audit import reading, verifying
from divingbell.audit.heads import newest
from divingbell.audit.signing import load_key
from tests.waiting import until

WRITER = Path(__file__).parents[2] / "bench" / "audit_writer.py"
PATIENCE = 60.0


CLOCK = """
import itertools, runpy, sys, time
real, looks = time.time, itertools.count()
time.time = lambda: real() - 3600 * (next(looks) >= {after})
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""A program whose clock is set back by an hour, once it has looked at it so often."""


def _start(folder: Path, *arguments: str, set_back: int | None = None) -> "subprocess.Popen[bytes]":
    before = () if set_back is None else ("-c", CLOCK.format(after=set_back))
    return subprocess.Popen([sys.executable, *before, str(WRITER), str(folder), *arguments])


def _sent(folder: Path, process: "subprocess.Popen[bytes]") -> list[int]:
    path = folder / f"sent-{process.pid}"
    return [int(line) for line in path.read_text().split()] if path.exists() else []


def _verified(folder: Path) -> list[verifying.Verified]:
    public = load_key(None, folder, {}, None).public
    return verifying.verify(folder / "log", folder / "heads", public)


@pytest.mark.parametrize("least", [1, 30, 60])
async def test_no_call_has_left_without_a_record_when_its_process_is_killed(
    least: int, tmp_path: Path
) -> None:
    process = _start(tmp_path)
    try:
        await until(lambda: len(_sent(tmp_path, process)) >= least, "calls are sent")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(PATIENCE)
    recorded = {
        record["call"]
        for record in reading.records(tmp_path / "log")
        if record["kind"] == "call.started"
    }
    assert set(_sent(tmp_path, process)) <= recorded
    [found] = _verified(tmp_path)
    # Of what it wrote last nothing is signed: that is told, and nothing else is found.
    assert found.verdict in ("whole", "torn", "unproven"), found.why
    assert found.proven >= 1 and ("whole up to record" in found.why) == (
        found.verdict == "unproven"
    )
    assert not found.running and not found.closed
    assert set(found.open_calls) <= recorded


async def test_two_processes_write_to_one_folder(tmp_path: Path) -> None:
    processes = [_start(tmp_path, "40"), _start(tmp_path, "40")]
    for process in processes:
        assert process.wait(PATIENCE) == 0
    found = _verified(tmp_path)
    assert [each.verdict for each in found] == ["whole", "whole"]
    assert [each.records for each in found] == [82, 82]
    times = [record["at"] for record in reading.records(tmp_path / "log")]
    assert len(times) == 164


async def test_a_clock_set_back_between_processes_and_in_one_loses_nothing(tmp_path: Path) -> None:
    verdicts = []
    for set_back in (None, 0, 60):  # the second is an hour before the first all the time
        assert _start(tmp_path, "40", set_back=set_back).wait(PATIENCE) == 0
        verdicts += [each for each in _verified(tmp_path) if each not in verdicts]
    assert [each.verdict for each in verdicts] == ["whole"] * 3
    assert [each.records for each in verdicts] == [each.proven for each in verdicts] == [82] * 3
    assert [each.clock_set_back for each in verdicts] == [0, 0, 1]
    first, second, third = (each.chain for each in verdicts)
    assert second < min(first, third)  # names tell the time of the clock, and nothing hangs on it
    public = load_key(None, tmp_path, {}, None).public
    for chain in (first, second, third):
        head, others = newest(tmp_path / "heads", chain, public)
        assert head is not None and (head.link.number, others) == (82, 0)
    found = [(each["chain"], each["number"]) for each in reading.records(tmp_path / "log")]
    assert sorted(found) == [(chain, n) for chain in (second, first, third) for n in range(1, 83)]
    # Of each process all are in the order in which they were written.
    for chain in (first, second, third):
        assert [number for each, number in found if each == chain] == [*range(1, 83)]
    assert found[0][0] == second
