"""Helpers: agents that do a part of the work for the code of another one.

`delegate(task, context, tools, budget)` in code is a question to the gateway, answered here. A
helper works for the same user in a session of its own, behind a door that has some of the tools;
its tokens are taken from those of its parent first, and its calls count as those of the cell that
has asked. It ends with that cell at the latest.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import aclosing, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from divingbell.agent.agent import Agent
from divingbell.agent.direct_tools import Offer, offered
from divingbell.agent.events import CellStarted, Done, HelperEnded, HelperStarted, UsageTold
from divingbell.agent.helper_door import HelperDoor
from divingbell.agent.limits import AgentLimits
from divingbell.agent.model import ModelFailed, ModelUsage
from divingbell.agent.modes import signatures
from divingbell.agent.prompt import instructions
from divingbell.agent.purse import NotEnough, Part
from divingbell.app import Divingbell
from divingbell.errors import InvalidInput, ToolFailed
from divingbell.gateway.context import Answer, ApprovalAsker, Asker, CallContext
from divingbell.gateway.gateway import DELEGATE
from divingbell.gateway.policy.labels import Source
from divingbell.host import requirements
from divingbell.journal.events import CellEnded, JournalEvent, SessionEnded
from divingbell.models import Event
from divingbell.principal import Principal
from divingbell.session.base import SessionHandle
from divingbell.settings.patterns import MAX_PATTERN
from divingbell.shares import weight
from divingbell.text import one_line

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

AT_ONCE = 4
"""Helpers of one agent that work at the same time; others wait for their turn."""
MOST = 50
"""Helpers of one cell: where an answer has no limit of tokens, a loop would have no end."""
TURNS = 20
"""Requests to the model that a helper may make."""
MAX_TASK = 20_000
MAX_TOOLS = 100
MAX_CONTEXT = 100
MAX_RESULT = 16 << 20
"""Bytes of a helper's result."""
MAX_SHOWN = 80
"""Characters of a task, where people are told of it."""
RESULT, FAILURE = "result", "failure"
CLIENT = "agent"
"""The way in of a helper's session."""
HELPER = f"""
You are a helper: code has given you one task, and you can't ask back. Values that belong to it are
variables already. Put what is asked for into the variable `{RESULT}`, as plain data (numbers,
texts, lists, dicts), then end with one short sentence. Without `{RESULT}` your last words are the
result. If it can't be done, put the reason into `{FAILURE}`."""
STOPPED = {
    "turns": f"it has made {TURNS} requests to its model",
    "tokens": "its budget is used up: give it a larger one, or less to do",
    "money": "its money is used up",
    "failing": "too many of its cells have failed in a row",
    "length": "its model's reply was too long",
    "refused": "its model refused",
    "cut": "its model's reply was cut short",
    "empty": "its model said nothing",
}


@dataclass(frozen=True, slots=True)
class Order:
    """What code has asked for."""

    task: str
    context: Mapping[str, Any]
    tools: tuple[str, ...]
    budget: int | None


def order_of(given: Mapping[str, Any]) -> Order:
    """Return what code has asked for.

    Raises:
        ToolFailed: it can't be used.
    """
    task, context = given.get("task"), given.get("context", {})
    tools, budget = given.get("tools", []), given.get("budget")
    if not isinstance(task, str) or not task.strip() or len(task) > MAX_TASK:
        raise _wrong(f"task is a text of up to {MAX_TASK:,} characters")
    if not isinstance(context, dict) or len(context) > MAX_CONTEXT:
        raise _wrong(f"context is a dict of up to {MAX_CONTEXT} names and values")
    if taken := {RESULT, FAILURE} & context.keys():
        raise _wrong(f"{sorted(taken)[0]} is what the helper returns: give it another name")
    if not isinstance(tools, list) or len(tools) > MAX_TOOLS or not all(map(_is_pattern, tools)):
        raise _wrong(f'tools is a list of up to {MAX_TOOLS} names, such as "shop.find_orders"')
    if budget is not None and (type(budget) is not int or budget < 1):
        raise _wrong("budget is a number of tokens")
    return Order(task, context, tuple(tools), budget)


def _is_pattern(text: object) -> bool:
    return isinstance(text, str) and 0 < len(text) <= MAX_PATTERN


def _wrong(words: str) -> ToolFailed:
    return ToolFailed(f"{DELEGATE}: {words}", "tool_arguments")


