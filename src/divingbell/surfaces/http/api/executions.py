"""Executions: code that is run, watched, found again and cancelled."""

import asyncio
import contextlib
import hashlib
import secrets
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.types import ASGIApp, Receive

from divingbell.errors import InvalidInput
from divingbell.session.ownership import checked_name
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import JSON, Answer, as_json, nothing
from divingbell.surfaces.http.api.sessions import limits_of, options_of
from divingbell.surfaces.http.event_log import Entry, EventLog
from divingbell.surfaces.http.execution import Execution, Work
from divingbell.surfaces.http.executions import Key, Place
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused, count, missing
from divingbell.surfaces.http.streams import MEDIA_TYPE, Stream, gone
from divingbell.surfaces.http.wire import (
    ExecuteGiven,
    ExecuteOnceGiven,
    ExecutionsTold,
    ExecutionTold,
    Given,
    Name,
    Nothing,
    Page,
)
from divingbell_inside import values

MAX_KEY = 255
SOON = 0.02
"""Seconds after which it is looked whether a client has left: most cells are done sooner, and the
task that looks costs a tenth of what a small one does."""
BOTH = (JSON, MEDIA_TYPE)


class ExecutionsPage(Page):
    """A part of the list of executions; of one session, if it is named."""

    session: Name | None = None


class After(Given):
    """The event after which to go on."""

    after: Annotated[int, Meta(ge=0, lt=1 << 53)] | None = None


async def execute(call: Call, given: ExecuteGiven) -> ASGIApp:
    """Run code in a session, which is opened where it is not there."""
    name = checked_name(call.parameter("id"))
    return await _run(call, given, Place(name))


async def execute_once(call: Call, given: ExecuteOnceGiven) -> ASGIApp:
    """Run code in a session of its own, which ends with it."""
    place = Place(
        f"once-{secrets.token_hex(8)}",
        limits_of(call, given.limits),
        options_of(given.env, given.labels),
        once=True,
    )
    return await _run(call, given, place)


async def listed(call: Call, given: ExecutionsPage) -> ASGIApp:
    """List the executions of the user that are still kept, the newest first."""
    found = call.service.executions.of(call.visitor)
    wanted = (each for each in found if given.session in (None, each.session))
    part, after = pages.page(wanted, given, lambda each: each.id)
    items = [each.described(whole=False) for each in part]
    return as_json(ExecutionsTold(items=items, next=after))


async def get(call: Call, given: Nothing) -> ASGIApp:
    """Describe an execution, with its result once it has ended."""
    return as_json(execution_of(call).described(whole=True))


async def events(call: Call, given: After) -> ASGIApp:
    """Stream the events of an execution, from the beginning or after the one that is named."""
    log = execution_of(call).log
    return Stream(_seen_by(call, log, after_of(call, given, log.last)))


async def cancel(call: Call, given: Nothing) -> ASGIApp:
    """Cancel an execution; its result has the status `cancelled`."""
    await call.service.executions.cancel(execution_of(call))
    return nothing()


def execution_of(call: Call) -> Execution:
    """Return the execution that the path names, if it is the visitor's.

    Raises:
        Refused: there is none, it is kept no longer, or it is another's.
    """
    found = call.service.executions.find(call.visitor, call.parameter("id"))
    if found is None:
        raise missing("execution", call.parameter("id"))
    return found


async def _run(call: Call, given: ExecuteGiven, place: Place) -> ASGIApp:
    executions = call.service.executions
    argv = None if given.argv is None else tuple(given.argv)
    work = Work(given.code, given.timeout, _decoded(given.context), argv, call.cost)
    execution = executions.begin(call.visitor, place, work, _key(call, given))

    def left() -> None:
        if given.on_disconnect == "cancel" and execution.state != "ended":
            call.service.spawn(executions.cancel(execution))

    if wants_stream(call):
        # What is refused before it begins has a status of its own, and says when to come again.
        async with aclosing(execution.log.follow()) as entries:
            await anext(entries)
        if execution.problem is not None and execution.log.last == 1:
            return execution.problem  # raised, it would keep each request that is told of it
        return Stream(_counted(call, execution), left)
    with _watched(call.receive, left):
        await execution.done.wait()
    if execution.problem is not None:
        return execution.problem
    return Answer(execution.result, media_type=JSON)


