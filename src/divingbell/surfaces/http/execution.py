"""An execution: one run of code, with a log of its events and a result that is kept."""

import asyncio
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import msgspec

from divingbell.errors import DivingbellError
from divingbell.models import Event, Failure, Result
from divingbell.shares import weight
from divingbell.surfaces.http.event_log import EventLog
from divingbell.surfaces.http.moments import as_text
from divingbell.surfaces.http.problems import Refused, of_error
from divingbell.surfaces.http.wire import ExecutionTold

State = Literal["queued", "running", "ended"]
LOST = "your earlier session has ended, idle for too long: its variables and files are gone"


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be run."""

    code: str
    timeout: float | None = None
    context: Mapping[str, Any] | None = None
    argv: tuple[str, ...] | None = None
    cost: int = 0
    """Bytes of memory that it takes, about."""


DONE = Work("")
"""The place of work that is done: what was given with it is kept no longer."""


@dataclass(eq=False, slots=True)
class Execution:
    """One run of code."""

    user: str
    session: str
    """The name of the session, as its user knows it."""
    work: Work
    key: tuple[str, bytes] | None = None
    """The Idempotency-Key that it came with, and the hash of what was asked for."""
    id: str = field(default_factory=lambda: f"x-{secrets.token_hex(12)}")
    log: EventLog = field(default_factory=EventLog)
    state: State = "queued"
    cell: int = 0
    session_key: str = ""
    created: float = field(default_factory=time.time)
    started: float | None = None
    ended: float | None = None
    problem: Refused | None = None
    """The reason why there is no result of the code itself."""
    result: bytes = b"null"
    """As JSON."""
    task: asyncio.Task[None] | None = None
    done: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def size(self) -> int:
        """Bytes that are kept of it."""
        return self.log.size + len(self.result)

    def queued(self, place: int) -> None:
        self.log.add("queued", {"execution": self.id, "place": place})

    def begin(self, cell: int) -> None:
        """Take note that its cell runs."""
        self.state, self.cell, self.started = "running", cell, time.time()
        self.log.add("started", {"execution": self.id, "session": self.session, "cell": cell})

    async def tell(self, event: Event) -> None:
        """Take an event of the cell into the log."""
        if event.outputs and weight.is_large((event.outputs, event.display_id)):
            data = await weight.in_thread(lambda: _encoded(event))
        else:
            data = _encoded(event)
        self.log.add_encoded(event.type, data)

    def notice(self, text: str) -> None:
        self.log.add("notice", {"text": text})

    async def encoded(self, result: Result) -> bytes:
        """Return a result as clients read it; a large one is written beside the event loop."""
        tools = () if result.ledger is None else result.ledger.tools
        # The rest of it are a few numbers and words.
        growing = result.value, result.outputs, result.error, result.notes, result.calls, tools
        if weight.is_large(growing):
            return await weight.in_thread(lambda: self._encoded(result))
        return self._encoded(result)

    def _encoded(self, result: Result) -> bytes:
        told = result.to_dict() | {"execution": self.id, "session": self.session}
        return msgspec.json.encode(told)

    def finish(self, result: bytes) -> None:
        """Keep the result."""
        self.state, self.ended, self.result, self.work = "ended", time.time(), result, DONE
        self.log.add_encoded("done", b'{"result":%s}' % result)
        self.log.close()
        self.done.set()

    def cancelled(self) -> None:
        """Keep a record of a cell that was cancelled, and whose result nobody has."""
        words = "it was cancelled" if self.started else "it was cancelled before it began"
        failure = Failure("Cancelled", words)
        self.finish(self._encoded(Result("cancelled", error=failure, cell=self.cell)))

    def fail(self, error: BaseException) -> None:
        """Keep the reason why the code did not run, or why nobody knows how it ended."""
        self.problem = of_error(error).with_traceback(None)  # it would keep what was given
        kind = type(error).__name__ if isinstance(error, DivingbellError) else "InternalError"
        failure = Failure(kind, str(self.problem))
        self.finish(self._encoded(Result("error", error=failure, cell=self.cell)))

    def described(self, *, whole: bool) -> ExecutionTold:
        """Return it as clients read it; `whole` is with its result."""
        told = ExecutionTold(
            id=self.id,
            session=self.session,
            state=self.state,
            created_at=as_text(self.created),
            started_at=None if self.started is None else as_text(self.started),
            ended_at=None if self.ended is None else as_text(self.ended),
        )
        if not whole:
            return told
        return msgspec.structs.replace(told, result=msgspec.Raw(self.result))


def _encoded(event: Event) -> bytes:
    return msgspec.json.encode(as_told(event))


def as_told(event: Event) -> dict[str, Any]:
    """Return what an event of a cell tells, by its name."""
    if event.type in ("stdout", "stderr", "notice"):
        return {"text": event.text}
    if event.type == "display":
        outputs = [output.to_dict() for output in event.outputs]
        return {"outputs": outputs, "display_id": event.display_id, "update": event.update}
    if event.type == "result":
        return {"outputs": [output.to_dict() for output in event.outputs]}
    if event.type == "progress":
        told = {"tool": event.tool, "progress": event.progress, "total": event.total}
        return told | {"text": event.text}
    return {"tool": event.tool, "text": event.text} if event.type == "log" else {}


def with_note(result: Result, note: str) -> Result:
    """Return a result with one more note for its reader."""
    return replace(result, notes=(*result.notes, note))
