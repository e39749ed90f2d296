"""The audit log: who ran and called what."""

import asyncio
import re
from collections import deque
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.audit import opening, reading, signing
from divingbell.audit.reading import Record, Wanted
from divingbell.errors import ConfigError
from divingbell.host.places import data_folder
from divingbell.settings.config import Settings
from divingbell.surfaces.http.answers import as_json
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused
from divingbell.surfaces.http.wire import MAX_PAGE, Given, Told

_CURSOR = re.compile(r"\d{4}-\d{2}-\d{2}T[0-9:.]{8,15}Z")
_NOT_KEPT = 'no audit log is kept here: start the server with audit = "on"'

Word = Annotated[str, Meta(max_length=200)]


class AuditPage(Given):
    """The records that are wanted, the newest first. What is empty does not count."""

    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE)] = 50
    cursor: Annotated[str, Meta(max_length=40)] | None = None
    user: Word = ""
    session: Word = ""
    tool: Word = ""
    kind: Word = ""
    outcome: Word = ""
    since: Annotated[str, Meta(max_length=40)] = ""


class RecordsTold(Told):
    """Records of the audit log, the newest first."""

    items: list[dict[str, Any]]
    next: str | None


async def listed(call: Call, given: AuditPage) -> ASGIApp:
    """List records of the user's, or with the scope `admin` those of all."""
    settings = call.service.bell.settings
    if settings.audit in (None, "off"):
        raise Refused(404, "not_found", _NOT_KEPT)
    if given.cursor is not None and not _CURSOR.fullmatch(given.cursor):
        raise Refused(400, "cursor_gone", "this is no cursor of this list: begin it again")
    user = given.user if call.visitor.may("admin") else call.visitor.user
    if not call.visitor.may("admin") and given.user not in ("", user):
        raise Refused(403, "forbidden", "records of others take the scope `admin`")
    items = await asyncio.to_thread(_newest, settings, given, user)
    after = str(items[-1]["at"]) if len(items) == given.limit else None
    return as_json(RecordsTold(items=items, next=after))


def _newest(settings: Settings, given: AuditPage, user: str) -> list[Record]:
    folder = opening.places_of(settings.audit_log, data_folder()).log
    wanted = Wanted(
        user=user,
        session=given.session,
        tags=_tags(settings, user, given.session),
        tool=given.tool,
        kind=given.kind,
        outcome=given.outcome,
        since=reading.moment(given.since) if given.since else "",
    )
    found: deque[Record] = deque(maxlen=given.limit)
    for record in reading.records(folder):
        is_before = given.cursor is None or str(record.get("at")) < given.cursor
        if is_before and wanted.has(record):
            found.append(record)
    return list(reversed(found))


def _tags(settings: Settings, *names: str) -> tuple[str, ...]:
    """Return what stands for names that are personal; only who has the key can tell."""
    named = settings.audit_log.key_file
    try:
        key = signing.load_key(Path(named) if named else None, data_folder(), tell=None)
    except ConfigError:
        return ()
    return tuple(key.tag(name) for name in names if name)


OPERATIONS = (Operation("GET", "/audit", "read", listed, query=AuditPage, answers=RecordsTold),)
