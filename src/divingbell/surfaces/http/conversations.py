"""Conversations: those of all users with the one model that the server's settings name."""

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Iterable
from functools import cached_property

from divingbell.agent.agent import Agent
from divingbell.agent.choosing import choose
from divingbell.agent.model import Model
from divingbell.agent.opening import connect_model, open_agent
from divingbell.app import Divingbell
from divingbell.errors import ConfigError
from divingbell.settings.agent import AgentMode
from divingbell.surfaces.http.conversation import Conversation
from divingbell.surfaces.http.problems import AGAIN, Refused
from divingbell.surfaces.http.queue import Queue, ending
from divingbell.surfaces.http.visitor import Visitor

MOST_OF_USER = 20
MOST_ANSWERS = 4
"""Answers that one user waits for at once."""
MakeModel = Callable[[], Awaitable[Model]]


class Conversations:
    """The conversations of all users, by user and id. They are gone when the server ends."""

    def __init__(self, bell: Divingbell, queue: Queue, make_model: MakeModel | None = None) -> None:
        """`make_model` takes the place of the settings, for a model of the program's own."""
        self._bell = bell
        self._queue = queue
        self._make_model = make_model
        self._model: asyncio.Task[Model] | None = None
        self._found: dict[tuple[str, str], Conversation] = {}

    @cached_property
    def are_possible(self) -> bool:
        """Whether there is a model to talk to."""
        try:
            return self._make_model is not None or bool(choose(self._bell.settings.agent))
        except ConfigError:
            return False

    def create(
        self, visitor: Visitor, mode: AgentMode | None = None, session: str | None = None
    ) -> Conversation:
        """Begin a conversation, in a session of its own or in one of the user's.

        Raises:
            ConfigError: there is no model to talk to.
            Refused: the user has too many.
        """
        if self._make_model is None:
            choose(self._bell.settings.agent)
        if len(list(self.of(visitor))) >= MOST_OF_USER:
            words = f"you have {MOST_OF_USER} conversations: delete one first"
            raise Refused(429, "too_many_conversations", words)
        name = session or f"chat-{secrets.token_hex(8)}"
        made = Conversation(visitor.user, name, mode, owns_session=session is None)
        self._found[visitor.user, made.id] = made
        return made

    def find(self, visitor: Visitor, identifier: str) -> Conversation | None:
        """Return a conversation of the visitor's."""
        return self._found.get((visitor.user, identifier))

    def of(self, visitor: Visitor) -> Iterable[Conversation]:
        """Return the visitor's conversations, the newest first."""
        mine = [each for (user, _), each in self._found.items() if user == visitor.user]
        return reversed(mine)

    def ask(self, visitor: Visitor, conversation: Conversation, text: str) -> int:
        """Begin an answer; return the number of the event after which it is told.

        Raises:
            Refused: it is answering already, the user waits for too many answers, or the server
                ends.
        """
        if self._queue.draining:
            raise ending()
        if conversation.state == "answering":
            words = "the conversation is answering: wait for the end, or cancel it"
            raise Refused(409, "conversation_busy", words)
        waiting = sum(each.state == "answering" for each in self.of(visitor))
        if waiting >= MOST_ANSWERS:
            words = f"you wait for {MOST_ANSWERS} answers already: wait for one to end"
            raise Refused(429, "too_many_requests", words).retry_after(AGAIN)
        return conversation.begin(text, lambda each: self._agent(visitor, each))

    async def delete(self, visitor: Visitor, conversation: Conversation) -> None:
        """End a conversation, with the session that was opened for it."""
        self._found.pop((visitor.user, conversation.id), None)
        await conversation.cancel()
        conversation.log.close()
        if conversation.owns_session:
            await self._bell.owned.close(visitor.principal(), conversation.session)

    def are_answering(self) -> bool:
        """Whether an answer is being given to anybody."""
        return any(each.state == "answering" for each in self._found.values())

    async def cancel_all(self) -> None:
        """Cancel what is being answered."""
        await asyncio.gather(*(each.cancel() for each in self._found.values()))

    async def close(self) -> None:
        """Cancel what is being answered, and let go of the model."""
        await self.cancel_all()
        if self._model is not None:
            self._model.cancel()
            [model] = await asyncio.gather(self._model, return_exceptions=True)
            if not isinstance(model, BaseException):
                await model.close()

    async def _agent(self, visitor: Visitor, conversation: Conversation) -> Agent:
        """Return the agent of a conversation. Where its session has ended it has another one, and
        the conversation goes on."""
        principal = visitor.principal()
        session, _ = await self._bell.owned.open(principal, conversation.session)
        before = conversation.agent
        if before is not None and before.session.key == session.key:
            return before
        agent = await open_agent(
            self._bell,
            session,
            await self._connected(),
            asker=conversation,
            history=() if before is None else before.history,
            mode=conversation.mode,
        )
        agent.take_turns(lambda: self._queue.turn(visitor.user, session.id))
        if before is not None:
            agent.purse.total = before.purse.total
        return agent

    async def _connected(self) -> Model:
        """Return the model; all conversations have the same one."""
        if self._model is None or (self._model.done() and self._model.exception() is not None):
            self._model = asyncio.create_task(self._connect())
        return await asyncio.shield(self._model)

    async def _connect(self) -> Model:
        if self._make_model is not None:
            return await self._make_model()
        settings = self._bell.settings.agent
        # Loading what is needed for it takes a second or two.
        return await asyncio.to_thread(lambda: connect_model(choose(settings), settings))