class HelperAsker:
    """The person, asked on behalf of a helper."""

    def __init__(self, asker: Asker, helper: int) -> None:
        self.person: object = getattr(asker, "person", asker)
        self._asker = asker
        self._helper = helper

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        return await self._asker.elicit(self._signed(params))

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        ask = self._asker.approve if isinstance(self._asker, ApprovalAsker) else self._asker.elicit
        return await ask(self._signed(params))

    def _signed(self, params: "ElicitRequestParams") -> "ElicitRequestParams":
        return params.model_copy(update={"message": f"Helper {self._helper}: {params.message}"})


class Delegation:
    """Answers `delegate` for the code of one agent."""

    def __init__(
        self, bell: Divingbell, agent: Agent, depth: int, door: HelperDoor | None = None
    ) -> None:
        """Have the gateway answer it from now on; `door` is that of an agent that is a helper."""
        self._bell = bell
        self._agent = agent
        self._depth = depth
        self._door = door
        self._places = asyncio.Semaphore(AT_ONCE)
        self._numbers = itertools.count(1)
        self._working: dict[asyncio.Task[Any], int] = {}
        """Tasks of helpers, and the cells that they work for."""
        self._counted = (0, 0)
        """A cell, and the helpers that it has had."""
        bell.gateway.register(DELEGATE, self.answer, agent.session.key)
        self._unwatch = bell.journal.watch(self._take)

    def _take(self, event: JournalEvent) -> None:
        """Watch the journal: helpers end with the cell that has asked for them."""
        key = self._agent.session.key
        if isinstance(event, CellEnded) and event.key == key:
            for task, cell in self._working.items():
                if cell == event.cell:
                    task.cancel()
        elif isinstance(event, SessionEnded) and event.key == key:
            self._unwatch()

    async def answer(self, context: CallContext, given: Mapping[str, Any]) -> Answer:
        """Have a helper do what is asked for, and return its result.

        Raises:
            ToolFailed: it can't be done, or the helper has stopped before it was.
        """
        order = order_of(given)
        if not context.run:
            raise ToolFailed(f"{DELEGATE}: it is for cells, not for what they leave running")
        self._count(context.run)
        try:
            with self._agent.purse.part(order.budget) as part, self._as_work_of(context.run):
                async with self._places:
                    return await self._helped(context, order, part)
        except NotEnough as error:
            raise ToolFailed(f"{DELEGATE}: {error}", "tool_limit") from None

    def _count(self, cell: int) -> None:
        before = self._counted[1] if self._counted[0] == cell else 0
        if before >= MOST:
            words = f"{DELEGATE}: this cell has had {MOST} helpers: give each of them more to do"
            raise ToolFailed(words, "tool_limit")
        self._counted = (cell, before + 1)

    @contextmanager
    def _as_work_of(self, cell: int) -> Iterator[None]:
        task = asyncio.current_task()
        assert task is not None
        self._working[task] = cell
        try:
            yield
        finally:
            del self._working[task]

    async def _helped(self, context: CallContext, order: Order, part: Part) -> Answer:
        number = next(self._numbers)
        task = await self._bell.border.outward(order.task, context.principal)
        shown = one_line(task, MAX_SHOWN)
        helper = _Helper(number, shown, self._agent, context, part)
        self._agent.tell(HelperStarted(number, shown, order.tools, part.tokens))
        helper.show("begins")
        try:
            payer = context.payer or (context.key, context.run)
            door = HelperDoor(self._bell.gateway, order.tools, payer, self._door)
            async with self._session(context, door) as session:
                await self._give(session, order.context)
                agent = await self._make(session, context, door, number, part)
                return await helper.work(agent, task)
        finally:
            self._agent.tell(helper.ended())
            helper.show(f"has ended: {helper.cost()}")

    @asynccontextmanager
    async def _session(
        self, context: CallContext, door: HelperDoor
    ) -> AsyncIterator[SessionHandle]:
        """Open the helper's session. It has the labels of its parent, which gets those that come in
        there: both may have what the other has read."""
        parent = context.principal
        principal = Principal(parent.user, parent.conversation, CLIENT)
        session = await self._bell.open_behind(door, principal)
        try:
            self._label(context.key, session.key, parent.user)
            yield session
        finally:
            self._label(session.key, context.key, parent.user)
            await self._bell.release(session)

    def _label(self, giver: str, taker: str, user: str) -> None:
        labels = self._bell.gateway.labels
        for tool in labels.sources(giver, user):
            labels.add(taker, user, Source(tool))

    async def _give(self, session: SessionHandle, values: Mapping[str, Any]) -> None:
        for name, value in values.items():
            try:
                await session.set(name, value)
            except InvalidInput as error:
                raise _wrong(f"context: {error}") from None

    async def _make(
        self,
        session: SessionHandle,
        context: CallContext,
        door: HelperDoor,
        number: int,
        part: Part,
    ) -> Agent:
        text = await self._instructions(session, door)
        limits = AgentLimits(
            turns=min(TURNS, self._agent.limits.turns), tokens=part.tokens, money=part.money
        )
        asker = None if context.asker is None else HelperAsker(context.asker, number)
        agent = Agent(session, self._agent.model, text, limits=limits, asker=asker)
        self._bell.ledgers.open_agent(session.key, agent.told, lambda tool: True)
        if self._depth > 1:
            Delegation(self._bell, agent, self._depth - 1, door)
        return agent

    async def _instructions(self, session: SessionHandle, door: HelperDoor) -> str:
        settings = self._bell.settings
        everything = await offered(self._bell.gateway, session)
        allowed = [tool for tool in everything.for_code if door.allows(tool.full_name)]
        text = instructions(
            Path(settings.agent.prompt) if settings.agent.prompt else None,
            requirements.at_hand(settings.packages),
            sorted({tool.package for tool in allowed}),
            await signatures(Offer({}, allowed)),
            "code",
            self._depth > 1,
            self._agent.model.calls_tools,
        )
        return f"{text}\n{HELPER}"


