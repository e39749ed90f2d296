"""What a server says on stderr is kept without anyone's personal data."""

from pathlib import Path

import pytest

from divingbell.border.privacy.blotter import BLOTTER, Blotter
from divingbell.gateway.upstream.redaction import Redactor
from divingbell.gateway.upstream.transport import server_log
from divingbell.gateway.upstream.transport.server_log import ServerLog
from tests.border.privacy.samples import FOUND, marked
from tests.waiting import until

CANARIES = [marked(samples[0]) for samples in FOUND.values()]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ServerLog:
    BLOTTER.make().join(60)
    monkeypatch.setattr(server_log, "MAX_SEARCH", 1e9)
    return ServerLog(tmp_path, "shop", Redactor())


@pytest.mark.parametrize(("said", "value"), CANARIES)
def test_no_value_is_kept(said: str, value: str, log: ServerLog) -> None:
    log.begin()
    log.take(f"before\n{said}\nafter\n".encode())
    log.note(f"it says {said}")
    kept = log.path.read_text("utf-8")
    assert value not in kept
    assert "before\n" in kept
    assert "\nafter\n" in kept


@pytest.mark.parametrize("at", range(0, 300, 7))
def test_no_part_of_a_key_is_kept_however_it_comes(at: int, log: ServerLog) -> None:
    lines = [f"{'aB3+' * 15}{number:04}" for number in range(4)]
    key = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    log.take(f"loaded:\n{key[:at]}".encode())
    log.take(f"{key[at:]}\nready to serve\n".encode())
    kept = log.path.read_text("utf-8")
    assert "aB3+" not in kept
    assert kept.startswith("loaded:\n")
    assert kept.endswith("ready to serve\n")


async def test_words_wait_until_they_can_be_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log, "BLOTTER", Blotter())
    log = ServerLog(tmp_path, "shop", Redactor())
    log.take(b"hello\n")
    assert log.path.read_text() == "hello\n"
    log.take(b"to ann@example.org\n")
    log.take(b"and on\n")
    wanted = "hello\nto [EMAIL]\nand on\n"
    await until(lambda: log.path.read_text() == wanted, "what waits is written")


def test_words_that_take_too_long_are_left_out(
    log: ServerLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_log, "MAX_SEARCH", 0.0)
    log.take(b"ann@example.org " * 6000 + b"\n")
    kept = log.path.read_text()
    assert "ann@" not in kept
    assert len(kept) < 2000
    assert "left out" in kept
