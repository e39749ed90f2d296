"""Definitions of Divingbell's own tools, and its instructions, as a model reads them.

Every word here costs every conversation its tokens.

Clients differ in what they show: some pass the instructions on, all pass the descriptions of tools.
So the servers and the packages stand in both. The texts depend on the settings alone, and not on
the run or on which servers answer, so that the caches of clients and models keep them. Code in
backquotes runs as it is written, once SERVER and TOOL are names of a server and of its tool.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import mcp_types as types

from divingbell.gateway.catalog.catalog import MAX_LIMIT, package_names
from divingbell.settings.privacy import Privacy
from divingbell.settings.servers import Entry, Server

NAME = "divingbell"
"""The name of the server, and of the distribution."""
MAX_NAMES = 40
MAX_NAMED = 600
"""Characters of a list of names. They come from settings, which may be generous."""

_CODE = """\
Work by writing Python for execute_python. Variables, imports and files in /workspace persist \
between calls; print only what you need to read. Packages: {packages}. """
_MOUNTED = "Folders to read: {folders}. "
_SKILLS = """
Skills outlast sessions. Before larger work: `search_skills("what you want to do")`, then \
`from skills import NAME`. Keep a function that will be of use again: \
`save_skill("NAME", function, "what it does")`."""
_ALONE = "There is no network."
_WITH_SERVERS = """\
There is no network except the tools of MCP servers, which that code calls, so that their \
definitions and results stay out of your context.
Servers: {servers}
1. Find tools: search_tools, here or in code; or look around: `!ls /servers`, \
`!cat /servers/SERVER/README.md`, `dir(servers.SERVER)`
2. Call them: `from servers.SERVER import TOOL`
3. Loop, filter and join in code."""
_TOKENS = {
    "secrets": "\nSecrets are not shown to you: words such as [API_KEY_482715] stand for them. "
    "Write such a word as it stands and in quotes, in code or arguments: tools of the server that "
    "it came from get the value.",
    "personal": "\nPersonal data and secrets are not shown to you: words such as [EMAIL_482715] "
    "stand for them. Write such a word as it stands and in quotes, in code or arguments: tools get "
    "the value (of a secret, those of the server that it came from).",
}
"""What stands for values, by the setting `privacy`."""

_EXECUTE = (
    "Run Python in a sealed, persistent session (with {packages}). Returns what is printed, the "
    "last expression and plots. Top-level await works; several calls at once: "
    "`import asyncio; await asyncio.gather(TOOL(1), TOOL(2))`. A failing tool raises ToolError."
)
_SEARCH = "Find tools of MCP servers that execute_python can call. "
_FOUND = (
    "The servers: {servers}. A result server.tool is servers.server.tool in code, or as it says."
)
_NONE = "No server is configured here."

EXECUTE = types.Tool(
    name="execute_python",
    description=_EXECUTE,
    input_schema={
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "session_id": {
                "type": "string",
                "description": "For several separate sessions; made when first used",
            },
            "timeout": {"type": "number", "description": "Seconds"},
        },
        "required": ["code"],
    },
)
SEARCH = types.Tool(
    name="search_tools",
    description=_SEARCH,
    input_schema={
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": "What you want to do, also as a tool would put it: a | b. "
                "Empty lists all",
            },
            "detail_level": {
                "type": "string",
                "enum": ["name_only", "with_description", "full", "servers"],
                "default": "with_description",
                "description": "full has signature and schemas; servers: the best servers only",
            },
            "limit": {"type": "integer", "default": 10, "maximum": MAX_LIMIT},
            "server": {"type": "string"},
        },
    },
    annotations=types.ToolAnnotations(read_only_hint=True),
)
LIST_SESSIONS = types.Tool(
    name="list_sessions",
    description="List your sessions.",
    input_schema={"type": "object", "properties": {}},
    annotations=types.ToolAnnotations(read_only_hint=True),
)
CLOSE_SESSION = types.Tool(
    name="close_session",
    description="End a session; its variables and files are lost.",
    input_schema={
        "type": "object",
        "properties": {"session_id": {"type": "string"}},
        "required": ["session_id"],
    },
)
DIRECT = "The tools of several MCP servers, which Divingbell passes on."
"""The instructions for those who are offered these tools alone."""
NAMES = frozenset(tool.name for tool in (EXECUTE, SEARCH, LIST_SESSIONS, CLOSE_SESSION))


@dataclass(frozen=True, slots=True)
class Texts:
    """All that a model reads of Divingbell before it does anything."""

    about_code: str
    tools: tuple[types.Tool, ...]
    privacy: Privacy = "off"

    @property
    def instructions(self) -> str:
        """The instructions for those for whom the usual word of `privacy` counts."""
        return self.instructions_with(self.privacy)

    def instructions_with(self, privacy: Privacy) -> str:
        """Return the instructions for those for whom this word counts."""
        return self.about_code + _TOKENS.get(privacy, "")

    def as_read(self) -> str:
        """Return all of it as a model reads it, to be counted."""
        definitions = [
            tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in self.tools
        ]
        return json.dumps(definitions, separators=(",", ":")) + self.instructions


def texts(
    servers: Iterable[str] = (),
    packages: Sequence[str] = (),
    mounts: Iterable[str] = (),
    privacy: Privacy | None = None,
    *,
    skills: bool = False,
) -> Texts:
    """Return the texts, for servers by the names of their packages, packages of Python, folders of
    the machine that code can read, and what a model does not see; `skills` says whether code can
    save some."""
    known, importable, folders = sorted(servers), joined(packages), joined(sorted(mounts))
    code = _CODE.format(packages=importable)
    if folders:
        code += _MOUNTED.format(folders=folders)
    execute = _EXECUTE.format(packages=importable)
    if known:
        code += _WITH_SERVERS.format(servers=joined(known))
        search = _SEARCH + _FOUND.format(servers=joined(known))
    else:
        code += _ALONE
        search = _SEARCH + _NONE
    if skills:
        code += _SKILLS
    described = (
        EXECUTE.model_copy(update={"description": execute}),
        SEARCH.model_copy(update={"description": search}),
        LIST_SESSIONS,
        CLOSE_SESSION,
    )
    return Texts(code, described, privacy or "off")


def configured(entries: Sequence[Entry]) -> list[str]:
    """Return the packages of the servers that can be used, as the settings have them: known at
    once, whether they answer or not."""
    packages = package_names(entry.name for entry in entries)
    return [
        packages[entry.name] for entry in entries if isinstance(entry, Server) and entry.enabled
    ]


def joined(names: Sequence[str]) -> str:
    """Return names as one text, "a, b and 3 more", which ends when it is long enough."""
    shown: list[str] = []
    left = MAX_NAMED
    for name in names[:MAX_NAMES]:
        left -= len(name) + 2
        if left < 0:
            break
        shown.append(name)
    more = len(names) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
