"""One run of code: its clock, its output, its end, and the words for how it ended."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from divingbell.calls import Record, Waiting
from divingbell.clock import Clock
from divingbell.interpreter import Interpreter
from divingbell.models import (
    LIMIT_NAMES,
    Event,
    Failure,
    LimitName,
    Limits,
    Result,
    State,
    Status,
    Usage,
)
from divingbell.spool import Spool
from divingbell.tether import field_of
from divingbell.transcript import Sink, Transcript, cell_of
from divingbell_inside import frames, layout

StopReason = Literal["timeout", "ceiling", "cpu", "cancelled", "output", "host"]
MIN_CPU_CHECK = 0.02
INTERRUPT_EVERY = 0.2
MAX_FAILURE = 1 << 16
MAX_TOLD = 10_000
"""Messages of tools that one cell passes on."""

_ADVICE: dict[str, str] = {
    "memory": "Work on less data at once, delete what is no longer needed (`del df`), or ask for "
    "more memory.",
    "cpu": "Use a faster way (vectorise, sample the data) or split the work into several runs.",
    "processes": "Start fewer processes or threads, and wait for those that you have started.",
    "disk": "Remove files from /workspace and /tmp, or write less.",
    "output": "Print a summary instead, or write to a file in /workspace.",
    "host": "Print less, show less and make fewer calls at once, or write to a file in /workspace.",
    "ceiling": "Start the slow work with one cell and look for its result with another.",
    "timeout": "Split the work into several runs, use a faster way, or ask for a longer timeout.",
}


@dataclass(frozen=True, slots=True)
class Ending:
    """How the run came to its end."""

    finished: bool
    """The interpreter said so itself, and lives."""
    header: frames.Header | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Aftermath:
    """What became of the session's state."""

    state: State = "kept"
    cell: int | None = None
    """Variables are as they were after this one, where they are rewound."""
    files_lost: bool = False
    """The sandbox itself was lost, and the workspace with it."""
    reason: str = ""
    """Why, where no result has told it."""


