"""The calls of tools that the code of one session makes, while they are under way."""

import asyncio
import contextvars
import functools
import itertools
import json
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, Protocol

from divingbell import logs
from divingbell.errors import DivingbellError, ToolFailed
from divingbell.gateway.context import Answer, Asker, CallContext, key_of, to_nobody
from divingbell.gateway.functions.function import HostFunction
from divingbell.models import NOT_MADE, Event, ToolCall
from divingbell.principal import Principal
from divingbell.session.hints import Surroundings
from divingbell.session.intake import field_of
from divingbell.session.tables import TableDelivery
from divingbell.shares import weight
from divingbell.shares.allowance import Allowance, counted
from divingbell.shares.turns import Turns
from divingbell_inside import frames

log = logs.logger("divingbell")

MAX_WAITING = 10_000
"""Calls that may wait for their turn; those beyond are refused at once."""
MAX_BYTES = 64 << 20
"""Of the arguments of calls that wait or are under way, and as much again of what parsing makes
of them: a call whose arguments do not fit beside the others waits for its turn."""
MAX_RESULTS = 128 << 20
"""Of results that are under way, as they came and as they are parsed."""
MAX_NAME = 400
MAX_PREVIEW = 200
MAX_MESSAGE = 20_000
MAX_NAMED = 20
_QUESTIONS = {
    "search_tools", "list_mcp_tools", "get_mcp_tool_details", "await_server", "list_resources",
    "list_prompts", "load_skill", "search_skills",
}  # fmt: skip
"""Put to the gateway itself; they carry nothing out."""
EFFECTS = "calls of tools already made: "
"""How the note begins that tells of the side effects of a cell that failed."""
MAX_RECORDS = 200
"""Calls of a cell that its result lists; it counts all."""
_REFUSED_AT_ONCE = 200
"""Of calls that are given up together. Measured: each answer takes some 5 µs, while nobody else
runs."""


_serials = itertools.count(1)


class ToolGateway(Surroundings, Protocol):
    """The gateway, as a session sees it."""

    calls_at_once: int

    def generation(self, session: str) -> int:
        """Return a number that changes when the session with this key has others to import."""

    async def offer(self, session: str, functions: Sequence[HostFunction]) -> None:
        """Add functions of the host for the session with this key alone.

        Raises:
            ConfigError: a server has the name that is theirs.
            InvalidInput: one has the name of a function that all sessions have.
        """

    def received(self, session: str, user: str, source: str) -> None:
        """Note that the program gives the session with this key something, and how: rules about
        flows know it as `host.` and that name."""

    def cost(self, arguments: bytes) -> int:
        """Return about how many bytes of memory the arguments take once they are parsed."""

    async def answer(self, context: CallContext, name: str, arguments: bytes) -> Answer:
        """Answer a call.

        Raises:
            ToolFailed: it was refused, or did not succeed.
        """

    async def approve_code(self, context: CallContext, findings: str, kinds: str) -> None:
        """Ask the person whether a cell may run in which a review has found something.

        Raises:
            ToolFailed: the person said no, or nobody could be asked.
        """

    def end_run(self, session: str) -> None:
        """Let go of what was counted for a cell of the session with this key: it has ended."""

    async def forget(self, session: str) -> None:
        """Forget the session with this key, which has ended."""


