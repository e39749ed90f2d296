"""`divingbell chat --acp`: the agent for editors that speak the Agent Client Protocol.

An editor is a program, which may show what it gets to other models: tokens stay tokens there. An
approval shows what is really sent, as everywhere.
"""

import asyncio
import contextlib
import logging
import math
import os
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import acp
from acp import RequestError, schema

from divingbell import logs
from divingbell.agent.agent import Agent
from divingbell.agent.events import AgentEvent, Done
from divingbell.agent.history import Entry
from divingbell.agent.keeper import Keeper
from divingbell.agent.keeping import Conversation, Conversations
from divingbell.agent.model import Model, ModelFailed
from divingbell.agent.opening import open_agent
from divingbell.agent.resuming import resume
from divingbell.app import Divingbell
from divingbell.errors import ConfigError, DivingbellError, InvalidInput
from divingbell.gateway.policy.approval_form import ElicitingApprover
from divingbell.gateway.policy.approvals import Answer, Approval, NobodyThere
from divingbell.session.base import SessionHandle
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import chat_files, exit_status
from divingbell.surfaces.cli.chat_options import Paths
from divingbell.surfaces.cli.editor_asking import PersonAtEditor
from divingbell.surfaces.cli.editor_updates import ENDINGS, Updates, noted

log = logs.logger("divingbell")

MOST_CONVERSATIONS = 20
"""Conversations that are open at once in one editor."""
MOST_ATTACHED = 64 << 20
"""Bytes of a file that is attached to a question."""
BUSY = "an answer is under way: cancel it, or wait for its end"
_FAILED, _NO_KEY, _NOT_USABLE = -32603, -32000, -32602
"""Codes of errors, as the protocol has them."""

NOTHING = Paths()

MakeModel = Callable[[], Awaitable[Model]]


@dataclass
class _Open:
    """A conversation that an editor has open."""

    session: SessionHandle
    agent: Agent
    undo: contextlib.AsyncExitStack
    person: PersonAtEditor
    untold: str
    """Which files of the person are where, until the model knows."""
    keeper: Keeper | None = None
    updates: Updates = field(default_factory=Updates)
    answering: asyncio.Task[schema.StopReason] | None = None

    async def ask(self, text: str) -> AsyncGenerator[AgentEvent]:
        asked = (self.keeper or self.agent).ask(text + self.untold)
        async with contextlib.aclosing(asked) as events:
            async for event in events:
                self.untold = ""
                yield event


