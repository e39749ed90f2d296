"""The audit log: who ran and called what."""

import asyncio
import re
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.audit import opening, reading, signing
from divingbell.audit.newest import Newest, Place, newest, place_of
from divingbell.audit.reading import Wanted
from divingbell.errors import ConfigError
from divingbell.host.places import data_folder
from divingbell.settings.config import Settings
from divingbell.surfaces.http.answers import as_json
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.wire import MAX_PAGE, Given, Told

_CURSOR = re.compile(r"([^|]{1,40})\|([^|]{1,100})\|(\d{1,15})", re.ASCII)
_READER = ThreadPoolExecutor(1, thread_name_prefix="divingbell-audit-reader")
"""One for all: whoever looks often waits for others who look, and nobody else does."""
_NOT_KEPT = 'no audit log is kept here: start the server with audit = "on"'

Word = Annotated[str, Meta(max_length=200)]


class AuditPage(Given):
    """The records that are wanted, the newest first. What is empty does not count."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=200)] | None = None
    user: Word = ""
    session: Word = ""
    tool: Word = ""
    kind: Word = ""
    outcome: Word = ""
    since: Annotated[str, Meta(max_length=40)] = ""


class RecordsTold(Told):
    """Records of the audit log, the newest first."""

    items: list[dict[str, Any]]
    is_whole: bool
    """Whether the whole log was looked at; else older records may fit as well."""
    next: str | None


async def listed(call: Call, given: AuditPage) -> ASGIApp:
    """List records of the user's, or with the scope `admin` those of all."""
    settings = call.service.bell.settings
    if settings.audit in (None, "off"):
        raise Refused(404, "not_found", _NOT_KEPT)
    user = given.user if call.visitor.may("admin") else call.visitor.user
    if not call.visitor.may("admin") and given.user not in ("", user):
        raise Refused(403, "forbidden", "records of others take the scope `admin`")
    find = partial(_newest, settings, given, user, _before(given.cursor))
    found = await asyncio.get_running_loop().run_in_executor(_READER, find)
    part = found.records[: given.limit]
    after = _cursor(part[-1]) if len(found.records) > given.limit else None
    return as_json(RecordsTold(items=part, is_whole=found.is_whole, next=after))


def _newest(settings: Settings, given: AuditPage, user: str, before: Place | None) -> Newest:
    wanted = Wanted(
        session=given.session,
        tags=_tags(settings, given.session),
        tool=given.tool,
        kind=given.kind,
        outcome=given.outcome,
        since=reading.moment(given.since) if given.since else "",
    )
    # By itself: what stands for a session must not stand for a user.
    whose = Wanted(user=user, tags=_tags(settings, user))
    folder = opening.places_of(settings.audit_log, data_folder()).log
    return newest(folder, lambda one: whose.has(one) and wanted.has(one), given.limit + 1, before)


def _tags(settings: Settings, name: str) -> tuple[str, ...]:
    """Return what stands for a name that is personal; only who has the key can tell."""
    if not name:
        return ()
    named = settings.audit_log.key_file
    try:
        key = signing.load_key(Path(named) if named else None, data_folder(), tell=None)
    except ConfigError:
        return ()
    return (key.tag(name),)


def _cursor(record: reading.Record) -> str:
    return "|".join(map(str, place_of(record)))


def _before(cursor: str | None) -> Place | None:
    if cursor is None:
        return None
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise Refused(409, "cursor_gone", "this is no cursor of this list: begin it again")
    return match[1], match[2], int(match[3])


OPERATIONS = (Operation("GET", "/audit", "read", listed, query=AuditPage, answers=RecordsTold),)
