"""Sessions: opened, listed, looked at, interrupted, reset and ended."""

import secrets
from dataclasses import asdict
from typing import Any

import msgspec
from starlette.types import ASGIApp

from divingbell.session.base import SessionHandle
from divingbell.session.options import SessionOptions, checked
from divingbell.settings.config import with_limits
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import as_json, nothing
from divingbell.surfaces.http.moments import as_text
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused, missing
from divingbell.surfaces.http.wire import (
    CompleteGiven,
    CompletionsTold,
    CompletionTold,
    Interrupted,
    LimitsGiven,
    LimitsTold,
    Nothing,
    Page,
    SessionGiven,
    SessionsTold,
    SessionTold,
    VariablesTold,
    VariableTold,
)


async def create(call: Call, given: SessionGiven) -> ASGIApp:
    """Open a session; one of that id that is open already is returned as it is."""
    name = given.id or f"s-{secrets.token_hex(8)}"
    owned, principal = call.service.bell.owned, call.visitor.principal()
    joined = owned.find(principal, name) is not None
    options = options_of(given.env, given.labels, given.idle_timeout)
    session, _ = await owned.open(principal, name, limits_of(call, given.limits), options)
    return as_json(described(call, name, session), 200 if joined else 201)


async def listed(call: Call, given: Page) -> ASGIApp:
    """List the sessions of the user."""
    found = sorted(call.service.bell.owned.of(call.visitor.principal()), key=lambda each: each[0])
    part, after = pages.page(found, given, lambda each: each[0])
    items = [described(call, name, session) for name, session in part]
    return as_json(SessionsTold(items=items, next=after))


async def get(call: Call, given: Nothing) -> ASGIApp:
    """Describe a session: its state, what it has used, when it ends."""
    name, session = session_of(call)
    return as_json(described(call, name, session))


async def delete(call: Call, given: Nothing) -> ASGIApp:
    """End a session, with everything that runs in it."""
    name, _ = session_of(call)
    await call.service.bell.owned.close(call.visitor.principal(), name)
    return nothing()


async def interrupt(call: Call, given: Nothing) -> ASGIApp:
    """Stop the cell that runs in a session; its result has the status `cancelled`."""
    _, session = session_of(call)
    return as_json(Interrupted(interrupted=await session.interrupt()))


async def reset(call: Call, given: Nothing) -> ASGIApp:
    """Forget every variable of a session; its files stay."""
    _, session = session_of(call)
    await session.reset()
    return nothing()


async def variables(call: Call, given: Nothing) -> ASGIApp:
    """Describe the variables of a session."""
    _, session = session_of(call)
    found = [VariableTold(**asdict(each)) for each in await session.variables()]
    return as_json(VariablesTold(items=found))


async def complete(call: Call, given: CompleteGiven) -> ASGIApp:
    """Say how code could go on."""
    _, session = session_of(call)
    found = await session.complete(given.code, given.position)
    return as_json(CompletionsTold(items=[CompletionTold(**asdict(each)) for each in found]))


def session_of(call: Call) -> tuple[str, SessionHandle]:
    """Return the session that the path names, if it is the visitor's.

    Raises:
        Refused: there is none, or it is another's: nobody can tell which.
    """
    name = call.parameter("id")
    session = call.service.bell.owned.find(call.visitor.principal(), name)
    if session is None:
        raise missing("session", name)
    return name, session


def limits_of(call: Call, given: LimitsGiven | None) -> dict[str, Any]:
    """Return the limits that were asked for.

    Raises:
        ConfigError: one of them can't be used.
        Refused: one is more than clients may ask for.
    """
    if given is None:
        return {}
    settings = call.service.bell.settings
    asked = msgspec.structs.asdict(given)
    limits, most = with_limits(settings.limits, asked), settings.service.most(settings.limits)
    for name in asked:
        if getattr(limits, name) > getattr(most, name):
            words = f"the limit {name} may be {getattr(most, name):,} at most here: ask for less"
            raise Refused(422, "limit_too_large", words)
    return asked


def options_of(
    env: dict[str, str] | None, labels: dict[str, str] | None, idle_timeout: float | None = None
) -> SessionOptions:
    """Return the options of a session, checked.

    Raises:
        InvalidInput: one of them can't be used.
    """
    return checked(env, labels, idle_timeout)


def described(call: Call, name: str, session: SessionHandle) -> SessionTold:
    """Return a session as clients read it."""
    used = session.consumption()
    running = call.service.executions.running_in(call.visitor, name)
    ends = session.expires_at
    return SessionTold(
        id=name,
        state="running" if session.busy else "idle",
        cells=session.cells,
        labels=dict(session.labels),
        limits=LimitsTold(**asdict(session.limits)),
        backend=session.isolation.backend,
        cpu_seconds=round(used.cpu_seconds, 3),
        memory=used.memory,
        memory_peak=used.memory_peak,
        created_at=as_text(session.opened_at),
        expires_at=None if ends is None else as_text(ends),
        execution=None if running is None else running.id,
    )


OPERATIONS = (
    Operation("POST", "/sessions", "run", create, SessionGiven, answers=SessionTold, status=201),
    Operation("GET", "/sessions", "read", listed, query=Page, answers=SessionsTold),
    Operation("GET", "/sessions/{id}", "read", get, answers=SessionTold),
    Operation("DELETE", "/sessions/{id}", "run", delete, status=204),
    Operation("POST", "/sessions/{id}/interrupt", "run", interrupt, answers=Interrupted),
    Operation("POST", "/sessions/{id}/reset", "run", reset, status=204),
    Operation("GET", "/sessions/{id}/variables", "read", variables, answers=VariablesTold),
    Operation(
        "POST", "/sessions/{id}/complete", "read", complete, CompleteGiven, answers=CompletionsTold
    ),
)