class EditorAgent:
    """Answers the requests of one editor."""

    def __init__(
        self,
        settings: Settings,
        make_model: MakeModel,
        conversations: Conversations | None = None,
        paths: Paths = NOTHING,
    ) -> None:
        """Make one; without `conversations` nothing is kept. `paths` are what each of its
        conversations is about: files are copied in, folders are in the settings already."""
        self._bell = Divingbell.of(settings, on_approval=self._approve)
        self._make_model = make_model
        self._conversations = conversations
        self._settings = settings
        self._paths = paths
        self._open: dict[str, _Open] = {}
        self._model: Model | None = None
        self._model_made = asyncio.Lock()
        self._editor: Any = None

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator["EditorAgent"]:
        """Have a sandbox ready, and end all that is open at the end of the block."""
        async with self._bell.starting():
            try:
                yield self
            finally:
                for name in list(self._open):
                    await self._close(name)
                if self._model is not None:
                    await self._model.close()

    # What the SDK calls

    def on_connect(self, conn: Any) -> None:
        """Take the line to the editor."""
        self._editor = conn

    async def initialize(self, protocol_version: int, **_: Any) -> schema.InitializeResponse:
        """Say what this agent can do."""
        from importlib.metadata import version

        kept = self._conversations is not None
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="divingbell", version=version("divingbell")),
            agent_capabilities=schema.AgentCapabilities(
                load_session=kept,
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities() if kept else None
                ),
            ),
        )

    async def new_session(
        self, cwd: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.NewSessionResponse:
        """Begin a conversation."""
        self._check_room()
        with _told():
            kept = self._conversations
            conversation = None if kept is None else await asyncio.to_thread(kept.begin)
            name = conversation.name if conversation else secrets.token_hex(8)
            await self._begin(name, conversation)
        self._tell_of_servers(name, mcp_servers)
        return schema.NewSessionResponse(session_id=name)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Sequence[Any] | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        """Go on with a conversation: all of it is told again, then what has not come back."""
        if self._conversations is None:
            raise RequestError(_NOT_USABLE, "conversations are not kept here")
        self._check_room()
        if session_id in self._open:
            raise RequestError(_NOT_USABLE, "this conversation is open already")
        with _told():
            conversation = await asyncio.to_thread(self._conversations.load, session_id)
            opened, text = await self._resume(conversation)
        entries, cells = conversation.written.entries, conversation.cells
        for update in opened.updates.replayed(entries, cells):
            await self._editor.session_update(session_id=session_id, update=update)
        await self._editor.session_update(session_id=session_id, update=noted(text))
        self._tell_of_servers(session_id, mcp_servers)
        return schema.LoadSessionResponse()

    async def list_sessions(self, cwd: str | None = None, **_: Any) -> schema.ListSessionsResponse:
        """List the conversations that are kept."""
        with _told():
            found = await asyncio.to_thread(self._conversations.list) if self._conversations else []
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=info.name,
                    cwd=cwd or os.getcwd(),
                    title=info.title or info.name,
                    updated_at=datetime.fromtimestamp(info.used, UTC).isoformat(),
                )
                for info in found
            ]
        )

    async def prompt(
        self, session_id: str, prompt: Sequence[Any], **_: Any
    ) -> schema.PromptResponse:
        """Answer a question."""
        opened = self._of(session_id)
        if opened.answering is not None:
            raise RequestError(_NOT_USABLE, BUSY)
        opened.answering = asyncio.create_task(self._answer(session_id, opened, prompt))
        try:
            await asyncio.wait({opened.answering})
            if opened.answering.cancelled():
                for update in opened.updates.interrupted():
                    await self._editor.session_update(session_id=session_id, update=update)
                return schema.PromptResponse(stop_reason="cancelled")
            with _told():
                return schema.PromptResponse(stop_reason=opened.answering.result())
        finally:
            if not opened.answering.done():  # the editor is gone
                opened.answering.cancel()
                await asyncio.wait({opened.answering})
            opened.answering = None

    async def cancel(self, session_id: str, **_: Any) -> None:
        """Stop the model or the cell."""
        opened = self._open.get(session_id)
        if opened is not None and opened.answering is not None:
            opened.answering.cancel()

    # The conversations

    def _of(self, name: str) -> _Open:
        found = self._open.get(name)
        if found is None:
            raise RequestError(_NOT_USABLE, "there is no such conversation open: begin or load one")
        return found

    def _check_room(self) -> None:
        if len(self._open) >= MOST_CONVERSATIONS:
            raise RequestError(
                _NOT_USABLE, f"{MOST_CONVERSATIONS} conversations are open: restart the agent"
            )

    async def _begin(self, name: str, conversation: Conversation | None) -> _Open:
        async with contextlib.AsyncExitStack() as undo:
            if conversation is not None:
                undo.callback(conversation.close)
            session = await self._session(name, undo)
            return await self._keep(session, conversation, undo.pop_all())

    async def _resume(self, conversation: Conversation) -> tuple[_Open, str]:
        async with contextlib.AsyncExitStack() as undo:
            undo.callback(conversation.close)
            session = await self._session(conversation.name, undo)
            resumed = await resume(conversation, session, self._bell.border)
            history = [*conversation.entries((await self._connected()).name), resumed.entry]
            opened = await self._keep(session, conversation, undo.pop_all(), history)
            return opened, resumed.text

    async def _session(self, name: str, undo: contextlib.AsyncExitStack) -> SessionHandle:
        return await undo.enter_async_context(self._bell.session(name, idle_timeout=math.inf))

    async def _keep(
        self,
        session: SessionHandle,
        conversation: Conversation | None,
        undo: contextlib.AsyncExitStack,
        history: Sequence[Entry] = (),
    ) -> _Open:
        async with undo:
            servers = chat_files.served(self._settings)
            told = chat_files.told(await chat_files.lay_out(session, self._paths, servers))
            person = self._person(session)
            model = await self._connected()
            mode = None if conversation is None else conversation.mode
            agent = await open_agent(
                self._bell, session, model, asker=person, history=history, mode=mode
            )
            opened = _Open(session, agent, undo.pop_all(), person, told)
        if conversation is not None:
            opened.keeper = Keeper(agent, conversation, self._bell.border)
        self._open[session.id] = opened
        return opened

    def _person(self, session: SessionHandle) -> PersonAtEditor:
        async def hide(texts: list[str]) -> list[str]:
            return await self._bell.border.outward(texts, session.principal)

        return PersonAtEditor(self._editor, session.id, hide)

    async def _close(self, name: str) -> None:
        opened = self._open.pop(name)
        if opened.answering is not None:
            opened.answering.cancel()
            await asyncio.wait({opened.answering})
        await opened.undo.aclose()

    async def _connected(self) -> Model:
        async with self._model_made:
            if self._model is None:
                self._model = await self._make_model()
            return self._model

    def _tell_of_servers(self, name: str, servers: Sequence[Any] | None) -> None:
        if servers:
            log.warning(
                "the %d servers of the editor are not used: add them to those of Divingbell "
                "(divingbell import)",
                len(servers),
            )

    # One answer

    async def _answer(self, name: str, opened: _Open, prompt: Sequence[Any]) -> schema.StopReason:
        text = await self._question(opened, prompt)
        stop: schema.StopReason = "end_turn"
        async with contextlib.aclosing(opened.ask(text)) as events:
            async for event in events:
                for update in opened.updates.of(event):
                    await self._editor.session_update(session_id=name, update=update)
                if isinstance(event, Done):
                    stop = ENDINGS[event.reason]
        return stop

    async def _question(self, opened: _Open, prompt: Sequence[Any]) -> str:
        """Return the words of a question; files that are attached go to the workspace."""
        words: list[str] = []
        for block in prompt:
            if isinstance(block, schema.TextContentBlock):
                words.append(block.text)
            elif isinstance(block, schema.EmbeddedResourceContentBlock):
                words.append(await _put_text(opened.session, block.resource))
            elif isinstance(block, schema.ResourceContentBlock):
                words.append(await _put_file(opened.session, block.uri))
        return "\n".join(words)

    # Approvals

    async def _approve(self, approval: Approval) -> Answer:
        """Ask for what code does between cells: there is no question that it belongs to."""
        opened = self._open.get(approval.session)
        if opened is None:
            raise NobodyThere("no editor has this conversation open")
        return await ElicitingApprover(opened.person)(approval)


