"""A command in progress: its clock, its output and its end."""

import asyncio
import contextlib
import signal
import time
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Protocol

from divingbell.border.border import Charge, Passage
from divingbell.command import CommandEvent, CommandResult
from divingbell.errors import InvalidInput
from divingbell.models import Limits, Usage
from divingbell.sandbox.base import Sandbox
from divingbell.session.commands.line import CommandLine
from divingbell.session.commands.live_output import LiveOutput
from divingbell.session.commands.output import StreamName, StreamOutput
from divingbell.session.commands.request import CommandRequest
from divingbell.session.outcome import Ending, Judgement, StopReason, size_in_words
from divingbell.session.spool import Spool
from divingbell.session.transcript import MAX_EVENTS
from divingbell.text import one_line
from divingbell_inside import frames, layout

START_TIMEOUT = 30.0
"""Seconds within which the server inside says that the command runs."""
END_PATIENCE = 5.0
"""Seconds within which a line closes once the sandbox was told to end its server."""
MIN_CPU_CHECK = 0.02
MAX_REASON = 200
MAX_PID = 1 << 22
NOT_ENDED_ITSELF = 128 + signal.SIGKILL
GONE = "it was ended from inside the session, or had no place among its processes"

Sink = Callable[[CommandEvent], None]


class Exit(Protocol):
    """The way out of what a command has written."""

    def text(self, shown: str, *, goes_on: bool = False) -> str:
        """Return a text as its reader may see it; of one that goes on, what is certain of it."""

    def passage(self, charge: Charge) -> Passage:
        """Return the way out for the events of one reader."""

    async def result(self, known: CommandResult, ended: frames.Header) -> CommandResult:
        """Return a result as its reader may see it, by the word of how the command ended."""


@dataclass(frozen=True, slots=True)
class Place:
    """The sandbox that a command runs in, and the limits on it."""

    sandbox: Sandbox
    limits: Limits
    grace: float
    """Seconds between asking it to end and ending it."""
    timeout: float | None
    cpu_seconds: float | None


