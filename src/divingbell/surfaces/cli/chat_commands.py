"""The commands of a chat, which begin with a slash."""

import asyncio
import keyword
import os
import re
import textwrap
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from divingbell.agent.choosing import BY_KEY, choose
from divingbell.agent.history import Replied
from divingbell.border.vault import tokens
from divingbell.errors import DivingbellError
from divingbell.escapes import one_line
from divingbell.settings.agent import AgentMode
from divingbell.surfaces.cli.options import size
from divingbell.surfaces.cli.terminal.costs import usage_in_words

if TYPE_CHECKING:
    from prompt_toolkit.completion import Completer

    from divingbell.surfaces.cli.chat import Conversation

_COMMAND = re.compile(r"/[a-z]+(\s|$)")
_SAVING = """\
try:
    print(save_skill(
        {name!r}, {name}, ({name}.__doc__ or {name!r}).strip().partition("\\n")[0], {call!r}
    ))
except Exception as refused:
    print("not saved:", refused)
"""
NO_CALL = (
    "a skill is saved with a call of it as its example, which is tried: /save {name} {name}(…)"
)
MOST_TOOLS = 200
MAX_DESCRIPTION = 100
Run = Callable[[str], Awaitable[None]]


@dataclass(frozen=True)
class Command:
    """A command: what it takes, what it does."""

    run: Run
    takes: str
    help: str
    choices: Callable[[], Iterable[str]] | None = None


