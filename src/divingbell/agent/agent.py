"""The agent: asks a model, runs the code that it writes, and goes on until it has answered.

It prints nothing and asks nobody: it yields events, and those who show them translate.
"""

import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from divingbell.agent import fences
from divingbell.agent.code_tool import NAME as EXECUTE
from divingbell.agent.code_tool import CodeTool, Turn, code_so_far
from divingbell.agent.context import Besides, Context, was_cut
from divingbell.agent.events import (
    AgentEvent,
    CellEvent,
    CodeWritten,
    Done,
    Notice,
    StopReason,
    Text,
    Thinking,
    UsageTold,
)
from divingbell.agent.history import OUTPUT, Answered, Asked, Call, Entry, Replied, is_output
from divingbell.agent.inventory import inventory, with_inventory
from divingbell.agent.limits import AgentLimits
from divingbell.agent.mode_choice import ModeChoice
from divingbell.agent.model import (
    CallPiece,
    Ending,
    Model,
    ModelFailed,
    ModelRequest,
    ModelUsage,
    Pause,
    Reply,
    TextPiece,
    ThinkingPiece,
)
from divingbell.agent.purse import Purse
from divingbell.agent.tools import AgentTool, BadArguments, arguments_of
from divingbell.errors import ConfigError
from divingbell.gateway.context import Asker
from divingbell.session.base import SessionHandle

INTERRUPTED = "[interrupted by the person]"
NOT_RUN = "[not run: the person has interrupted]"
SILENT = "[no answer]"
CUT_SHORT: Mapping[Ending, str] = {
    "cut": "[the reply ended here, before it was complete; nothing of it was run]",
    "length": "[the reply was too long and was cut off here; nothing of it was run]",
    "refused": "[the provider refused the rest of the reply; nothing of it was run]",
}
"""What the model reads at the end of a reply of its own that is not whole."""
OnEnd = Callable[[str, ModelUsage, int], None]
"""Takes why an answer has ended, what it has cost, and its requests to the model."""
Hide = Callable[[str], Awaitable[str]]
"""Returns the person's words as a model may read them."""
OTHER_WAY = (
    "of {name} and the model so far one calls tools and the other does not, so it can't go on with "
    "this conversation: begin a new one with it"
)
NO_SUCH_TOOL = "there is no tool {name!r:.80}: the tools are {tools}"


