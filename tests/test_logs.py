"""Every record of Divingbell's loggers can be formatted with the marks that say whose it is."""

import io
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from divingbell import Approval, Divingbell, logs
from divingbell.border.privacy.blotter import BLOTTER
from tests.border.privacy.samples import FOUND, marked

SOURCE = Path(logs.__file__).parent
FORMAT = "|".join(f"%({name})s" for name in (*logs.MARKS, "name", "message"))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What a handler writes that asks for all marks; it raises what it can't write."""
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    handler.setFormatter(logging.Formatter(FORMAT))

    def fail(record: logging.LogRecord) -> None:
        raise AssertionError(f"{record.name} has a record without marks: {record.msg}")

    monkeypatch.setattr(handler, "handleError", fail)
    logger = logging.getLogger("divingbell")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    yield written
    logger.removeHandler(handler)
    logger.setLevel(level)


async def test_what_fails_in_a_run_is_logged_with_all_marks(lines: io.StringIO) -> None:
    def fails() -> int:
        raise KeyError("no such row")

    def asks() -> int:
        return 1

    async def approve(approval: Approval) -> bool:
        raise OSError("nobody can be reached")

    def watches(event: object) -> None:
        raise ValueError("a subscriber that fails")

    policy = {"rules": [{"tools": ["host.asks"], "action": "ask"}]}
    async with (
        Divingbell(
            pool=0, preload=[], search="words", tools=[fails, asks], policy=policy,
            on_approval=approve, on_event=watches,
        ) as bell,
        bell.session("one", user="ann") as session,
    ):  # fmt: skip
        await session.run("servers.host.fails()")
        await session.run("servers.host.asks()")
        await session.run("import os; os._exit(3)")
        await session.command("exit 3")
        async with bell.session("one", user="ann", memory="64MB"):
            key = session.key
    written = lines.getvalue()
    assert f"\n{key}|ann|1|None|divingbell.gateway|host.fails failed\n" in written
    assert f"\n{key}|ann|None|None|divingbell|session {key}: command 1: error\n" in written
    assert "\nNone|None|None|None|" in written
    for words in ("asking about host.asks failed", "could set: memory", "subscriber"):
        assert words in written


def test_a_logger_below_has_them_too(lines: io.StringIO) -> None:
    logs.logger("divingbell.below").warning("told")
    assert lines.getvalue() == "None|None|None|None|divingbell.below|told\n"


def test_every_module_has_its_logger_from_there() -> None:
    own = re.compile(r"^\w+ = logging\.getLogger\(", re.MULTILINE)
    assert not [path for path in SOURCE.rglob("*.py") if own.search(path.read_text("utf-8"))]


CANARIES = [marked(samples[0]) for samples in FOUND.values()]


@pytest.fixture
def searched() -> None:
    BLOTTER.make().join(60)
    logs.screen_by(BLOTTER.blotted)


@pytest.mark.usefixtures("searched")
@pytest.mark.parametrize(("said", "value"), CANARIES)
def test_no_value_is_in_a_line(said: str, value: str, lines: io.StringIO) -> None:
    log = logs.logger("divingbell.below")
    log.warning("a server says: %s", said)
    log.warning(said.replace("%", "%%"), extra={"bell_user": said})
    log.warning("two are wanted: %s %s", said)  # what does not fit is printed by logging itself
    try:
        raise KeyError(said)
    except KeyError as error:
        log.exception("it failed")
        log.error("it failed again", exc_info=error, stack_info=True)
    written = lines.getvalue()
    assert value not in written
    assert repr(value)[1:-1] not in written
    assert "a server says: " in written
    assert "KeyError" in written


@pytest.mark.usefixtures("searched")
def test_a_record_without_values_keeps_all_that_it_has(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise OSError("no room")
    except OSError:
        logs.logger("divingbell.below").exception("%s was not kept", "it")
    [record] = caplog.records
    assert record.args == ("it",)
    assert record.exc_info is not None


def test_a_line_that_can_not_be_screened_is_not_written(
    lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(words: str) -> str:
        raise MemoryError(words)

    monkeypatch.setattr(logs, "_screens", [fails])
    logs.logger("divingbell.below").warning("to %s", "ann@example.org")
    assert "ann" not in lines.getvalue()
    assert "left out" in lines.getvalue()
