"""Questions of servers, and approvals, in the middle of an answer: output waits meanwhile."""

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from divingbell.errors import DivingbellError
from divingbell.escapes import RESET
from divingbell.gateway.policy.approval_form import ElicitingApprover
from divingbell.surfaces.cli import approving
from divingbell.surfaces.cli.terminal import tty
from divingbell.surfaces.cli.terminal.answers import AnswerScreen
from divingbell.surfaces.cli.terminal.revealing import Reveal
from divingbell.text import one_line, visible

if TYPE_CHECKING:
    from mcp_types import ElicitRequestFormParams, ElicitRequestParams, ElicitResult

MAX_MESSAGE = 4000
MAX_TITLE = 200
MAX_FIELDS = 20
TRIES = 3
_DECISIONS = {word: choice for choice, word in ElicitingApprover.CHOICES.items()}
_YES = {"y": True, "yes": True, "true": True, "n": False, "no": False, "false": False}

Answers = dict[str, str | int | float | bool | list[str] | None]


class NotUnderstood(Exception):
    """Raised for an answer that is none; the text says what is wanted."""


class PersonAtTerminal:
    """Asks the person in whose terminal the answer is shown."""

    def __init__(self, screen: AnswerScreen, hide: Reveal, terminal: str = tty.TERMINAL) -> None:
        """`hide` returns a text with tokens for values, so that these can be shown with marks."""
        self._screen = screen
        self._hide = hide
        self._terminal = terminal

    async def approve(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask whether a call may be made.

        Raises:
            NobodyThere: there is no terminal.
        """
        from mcp_types import ElicitResult

        async with self._screen.lock:
            await self._screen.pause()
            lines = await self._lines(params.message)
            with tty.echo(True):
                word = await approving.ask(lines, self._terminal)
        return ElicitResult(action="accept", content={"decision": _DECISIONS[word]})

    async def elicit(self, params: "ElicitRequestParams") -> "ElicitResult":
        """Ask what a server wants to know, one line for each thing; an empty line leaves it out."""
        from mcp_types import ElicitRequestFormParams, ElicitResult

        async with self._screen.lock:
            await self._screen.pause()
            try:
                with tty.opened(self._terminal) as person, tty.echo(True):
                    person.forget_typed()
                    lines = await self._lines(params.message)
                    await person.write(f"{RESET}\n" + "".join(f"| {line}\n" for line in lines))
                    if isinstance(params, ElicitRequestFormParams):
                        return await _fill_in(person, params)
                    await person.write(f"| {one_line(params.url, MAX_MESSAGE)}\n")
                    agreed = await _ask(person, "Go there (yes or no)", {"type": "boolean"})
                    return ElicitResult(action="accept" if agreed else "decline")
            except (OSError, EOFError):
                return ElicitResult(action="cancel")

    async def _lines(self, message: str) -> list[str]:
        shown = visible(message, MAX_MESSAGE)
        with contextlib.suppress(DivingbellError):  # then values have no marks, and are there
            shown = await self._hide(shown)
        revealer = self._screen.revealer
        await revealer.prepare(shown)
        return [revealer.marked(line) for line in shown.split("\n")]


async def _fill_in(person: tty.Tty, params: "ElicitRequestFormParams") -> "ElicitResult":
    """Ask for each field of a form.

    Raises:
        EOFError: the person has ended it.
        OSError: the terminal can't be used.
    """
    from mcp_types import ElicitResult

    fields = params.requested_schema.get("properties")
    required = params.requested_schema.get("required") or ()
    content: Answers = {}
    if not isinstance(fields, Mapping) or len(fields) > MAX_FIELDS:
        await person.write("| its form can't be filled in here, so it is declined\n")
        return ElicitResult(action="decline")
    for name, schema in fields.items():
        schema = schema if isinstance(schema, Mapping) else {}
        answer = await _ask(person, _title(name, schema, name in required), schema)
        if answer is not None:
            content[name] = answer
        elif name in required:
            await person.write("| declined\n")
            return ElicitResult(action="decline")
    return ElicitResult(action="accept", content=content)


def _title(name: str, schema: Mapping[str, Any], is_required: bool) -> str:
    words = one_line(str(schema.get("title") or schema.get("description") or name), MAX_TITLE)
    choices = schema.get("enum")
    if isinstance(choices, list):
        words += f" ({one_line(', '.join(map(str, choices)), MAX_MESSAGE)})"
    elif schema.get("type") == "boolean":
        words += " (yes or no)"
    if schema.get("default") is not None:
        return f"{words} [{one_line(str(schema['default']), MAX_TITLE)}]"
    return words if is_required else f"{words} (may be left empty)"


async def _ask(
    person: tty.Tty, title: str, schema: Mapping[str, Any]
) -> str | int | float | bool | None:
    """Return the answer to one question; None where there is none.

    Raises:
        EOFError: the person has ended it.
        OSError: the terminal can't be used.
    """
    for _ in range(TRIES):
        await person.write(f"{title}: ")
        line = await person.read_line()
        if line is None:
            await person.write("\n")
            raise EOFError
        text = line.strip()
        if not text:
            default = schema.get("default")
            return default if isinstance(default, str | int | float | bool) else None
        try:
            return _read(text, schema)
        except NotUnderstood as error:
            await person.write(f"| {error}\n")
    return None


def _read(text: str, schema: Mapping[str, Any]) -> str | int | float | bool:
    """Return what was typed as what the form wants.

    Raises:
        NotUnderstood: it is something else.
    """
    kind = schema.get("type")
    if kind == "boolean":
        if (agreed := _YES.get(text.lower())) is None:
            raise NotUnderstood("write yes or no")
        return agreed
    if kind in ("integer", "number"):
        try:
            return int(text) if kind == "integer" else float(text)
        except ValueError:
            raise NotUnderstood("write a number") from None
    choices = schema.get("enum")
    if isinstance(choices, list) and text not in map(str, choices):
        raise NotUnderstood("write one of those that are named")
    return text