@contextlib.contextmanager
def _watched(receive: Receive, left: Callable[[], None]) -> Iterator[None]:
    """Have it called if the client leaves before the end of the block."""
    leaving: asyncio.Task[None] | None = None

    def watch() -> None:
        nonlocal leaving
        leaving = asyncio.ensure_future(gone(receive))
        leaving.add_done_callback(lambda task: None if task.cancelled() else left())

    soon = asyncio.get_running_loop().call_later(SOON, watch)
    try:
        yield
    finally:
        soon.cancel()
        if leaving is not None:
            leaving.cancel()


async def _counted(call: Call, execution: Execution) -> AsyncGenerator[Entry | None, None]:
    """Yield the events of an execution; what it fails with counts as an answer with it does."""
    async with aclosing(_seen_by(call, execution.log)) as entries:
        async for entry in entries:
            yield entry
    if execution.problem is not None:
        count(call.scope, execution.problem.code)


async def _seen_by(call: Call, log: EventLog, after: int = 0) -> AsyncGenerator[Entry | None, None]:
    """Yield the events of a log. What a call is to be made with is for those who may approve it:
    nothing is hidden in it."""
    async with aclosing(log.follow(after)) as entries:
        async for entry in entries:
            if entry is not None and entry.name == "approval" and not call.visitor.may("approve"):
                told = msgspec.json.decode(entry.data)["approval"] | {"arguments": "", "reason": ""}
                data = msgspec.json.encode({"approval": told})
                yield Entry(entry.number, entry.name, data)
            else:
                yield entry


def _decoded(context: dict[str, Any] | None) -> dict[str, Any] | None:
    """Return values in the form of JSON in which results have theirs: dates, sets, decimals."""
    try:
        return context and {name: values.decode(value) for name, value in context.items()}
    except values.InvalidData as error:
        raise InvalidInput(f"the context can't be read: {error}") from None


def wants_stream(call: Call) -> bool:
    """Whether the client wants events as they come.

    Raises:
        Refused: it takes neither of what there is.
    """
    accepted = (call.header(b"accept") or "*/*").lower()
    if MEDIA_TYPE in accepted and JSON not in accepted:
        return True
    if JSON in accepted or "*/*" in accepted or "application/*" in accepted:
        return False
    raise Refused(406, "not_acceptable", f"this can be had as {JSON} or as {MEDIA_TYPE}")


def _key(call: Call, given: ExecuteGiven) -> Key | None:
    key = call.header(b"idempotency-key")
    if key is None:
        return None
    if not 0 < len(key) <= MAX_KEY:
        words = f"an Idempotency-Key has 1 to {MAX_KEY} characters"
        raise Refused(400, "invalid_request", words)
    asked: list[Any] = [call.scope["path"], given]
    return key, hashlib.sha256(msgspec.json.encode(asked, order="deterministic")).digest()


def after_of(call: Call, given: After, last: int) -> int:
    """Return the number of the event after which a stream goes on.

    Raises:
        Refused: there is no such event yet.
    """
    said = call.header(b"last-event-id")
    after = given.after or 0
    if said is not None:
        if not said.isdecimal() or len(said) > 16:
            raise Refused(400, "invalid_request", "Last-Event-ID must be the number of an event")
        after = int(said)
    if after > last:
        words = f"there is no event {after} yet: the last one is {last}"
        raise Refused(422, "event_unknown", words)
    return after


OPERATIONS = (
    Operation(
        "POST", "/sessions/{id}/execute", "run", execute, ExecuteGiven,
        answers=dict[str, Any], media_types=BOTH,
    ),
    Operation(
        "POST", "/execute", "run", execute_once, ExecuteOnceGiven,
        answers=dict[str, Any], media_types=BOTH,
    ),
    Operation("GET", "/executions", "read", listed, query=ExecutionsPage, answers=ExecutionsTold),
    Operation("GET", "/executions/{id}", "read", get, answers=ExecutionTold),
    Operation("DELETE", "/executions/{id}", "run", cancel, status=204),
    Operation(
        "GET", "/executions/{id}/events", "read", events, query=After, media_types=(MEDIA_TYPE,)
    ),
)  # fmt: skip
