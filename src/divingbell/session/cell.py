"""A cell: one run of code, with its clock, its output, its end, and the notes of its result."""

import asyncio
import contextvars
import time
from collections.abc import Callable

from divingbell.models import Event, Limits, Result, Status, Usage
from divingbell.session.calls import Record, Waiting
from divingbell.session.clock import Clock
from divingbell.session.interpreter import Interpreter
from divingbell.session.outcome import (
    BROKEN_LINE,
    Ending,
    Judgement,
    StateChange,
    StopReason,
    size_in_words,
    state_note,
)
from divingbell.session.spool import Spool
from divingbell.session.transcript import Sink, Transcript, cell_of
from divingbell.session.value import CellValue
from divingbell_inside import frames, layout

MIN_CPU_CHECK = 0.02
INTERRUPT_EVERY = 0.2
MAX_ASIDES = 10
MAX_TOLD = 10_000
"""Messages of tools that one cell passes on."""


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
        self.context = contextvars.copy_context()
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
        """Return how the run came to its end.

        One waits at a time; who gives up leaves the run as it is.

        Whoever waits goes on in the next turn of the event loop: each further one, such as
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
            gave_up = "it did not end when it was interrupted"
            self._timers.append(self._loop.call_later(self._grace, self.end, gave_up))
            self._interrupt()

    def _interrupt(self) -> None:
        """Interrupt again and again: one that comes before the code has begun is not heard."""
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

    # Text and frames of the interpreter
    def text(self, data: bytes) -> None:
        self.transcript.raw(data)

    def frame(self, header: frames.Header, body: bytes) -> None:
        event = header.get("event")
        try:
            if event == "stdout" or event == "stderr":
                self.transcript.text(event, body, cell_of(header, self.number))
            elif event == "display":
                self.transcript.display(header, body)
            elif event == "clear":
                self.transcript.clear(header.get("wait") is True)
            elif event == "done" and header.get("cell") == self.number:
                self._end(Ending(True, header, body=body))
        except frames.FrameError as error:
            self.end(BROKEN_LINE.format(error))

    def end(self, reason: str) -> None:
        """End the run without its interpreter, which is gone or has to go."""
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

    # Calls of tools (divingbell.session.calls.Run)

    def call_began(self) -> None:
        self._clock.call_began()

    def call_ended(self, call: Waiting, status: str, milliseconds: float) -> None:
        self._clock.call_ended()
        self._record.add(call, status, milliseconds)

    def tell(self, event: Event) -> None:
        """Pass an event of a tool on; a server may have no end of them."""
        self._told += 1
        if self._told == MAX_TOLD:
            self.transcript.notice("the tools send more messages than are shown; the rest is cut")
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

    def result(self, ending: Ending, change: StateChange, value: CellValue) -> Result:
        """Return the result: everything that is known of the cell, put together."""
        used = self._interpreter.sandbox.consumption()
        outputs = self.transcript.finish(f"; {self._where_it_is_kept()}" if self._spool else "")
        judgement = Judgement(
            self._limits,
            self._timeout,
            self._interpreter.sandbox.isolation.limits_by,
            self._stopped_for,
            used.memory_kills > self._before.memory_kills,
        )
        status, limit, failure = judgement.outcome(ending)
        if status != "ok":
            value = CellValue()
        elif value.kind != "data":
            value = value.with_text(*self.transcript.result_in(outputs))
        return Result(
            status=status,
            value=value.data,
            value_kind=value.kind,
            outputs=outputs,
            error=failure,
            limit=limit or ("output" if self.transcript.cut else None),
            usage=Usage(
                wall_ms=(self._finished - self._started) * 1000,
                cpu_ms=(used.cpu_seconds - self._before.cpu_seconds) * 1000,
                memory_peak=used.memory_peak,
                output_bytes=self.transcript.bytes,
            ),
            cell=self.number,
            state=change.state,
            state_cell=change.cell,
            notes=tuple(self._notes(judgement, ending, change, status, value)),
            calls=tuple(self._record.calls),
        )

    def _notes(
        self,
        judgement: Judgement,
        ending: Ending,
        change: StateChange,
        status: Status,
        value: CellValue,
    ) -> list[str]:
        notes = []
        if self._spool is not None:
            words = f"the output is cut to {size_in_words(self._limits.output)}"
            if not self.transcript.cut:
                words = "some of the output was cleared"
            notes.append(f"{words}; {self._where_it_is_kept()}")
        if value.note:
            notes.append(value.note)
        if judgement.killed_for_memory and ending.finished:
            notes.append(f"a process was ended because {judgement.memory_words()}")
        if change.state != "kept":
            if change.reason:
                notes.append(change.reason)
            notes.append(state_note(change))
        notes += self._asides
        made = self._record.note_on_effects() if status != "ok" else None
        if made:
            notes.append(made)
        return notes

    def _where_it_is_kept(self) -> str:
        """Say in which file the text is that was left out."""
        assert self._spool is not None
        where = f"{layout.WORKSPACE}/{self._spool.path}"
        if self._spool.failure is None:
            return f"all of it is in {where}"
        return f"as much as could be kept is in {where} ({self._spool.failure})"