class Record:
    """The calls that one cell has made."""

    def __init__(self) -> None:
        self.count = 0
        self.calls: list[ToolCall] = []

    def add(self, call: "Waiting", status: str, milliseconds: float) -> None:
        if call.name in _QUESTIONS:
            return
        self.count += 1
        if len(self.calls) < MAX_RECORDS:
            text = call.body[: MAX_PREVIEW + 1].decode("utf-8", "replace")
            preview = text if len(text) <= MAX_PREVIEW else text[:MAX_PREVIEW] + "…"
            self.calls.append(ToolCall(call.name, preview, status, round(milliseconds, 3)))

    def note_on_effects(self) -> str | None:
        """Return a note on the side effects that a failed cell may have had; None for none."""
        made = [call for call in self.calls if call.made]
        if not made:
            return None
        distinct = Counter((call.name, call.status, call.arguments) for call in made)
        named = dict(itertools.islice(distinct.items(), MAX_NAMED))
        by_tool: dict[tuple[str, str], dict[str, int]] = {}
        for (name, status, arguments), times in named.items():
            by_tool.setdefault((name, status), {})[arguments] = times
        shown = "; ".join(_repeated(*tool, given) for tool, given in by_tool.items())
        left = len(made) + self.count - len(self.calls) - sum(named.values())
        more = f"; and {left:,} more" if left else ""
        return f"{EFFECTS}{shown}{more}"


def _repeated(name: str, status: str, given: Mapping[str, int]) -> str:
    """Put the calls of one tool into words, by their arguments and how often each was made."""
    if len(given) == 1:
        [(arguments, times)] = given.items()
        return f"{name}({arguments}){_times(times)}: {status}"
    listed = ", ".join(f"({arguments}){_times(times)}" for arguments, times in given.items())
    return f"{name}, {sum(given.values())} calls: {status}, with {listed}"


def _times(number: int) -> str:
    return f" {number} times" if number > 1 else ""


class Run(Protocol):
    """The cell that runs, as far as its calls are concerned."""

    number: int
    context: contextvars.Context
    """That of whoever runs it: a call is traced where its cell is."""

    def call_began(self) -> None: ...

    def call_ended(self, call: "Waiting", status: str, milliseconds: float) -> None: ...

    def tell(self, event: Event) -> None: ...

    def note(self, words: str) -> None: ...


class Waiting(NamedTuple):
    """A call that waits for its turn."""

    name: str
    body: bytes
    """Its arguments, which are parsed when it is its turn."""
    cost: int
    context: contextvars.Context
    """That of its cell. Frames are read in that of whoever made the sandbox, perhaps for another
    user; so a call between two cells gets an empty one."""