class _Helper:
    """One helper at work, and what is told of it."""

    def __init__(
        self, number: int, task: str, parent: Agent, context: CallContext, part: Part
    ) -> None:
        self._number = number
        self._task = task
        self._parent = parent
        self._context = context
        self._part = part
        self._turns = 0
        self._outcome = "cancelled"

    def show(self, words: str) -> None:
        """Tell those who watch the cell."""
        text = f"helper {self._number} ({self._task}): {words}"
        self._context.tell(Event("progress", text=text, tool=DELEGATE))

    def cost(self) -> str:
        used = self._part.used
        money = "" if used.cost is None else f", ${used.cost:.4f}"
        return f"{self._outcome}, {used.input_tokens + used.output_tokens:,} tokens{money}"

    def ended(self) -> HelperEnded:
        used: ModelUsage = self._part.used
        return HelperEnded(self._number, self._task, self._outcome, used, self._turns)

    async def work(self, agent: Agent, task: str) -> Answer:
        """Ask the agent, and return the result.

        Raises:
            ToolFailed: there is none.
        """
        try:
            done = await self._asked(agent, task)
        except ModelFailed as error:
            self._outcome = "failed"
            raise ToolFailed(f"{DELEGATE}: {error}", "tool_unavailable") from None
        finally:
            self._settle(agent)
        self._outcome = done.reason
        if done.reason != "answered":
            words = f"{DELEGATE}: the helper has stopped: {STOPPED[done.reason]}"
            is_limit = done.reason in ("turns", "tokens", "money")
            raise ToolFailed(words, "tool_limit" if is_limit else "tool_error")
        return await self._result(agent.session, done)

    async def _asked(self, agent: Agent, task: str) -> Done:
        done: Done | None = None
        async with aclosing(agent.ask(task)) as events:
            async for event in events:
                if isinstance(event, UsageTold):
                    self._turns += 1
                    self._settle(agent)
                elif isinstance(event, HelperStarted | HelperEnded):
                    self._parent.tell(event)
                elif isinstance(event, CellStarted):
                    self.show("runs code")
                elif isinstance(event, Done):
                    done = event
        assert done is not None
        return done

    def _settle(self, agent: Agent) -> None:
        """Count what it has cost since the last time, with the helpers that it has itself."""
        part = self._part
        self._parent.purse.spend_part(part, agent.total - part.used)

    async def _result(self, session: SessionHandle, done: Done) -> Answer:
        names = {variable.name for variable in await session.variables()}
        if FAILURE in names:
            self._outcome = "failed"
            words = one_line(str(await session.get(FAILURE, most=MAX_RESULT)), 1_000)
            raise ToolFailed(f"{DELEGATE}: the helper has given up: {words}")
        value = await session.get(RESULT, most=MAX_RESULT) if RESULT in names else done.text
        try:
            body = await weight.in_thread(lambda: json.dumps(value, allow_nan=False).encode())
        except (TypeError, ValueError, RecursionError):
            self._outcome = "failed"
            raise ToolFailed(
                f"{DELEGATE}: the helper's result is no plain data but {type(value).__name__}: say "
                "in the task what to make of it, such as a list of dicts",
                "tool_result",
            ) from None
        return Answer(body)
