"""Each row about the audit log is broken where what keeps it is taken away."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from divingbell import Divingbell
from divingbell.audit.screening import Screening
from divingbell.gateway.pipeline import Pipeline, Request
from divingbell.gateway.upstream.transport import departure
from tests.promises.breaking import broken


@pytest.fixture(scope="module")
async def own_bell(anyio_backend: str) -> AsyncIterator[Divingbell]:
    async with Divingbell(pool=0, preload=()) as bell:
        yield bell


Undo = Callable[[pytest.MonkeyPatch], None]


def without_a_wait_at_the_connection(patch: pytest.MonkeyPatch) -> None:
    async def at_once() -> None: ...

    patch.setattr(departure, "allowed", at_once)


def without_the_step(patch: pytest.MonkeyPatch) -> None:
    """What is to be recorded is told to nobody."""

    async def intend(self: Pipeline, request: Request) -> None: ...

    patch.setattr(Pipeline, "intend", intend)


def without_screening(patch: pytest.MonkeyPatch) -> None:
    def kept(self: Screening, text: str, most: int, **more: Any) -> str:
        return text[:most]

    patch.setattr(Screening, "_kept", kept)


@pytest.mark.parametrize(
    ("undo", "rows"),
    [
        (without_a_wait_at_the_connection, {"L01"}),
        (without_the_step, {"L01"}),
        (without_screening, {"L02"}),
    ],
)
async def test_a_row_is_broken_without_what_keeps_it(
    own_bell: Divingbell, monkeypatch: pytest.MonkeyPatch, undo: Undo, rows: set[str]
) -> None:
    undo(monkeypatch)
    assert await broken(own_bell, rows) == rows


async def test_the_rows_are_kept(own_bell: Divingbell) -> None:
    assert await broken(own_bell, {"L01", "L02"}) == set()