async def serve(
    settings: Settings,
    make_model: MakeModel,
    conversations: Conversations | None = None,
    paths: Paths = NOTHING,
) -> int:
    """Speak with an editor over stdin and stdout until it has gone; return the exit status.

    Raises:
        ConfigError: stdin or stdout is no pipe.
        DivingbellError: the sandbox can't be started.
    """
    if sys.stdin.isatty() or sys.stdout.isatty():
        raise ConfigError("--acp is for editors, which start it: leave it out to talk here")
    agent: Any = EditorAgent(settings, make_model, conversations, paths)
    logging.getLogger().addFilter(_plain)
    async with agent.running():
        await acp.run_agent(agent)
    return exit_status.OK


def _plain(record: logging.LogRecord) -> bool:
    """Have the protocol's library say in one line what it did not understand."""
    if record.exc_info and record.getMessage().startswith("Error parsing"):
        record.msg, record.args, record.exc_info = "a line of the editor is no JSON", (), None
    return True


@contextlib.contextmanager
def _told() -> Iterator[None]:
    """Tell an editor in words what went wrong."""
    try:
        yield
    except ModelFailed as error:
        raise RequestError(_NO_KEY if error.kind == "key" else _FAILED, str(error)) from error
    except InvalidInput as error:
        raise RequestError(_NOT_USABLE, str(error)) from error
    except DivingbellError as error:
        raise RequestError(_FAILED, str(error)) from error


async def _put_text(session: SessionHandle, resource: Any) -> str:
    name = Path(unquote(urlsplit(resource.uri).path)).name or "attached"
    if not isinstance(resource, schema.TextResourceContents):
        return f"[{name} was attached, which is no text: it was left out]"
    await session.files.put(name, resource.text)
    return f"[attached: /workspace/{name}]"


async def _put_file(session: SessionHandle, uri: str) -> str:
    parts = urlsplit(uri)
    path = Path(unquote(parts.path))
    if parts.scheme != "file" or not path.is_file():
        return f"[a link: {uri}]"
    if path.stat().st_size > MOST_ATTACHED:
        return f"[{path.name} was attached, which is too large: it was left out]"
    await session.files.put(path.name, path)
    return f"[attached: /workspace/{path.name}]"
