"""Completion at the shell's prompt, on Tab: names, attributes and files of the session, and the
shell's own commands."""

from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import suppress

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from divingbell.errors import DivingbellError
from divingbell.escapes import one_line
from divingbell.session.base import SessionHandle


class ShellCompleter(Completer):
    """Completes by asking the session: its objects are looked at within its own walls."""

    def __init__(self, session: Callable[[], SessionHandle], commands: Sequence[str]) -> None:
        self._session = session
        self._commands = commands
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """Return nothing: completions take an answer of the session, see the async form."""
        return iter(())

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        with suppress(DivingbellError):  # whoever runs something next is told
            for found in await self._found(document, event):
                if found.text == one_line(found.text):
                    yield found

    async def _found(self, document: Document, event: CompleteEvent) -> list[Completion]:
        command, space, rest = document.text_before_cursor.partition(" ")
        if not command.startswith("."):
            return await self._of_code(document)
        if not space:
            return _beginning_with(command, self._commands)
        if command == ".put":
            return list(self._paths.get_completions(Document(rest.lstrip()), event))
        if command == ".get":
            files = await self._session().files.list()
            return _beginning_with(rest.lstrip(), [file.path for file in files])
        return []

    async def _of_code(self, document: Document) -> list[Completion]:
        at = document.cursor_position
        found = await self._session().complete(document.text, at)
        return [
            Completion(item.text, item.start - at)
            for item in found
            if item.end == at and not _is_command(document.text[: item.start] + item.text)
        ]


def _is_command(line: str) -> bool:
    """Whether it is for the shell itself, which acts on this machine: code does not say those."""
    return line.lstrip().startswith(".")


def _beginning_with(start: str, names: Sequence[str]) -> list[Completion]:
    return [Completion(name, -len(start)) for name in names if name.startswith(start)]