class Agent:
    """A conversation of a person with a model that works in a session."""

    def __init__(
        self,
        session: SessionHandle,
        model: Model,
        instructions: str,
        *,
        limits: AgentLimits | None = None,
        tools: Iterable[AgentTool] = (),
        code: bool = True,
        asker: Asker | None = None,
        history: Iterable[Entry] = (),
        mode: ModeChoice | None = None,
        on_end: OnEnd = lambda reason, usage, turns: None,
        hide: Hide | None = None,
        folders: Mapping[str, str] | None = None,
    ) -> None:
        """Make one; `tools` are those that it calls without code, `code` is whether it writes any.

        `asker` is asked what servers want to know of the person. `history` goes on with an earlier
        conversation. `mode` is what the first answer tells the person of how tools are used.
        `on_end` hears of each answer that has ended, however it did. `hide` is what the person's
        words pass before the model reads them. `folders` are those whose tables servers offer, by
        server.
        """
        self.session = session
        self.model = model
        self.instructions = instructions
        self.limits = limits or AgentLimits()
        self.history: list[Entry] = list(history)
        self.mode = mode
        """How tools are used, where that was decided."""
        self.purse = Purse(self.limits)
        self._code = CodeTool(session, self.limits.output_tokens, asker)
        offered: list[AgentTool] = [self._code] if code else []
        self._tools = {tool.definition.name: tool for tool in [*offered, *tools]}
        self._definitions = tuple(tool.definition for tool in self._tools.values())
        self._context = Context(model.window)
        self._on_end = on_end
        self._happened: list[AgentEvent] = []
        """What others have told, and is yielded between the events of the cell."""
        self.tells_mode = mode is not None and bool(mode.why)
        """Whether the next answer tells the person how tools are used."""
        self._hide = hide
        self._folders = folders
        self._begun = [place for place, entry in enumerate(self.history) if _is_question(entry)]
        """Where in the history each exchange begins."""
        self._told = ""
        """The inventory that the model has read last."""
        self._besides: Besides | None = None
        self._turns = 0
        """Requests to the model for the answer that is being made."""

    def tell(self, event: AgentEvent) -> None:
        """Have an event shown that happens while a cell runs."""
        self._happened.append(event)

    def take_turns(self, turn: Turn) -> None:
        """Have each cell wait for its turn, where others run cells as well."""
        self._code.turn = turn

    @property
    def total(self) -> ModelUsage:
        """The cost of all answers together, helpers included."""
        return self.purse.total

    async def ask(self, text: str) -> AsyncGenerator[AgentEvent]:
        """Yield what happens until the model has answered; the last event is `Done`.

        Whoever stops reading, by `aclose()` or by cancelling, interrupts the model or the cell;
        what was shown until then stays in the conversation.

        Raises:
            ModelFailed: the model gave no reply. Nothing of one is in the conversation, nor is the
                question if it was the first reply to it.
            SessionClosed: the session has ended.
        """
        asked = await self._with_inventory(text)
        if self._hide is not None:
            asked = await self._hide(asked)
        self._begun.append(len(self.history))
        self.history.append(Asked(asked))
        self._turns = 0
        self.purse.begin()
        self._code.failed_in_a_row = 0
        if self.tells_mode:
            self.tells_mode = False
            assert self.mode is not None
            yield Notice(f"mode {self.mode.mode}: {self.mode.why}")
        ended = "interrupted"
        try:
            async with contextlib.aclosing(self._replies()) as replies:
                async for event in replies:
                    if isinstance(event, Done):
                        ended = event.reason
                    yield event
        except ModelFailed:
            ended = "failed"
            raise
        finally:
            if self._turns:
                self._on_end(ended, self.purse.answer, self._turns)

    async def _replies(self) -> AsyncGenerator[AgentEvent]:
        """Have the model reply, and run what it calls, until there is no more."""
        while True:
            if notice := await self._make_room():
                yield notice
            sent = list(self.history)
            reply: Reply | None = None
            try:
                async with contextlib.aclosing(self._turn()) as turn:
                    async for event in turn:
                        if isinstance(event, Reply):
                            reply = event
                        else:
                            yield event
            except ModelFailed:
                if not self._turns:
                    self.undo()  # else it would be asked twice, once it is asked again
                raise
            assert reply is not None
            self._turns += 1
            self.purse.spend(reply.usage)
            yield UsageTold(reply.usage, self.total, self.model.window)
            calls = self._calls_of(reply)
            stop = _stop_of(reply, calls)
            if stop is None:
                async with contextlib.aclosing(self._run(calls)) as running:
                    async for happened in running:
                        yield happened
                stop = self._limit_reached()
            if notice := await self._cut(sent, reply.usage.input_tokens):
                yield notice
            if stop is not None:
                yield Done(stop, reply.entry.text, self.purse.answer, self._turns)
                return

    def undo(self) -> bool:
        """Take back the last exchange; what its code has made stays in the session.

        Returns:
            Whether there was one.
        """
        if not self._begun:
            return False
        del self.history[self._begun.pop() :]
        self._told = ""  # it may have been told in what is gone
        return True

    def forget(self) -> None:
        """Begin the conversation anew; the session stays as it is."""
        self.history.clear()
        self._begun.clear()
        self._told = ""

    def use(self, model: Model) -> None:
        """Go on with another model.

        Raises:
            ConfigError: it reads conversations in another way.
        """
        if model.calls_tools != self.model.calls_tools:
            raise ConfigError(OTHER_WAY.format(name=model.name))
        self.model = model
        self._context = Context(model.window)
        if not model.sees_images:
            self.history[:] = map(_without_images, self.history)

    async def _make_room(self) -> Notice | None:
        """Keep what is sent within the model's window; return what the person should know."""
        if self._besides is None:
            self._besides = Besides(self.told)
        shortened = await self._context.fit(self.history, self._besides)
        if not shortened:
            return None
        return Notice(f"to make room, {shortened} earlier outputs were shortened for the model")

    async def _cut(self, sent: list[Entry], read: int) -> Notice | None:
        """Return what the person should know, if the server has read a part of what was sent.

        It is looked at when the calls have been run: nothing of them waits for the tokenizer.
        """
        assert self._besides is not None
        ours = await self._besides.tokens() + await self._context.tokens_of(sent)
        self.purse.spend(ModelUsage(counted_tokens=ours))
        if not was_cut(ours, read):
            return None
        return Notice(
            f"{self.model.name} has read {read:,} tokens of about {ours:,}: its server has cut the "
            "conversation. Give it a larger window (for Ollama: OLLAMA_CONTEXT_LENGTH)"
        )

    @property
    def told(self) -> str:
        """All that the model is told before the conversation: the instructions, and its tools."""
        return self._request().besides

    def _request(self) -> ModelRequest:
        return ModelRequest(self.instructions, tuple(self.history), self._definitions)

    # One reply of the model

    async def _turn(self) -> AsyncGenerator[AgentEvent | Reply]:
        request = self._request()
        text: list[str] = []
        done = False
        try:
            async for piece in self.model.stream(request):
                if isinstance(piece, TextPiece):
                    text.append(piece.text)
                    yield Text(piece.text)
                elif isinstance(piece, ThinkingPiece):
                    yield Thinking(piece.text)
                elif isinstance(piece, CallPiece):
                    code = code_so_far(piece.arguments) if piece.name == EXECUTE else None
                    if code is not None:
                        yield CodeWritten(piece.id, code)
                elif isinstance(piece, Pause):
                    yield Notice(f"{piece.reason}; asking again in {math.ceil(piece.seconds)} s")
                else:
                    self.history.append(_as_kept(piece))
                    done = True
                    yield piece
        except BaseException as error:
            if not done and not isinstance(error, Exception):
                self.history.append(Replied("".join(text) + INTERRUPTED))
            raise

    def _calls_of(self, reply: Reply) -> list[Call]:
        """Return what is to be run. A reply that was cut short has nothing that may run."""
        if reply.ending in CUT_SHORT:
            return []
        if self.model.calls_tools:
            return list(reply.entry.calls)
        blocks = fences.blocks(reply.entry.text)
        return [Call(f"block_{number}", EXECUTE, block) for number, block in enumerate(blocks, 1)]

    # The calls of a reply

    async def _run(self, calls: list[Call]) -> AsyncGenerator[AgentEvent]:
        """Run calls one after the other; each gets an answer, whatever happens."""
        left = list(calls)
        shown: list[str] = []
        try:
            while left:
                shown.clear()
                async with contextlib.aclosing(self._answer(left[0])) as answering:
                    async for event in answering:
                        if isinstance(event, Answered):
                            self._answered(event)
                            left.pop(0)
                        else:
                            shown += _shown(event)
                            yield event
                        while self._happened:
                            yield self._happened.pop(0)
        finally:
            for number, call in enumerate(left):
                seen = "".join(shown) + INTERRUPTED if number == 0 else NOT_RUN
                self._answered(Answered(call, seen))

    async def _answer(self, call: Call) -> AsyncGenerator[AgentEvent | Answered]:
        tool = self._tools.get(call.name)
        try:
            if tool is None:
                raise BadArguments(
                    NO_SUCH_TOOL.format(name=call.name, tools=", ".join(self._tools))
                )
            arguments = arguments_of(call) if self.model.calls_tools else {"code": call.arguments}
            async with contextlib.aclosing(tool.run(call, arguments)) as running:
                async for event in running:
                    yield event
        except BadArguments as error:
            yield Notice(str(error))
            yield Answered(call, str(error))

    def _answered(self, entry: Answered) -> None:
        if not self.model.sees_images:
            entry = replace(entry, images=())
        if self.model.calls_tools:
            self.history.append(entry)
        else:  # who calls no tools is told by the person
            self.history.append(Asked(OUTPUT + entry.text, entry.images))

    def _limit_reached(self) -> StopReason | None:
        if self._code.failed_in_a_row >= self.limits.failing_cells:
            return "failing"
        return "turns" if self._turns >= self.limits.turns else self.purse.used_up

    async def _with_inventory(self, text: str) -> str:
        """Return the person's words, and at the end what is there, if that has changed."""
        now = await inventory(self.session, self._folders)
        if now == self._told:
            return text
        self._told = now
        return with_inventory(text, now)


