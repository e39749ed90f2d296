"""The ledger: tokens that models read, and those that they were spared."""

import asyncio
from dataclasses import asdict
from typing import Annotated, Any

from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.border.written_names import WrittenNames
from divingbell.host.places import data_folder
from divingbell.journal.totals import FILE_NAME, KEPT_DAYS, Report, Sums, report
from divingbell.surfaces.http.answers import as_json
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.wire import Given, Told


class Days(Given):
    """The last days, today among them."""

    days: Annotated[int, Meta(ge=1, le=KEPT_DAYS)] = 30


class SumsTold(Told):
    """Sums over some days."""

    executions: int
    calls: int
    code_tokens: int
    output_tokens: int
    overhead_tokens: int
    direct_definition_tokens: int
    direct_call_tokens: int
    images: int
    estimated: int
    read: int
    direct: int
    saved: int
    ratio: float


class LedgerTold(Told):
    """The sums of the user, in all and by day."""

    days: int
    total: SumsTold
    by_day: dict[str, SumsTold]


class UseTold(Told):
    """The calls of one tool, or of all tools of a server."""

    name: str
    calls: int
    tokens: int


class StatsTold(LedgerTold):
    """The sums of the user by day, by server and by tool."""

    servers: list[UseTold]
    tools: list[UseTold]


async def ledger(call: Call, given: Days) -> ASGIApp:
    """Return the tokens of the user's executions, by day."""
    return as_json(LedgerTold(**_common(await _report(call, given.days), given.days)))


async def stats(call: Call, given: Days) -> ASGIApp:
    """Return the tokens of the user's executions, by day, server and tool."""
    found = await _report(call, given.days)
    return as_json(
        StatsTold(
            **_common(found, given.days),
            servers=[UseTold(**asdict(each)) for each in found.servers],
            tools=[UseTold(**asdict(each)) for each in found.tools],
        )
    )


async def _report(call: Call, days: int) -> Report:
    names = WrittenNames(call.service.bell.settings.vault, data_folder())
    path = data_folder() / FILE_NAME
    return await asyncio.to_thread(report, path, days, call.visitor.user, names.of)


def _common(found: Report, days: int) -> dict[str, Any]:
    by_day = {day: _told(sums) for day, sums in found.days.items()}
    return {"days": days, "total": _told(found.total), "by_day": by_day}


def _told(sums: Sums) -> SumsTold:
    made = {"read": sums.read, "direct": sums.direct, "saved": sums.saved}
    return SumsTold(**asdict(sums), **made, ratio=round(sums.ratio, 4))


OPERATIONS = (
    Operation("GET", "/ledger", "read", ledger, query=Days, answers=LedgerTold),
    Operation("GET", "/stats", "read", stats, query=Days, answers=StatsTold),
)
