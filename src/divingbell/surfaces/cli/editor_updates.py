"""The events of an agent as updates of the Agent Client Protocol: code is a call of a tool."""

import base64
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import acp
from acp import schema

from divingbell.agent.code_tool import as_read, images_of
from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    CellStarted,
    CodeWritten,
    Done,
    HelperEnded,
    HelperStarted,
    Notice,
    StopReason,
    Text,
    Thinking,
    ToolEnded,
    ToolStarted,
    UsageTold,
)
from divingbell.agent.exporting import fenced
from divingbell.agent.history import Answered, Asked, Entry, Image, is_output
from divingbell.agent.inventory import without_inventory
from divingbell.agent.records import ShownCell, cells_in
from divingbell.surfaces.cli.terminal.costs import words_on_helper
from divingbell.text import uncovered

MOST_OUTPUT = 20_000
"""Characters of an output that an editor is sent: the last ones."""
PAUSE = 0.2
"""Seconds between two updates of an output that goes on."""
ENDINGS: dict[StopReason, schema.StopReason] = {
    "answered": "end_turn",
    "turns": "max_turn_requests",
    "tokens": "max_tokens",
    "money": "max_tokens",
    "length": "max_tokens",
    "refused": "refusal",
    "failing": "end_turn",
    "cut": "end_turn",
    "empty": "end_turn",
}
WORDS: dict[StopReason, str] = {
    "turns": "stopped at the limit of turns",
    "tokens": "stopped at the limit of tokens",
    "money": "stopped at the limit of money",
    "length": "the reply was too long and is not complete",
    "failing": "stopped after too many cells that failed in a row",
    "cut": "the reply ended before it was complete; nothing of it was run",
    "empty": "the model gave no answer",
}
Update = Any
"""One of the many kinds of updates that the protocol has."""


@dataclass
class _Open:
    """A call that goes on."""

    id: str
    code: str = ""
    lines: int = 0
    output: str = ""
    sent: float = 0.0