def _without_images(entry: Entry) -> Entry:
    return entry if isinstance(entry, Replied) or not entry.images else replace(entry, images=())


def _as_kept(reply: Reply) -> Replied:
    """Return a reply as it stays in the conversation, and goes back to the model.

    Providers refuse a conversation with a call that has no answer, and a reply of blanks alone. So
    one that was cut short is kept as words, which say that there was more.
    """
    entry = reply.entry
    if mark := CUT_SHORT.get(reply.ending):
        return Replied(f"{entry.text.rstrip()}\n{mark}".lstrip(), thinking=entry.thinking)
    if not entry.calls and not entry.text.strip():
        return Replied(SILENT, thinking=entry.thinking)
    return entry


def _is_question(entry: Entry) -> bool:
    return isinstance(entry, Asked) and not is_output(entry)


def _stop_of(reply: Reply, calls: list[Call]) -> StopReason | None:
    if reply.ending in ("length", "refused", "cut"):
        return reply.ending
    if calls:
        return None
    return "answered" if reply.entry.text.strip() else "empty"


def _shown(event: AgentEvent) -> list[str]:
    """Return the text of an event of a cell, for the case that it is interrupted."""
    if isinstance(event, CellEvent) and event.event.type in ("stdout", "stderr"):
        return [event.event.text]
    return []
