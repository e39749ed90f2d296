"""A conversation: a person and a model, and what it tells whoever follows it."""

import asyncio
import contextlib
import re
import secrets
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from divingbell.agent import events
from divingbell.agent.agent import Agent
from divingbell.errors import DivingbellError
from divingbell.models import Event, Result
from divingbell.settings.agent import AgentMode
from divingbell.shares import weight
from divingbell.surfaces.http.event_log import Entry, EventLog
from divingbell.surfaces.http.execution import as_told
from divingbell.surfaces.http.problems import of_error

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

QuestionKind = Literal["question", "approval"]
QUESTION: QuestionKind = "question"
APPROVAL: QuestionKind = "approval"
State = Literal["idle", "answering"]
CANCELLED: tuple[str, Any] = ("cancelled", {})
OpenAgent = Callable[["Conversation"], Awaitable[Agent]]
"""Returns the agent of a conversation, in a session that is open."""
GROWN = 1.125
"""How much longer code must be before it is told again while it is written: each time all of it is
told, and at the end the cell has it whole."""
MAX_QUESTIONS = 16
"""Questions of servers that may wait at once; more are declined."""
_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")


@dataclass(frozen=True, slots=True)
class Question:
    """A question that waits for a person: of a server, or whether a tool may be called."""

    kind: QuestionKind
    answer: "asyncio.Future[ElicitResult]"


class Conversation:
    """One conversation of a user. It answers one message at a time."""

    def __init__(
        self, user: str, session: str, mode: AgentMode | None, *, owns_session: bool
    ) -> None:
        self.id = f"c-{secrets.token_hex(12)}"
        self.user = user
        self.session = session
        self.mode = mode
        self.owns_session = owns_session
        """Whether the session was opened for it, and ends with it."""
        self.created = time.time()
        self.title = ""
        self.log = EventLog()
        self.agent: Agent | None = None
        self._answer: asyncio.Task[None] | None = None
        self._questions: dict[str, Question] = {}
        self._code_told = 0
        self._last: tuple[str, Any] = CANCELLED
        """The last event of the answer that is being given."""

    @property
    def state(self) -> State:
        return "idle" if self._answer is None else "answering"

    def begin(self, text: str, open_agent: OpenAgent) -> int:
        """Begin to answer; return the number of the event after which it is told."""
        assert self._answer is None
        after = self.log.last
        self.title = self.title or text.strip().partition("\n")[0][:80]
        self.log.add("asked", {"text": text})
        self._answer = asyncio.create_task(self._tell(text, open_agent))
        # Not in the task itself: one that is cancelled before its first step never does any.
        self._answer.add_done_callback(self._ended)
        return after

    async def cancel(self) -> bool:
        """Interrupt the model or its cell; return whether there was anything to interrupt."""
        if (answer := self._answer) is None:
            return False
        answer.cancel()
        await asyncio.wait([answer])
        return True

    async def follow(self, after: int) -> AsyncGenerator[Entry | None, None]:
        """Yield events after a number, up to the end of the answer that is being given."""
        if self._answer is None and after >= self.log.last:
            return
        async with contextlib.aclosing(self.log.follow(after)) as entries:
            async for entry in entries:
                yield entry
                if entry is not None and self._answer is None and entry.number >= self.log.last:
                    return

    # Questions of servers (divingbell.gateway.context.Asker)

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask the person as MCP's elicitation does, and wait for the answer."""
        return await self._ask(params, QUESTION)

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask the person about a call of a tool, and wait for the answer."""
        return await self._ask(params, APPROVAL)

    def question(self, name: str) -> "Question | None":
        """Return a question that waits for its answer."""
        found = self._questions.get(name)
        return None if found is None or found.answer.done() else found

    async def _ask(self, params: "ElicitRequestParams", kind: QuestionKind) -> "ElicitResult":
        from mcp_types import ElicitResult

        if len(self._questions) >= MAX_QUESTIONS:
            return ElicitResult(action="decline")
        question = Question(kind, asyncio.get_running_loop().create_future())
        name = f"q-{secrets.token_hex(8)}"
        self._questions[name] = question
        asked = params.model_dump(mode="json", by_alias=True)
        self.log.add(kind, {"id": name, "asked": asked})
        try:
            return await question.answer
        finally:
            del self._questions[name]
            self.log.add(f"{kind}_ended", {"id": name})

    # Answers

    async def _tell(self, text: str, open_agent: OpenAgent) -> None:
        """Have the agent answer. The last event is `done`, `failed` or `cancelled`, always."""
        try:
            self.agent = await open_agent(self)
            async with contextlib.aclosing(self.agent.ask(text)) as told:
                async for event in told:
                    if isinstance(event, events.Done):
                        self._last = "done", asdict(event)
                    else:
                        await self._log(event)
        except asyncio.CancelledError:
            self._last = CANCELLED
        except Exception as error:
            problem = of_error(error)
            code = error.code if isinstance(error, DivingbellError) else problem.code
            self._last = "failed", {"code": code, "detail": str(problem)}

    def _ended(self, answer: asyncio.Task[None]) -> None:
        self._answer = None
        (name, told), self._last = self._last, CANCELLED
        self.log.add(name, told)

    async def _log(self, event: events.AgentEvent) -> None:
        if isinstance(event, events.CodeWritten):
            if len(event.code) < self._code_told * GROWN:
                return
            self._code_told = len(event.code)
        elif isinstance(event, events.CellStarted):
            self._code_told = 0
        name = _CAPITAL.sub("_", type(event).__name__).lower()
        self.log.add_encoded(name, await weight.beside(_encoded, event))


def _encoded(event: events.AgentEvent) -> bytes:
    if isinstance(event, events.CellEvent):
        told: Any = {"call": event.call, "event": _event(event.event)}
    elif isinstance(event, events.CellEnded):
        told = {"call": event.call, "result": _result(event.result)}
    else:
        told = asdict(event)
    return msgspec.json.encode(told)


def _event(event: Event) -> dict[str, Any]:
    return {"type": event.type, **as_told(event)}


def _result(result: Result) -> dict[str, Any]:
    return result.to_dict()