class Cell:
    """A run in progress. The clock starts when it is made."""

    def __init__(
        self,
        number: int,
        limits: Limits,
        timeout: float,
        grace: float,
        interpreter: Interpreter,
        sink: Sink,
        on_stop: Callable[[], None],
    ) -> None:
        self.number = number
        self._limits = limits
        self._timeout = timeout
        self._grace = grace
        self._interpreter = interpreter
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[Ending] = self._loop.create_future()
        self._stopped_for: StopReason | None = None
        self._before = interpreter.sandbox.consumption()
        self._started = time.perf_counter()
        self._finished = self._started
        self._spool: Spool | None = None
        self._value_text: str | None = None
        self._record = Record()
        self._told = 0
        self._on_stop = on_stop
        self.transcript = Transcript(number, limits.output, sink, self._overflow)
        self._timers: list[asyncio.TimerHandle] = []
        self._clock = Clock(
            timeout,
            limits.ceiling,
            lambda: interpreter.sandbox.consumption().cpu_seconds,
            lambda: self.stop("timeout"),
            lambda: self.stop("ceiling"),
        )
        self._plan_cpu_check(limits.cpu_seconds)

    async def wait(self) -> Ending:
        return await asyncio.shield(self._ended)

    # The clock

    def stop(self, reason: StopReason) -> None:
        """Interrupt, which keeps the state; if that does not help in time, give up on it."""
        if self._stopped_for is None and not self._ended.done():
            self._stopped_for = reason
            self._on_stop()
            self._interpreter.resume()
            self._timers.append(self._loop.call_later(self._grace, self.end, "deaf to interrupts"))
            self._interrupt()

    def _interrupt(self) -> None:
        """Again and again: one that comes before the code has begun is not heard."""
        if not self._ended.done():
            self._interpreter.sandbox.interrupt()
            self._timers.append(self._loop.call_later(INTERRUPT_EVERY, self._interrupt))

    def _plan_cpu_check(self, left: float) -> None:
        # It can't use up what is left any sooner than this.
        delay = max(left / max(self._limits.cores, 1.0), MIN_CPU_CHECK)
        self._timers.append(self._loop.call_later(delay, self._check_cpu))

    def _check_cpu(self) -> None:
        used = self._interpreter.sandbox.consumption().cpu_seconds - self._before.cpu_seconds
        if used >= self._limits.cpu_seconds:
            self.stop("cpu")
        else:
            self._plan_cpu_check(self._limits.cpu_seconds - used)

    # What happens

    def text(self, data: bytes) -> None:
        self.transcript.raw(data)

    def frame(self, header: frames.Header, body: bytes) -> None:
        event = header.get("event")
        try:
            if event in ("stdout", "stderr"):
                self.transcript.text(str(event), body, cell_of(header, self.number))
            elif event == "display":
                outputs = self.transcript.display(header, body)
                if header.get("result") is True:
                    texts = (item.data for item in outputs if item.type == "text/plain")
                    self._value_text = next((str(text) for text in texts), None)
            elif event == "clear":
                self.transcript.clear(header.get("wait") is True)
            elif event == "done" and header.get("cell") == self.number:
                self._end(Ending(True, header))
        except frames.FrameError as error:
            self.end(f"the interpreter broke the rules of its line: {error}")

    def end(self, reason: str) -> None:
        """The interpreter is gone, or has to go."""
        self._end(Ending(False, reason=reason))

    def _end(self, ending: Ending) -> None:
        if not self._ended.done():
            self._finished = time.perf_counter()
            self._clock.stop()
            for timer in self._timers:
                timer.cancel()
            self._ended.set_result(ending)

    # What tools do (divingbell.calls.Run)

    def call_began(self) -> None:
        self._clock.call_began()

    def call_ended(self, call: Waiting, status: str, milliseconds: float) -> None:
        self._clock.call_ended()
        self._record.add(call, status, milliseconds)

    def tell(self, event: Event) -> None:
        """Pass an event of a tool on; a server may have no end of them."""
        self._told += 1
        if self._told == MAX_TOLD:
            self.transcript.notice("the tools have more to say, which is left out")
        elif self._told < MAX_TOLD and not self._ended.done():
            self.transcript.tell(event)

    def _overflow(self, data: bytes) -> None:
        if self._spool is None:
            path = f"{layout.OUTPUTS.removeprefix(layout.WORKSPACE + '/')}/cell-{self.number}.txt"
            interpreter = self._interpreter
            self._spool = Spool(
                interpreter.sandbox.open_files,
                path,
                interpreter.pause,
                interpreter.resume,
                lambda _: self.stop("output"),
            )
            self.transcript.notice(
                f"output over {self._limits.output:,} bytes goes to {layout.WORKSPACE}/{path}"
            )
        self._spool.feed(data)

    async def finish_spool(self) -> None:
        if self._spool is not None:
            await self._spool.finish()

    # The result

    def result(self, ending: Ending, aftermath: Aftermath) -> Result:
        """Put everything together."""
        used = self._interpreter.sandbox.consumption()
        outputs = self.transcript.finish()
        header = ending.header or {}
        failure, limit_inside = _failure_of(header)
        killed_for_memory = used.memory_kills > self._before.memory_kills
        notes = self._notes(killed_for_memory and ending.finished)
        status: Status
        limit: LimitName | None = "output" if self.transcript.cut else None
        if self._stopped_for == "timeout":
            status, failure = (
                "timeout",
                self._out_of("timeout", f"the cell ran longer than its {self._timeout:g} s"),
            )
        elif self._stopped_for == "ceiling":
            status, failure = (
                "timeout",
                self._out_of(
                    "ceiling",
                    "the cell and its tools took longer than the ceiling of "
                    f"{max(self._limits.ceiling, self._timeout):g} s",
                ),
            )
        elif self._stopped_for == "cpu":
            status, limit = "limit", "cpu"
            failure = self._out_of(
                "cpu", f"the cell used more than its {self._limits.cpu_seconds:g} s of CPU time"
            )
        elif self._stopped_for == "output":
            status, limit = "limit", "output"
            failure = self._out_of("output", "the cell printed more than its disk can keep")
        elif self._stopped_for == "host":
            status, limit = "limit", "host"
            failure = self._out_of(
                "host", "the cell sent more than the host could take in beside its other sessions"
            )
        elif self._stopped_for == "cancelled":
            status, failure = "cancelled", Failure("Cancelled", "the cell was interrupted")
        elif not ending.finished:
            if killed_for_memory:
                status, limit = "limit", "memory"
                failure = self._out_of("memory", self._memory_words())
            else:
                status, failure = "killed", Failure("Killed", ending.reason)
        elif header.get("status") == "ok":
            status = "ok"
        elif limit_inside is not None and failure is not None:
            status, limit = "limit", limit_inside
            words = {
                "memory": self._memory_words(),
                "disk": f"the files of the session may take {_size(self._limits.disk)}",
                "processes": f"the session may have {self._limits.processes} processes and threads",
            }.get(limit_inside, limit_inside)
            advice = f"{words}. {_ADVICE[limit_inside]}"
            failure = Failure(
                failure.type,
                f"{failure.message} ({advice})" if failure.message else advice,
                f"{failure.traceback}{advice}\n",
            )
        else:
            status = "error"
            failure = failure or Failure("KeyboardInterrupt", "the cell was interrupted")
        if aftermath.state != "kept":
            if aftermath.reason:
                notes.append(aftermath.reason)
            notes.append(_state_note(aftermath))
        made = self._record.words() if status != "ok" else None
        if made:
            notes.append(made)
        return Result(
            status=status,
            value=self._value(header) if status == "ok" else None,
            outputs=outputs,
            error=failure,
            limit=limit,
            usage=Usage(
                wall_ms=(self._finished - self._started) * 1000,
                cpu_ms=(used.cpu_seconds - self._before.cpu_seconds) * 1000,
                memory_peak=used.memory_peak,
                output_bytes=self.transcript.bytes,
            ),
            cell=self.number,
            state=aftermath.state,
            state_cell=aftermath.cell,
            notes=tuple(notes),
            calls=tuple(self._record.calls),
        )

    def _value(self, header: frames.Header) -> Any:
        return header.get("value", self._value_text)

    def _memory_words(self) -> str:
        size = _size(self._limits.memory)
        if self._interpreter.sandbox.isolation.limits_by == "rlimits":
            return f"each process of the session may allocate {size} of memory"
        return f"the session may hold {size} of memory, files included"

    @staticmethod
    def _out_of(name: str, words: str) -> Failure:
        return Failure("LimitExceeded", f"{words}. {_ADVICE[name]}")

    def _notes(self, child_killed: bool) -> list[str]:
        notes = []
        if self._spool is not None:
            where = f"{layout.WORKSPACE}/{self._spool.path}"
            shown = _size(self._limits.output)
            if self._spool.failure is None:
                notes.append(f"the output is cut after {shown}; all of it is in {where}")
            else:
                notes.append(
                    f"the output is cut after {shown}; as much as could be kept is in {where} "
                    f"({self._spool.failure})"
                )
        if self.transcript.displays_dropped:
            notes.append(f"{self.transcript.displays_dropped} displays were too large and left out")
        if child_killed:
            notes.append(f"a process was ended because {self._memory_words()}")
        return notes


def _failure_of(header: frames.Header) -> tuple[Failure | None, LimitName | None]:
    error = header.get("error")
    if not isinstance(error, dict):
        return None, None
    failure = Failure(
        field_of(error, "type", str, "Exception")[:MAX_FAILURE],
        field_of(error, "message", str, "")[:MAX_FAILURE],
        field_of(error, "traceback", str, "")[:MAX_FAILURE],
    )
    limit = error.get("limit")
    return failure, next((name for name in LIMIT_NAMES if name == limit), None)


def _state_note(aftermath: Aftermath) -> str:
    if aftermath.files_lost:
        return (
            "the sandbox was lost and a new one is in its place: variables, imports and the files "
            "in /workspace are gone; define and upload again what you need"
        )
    if aftermath.state == "rewound":
        return (
            "the interpreter had to be replaced: variables are as they were after cell "
            f"{aftermath.cell}; "
            "files in /workspace are as they are now; processes and threads were ended and "
            "open files and connections are not restored"
        )
    return (
        "the interpreter had to be replaced by a fresh one: variables and imports are gone, "
        "files in /workspace are still there; define again what you need"
    )


def _size(number: int) -> str:
    return f"{number >> 20} MB" if number >= 1 << 20 else f"{number >> 10} KB"
