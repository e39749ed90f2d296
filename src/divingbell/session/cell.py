"""One run of code: its clock, its output, its end, and the words for how it ended."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from divingbell.models import (
    LIMIT_NAMES,
    Event,
    Failure,
    LimitName,
    Limits,
    Output,
    Result,
    State,
    Status,
    Usage,
)
from divingbell.session.calls import Record, Waiting
from divingbell.session.clock import Clock
from divingbell.session.interpreter import Interpreter
from divingbell.session.spool import Spool
from divingbell.session.tether import field_of
from divingbell.session.transcript import Sink, Transcript, cell_of
from divingbell_inside import frames, layout

StopReason = Literal["timeout", "ceiling", "cpu", "cancelled", "output", "host"]
MIN_CPU_CHECK = 0.02
INTERRUPT_EVERY = 0.2
MAX_FAILURE = 1 << 16
MAX_ASIDES = 10
MAX_TOLD = 10_000
"""Messages of tools that one cell passes on."""

_ADVICE: dict[str, str] = {
    "memory": "Work on less data at once, and delete what is no longer needed (`del df`); whoever "
    "runs Divingbell can raise the limit `memory`.",
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
class StateChange:
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
        self._ending: Ending | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._stopped_for: StopReason | None = None
        self._before = interpreter.sandbox.consumption()
        self._started = time.perf_counter()
        self._finished = self._started
        self._spool: Spool | None = None
        self._record = Record()
        self._told = 0
        self._asides: dict[str, None] = {}
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

    @property
    def only_read(self) -> bool:
        """Whether the interpreter says that all variables are as they were before."""
        header = self._ending.header if self._ending is not None else None
        return header is not None and header.get("only_read") is True

    async def wait(self) -> Ending:
        """How the run came to its end. One waits at a time; who gives up leaves the run as it is.

        Whoever waits goes on in the next round of the loop: each further one, such as
        `asyncio.shield` takes, can meet a piece of somebody else's work.
        """
        if self._ending is None:
            self._waiter = self._loop.create_future()
            await self._waiter
        assert self._ending is not None
        return self._ending

    # The clock

    def stop(self, reason: StopReason) -> None:
        """Interrupt, which keeps the state; if that does not help in time, give up on it."""
        if self._stopped_for is None and self._ending is None:
            self._stopped_for = reason
            self._on_stop()
            self._interpreter.resume()
            self._timers.append(self._loop.call_later(self._grace, self.end, "deaf to interrupts"))
            self._interrupt()

    def _interrupt(self) -> None:
        """Again and again: one that comes before the code has begun is not heard."""
        if self._ending is None:
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
                self.transcript.display(header, body)
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
        if self._ending is None:
            self._ending = ending
            self._finished = time.perf_counter()
            self._clock.stop()
            for timer in self._timers:
                timer.cancel()
            if self._waiter is not None and not self._waiter.done():
                self._waiter.set_result(None)

    # What tools do (divingbell.session.calls.Run)

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
        elif self._told < MAX_TOLD and self._ending is None:
            self.transcript.tell(event)

    def note(self, words: str) -> None:
        """Keep a sentence for the notes of the result; the same one is said once."""
        if len(self._asides) < MAX_ASIDES:
            self._asides[words] = None

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

    @property
    def plain(self) -> bool:
        """Whether nobody had to stop it, and none of its output has yet to be written to a file."""
        return self._stopped_for is None and self._spool is None

    async def finish_spool(self) -> None:
        if self._spool is not None:
            await self._spool.finish()

    # The result

    def result(self, ending: Ending, aftermath: StateChange) -> Result:
        """Put everything together."""
        used = self._interpreter.sandbox.consumption()
        outputs = self.transcript.finish(f"; {self._kept_words()}" if self._spool else "")
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
        notes += self._asides
        made = self._record.words() if status != "ok" else None
        if made:
            notes.append(made)
        return Result(
            status=status,
            value=header.get("value", self._text_of_value(outputs)) if status == "ok" else None,
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

    def _text_of_value(self, outputs: tuple[Output, ...]) -> str | None:
        texts = [
            str(output.data)
            for output in outputs
            if output.name == "result" and output.type == "text/plain"
        ]
        return "".join(texts) if texts else None

    def _kept_words(self) -> str:
        """Where the text is that was left out."""
        assert self._spool is not None
        where = f"{layout.WORKSPACE}/{self._spool.path}"
        if self._spool.failure is None:
            return f"all of it is in {where}"
        return f"as much as could be kept is in {where} ({self._spool.failure})"

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
            words = f"the output is cut to {_size(self._limits.output)}"
            if not self.transcript.cut:
                words = "some of the output was cleared"
            notes.append(f"{words}; {self._kept_words()}")
        if child_killed:
            notes.append(f"a process was ended because {self._memory_words()}")
        return notes


def _exit_status(error: frames.Header) -> int | None:
    found = field_of(error, "exit_status", int)
    return found if found is not None and 0 <= found <= 255 else None


def _failure_of(header: frames.Header) -> tuple[Failure | None, LimitName | None]:
    error = header.get("error")
    if not isinstance(error, dict):
        return None, None
    failure = Failure(
        field_of(error, "type", str, "Exception")[:MAX_FAILURE],
        field_of(error, "message", str, "")[:MAX_FAILURE],
        field_of(error, "traceback", str, "")[:MAX_FAILURE],
        exit_status=_exit_status(error),
    )
    limit = error.get("limit")
    return failure, next((name for name in LIMIT_NAMES if name == limit), None)


def _state_note(aftermath: StateChange) -> str:
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
