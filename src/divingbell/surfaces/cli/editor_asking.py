"""The person at an editor, who is asked by requests for permission: for approvals, and for what
servers want to know.

An editor shows a text and some answers to choose from. So a question that takes typing can't be put
there: it is declined, and the person is told why.
"""

import itertools
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import acp
from acp import schema

from divingbell.gateway.policy.approval_form import ElicitingApprover
from divingbell.gateway.policy.approvals import Word
from divingbell.surfaces.cli.editor_updates import noted
from divingbell.text import one_line, uncovered, visible

if TYPE_CHECKING:
    from mcp_types import ElicitRequestParams, ElicitResult

MAX_MESSAGE = 4000
MAX_TITLE = 200
MAX_CHOICES = 12
REFUSE = "no"
NOT_HERE = "a server asks what can't be typed in an editor, so it was declined: {question}"
_DECISIONS = {word: choice for choice, word in ElicitingApprover.CHOICES.items()}
_APPROVALS: tuple[tuple[Word, str, schema.PermissionOptionKind], ...] = (
    ("yes", "Allow", "allow_once"),
    ("session", "Allow all like this in this conversation", "allow_always"),
    ("no", "Refuse", "reject_once"),
)
_BOOLEANS: dict[str, bool] = {"Yes": True, "No": False}

Hide = Callable[[list[str]], Awaitable[list[str]]]
"""Returns texts as another program may read them."""


class NotChosen(Exception):
    """Raised for a form that can't be answered by one choice."""


@dataclass(frozen=True, slots=True)
class _Choice:
    """One answer to a form."""

    name: str
    content: dict[str, Any]


class PersonAtEditor:
    """Asks the person in whose editor a conversation is open."""

    def __init__(self, editor: Any, conversation: str, hide: Hide) -> None:
        """`hide` returns what servers say with tokens for values: an editor is a program."""
        self._editor = editor
        self._conversation = conversation
        self._hide = hide
        self._numbers = itertools.count(1)

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask whether a call may be made; what is really sent is shown."""
        from mcp_types import ElicitResult

        options = [
            schema.PermissionOption(option_id=word, name=name, kind=kind)
            for word, name, kind in _APPROVALS
        ]
        chosen = await self._chosen(uncovered(params.message), options)
        word: Word = next((word for word, *_ in _APPROVALS if word == chosen), "no")
        return ElicitResult(action="accept", content={"decision": _DECISIONS[word]})

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask what a server wants to know, where one choice answers it."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        [message] = await self._hide([visible(params.message, MAX_MESSAGE)])
        if not isinstance(params, ElicitRequestFormParams):
            shown = f"{message}\n{one_line(params.url, MAX_MESSAGE)}"
            choices = [_Choice("I have gone there", {})]
        else:
            try:
                title, choices = _choices(params.requested_schema)
            except NotChosen:
                question = one_line(message, MAX_TITLE)
                await self._tell(NOT_HERE.format(question=question))
                return ElicitResult(action="decline")
            shown = f"{message}\n{title}" if title else message
        names = await self._hide([choice.name for choice in choices])
        options = [
            schema.PermissionOption(option_id=f"answer-{place}", name=name, kind="allow_once")
            for place, name in enumerate(names)
        ]
        refuse = schema.PermissionOption(option_id=REFUSE, name="Refuse", kind="reject_once")
        chosen = await self._chosen(uncovered(shown), [*options, refuse])
        for option, choice in zip(options, choices, strict=True):
            if option.option_id == chosen:
                return ElicitResult(action="accept", content=choice.content)
        return ElicitResult(action="decline" if chosen else "cancel")

    async def _chosen(self, asked: str, options: list[schema.PermissionOption]) -> str:
        """Return the option that the person has chosen; empty for none."""
        call = schema.ToolCallUpdate(
            tool_call_id=f"question-{next(self._numbers)}",
            title=one_line(asked.partition("\n")[0], MAX_TITLE),
            kind="other",
            status="pending",
            content=[acp.tool_content(acp.text_block(asked))],
        )
        response = await self._editor.request_permission(
            session_id=self._conversation, tool_call=call, options=options
        )
        return str(getattr(response.outcome, "option_id", ""))

    async def _tell(self, words: str) -> None:
        await self._editor.session_update(session_id=self._conversation, update=noted(words))


def _choices(form: Mapping[str, Any]) -> tuple[str, list[_Choice]]:
    """Return the title of the one field that must be answered, and what it may be.

    Raises:
        NotChosen: there are several, or it takes typing.
    """
    fields = form.get("properties") or {}
    if not isinstance(fields, Mapping):
        raise NotChosen
    if not fields:
        return "", [_Choice("Yes", {})]
    required = form.get("required") or list(fields)
    if not isinstance(required, Sequence) or len(required) != 1 or required[0] not in fields:
        raise NotChosen
    name, field = required[0], fields[required[0]]
    if not isinstance(field, Mapping):
        raise NotChosen
    title = one_line(str(field.get("title") or field.get("description") or name), MAX_TITLE)
    answers: Mapping[str, Any] = _BOOLEANS
    if field.get("type") != "boolean":
        answers = _named(field.get("enum"))
    return title, [_Choice(words, {name: value}) for words, value in answers.items()]


def _named(values: Any) -> dict[str, Any]:
    """Return what can be chosen, by what is shown of it.

    Raises:
        NotChosen: there is nothing, too much, or two that look the same.
    """
    if not isinstance(values, list) or not 0 < len(values) <= MAX_CHOICES:
        raise NotChosen
    named = {one_line(str(value), MAX_TITLE): value for value in values}
    if len(named) != len(values):
        raise NotChosen
    return named
