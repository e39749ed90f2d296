"""The keeper of a conversation: writes it down while it is held."""

import contextlib
from collections.abc import AsyncGenerator, Coroutine
from typing import Any

from divingbell import logs
from divingbell.agent.agent import Agent
from divingbell.agent.code_tool import as_read, images_of
from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellEvent,
    CellStarted,
    Done,
    Notice,
    Text,
)
from divingbell.agent.history import Answered, Entry, is_output
from divingbell.agent.keeping import Conversation
from divingbell.agent.records import Record, ShownCell, as_data, screened
from divingbell.border.border import Border, Passage
from divingbell.errors import DivingbellError
from divingbell.models import Event
from divingbell.text import one_line

log = logs.logger("divingbell")

FULL = "the conversation has become too long: what comes now is not kept"
NOT_KEPT = "from here on the conversation is not kept: {reason}"
NO_ROOM = "not kept, because there is no room for so much: {names}"
NOT_FILES = "the files of the workspace are not kept this time: {reason}"
MOST_NAMED, MOST_NAME = 5, 80
"""Files that are named, and characters of each."""


class Keeper:
    """Asks an agent, and keeps what is asked and answered.

    All of it passes the border once more before it is written, so that no value is on the disk that
    a model would not see.
    """

    def __init__(self, agent: Agent, conversation: Conversation, border: Border) -> None:
        """Keep this agent's conversation; its history begins with what is kept already."""
        self.agent = agent
        self.conversation = conversation
        self._border = border
        self._principal = agent.session.principal
        if conversation.synced is None:
            conversation.synced = agent.history[: len(conversation.written.entries)]
        self._synced: list[Entry] = conversation.synced
        self._passage: Passage | None = None
        self._codes: dict[str, str] = {}
        self._told: set[str] = set()
        self._failed = False
        self._model = ""
        self._mode = conversation.mode

    async def ask(self, text: str) -> AsyncGenerator[AgentEvent]:
        """Yield what `Agent.ask` does, and `Notice` where something can't be kept.

        Raises what that raises.
        """
        for notice in await self._guarded(self._begin(text)):
            yield notice
        saved = False
        try:
            async with contextlib.aclosing(self.agent.ask(text)) as events:
                async for event in events:
                    if isinstance(event, Done):
                        saved = True
                        for notice in await self.save():
                            yield notice
                    else:
                        for notice in await self._guarded(self._take(event)):
                            yield notice
                    yield event
        finally:
            if not saved:
                await self.save()

    async def save(self) -> list[Notice]:
        """Keep all as it is now: after an answer, and after something was taken back.

        Returns:
            What the person should know of it.
        """
        return await self._guarded(self._save())

    async def forget(self) -> list[Notice]:
        """Forget the conversation with the agent, also on the disk; files stay.

        Returns:
            What the person should know of it.
        """
        self.agent.forget()
        return await self._guarded(self._clear())

    async def _clear(self) -> list[str]:
        self.conversation.clear()
        self._synced, self._model, self._mode = [], "", None
        return await self._save()

    async def _guarded(self, keeping: Coroutine[Any, Any, list[str]]) -> list[Notice]:
        """Keep something. That it can't be is told once, and is no reason to stop the talk."""
        if self._failed:
            keeping.close()
            return []
        try:
            told = await keeping
        except OSError as error:
            self._failed = True
            told = [NOT_KEPT.format(reason=error.strerror)]
        if self.conversation.log.is_full:
            told = [*told, FULL]
        fresh = [text for text in told if text not in self._told]
        self._told.update(fresh)
        return [Notice(text) for text in fresh]

    async def _begin(self, text: str) -> list[str]:
        if self._model != self.agent.model.name:
            self._model = self.agent.model.name
            self.conversation.log.add({"model": self._model})
        self._keep_mode()
        await self._sync()
        [shown] = await self._screened([text])
        self.conversation.log.add({"asking": shown})
        return []

    def _keep_mode(self) -> None:
        mode = self.agent.mode
        if mode is not None and mode != self._mode:
            self._mode = self.conversation.mode = mode
            self.conversation.log.add(mode.as_data())

    async def _take(self, event: AgentEvent) -> list[str]:
        """Write down what an event shows; the entry that has all of it follows when it is there."""
        await self._sync()
        add = self.conversation.log.add
        if isinstance(event, Text):
            # Pieces of one text, in which a value may be cut: the border knows what is certain.
            if self._passage is None:
                self._passage = self._border.passage(self._principal, lambda seconds: None)
            for passed in await self._passage.event(Event("stdout", text=event.text)):
                add({"text": passed.text})
        elif isinstance(event, CellStarted):
            self._codes[event.call] = event.code
        elif isinstance(event, CellEvent) and event.event.type in ("stdout", "stderr"):
            add({"output": event.event.text})
        elif isinstance(event, CellEnded):
            result = event.result
            code = self._codes.pop(event.call, "")
            cell = ShownCell(code, as_read(result), result.status, images_of(result))
            await self._write(cell)
            self.conversation.cells[len(self._synced)] = cell
        return []

    async def _sync(self) -> None:
        """Write what is new in the history, and what is no longer in it."""
        history = self.agent.history
        same = 0
        for before, now in zip(self._synced, history, strict=False):
            if before is not now and not _is_shortened(before, now):
                break
            same += 1
        if same < len(self._synced):
            self.conversation.log.add({"forget": same})
            cells = self.conversation.cells
            self.conversation.cells = {at: cell for at, cell in cells.items() if at < same}
        for entry in history[same:]:
            await self._write(entry)
            self._passage = None
        self._synced = self.conversation.synced = list(history)

    async def _write(self, record: Record) -> None:
        self.conversation.log.add(as_data(await screened(record, self._screened)))

    async def _screened(self, texts: list[str]) -> list[str]:
        return await self._border.outward(texts, self._principal)

    async def _save(self) -> list[str]:
        self._keep_mode()
        await self._sync()
        session = self.agent.session
        told: list[str] = []
        try:
            variables = await session.variables()
            self.conversation.log.add_names({each.name: each.type for each in variables})
            files = await self.conversation.files()
            if left_out := await files.save(session.files):
                names = [one_line(path, MOST_NAME) for path in left_out[:MOST_NAMED]]
                told.append(NO_ROOM.format(names=", ".join(names)))
        except DivingbellError as error:  # the session has ended, or does not answer
            log.debug("the workspace was not kept", exc_info=error)
            told.append(NOT_FILES.format(reason=error))
        self.conversation.log.flush()
        return told


def _is_shortened(before: Entry, now: Entry) -> bool:
    """Whether an output was shortened to make room: the whole of it stays kept."""
    if isinstance(before, Answered) and isinstance(now, Answered):
        return before.call.id == now.call.id
    # Without calls of tools: what comes after the same reply at the same place is the same output.
    return is_output(before) and is_output(now)
