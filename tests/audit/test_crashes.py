"""Processes that are killed while they write, and several at once on one folder."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from divingbell.audit import reading, verifying
from divingbell.audit.signing import load_key
from tests.waiting import until

WRITER = Path(__file__).parents[2] / "bench" / "audit_writer.py"
PATIENCE = 60.0


def _start(folder: Path, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, str(WRITER), str(folder), *arguments])


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