class Calls:
    """Takes calls from the tether, has the gateway answer them, sends the answers back."""

    def __init__(
        self,
        gateway: ToolGateway | None,
        session: str,
        principal: Principal,
        send: Callable[[frames.Header, bytes], None],
        drained: Callable[[], Awaitable[None]],
        tables: TableDelivery | None = None,
        key: str | None = None,
    ) -> None:
        self._gateway = gateway
        self._tables = tables
        self._session = session
        self.key = key or f"{key_of(principal, session)}#{next(_serials)}"
        self.principal = replace(principal, conversation=principal.conversation or self.key)
        self._send = send
        self._drained = drained
        self._bytes = 0
        self._cost = 0
        self._results = Allowance(MAX_RESULTS)
        self._turns = Turns(self.key)
        self._starting: asyncio.TimerHandle | None = None
        self._tasks: dict[int, asyncio.Task[str]] = {}
        self._waiting: dict[int, Waiting] = {}
        self._refusals: deque[tuple[int, str]] = deque()
        """Calls that were given up, and have yet to be told so."""
        self._runs: dict[int, Run | None] = {}
        """The cell that each call belongs to: the one in which it began, or a later one."""
        self._line = itertools.count()
        """Numbers of lines: an answer to an interpreter that is gone goes nowhere."""
        self._current = next(self._line)
        self.asker: Asker | None = None

    def begin(self, header: frames.Header, body: bytes, run: Run | None) -> None:
        """Start a call, or put it in the queue. `run` is the cell that runs, if one does."""
        number = field_of(header, "id", int)
        name = field_of(header, "name", str)
        if number is None or name is None:
            raise frames.FrameError("a call without a number or a name")
        if self._gateway is None:
            self._refuse(
                number,
                ToolFailed(
                    "no MCP server is configured here: add one to divingbell.toml "
                    "([servers.NAME]) or to an mcp.json",
                    "tool_unknown",
                ),
            )
        elif len(self._waiting) >= MAX_WAITING or self._bytes + len(body) > MAX_BYTES:
            words = f"{len(self._waiting):,} calls are waiting already: make fewer at once"
            self._refuse(number, ToolFailed(words, "tool_limit"))
        elif number in self._tasks or number in self._waiting:
            raise frames.FrameError("two calls with one number")
        else:
            if run is not None:
                run.call_began()
            self._bytes += len(body)
            self._runs[number] = run
            context = contextvars.Context() if run is None else run.context
            cost = self._gateway.cost(body)
            self._waiting[number] = Waiting(name[:MAX_NAME], body, cost, context)
            self._start_next()

    def cancel(self, header: frames.Header) -> None:
        """Cancel a call that the code has given up on."""
        number = field_of(header, "id", int)
        if (task := self._tasks.get(number)) is not None:
            task.cancel()
        elif (waiting := self._waiting.pop(number, None)) is not None:
            self._drop(number, waiting)

    def received(self, source: str) -> None:
        """Note that the program gives the session something that calls may send on."""
        if self._gateway is not None:
            self._gateway.received(self.key, self.principal.user, source)

    def charge(self, seconds: float) -> None:
        """Count processor time that a thread has spent on the session."""
        self._turns.charge(seconds)

    def adopt(self, run: Run) -> None:
        """Count what an earlier cell has left under way for the one that begins: it may wait."""
        for number in self._runs:
            self._runs[number] = run
            run.call_began()

    def end_run(self) -> None:
        """Note that the cell has ended."""
        self.asker = None
        if self._gateway is not None:
            self._gateway.end_run(self.key)

    async def cancelled(self, patience: float) -> None:
        """Return once the calls are over that were cancelled, or after so many seconds."""
        ending = [task for task in self._tasks.values() if task.cancelling()]
        if ending:
            await asyncio.wait(ending, timeout=patience)

    def cancel_all(self) -> None:
        """Give up on everything that is under way."""
        for task in list(self._tasks.values()):
            task.cancel()
        while self._waiting:
            number, waiting = self._waiting.popitem()
            self._drop(number, waiting)
            self._refusals.append((number, waiting.name))
        self._refuse_some()

    def _refuse_some(self) -> None:
        for _ in range(min(_REFUSED_AT_ONCE, len(self._refusals))):
            number, name = self._refusals.popleft()
            self._refuse(number, _cancelled(name))
        if self._refusals:
            asyncio.get_running_loop().call_soon(self._refuse_some)

    def line_lost(self) -> None:
        """Drop everything: the interpreter is gone, and answers have nowhere to go."""
        self._current = next(self._line)
        self._refusals.clear()
        if self._starting is not None:
            self._starting.cancel()
            self._starting = None
        for task in list(self._tasks.values()):
            task.cancel()
        while self._waiting:
            self._drop(*self._waiting.popitem())
        self._tasks, self._runs = {}, {}

    async def close(self) -> None:
        tasks = list(self._tasks.values())
        self.line_lost()
        if tasks:
            await asyncio.wait(tasks)
        if self._gateway is not None:
            await self._gateway.forget(self.key)

    def _drop(self, number: int, waiting: Waiting) -> None:
        self._bytes -= len(waiting.body)
        if (run := self._runs.pop(number, None)) is not None:
            run.call_ended(waiting, NOT_MADE, 0.0)

    def _start_next(self) -> None:
        """Start the next call if it is its turn. One at a time: others run between two of them."""
        assert self._gateway is not None
        if self._starting is not None or not self._waiting:
            return
        if len(self._tasks) >= self._gateway.calls_at_once:
            return
        loop = asyncio.get_running_loop()
        if loop.time() >= self._turns.not_before:
            number, waiting = next(iter(self._waiting.items()))
            if self._tasks and self._cost + waiting.cost > MAX_BYTES:
                return
            del self._waiting[number]
            self._start(number, waiting)
        self._starting = loop.call_at(self._turns.not_before, self._start_another)

    def _start_another(self) -> None:
        self._starting = None
        self._start_next()

    def _start(self, number: int, waiting: Waiting) -> None:
        self._cost += waiting.cost
        work = self._answer(number, waiting, self._current)
        # A copy: each call sets what is its own.
        task = asyncio.create_task(work, context=waiting.context.copy())
        self._tasks[number] = task
        ended = functools.partial(self._ended, number, waiting, self._current, time.perf_counter())
        task.add_done_callback(ended)

    async def _answer(self, number: int, waiting: Waiting, line: int) -> str:
        """Answer a call; return what has become of it."""
        assert self._gateway is not None
        name = waiting.name
        run = self._runs.get(number)
        context = CallContext(
            self.principal,
            self._session,
            self.key,
            run=run.number if run else 0,
            asker=self.asker,
            tell=run.tell if run else to_nobody,
        )
        weight.TURNS.set(self._turns)
        try:
            with counted(self._results, self._turns.charge):
                work = self._gateway.answer(context, name, waiting.body)
                answer = await self._turns.take(work)
                if answer.table is not None:
                    answer = await self._delivered(name, answer)
                await self._drained()  # code that does not read its answers gets no more of them
                if line == self._current:
                    header = {"op": "answer", "id": number, "ok": True, "kind": answer.kind}
                    self._send(header, answer.body)
                    if answer.note and (run := self._runs.get(number)) is not None:
                        run.note(answer.note)
            return "ok"
        except asyncio.CancelledError:
            self._fail(line, number, _cancelled(name))
            return "cancelled" if context.sent else NOT_MADE
        except ToolFailed as error:
            self._fail(line, number, error)
            is_away = error.code == "tool_unavailable" and not context.sent
            return NOT_MADE if is_away else error.code
        except DivingbellError as error:
            self._fail(line, number, ToolFailed(str(error)))
        except Exception:  # a fault of ours: the session and its other calls go on
            log.exception("a call of %s failed in the gateway", name)
            self._fail(line, number, ToolFailed(f"{name}: the gateway failed; its log says why"))
        return "tool_error"

    async def _delivered(self, name: str, answer: Answer) -> Answer:
        """Put the file that is the answer into the session; return where it is."""
        assert answer.table is not None
        with answer.table as table:
            if self._tables is None:
                raise ToolFailed(f"{name}: this session can't take tables", "tool_unavailable")
            path = await self._tables.put(name, table)
        return replace(answer, body=json.dumps({"path": path}).encode(), table=None)

    def _ended(
        self, number: int, waiting: Waiting, line: int, started: float, task: "asyncio.Task[str]"
    ) -> None:
        """Settle a call that is over; also one cancelled before its task had its first turn."""
        self._bytes -= len(waiting.body)
        self._cost -= waiting.cost
        if task.cancelled():
            self._fail(line, number, _cancelled(waiting.name))
        run = None
        if line == self._current:
            self._tasks.pop(number, None)
            run = self._runs.pop(number, None)
        if run is not None:
            outcome = NOT_MADE if task.cancelled() else task.result()
            milliseconds = (time.perf_counter() - started) * 1000
            run.call_ended(waiting, outcome, milliseconds)
        self._start_next()

    def _fail(self, line: int, number: int, error: ToolFailed) -> None:
        if line == self._current:
            self._refuse(number, error)

    def _refuse(self, number: int, error: ToolFailed) -> None:
        message = str(error)
        if len(message) > MAX_MESSAGE:
            message = f"{message[:MAX_MESSAGE]}…"
        self._send(
            {"op": "answer", "id": number, "ok": False, "code": error.code, "message": message}, b""
        )


def _cancelled(name: str) -> ToolFailed:
    return ToolFailed(f"{name}: the call was cancelled", "tool_cancelled")
