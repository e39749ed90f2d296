"""Conversations with the agent: begun, asked, followed, cancelled, ended; and reveal."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta
from starlette.types import ASGIApp

from divingbell.session.ownership import checked_name
from divingbell.settings.agent import AgentMode
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import as_json, nothing
from divingbell.surfaces.http.api.executions import After, after_of
from divingbell.surfaces.http.conversation import APPROVAL, Conversation
from divingbell.surfaces.http.event_log import Entry
from divingbell.surfaces.http.moments import as_text
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import Refused, count, missing
from divingbell.surfaces.http.streams import MEDIA_TYPE, Stream
from divingbell.surfaces.http.wire import Given, Name, Nothing, Page, Told

MAX_MESSAGE = 1 << 20
MAX_ANSWER = 100
"""Fields of the answer to a question."""


class ConversationGiven(Given):
    """A conversation that is to be begun. The server's settings say which model it is with."""

    mode: AgentMode | None = None
    session: Name | None = None
    """A session of the user's to work in; without one it has its own."""


class ConversationTold(Told):
    """A conversation."""

    id: str
    session: str
    state: Literal["idle", "answering"]
    title: str
    created_at: str
    last_event: int
    """The number of its newest event."""


class ConversationsTold(Told):
    """Conversations of the user, the newest first."""

    items: list[ConversationTold]
    next: str | None


class MessageGiven(Given):
    """What a person says."""

    text: Annotated[str, Meta(min_length=1, max_length=MAX_MESSAGE)]


class Cancelled(Told):
    """Whether an answer was being given."""

    cancelled: bool


class AnswerGiven(Given):
    """The answer to a question, as MCP's elicitation has it."""

    id: Annotated[str, Meta(max_length=64)]
    action: Literal["accept", "decline", "cancel"]
    content: (
        Annotated[
            dict[str, str | int | float | bool | list[str] | None], Meta(max_length=MAX_ANSWER)
        ]
        | None
    ) = None


class RevealGiven(Given):
    """A text with tokens such as `[EMAIL_482715]`, and where it comes from."""

    text: Annotated[str, Meta(max_length=MAX_MESSAGE)]
    session: Name | None = None
    conversation: Annotated[str, Meta(max_length=64)] | None = None


class Revealed(Told):
    """The text with the values that the tokens stand for."""

    text: str


async def create(call: Call, given: ConversationGiven) -> ASGIApp:
    """Begin a conversation with the model that the server's settings name."""
    made = call.service.conversations.create(call.visitor, given.mode, given.session)
    return as_json(described(made), 201)


async def listed(call: Call, given: Page) -> ASGIApp:
    """List the conversations of the user, the newest first."""
    found = call.service.conversations.of(call.visitor)
    part, after = pages.page(found, given, lambda each: each.id)
    return as_json(ConversationsTold(items=[described(each) for each in part], next=after))


async def get(call: Call, given: Nothing) -> ASGIApp:
    """Describe a conversation."""
    return as_json(described(conversation_of(call)))


async def delete(call: Call, given: Nothing) -> ASGIApp:
    """End a conversation, with the session that was opened for it."""
    await call.service.conversations.delete(call.visitor, conversation_of(call))
    return nothing()


async def say(call: Call, given: MessageGiven) -> ASGIApp:
    """Say something, and stream all that happens until it is answered.

    Whoever stops reading does not stop the answer: its events can be followed again.
    """
    conversation = conversation_of(call)
    after = call.service.conversations.ask(call.visitor, conversation, given.text)
    return Stream(_counted(call, conversation, after))


async def events(call: Call, given: After) -> ASGIApp:
    """Stream the events of a conversation after the one that is named, up to the end of the
    answer that is being given."""
    conversation = conversation_of(call)
    after = after_of(call, given, conversation.log.last)
    return Stream(_seen_by(call, conversation, after))


async def cancel(call: Call, given: Nothing) -> ASGIApp:
    """Interrupt the answer that is being given; what was said until then stays."""
    return as_json(Cancelled(cancelled=await conversation_of(call).cancel()))