class Commands:
    """All that can be said to the chat itself, and not to the model."""

    def __init__(self, conversation: "Conversation") -> None:
        self._conversation = conversation
        self._printer = conversation.printer
        self._all = {
            "/help": Command(self._help, "", "this"),
            "/tools": Command(self._tools, "[SERVER]", "the tools that code can call"),
            "/files": Command(self._files, "", "what is in /workspace"),
            "/vars": Command(self._variables, "", "what variables there are"),
            "/cost": Command(self._cost, "", "what the conversation has cost so far"),
            "/model": Command(
                self._model, "[NAME]", "the model, or go on with another", BY_KEY.values
            ),
            "/mode": Command(
                self._mode, "[MODE]", "how tools are used", lambda: get_args(AgentMode)
            ),
            "/undo": Command(self._undo, "", "take back the last exchange; variables stay"),
            "/reset": Command(self._reset, "", "begin anew: no conversation, no variables"),
            "/skills": Command(self._skills, "", "the skills that were saved"),
            "/save": Command(self._save, "NAME [CALL]", "save a function as a skill, and try it"),
            "/export": Command(
                self._export, "FILE", "write it down as a notebook, a script or Markdown"
            ),
            "/privacy": Command(self._privacy, "", "what the model did not see"),
        }

    def is_one(self, text: str) -> bool:
        """Whether a line is for the chat: `/help`, and not `/etc/hosts is what?`."""
        return _COMMAND.match(text) is not None

    def completer(self) -> "Completer":
        """Return what completes them at the prompt."""
        from divingbell.surfaces.cli.terminal.chat_prompt import CommandCompleter

        names = {name: command.choices for name, command in self._all.items()}
        return CommandCompleter({**names, "/quit": None}, paths=("/export",))

    async def run(self, text: str) -> bool:
        """Do a command; return whether the chat goes on."""
        name, _, argument = text.partition(" ")
        if name in ("/quit", "/exit"):
            return False
        command = self._all.get(name)
        if command is None:
            self._printer.note(f"there is no {name}; /help lists what there is")
            return True
        try:
            await command.run(argument.strip())
        except DivingbellError as error:
            if not self._conversation.room.is_open:
                raise
            self._printer.note(str(error))
        return True

    async def _help(self, _: str) -> None:
        for name, command in self._all.items():
            self._printer.words(f"{f'{name} {command.takes}':<17} {command.help}")
        self._printer.words(f"{'/quit':<17} leave (also Ctrl-D, or Ctrl-C twice)")
        self._printer.words(
            "Enter sends; Alt-Enter, or \\ at the end of a line, begins another line. "
            "Ctrl-C ends an answer and keeps the variables."
        )

    async def _tools(self, server: str) -> None:
        place = await self._conversation.room.place()
        session = place.session
        user, key = session.principal.user, session.key
        found = place.bell.gateway.visible.tools(server or None, user, key)
        for tool in found[:MOST_TOOLS]:
            words = _shortened(tool.description.partition("\n")[0])
            self._printer.words(f"{tool.package}.{tool.function}  {words}".rstrip())
        if len(found) > MOST_TOOLS:
            self._printer.note(f"and {len(found) - MOST_TOOLS:,} more: /tools SERVER")
        if not found:
            self._printer.note("there are none: `divingbell import` takes over a client's servers")

    async def _files(self, _: str) -> None:
        place = await self._conversation.room.place()
        files = await place.session.files.list()
        for file in files:
            self._printer.line(f"{size(file.size):>8}  {one_line(file.path)}")
        for line in self._conversation.laid_out:
            self._printer.note(line)
        if not files:
            self._printer.note("/workspace has no files")

    async def _variables(self, _: str) -> None:
        from divingbell.agent.inventory import variable_line

        place = await self._conversation.room.place()
        found = await place.session.variables()
        for variable in found:
            line = variable_line(variable)
            await self._conversation.revealer.prepare(line)
            self._printer.line(self._conversation.revealer.marked(line))
        if not found:
            self._printer.note("there are no variables yet")

    async def _cost(self, _: str) -> None:
        place = await self._conversation.room.place()
        agent = place.agent
        self._printer.note(f"{agent.model.name}: {usage_in_words(agent.total)} in this chat")
        if agent.total.cost is None and agent.total.input_tokens:
            self._printer.note("the price of this model is not known here")

    async def _model(self, name: str) -> None:
        conversation = self._conversation
        agent = (await conversation.room.place()).agent
        if not name:
            self._printer.note(agent.model.name)
            return
        settings = conversation.settings.agent
        same = name.partition(":")[0] == settings.model.partition(":")[0]
        settings = replace(settings, model=name)
        if not same:  # an address and a key of another one
            settings = replace(settings, base_url="", key_variable="")
        choice = choose(settings)
        model = await conversation.connect(choice, settings)
        before = agent.model
        agent.use(model)
        conversation.model = choice
        await before.close()
        self._printer.note(f"from now on {name} is asked, and reads the conversation so far")

    async def _mode(self, name: str) -> None:
        room = self._conversation.room
        agent = (await room.place()).agent
        if name:
            found = next((mode for mode in get_args(AgentMode) if mode == name), None)
            if found is None:
                self._printer.note(f"the modes are {', '.join(get_args(AgentMode))}")
                return
            agent = (await room.change_mode(found)).agent
        if agent.mode is not None:
            why = f": {agent.mode.why}" if agent.mode.why else ""
            self._printer.note(f"the mode is {agent.mode.mode}{why}")

    async def _skills(self, _: str) -> None:
        place = await self._conversation.room.place()
        found = await place.bell.skills.list(user=place.session.user)
        for skill in found:
            words = _shortened(skill.description)
            self._printer.words(f"{one_line(skill.name)}  {words}")
        if not found:
            self._printer.note("there are none yet: /save NAME saves a function of that name")

    async def _save(self, words: str) -> None:
        """Save a function of the session as a skill, by code: it is looked at as any other."""
        name, _, call = words.partition(" ")
        place = await self._conversation.room.place()
        if not name.isidentifier() or keyword.iskeyword(name):
            self._printer.note("name a function that there is in the session: /save NAME [CALL]")
            return
        said = ""
        async for event in place.session.stream(_SAVING.format(name=name, call=call or None)):
            said += event.text
            self._printer.show(event)
        if "there is no example" in said:
            self._printer.note(NO_CALL.format(name=name))

    async def _undo(self, _: str) -> None:
        place = await self._conversation.room.place()
        if place.agent.undo():
            self._conversation.has_told = False  # it may have been told in what is gone
            await place.keep()
            self._printer.note("the last exchange is gone; variables and files stay as they are")
        else:
            self._printer.note("there is nothing to take back")

    async def _reset(self, _: str) -> None:
        place = await self._conversation.room.place()
        self._conversation.has_told = False
        await place.session.reset()
        await place.forget()
        self._printer.note(
            "a new conversation: what was said is gone, also where it was kept, and so are "
            "variables; files are still there"
        )

    async def _export(self, name: str) -> None:
        from divingbell.agent.exporting import exported, format_of

        if not name:
            self._printer.note("name a file: /export FILE.ipynb, FILE.py or FILE.md")
            return
        place = await self._conversation.room.place()
        path = Path(name).expanduser()
        format = format_of(path)
        cells = None if place.keeper is None else place.keeper.conversation.cells
        text = await asyncio.to_thread(exported, format, list(place.agent.history), cells)
        try:
            await asyncio.to_thread(_write_new, path, text)
        except FileExistsError:
            self._printer.note(f"{path} is there already, and is not written over: name another")
            return
        except OSError as error:
            self._printer.note(f"{path} can't be written: {error.strerror}")
            return
        self._printer.note(f"written to {path}")
        if tokens.in_text(text):
            self._printer.note(
                "it has tokens where the model has read some: `divingbell vault reveal` puts the "
                "values in their places"
            )

    async def _privacy(self, _: str) -> None:
        conversation = self._conversation
        place = await conversation.room.place()
        told = {"off": "everything", "secrets": "all but secrets"}
        found_only = (
            "no secrets and no personal data that is found, which names alone often are not"
        )
        what = told.get(conversation.settings.privacy or "off", found_only)
        self._printer.note(f"privacy is {conversation.settings.privacy}: the model reads {what}")
        found = set[str]()
        for entry in place.agent.history:
            calls = entry.calls if isinstance(entry, Replied) else ()
            for text in (entry.text, *(call.arguments for call in calls)):
                found |= tokens.in_text(text)
        await conversation.revealer.prepare(*found)
        for token in sorted(found):
            if conversation.revealer.value_of(token) is not None:
                self._printer.line(f"{token}  {conversation.revealer.marked(token)}")
        if not found:
            self._printer.note("nothing was replaced so far")


def _shortened(text: str) -> str:
    """Return a text in one line, cut between words where it is long."""
    return textwrap.shorten(one_line(text), MAX_DESCRIPTION, placeholder=" …")


def _write_new(path: Path, text: str) -> None:
    """Write a file under a new name only, and for its owner alone: it is all that was said."""
    with open(path, "x", encoding="utf-8", opener=_for_owner) as file:
        file.write(text)


def _for_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
