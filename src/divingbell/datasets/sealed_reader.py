"""The reader of datasets: sealed sessions in which files are opened and SQL is run.

Settings of DuckDB are no wall. So each request has a session of its own, that sees the folder
read-only and nothing else of this machine, and that is gone with its answer.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from divingbell import text
from divingbell.app import Divingbell
from divingbell.errors import DivingbellError, InvalidInput
from divingbell.models import GB, MB, Limits, Result
from divingbell.session.base import SessionHandle
from divingbell.settings.config import Settings
from divingbell.shares import processors

DATA, CACHE = "/data", "/cache"
CODE = "from divingbell_inside import dataset_answers; dataset_answers.answer(request)"
TABLE, VALUES = "table.parquet", "values.json"
IN_SESSION = f"/workspace/{TABLE}"
AT_ONCE = 4
"""Requests that are answered at the same time; others wait."""
SHARE = 0.6
"""Of the memory, for DuckDB; it goes over what it is told, and the table lies in memory too."""
MAX_TEXT = 20_000
TIMEOUT = 300.0


def default_limits() -> Limits:
    """Return the limits of a session that reads datasets."""
    return Limits(
        memory=1 * GB,
        disk=512 * MB,
        cores=processors.count(),
        timeout=TIMEOUT,
        cpu_seconds=4 * TIMEOUT,
    )


class Unanswered(InvalidInput):
    """Raised for a request about datasets that can't be granted; the message is for a model."""


@dataclass(frozen=True, slots=True)
class Answered:
    """What a session has said, and the session, which holds the table."""

    facts: dict[str, Any]
    session: SessionHandle
    given: Mapping[str, Any]

    def table(self) -> AsyncIterator[bytes]:
        """Return the table that it wrote, in pieces."""
        return self.session.files.stream(TABLE)

    def values(self) -> AsyncIterator[bytes]:
        """Return the values of columns that it wrote, in pieces."""
        return self.session.files.stream(VALUES)

    async def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """Ask the same session for more about what it has written.

        Raises:
            Unanswered: it refused, or came to an end.
        """
        return await _asked(self.session, {**request, **self.given})


class SealedReader:
    """Answers requests about the files of one folder."""

    def __init__(self, bell: Divingbell) -> None:
        self._bell = bell
        self._places = asyncio.Semaphore(AT_ONCE)

    @contextlib.asynccontextmanager
    async def ask(self, request: Mapping[str, Any]) -> AsyncIterator[Answered]:
        """Ask a fresh session, which lives as long as the block.

        Raises:
            Unanswered: it refused, or came to an end.
        """
        limits = self._bell.settings.limits
        given = {"threads": int(limits.cores), "memory": int(limits.memory * SHARE)}
        async with self._places, self._bell.session() as session:
            yield Answered(await _asked(session, {**request, **given}), session, given)


async def _asked(session: SessionHandle, request: Mapping[str, Any]) -> dict[str, Any]:
    try:
        result = await session.run(CODE, context={"request": request})
    except DivingbellError as error:
        raise Unanswered(f"the dataset server can't answer: {error}") from None
    return _facts(result)


def _facts(result: Result) -> dict[str, Any]:
    """Return what a session answered, which nobody has checked yet, with texts that are visible."""
    if result.status != "ok":
        raise Unanswered(_ending(result))
    if type(result.value) is not dict:
        raise Unanswered("the dataset server's session gave no answer: ask again")
    facts: dict[str, Any] = text.everywhere(result.value, MAX_TEXT)
    if isinstance(refused := facts.get("refused"), str):
        raise Unanswered(refused)
    return facts


def _ending(result: Result) -> str:
    if result.status == "timeout":
        return "it took too long: ask for less, or let the query group and sum"
    if result.status in ("limit", "killed"):
        return (
            "it took more memory or time than the dataset server has: ask for fewer rows or "
            "columns, or let the query group and sum"
        )
    words = result.error.message if result.error else result.status
    return f"the dataset server failed: {text.one_line(words, 300)}"


def settings_for(settings: Settings, folder: Path, cache: Path) -> Settings:
    """Return the settings of the Divingbell whose sessions read a folder."""
    return Settings(
        backend=settings.backend,
        backend_order=settings.backend_order,
        backend_minimum=settings.backend_minimum,
        platform=settings.platform,
        cgroups=settings.cgroups,
        uid_base=settings.uid_base,
        uid_count=settings.uid_count,
        limits=settings.limits,
        preload=("numpy", "pandas", "duckdb"),
        mounts={DATA: str(folder), CACHE: str(cache)},
        pool=1,
        copy_after=0,
    )