async def answer(call: Call, given: AnswerGiven) -> ASGIApp:
    """Answer a question that a conversation waits for."""
    from mcp_types import ElicitResult

    question = conversation_of(call).question(given.id)
    if question is None:
        raise missing("question", given.id)
    if question.kind == APPROVAL and not call.visitor.may("approve"):
        words = "this question is about a call of a tool: the scope `approve` is needed for it"
        raise Refused(403, "forbidden", words)
    question.answer.set_result(ElicitResult(action=given.action, content=given.content))
    return nothing()


async def reveal(call: Call, given: RevealGiven) -> ASGIApp:
    """Return a text with the values that its tokens stand for."""
    if (given.session is None) == (given.conversation is None):
        words = "name either the session or the conversation that the text comes from"
        raise Refused(422, "invalid_input", words)
    name = given.session
    if given.conversation is not None:
        found = call.service.conversations.find(call.visitor, given.conversation)
        if found is None:
            raise missing("conversation", given.conversation)
        name = found.session
    session = call.service.bell.owned.find(call.visitor.principal(), checked_name(name))
    if session is None:
        raise missing("session", name or "")
    return as_json(Revealed(text=await session.reveal(given.text)))


async def _counted(
    call: Call, conversation: Conversation, after: int
) -> AsyncGenerator[Entry | None, None]:
    """Yield the events of an answer; what it fails with counts as an answer with it does."""
    async with aclosing(_seen_by(call, conversation, after)) as entries:
        async for entry in entries:
            if entry is not None and entry.name == "failed":
                count(call.scope, msgspec.json.decode(entry.data)["code"])
            yield entry


async def _seen_by(
    call: Call, conversation: Conversation, after: int
) -> AsyncGenerator[Entry | None, None]:
    """Yield the events of a conversation. What a call is to be made with is for those who may
    approve it: nothing is hidden in it."""
    async with aclosing(conversation.follow(after)) as entries:
        async for entry in entries:
            if entry is not None and entry.name == APPROVAL and not call.visitor.may("approve"):
                told = {"id": msgspec.json.decode(entry.data)["id"], "asked": None}
                yield Entry(entry.number, entry.name, msgspec.json.encode(told))
            else:
                yield entry


def conversation_of(call: Call) -> Conversation:
    """Return the conversation that the path names, if it is the visitor's.

    Raises:
        Refused: there is none, or it is another's.
    """
    found = call.service.conversations.find(call.visitor, call.parameter("id"))
    if found is None:
        raise missing("conversation", call.parameter("id"))
    return found


def described(conversation: Conversation) -> ConversationTold:
    """Return a conversation as clients read it."""
    return ConversationTold(
        id=conversation.id,
        session=conversation.session,
        state=conversation.state,
        title=conversation.title,
        created_at=as_text(conversation.created),
        last_event=conversation.log.last,
    )


_ONE = "/conversations/{id}"
_STREAM: dict[str, Any] = {"media_types": (MEDIA_TYPE,)}
OPERATIONS = (
    Operation("POST", "/conversations", "run", create, ConversationGiven,
              answers=ConversationTold, status=201),
    Operation("GET", "/conversations", "read", listed, query=Page, answers=ConversationsTold),
    Operation("GET", _ONE, "read", get, answers=ConversationTold),
    Operation("DELETE", _ONE, "run", delete, status=204),
    Operation("POST", f"{_ONE}/messages", "run", say, MessageGiven, **_STREAM),
    Operation("GET", f"{_ONE}/events", "read", events, query=After, **_STREAM),
    Operation("POST", f"{_ONE}/cancel", "run", cancel, answers=Cancelled),
    Operation("POST", f"{_ONE}/answer", "run", answer, AnswerGiven, status=204),
    Operation("POST", "/reveal", "reveal", reveal, RevealGiven, answers=Revealed),
)  # fmt: skip