class Command:
    """One command. It starts when it is made, and its task sees it to its end."""

    def __init__(
        self,
        number: int,
        text: str,
        request: CommandRequest,
        place: Place,
        line: CommandLine,
        sink: Sink,
        exit: Exit,
    ) -> None:
        self.number = number
        self.command = text
        self.line = line
        self._place = place
        self._cwd = request.cwd
        self._sink = sink
        self._readers: list[LiveOutput] = []
        self._events = 0
        self._exit = exit
        self._loop = asyncio.get_running_loop()
        self._pid: int | None = None
        self._ended: tuple[int, frames.Header] | None = None
        self._reason = GONE
        self._stopped_for: StopReason | None = None
        self._spools: dict[StreamName, Spool] = {}
        self._streams: dict[StreamName, StreamOutput] = {
            name: StreamOutput(name, place.limits.output, self._overflow)
            for name in ("stdout", "stderr")
        }
        self._before = place.sandbox.consumption()
        self._started = time.perf_counter()
        self._milliseconds = 0.0
        self._begin_timers()
        self.began: asyncio.Future[None] = self._loop.create_future()
        """Done once it runs, or is over; raises InvalidInput where it can't run like this."""
        self.on_over: Callable[[CommandResult | None], None] = lambda result: None
        """Called before anyone who waits goes on; with None where it broke off."""
        self.task = asyncio.create_task(self._live(request))

    # For its handle (divingbell.session.base.CommandHandle)

    @property
    def pid(self) -> int | None:
        return self._pid

    @property
    def running(self) -> bool:
        return not self.task.done()

    @property
    def exit_code(self) -> int | None:
        return None if self.running or self.task.cancelled() else self.task.result().exit_code

    @property
    def is_in_background(self) -> bool:
        """Whether it may take as much CPU time as it likes."""
        return self._place.cpu_seconds is None

    @property
    def drawn(self) -> float:
        return self.line.drawn

    def charge(self, seconds: float) -> None:
        self.line.charge(seconds)

    def shown(self, name: StreamName) -> str:
        return self._exit.text(self._streams[name].text, goes_on=self.running)

    async def wait(self) -> CommandResult:
        return await asyncio.shield(self.task)

    async def kill(self) -> CommandResult:
        self.stop("cancelled")
        return await self.wait()

    async def stream(self) -> AsyncGenerator[CommandEvent, None]:
        # Taken at once with the text so far: nothing is in both, and nothing in neither.
        live = LiveOutput({name: each.unfinished() for name, each in self._streams.items()})
        so_far = [CommandEvent(name, each.text) for name, each in self._streams.items()]
        passage = self._exit.passage(self.line.charge)
        self._readers.append(live)
        if not self.running:
            live.end()
        try:
            for event in so_far:
                for shown in await passage.event(event) if event.text else ():
                    yield shown
            async for event in live.events():
                for shown in await passage.event(event):
                    yield shown
            for shown in await passage.end():
                yield shown
            yield CommandEvent("done", result=await self.wait())
        finally:
            self._readers.remove(live)

    # Its end

    def stop(self, reason: StopReason) -> None:
        """Ask it to end; if that does not help in time, end it."""
        if self._stopped_for is None and self._ended is None and self.running:
            self._stopped_for = reason
            self.line.resume()
            delay = self._place.grace if self.line.signal(signal.SIGTERM) else 0.0
            self._timers.append(self._loop.call_later(delay, self._end))

    def lose(self, reason: str) -> None:
        """Take note of why it will be gone in a moment."""
        self._reason = reason
        self.line.resume()
        self._break_off_soon()

    def _end(self) -> None:
        self._place.sandbox.end_command(self.number)
        self._break_off_soon()

    def _break_off_soon(self) -> None:
        """Wait no longer than this for the line to close by itself."""
        self._timers.append(self._loop.call_later(END_PATIENCE, self.line.break_off))

    # The clock

    def _begin_timers(self) -> None:
        self._timers = [self._loop.call_later(START_TIMEOUT, self._give_up_start)]
        if self._place.timeout is not None:
            delay = self._place.timeout
            self._timers.append(self._loop.call_later(delay, self.stop, "timeout"))
        if self._place.cpu_seconds is not None:
            self._plan_cpu_check(self._place.cpu_seconds)

    def _give_up_start(self) -> None:
        if self._pid is None:
            self._reason = f"it did not start within {START_TIMEOUT:g} s"
            self._end()

    def _plan_cpu_check(self, left: float) -> None:
        # It can't use up what is left any sooner than this.
        delay = max(left / max(self._place.limits.cores, 1.0), MIN_CPU_CHECK)
        self._timers.append(self._loop.call_later(delay, self._check_cpu))

    def _check_cpu(self) -> None:
        used = self._place.sandbox.consumption().cpu_seconds - self._before.cpu_seconds
        left = self._place.limits.cpu_seconds - used
        if left <= 0:
            self.stop("cpu")
        else:
            self._plan_cpu_check(left)

    # Its life

    async def _live(self, request: CommandRequest) -> CommandResult:
        result: CommandResult | None = None
        try:
            await self._talk(request)
            self._show_ends()
            for spool in self._spools.values():
                await spool.finish()
            result = await self._result()
            return result
        finally:
            self.on_over(result)
            for live in self._readers:
                live.end()
            if not self.began.done():
                self.began.set_result(None)

    async def _talk(self, request: CommandRequest) -> None:
        """Ask for the command, and take in what comes until it has ended."""
        try:
            # A line that has broken off brings no word of how it ended.
            with contextlib.suppress(OSError):
                await self.line.ask(request.words, request.input)
                await self.line.read(self._take, self._show)
        except frames.FrameError as error:
            self._reason = f"something inside has written to its line ({error})"
        finally:
            self._milliseconds = (time.perf_counter() - self._started) * 1000
            for timer in self._timers:
                timer.cancel()
            self._place.sandbox.end_command(self.number)
            self.line.close()

    def _take(self, header: frames.Header, body: bytes) -> None:
        match header:
            case {"event": "stdout" | "stderr" as name}:
                self._streams[name].add(body)
                for live in self._readers:
                    live.add(name, body)
            case {"event": "began", "pid": int(pid)} if not self.began.done() and 0 < pid < MAX_PID:
                self._pid = pid
                self.began.set_result(None)
            case {"event": "refused", "reason": str(reason)} if not self.began.done():
                self._reason = self._folder_refused(one_line(reason, MAX_REASON))
                self.began.set_exception(InvalidInput(self._reason))
                self.line.stopped = True
            case {"event": "ended", "code": int(code)} if -signal.NSIG < code < 256:
                self._ended = int(code), header  # True is one, too
                self.line.stopped = True
            case _:
                raise frames.FrameError("a frame that a command server does not send")

    def _folder_refused(self, reason: str) -> str:
        folder = one_line(self._exit.text(self._cwd), MAX_REASON)
        where = "" if folder.startswith("/") else f" below {layout.WORKSPACE}"
        return f"the command can't run in the folder {folder!r}{where}: {reason}"

    def _show(self) -> None:
        """Pass on what has come of the start of each stream."""
        for stream in self._streams.values():
            self._tell(stream.name, stream.take_shown())

    def _show_ends(self) -> None:
        for stream in self._streams.values():
            self._tell(stream.name, stream.finish())

    def _tell(self, name: StreamName, text: str) -> None:
        self._events += bool(text)
        if text and self._events <= MAX_EVENTS:
            self._sink(CommandEvent(name, text))

    def _overflow(self, name: StreamName, data: bytes) -> None:
        if name not in self._spools:
            path = f"{layout.OUTPUTS.removeprefix(layout.WORKSPACE + '/')}/command-{self.number}"
            self._spools[name] = spool = Spool(
                self._place.sandbox.open_files,
                f"{path}-{name}.txt",
                self.line.pause,
                self.line.resume,
                lambda _: self.stop("output"),
            )
            words = f"{name} over {self._place.limits.output:,} bytes goes to "
            self._sink(CommandEvent("notice", f"{words}{layout.WORKSPACE}/{spool.path}"))
        self._spools[name].feed(data)

    # The result

    async def _result(self) -> CommandResult:
        """Return the result: everything that is known of it, put together."""
        used = self._place.sandbox.consumption()
        killed_for_memory = used.memory_kills > self._before.memory_kills
        code, header = self._ended or (NOT_ENDED_ITSELF, {})
        judgement = Judgement(
            self._place.limits,
            self._place.timeout or 0.0,
            self._place.sandbox.isolation.limits_by,
            self._stopped_for,
            killed_for_memory,
            "command",
        )
        ending = self._ending(code, header, killed_for_memory)
        status, limit, failure = judgement.outcome(ending)
        cut = any(stream.cut for stream in self._streams.values())
        notes = self._notes()
        if killed_for_memory and limit != "memory":
            notes.append(f"a process was ended because {judgement.memory_words()}")
        result = CommandResult(
            status=status,
            exit_code=code if code >= 0 else 128 - code,
            stdout=self._streams["stdout"].text,
            stderr=self._streams["stderr"].text,
            error=failure,
            limit=limit or ("output" if cut else None),
            usage=Usage(
                wall_ms=self._milliseconds,
                cpu_ms=(used.cpu_seconds - self._before.cpu_seconds) * 1000,
                memory_peak=used.memory_peak,
                output_bytes=sum(stream.bytes for stream in self._streams.values()),
            ),
            command=self.command,
            number=self.number,
            notes=tuple(notes),
        )
        return await self._exit.result(result, header)

    def _ending(self, code: int, header: frames.Header, killed_for_memory: bool) -> Ending:
        if self._ended is None:
            return Ending(False, reason=f"the command was lost: {self._reason}")
        if killed_for_memory and code in (-signal.SIGKILL, NOT_ENDED_ITSELF):
            return Ending(False)
        if code < 0:
            return Ending(False, reason=f"the command was ended by {_name_of(-code)}")
        if code == 0:
            return Ending(True, {"status": "ok"})
        error = header.get("error")
        limit = error.get("limit") if isinstance(error, dict) else None
        words = f"the command ended with exit code {code}"
        failed = {"type": "CommandFailed", "message": words, "limit": limit, "exit_status": code}
        return Ending(True, {"error": failed})

    def _notes(self) -> list[str]:
        notes = []
        for name, spool in self._spools.items():
            kept = "all of it is" if spool.failure is None else "as much as could be kept is"
            why = f" ({spool.failure})" if spool.failure else ""
            size = size_in_words(self._place.limits.output)
            where = f"{layout.WORKSPACE}/{spool.path}"
            notes.append(f"{name} is cut to {size}; {kept} in {where}{why}")
        return notes


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
