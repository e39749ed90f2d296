"""Lines of `[privacy_rules]` that are about no server or tool that there is: misspelt, most likely.

Such a line hides nothing, and nobody would notice. A server is known by the settings; its tools are
once it has told them, and only then a line can be compared with these.
"""

import bisect
import difflib
from collections.abc import Callable, Iterable, Iterator, Sequence

from divingbell import logs
from divingbell.gateway.requests import LISTS
from divingbell.settings.patterns import fixed_start
from divingbell.settings.privacy import PrivacyRules

log = logs.logger("divingbell")

NOT_SERVERS = ("files", "shown")
"""What `fields` calls the origin of values that come from no server."""
HOST = "host"
"""Functions of the program. Any may be given later, so that their server counts as there."""
REQUESTS = frozenset(
    {"read_resource", "get_prompt", "complete", *(name for name, _ in LISTS.values())}
)
"""What a server can be asked for besides its tools, as rules name it."""
MOST_TOLD = 20
"""Lines that are told of one by one."""


class PrivacyLines:
    """Tells in the log of lines that are about nothing: each of them once.

    `tools` returns the names of a server's tools, as `server.tool`.
    """

    def __init__(self, rules: PrivacyRules, tools: Callable[[str], Iterable[str]]) -> None:
        self._tools = tools
        self._untold = {
            (table, text): _parts(text)
            for table, lines in (("fields", rules.fields), ("border", rules.border))
            for text in lines
            if _parts(text)[0]
        }
        """By table and pattern, the server and the beginning of what is meant of it."""

    def check_servers(self, servers: Iterable[str]) -> None:
        """Tell of lines about a server that is not there."""
        known = {*servers, *NOT_SERVERS, HOST}
        self._tell(
            (line, f"no server is called {name!r}", name, known)
            for line, (name, _) in self._untold.items()
            if name not in known
        )

    def tools_changed(self, kind: str, server: str) -> None:
        """Tell of lines about a tool that a server does not have, when its list has come."""
        lines = {line: start for line, (name, start) in self._untold.items() if name == server}
        if kind != "tools" or not lines:
            return
        own = (name.removeprefix(f"{server}.") for name in self._tools(server))
        names = sorted({*own, *REQUESTS})
        if len(names) == len(REQUESTS):
            return  # the server is down, or code may call none of its tools
        self._tell(
            (line, f"{server} has no such tool", start.partition(".")[0], names)
            for line, start in lines.items()
            if not _is_about_one(start, names)
        )

    def _tell(self, found: "Iterable[tuple[tuple[str, str], str, str, Iterable[str]]]") -> None:
        told = list(found)
        for (table, text), problem, name, known in told[:MOST_TOLD]:
            near = difflib.get_close_matches(name, list(known), 1)
            meant = f" Did you mean {near[0]}?" if near else ""
            log.warning(
                "[privacy_rules.%s]: the line %r is about nothing, because %s.%s",
                table, text, problem, meant,
            )  # fmt: skip
        if len(told) > MOST_TOLD:
            log.warning("[privacy_rules]: %d more lines are about nothing", len(told) - MOST_TOLD)
        for line, *_ in told:
            del self._untold[line]


def _parts(text: str) -> tuple[str, str]:
    """The server that a pattern names and how it goes on, as far as no star stands in the way;
    both empty where it may be about any server."""
    start = fixed_start(text)
    server, dot, rest = start.partition(".")
    if not dot:
        return "", ""
    return server, rest + "." if start == text else rest


def _is_about_one(start: str, names: Sequence[str]) -> bool:
    """Whether a line that begins so may be about one of these tools, or about a field of one."""
    if any(_has(names, beginning) for beginning in _beginnings(start)):
        return True
    at = bisect.bisect_left(names, start)
    return at < len(names) and names[at].startswith(start)


def _has(names: Sequence[str], name: str) -> bool:
    at = bisect.bisect_left(names, name)
    return at < len(names) and names[at] == name


def _beginnings(start: str) -> Iterator[str]:
    """The names that end at a dot: tools may have dots in their names, and fields follow one."""
    for place, sign in enumerate(start):
        if sign == ".":
            yield start[:place]