@dataclass
class Updates:
    """Translates the events of one conversation, one after the other."""

    _calls: dict[str, _Open] = field(default_factory=dict)
    _helpers: dict[tuple[int, str], str] = field(default_factory=dict)
    """Calls that stand for helpers, by their numbers and tasks."""
    _count: int = 0

    def of(self, event: AgentEvent) -> Iterator[Update]:
        """Yield what an editor is told of an event."""
        if isinstance(event, Text):
            yield acp.update_agent_message_text(uncovered(event.text))
        elif isinstance(event, Thinking):
            yield acp.update_agent_thought_text(uncovered(event.text))
        elif isinstance(event, Notice):
            yield noted(event.text)
        elif isinstance(event, CodeWritten | CellStarted | CellEvent | CellEnded):
            yield from self._of_cell(event)
        elif isinstance(event, ToolStarted | ToolEnded):
            yield from self._of_tool(event)
        elif isinstance(event, HelperStarted | HelperEnded):
            yield from self._of_helper(event)
        elif isinstance(event, UsageTold):
            yield from _usage(event)
        elif isinstance(event, Done):
            yield from self.interrupted()  # what could not be run has had no other end
            if event.reason in WORDS:
                yield noted(WORDS[event.reason])

    def interrupted(self) -> Iterator[Update]:
        """Yield the end of all calls that go on."""
        for call in self._calls.values():
            yield acp.update_tool_call(call.id, status="failed")
        for helper in self._helpers.values():
            yield acp.update_tool_call(helper, status="failed")
        self._calls.clear()
        self._helpers.clear()

    def _of_cell(
        self, event: CodeWritten | CellStarted | CellEvent | CellEnded
    ) -> Iterator[Update]:
        call = self._calls.get(event.call)
        if call is None:
            call = self._begin(event.call)
            yield acp.start_tool_call(call.id, "Python", kind="execute", status="pending")
        if isinstance(event, CodeWritten):
            call.code = event.code
            if call.lines != (lines := event.code.count("\n")):  # not with each letter
                call.lines = lines
                yield acp.update_tool_call(call.id, content=_content(call.code))
        elif isinstance(event, CellStarted):
            call.code = event.code
            given = {"code": event.code}
            content = _content(call.code)
            yield acp.update_tool_call(
                call.id, status="in_progress", content=content, raw_input=given
            )
        elif isinstance(event, CellEvent):
            yield from self._output(call, event)
        else:
            del self._calls[event.call]
            result = event.result
            content = _content(call.code, as_read(result), images_of(result))
            status: schema.ToolCallStatus = "completed" if result.status == "ok" else "failed"
            yield acp.update_tool_call(call.id, status=status, content=content)

    def _output(self, call: _Open, event: CellEvent) -> Iterator[Update]:
        if event.event.type not in ("stdout", "stderr"):
            return
        call.output = (call.output + event.event.text)[-MOST_OUTPUT:]
        now = time.monotonic()
        if now - call.sent >= PAUSE:
            call.sent = now
            yield acp.update_tool_call(call.id, content=_content(call.code, call.output))

    def _of_tool(self, event: ToolStarted | ToolEnded) -> Iterator[Update]:
        if isinstance(event, ToolStarted):
            call = self._begin(event.call)
            content = [_block(fenced("json", uncovered(event.arguments)))]
            yield acp.start_tool_call(
                call.id, uncovered(event.name), kind="other", status="in_progress", content=content
            )
        elif (ended := self._calls.pop(event.call, None)) is not None:
            content = [_block(fenced("text", uncovered(event.text[-MOST_OUTPUT:])))]
            status: schema.ToolCallStatus = "failed" if event.failed else "completed"
            yield acp.update_tool_call(ended.id, status=status, content=content)

    def _of_helper(self, event: HelperStarted | HelperEnded) -> Iterator[Update]:
        who = (event.helper, event.task)
        content = [_block(uncovered(words_on_helper(event)))]
        if isinstance(event, HelperStarted):
            self._helpers[who] = made = self._name()
            title = uncovered(f"Helper {event.helper}: {event.task}")
            yield acp.start_tool_call(
                made, title, kind="other", status="in_progress", content=content
            )
        elif (ended := self._helpers.pop(who, None)) is not None:
            status: schema.ToolCallStatus = "completed" if event.outcome == "answered" else "failed"
            yield acp.update_tool_call(ended, status=status, content=content)

    def _begin(self, call: str) -> _Open:
        self._calls[call] = made = _Open(self._name())
        return made

    def _name(self) -> str:
        """Return the next name of a call: not every model gives each call one of its own."""
        self._count += 1
        return f"call-{self._count}"

    def replayed(
        self, entries: Sequence[Entry], shown: Mapping[int, ShownCell]
    ) -> Iterator[Update]:
        """Yield a conversation that was kept, as it would be told again."""
        cells = cells_in(entries, shown)
        for place, entry in enumerate(entries):
            if place in cells:
                cell = cells[place]
                yield acp.start_tool_call(
                    self._name(),
                    "Python",
                    kind="execute",
                    status="completed" if cell.status == "ok" else "failed",
                    content=_content(cell.code, cell.text, cell.images),
                    raw_input={"code": cell.code},
                )
            elif isinstance(entry, Asked):
                if not is_output(entry):
                    words = uncovered(without_inventory(entry.text))
                    yield acp.update_user_message_text(words)
            elif not isinstance(entry, Answered) and entry.text:
                yield acp.update_agent_message_text(uncovered(entry.text))


def noted(text: str) -> Update:
    """Return what is said to the person and not by the model."""
    return acp.update_agent_message_text(f"\n\n[{uncovered(text)}]\n\n")


def _content(code: str, output: str = "", images: tuple[Image, ...] = ()) -> list[Any]:
    blocks = [_block(fenced("python", uncovered(code)))]
    if output:
        blocks.append(_block(fenced("text", uncovered(output[-MOST_OUTPUT:]))))
    for image in images:
        data = base64.b64encode(image.data).decode()
        blocks.append(acp.tool_content(acp.image_block(data, image.type)))
    return blocks


def _block(text: str) -> Any:
    return acp.tool_content(acp.text_block(text))


def _usage(event: UsageTold) -> Iterator[Update]:
    if event.window is None:
        return
    cost = event.total.cost
    yield schema.UsageUpdate(
        session_update="usage_update",
        used=event.usage.input_tokens + event.usage.output_tokens,
        size=event.window,
        cost=None if cost is None else schema.Cost(amount=cost, currency="USD"),
    )
