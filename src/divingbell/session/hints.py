"""Hints: a line after an error, about what works elsewhere and not in the sandbox.

The interpreter says what the code has stumbled over (divingbell_inside.stumbles), and is not
believed: of its words only a kind that is known here counts, and a name of plain letters. The hint
is made of what the host knows itself. A cell that has not failed has nothing to do with it.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from divingbell.models import Result

MAX_PACKAGES = 40
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,199}", re.ASCII)
_DISTRIBUTIONS = {
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "dotenv": "python-dotenv",
    "fitz": "pymupdf",
    "PIL": "pillow",
    "sklearn": "scikit-learn",
    "skimage": "scikit-image",
    "docx": "python-docx",
    "pptx": "python-pptx",
    "yaml": "pyyaml",
}
"""Packages whose modules have another name, of those that models import most."""
_CLIENTS = frozenset(
    {"aiohttp", "anthropic", "boto3", "googleapiclient", "httpx", "openai", "playwright",
     "requests", "selenium", "urllib3", "yfinance"}
)  # fmt: skip
"""Modules that are of no use without a network."""
OWN_FUNCTIONS = {
    "search_tools": "query='', detail_level='name_only', limit=10, server=None",
    "list_mcp_tools": "server=None",
    "get_mcp_tool_details": "name",
    "call_mcp_tool": "name, arguments=None, result_type=None",
    "delegate": "task, context=None, tools=(), budget=None",
    "save_skill": "name, code_or_function, description, example=None",
    "search_skills": "query='', detail_level='with_description', limit=10",
}
"""Functions that every cell has besides Python's own (divingbell_inside.tools)."""
_SERVERS = "servers."
_NO_NETWORK = "There is no network in the sandbox"


class Surroundings(Protocol):
    """The gateway, as hints see it: what there is in place of what the sandbox has not."""

    def fetching(self, user: str) -> list[str]:
        """Return the tools that could get something from an address, as code names them."""

    def signature_of(self, name: str, user: str) -> str | None:
        """Return the signature of a tool, by the name of its module."""

    @property
    def has_servers(self) -> bool:
        """Whether any MCP server is configured."""


@dataclass(frozen=True, slots=True)
class Hints:
    """Puts stumbles into words."""

    packages: Sequence[str] = ()
    """Those that code can import."""
    surroundings: Surroundings | None = None
    mounts: Sequence[str] = ()
    """Folders of the machine that code can read, by their paths inside."""
    has_tokens: bool = False
    """Whether words stand for values that a model is not shown."""

    def added(self, result: Result, header: Mapping[str, Any] | None, user: str) -> Result:
        """Return the result of a failed cell with a hint, where there is one to give."""
        if result.status != "error" or result.error is None:
            return result
        hint = self.hint_in(header, user)
        return replace(result, error=replace(result.error, hint=hint)) if hint else result

    def hint_in(self, header: Mapping[str, Any] | None, user: str) -> str:
        """Return the hint about what the frame says was stumbled over; empty for none."""
        stumble = stumble_in(header)
        return _KINDS[stumble[0]](self, stumble[1], user) if stumble is not None else ""

    def _network(self, _: str, user: str) -> str:
        return f"{_NO_NETWORK}. {self._instead(user)}"

    def _instead(self, user: str) -> str:
        if self.surroundings is None or not self.surroundings.has_servers:
            return "No MCP server is configured here that could reach out in its place."
        found = self.surroundings.fetching(user)
        if not found:
            return "Of the tools here none seems to fetch from an address."
        return f"Of the tools here {' or '.join(found)} may get it."

    def _module(self, name: str, user: str) -> str:
        if name in _CLIENTS:
            return f"{name} is not installed, and would be of no use. {self._network(name, user)}"
        # A name that nobody here knows is not passed on as one to install: models make some up,
        # and others then register them.
        package = _DISTRIBUTIONS.get(name)
        whose = f" (it is in {package})" if package else ""
        near = difflib.get_close_matches(name, self.packages[:MAX_PACKAGES], 1)
        meant = f" Did you mean {near[0]}?" if near else ""
        return f"{name} is not installed here{whose}.{meant} {self._installed()}"

    def _install(self, _: str, user: str) -> str:
        return f"{_NO_NETWORK}, so nothing can be installed. {self._installed()}"

    def _installed(self) -> str:
        names = ", ".join(self.packages[:MAX_PACKAGES])
        return (
            f"There are {names}, what they need, and Python's own modules. Whoever runs Divingbell "
            "adds more with `packages` in divingbell.toml."
        )

    def _program(self, _: str, user: str) -> str:
        return (
            "There is no such program in the sandbox, and none can be installed: Python is there, "
            f"with its packages. {self._installed()}"
        )

    def _arguments(self, name: str, user: str) -> str:
        if name in OWN_FUNCTIONS:
            return f"It is called as {name}({OWN_FUNCTIONS[name]})"
        if self.surroundings is None:
            return ""
        found = self.surroundings.signature_of(name.removeprefix(_SERVERS), user)
        return f"It is called as {found}" if found else ""

    def _file(self, _: str, user: str) -> str:
        return (
            "The files of the machine are not in the sandbox. It has /workspace, where code and "
            f"people put files, and {' and '.join(self.mounts) or 'no other folder of yours'}."
        )

    def _key(self, _: str, user: str) -> str:
        return (
            "Keys and the rest of the machine's environment are not in the sandbox. MCP servers "
            "have their own: call a tool of one."
        )

    def _token(self, name: str, user: str) -> str:
        if not self.has_tokens:
            return ""
        return f"{name} looks like a token, and a token is text: write it in quotes, with brackets."

    def _loop(self, _: str, user: str) -> str:
        return "An event loop runs in a cell that awaits: write `await f()` for `asyncio.run(f())`."


_KINDS: Mapping[str, Callable[[Hints, str, str], str]] = {
    "network": Hints._network,
    "module": Hints._module,
    "install": Hints._install,
    "program": Hints._program,
    "arguments": Hints._arguments,
    "file": Hints._file,
    "key": Hints._key,
    "loop": Hints._loop,
    "token": Hints._token,
}


def stumble_in(header: Mapping[str, Any] | None) -> tuple[str, str] | None:
    """Return the kind of stumble that the interpreter names, and its subject, where they are
    such as there can be."""
    error = (header or {}).get("error")
    said = error.get("stumble") if isinstance(error, dict) else None
    match said:
        case [str(kind), str(name)] if kind in _KINDS and (not name or _NAME.fullmatch(name)):
            return kind, name
    return None
