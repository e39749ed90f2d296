"""The needs of one piece of code: modules that it imports, servers that it names.

A command that runs one piece of code and ends has no use for the rest. It is looked for by name:
what is named and not used costs a little time, and what is used and not named comes when it is
asked for.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from divingbell.gateway.catalog import naming
from divingbell.settings.servers import Entry

MAX_SCANNED = 1 << 20
"""Characters of code that are looked at; longer code gets everything."""
_OF_TOOLS = ("servers", "_tool")
"""Part of all that code can say of tools without naming a server: `search_tools` and the like."""


@dataclass(frozen=True, slots=True)
class Needs:
    """The modules and servers to have ready before the code runs."""

    modules: tuple[str, ...] = ()
    """Those of `preload` that are to be imported beforehand."""
    servers: tuple[str, ...] = ()
    """The servers to connect to at once."""

    @classmethod
    def of(cls, code: str, preload: Sequence[str], servers: Sequence[Entry]) -> Self:
        """Look for the names of modules and servers in the code."""
        names = [server.name for server in servers]
        if len(code) > MAX_SCANNED:
            return cls(tuple(preload), tuple(names))
        named = [name for name in names if _is_named(name, code)]
        if not named and _mentions(_OF_TOOLS, code):
            named = names  # any of them may be meant
        return cls(tuple(module for module in preload if _is_imported(module, code)), tuple(named))


def _mentions(words: Iterable[str], code: str) -> bool:
    return any(word in code for word in words)


def _is_named(server: str, code: str) -> bool:
    return _mentions((server, naming.identifier(server, ())), code)


def _is_imported(module: str, code: str) -> bool:
    """Whether its last name is there: `from matplotlib import pyplot` splits the rest off."""
    return module.rpartition(".")[2] in code
