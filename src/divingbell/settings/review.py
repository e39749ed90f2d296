"""The settings of the review: what happens about each kind of thing that is found in code.

A review is advice on top of the walls. It reads code, and code can be written so that nobody can
tell from reading it what it will do.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Annotated, Literal

from divingbell.settings.markers import Check, Described, Named, one_or_more
from divingbell.settings.patterns import Patterns, PatternText

ReviewAction = Literal["allow", "warn", "ask", "deny"]
ReviewKind = Literal[
    "import", "dynamic", "process", "network", "install", "loop", "size", "bomb", "write", "tool",
    "unread", "syntax",
]  # fmt: skip
MAX_PARTS = 20
"""Names in a dotted name that are compared."""
SEVERITY: tuple[ReviewAction, ...] = ("allow", "warn", "ask", "deny")
"""From the mildest on."""


def worst(*actions: ReviewAction) -> ReviewAction:
    """Return the most severe of some actions; "allow" without any."""
    return max(actions, key=SEVERITY.index, default="allow")


@dataclass(frozen=True, slots=True)
class ReviewRules:
    """The `[review.rules]` table: "allow", "warn", "ask" or "deny" for each kind of finding."""

    imports: Annotated[ReviewAction, Named("import")] = "deny"
    """A module is imported that `imports` does not let in."""
    dynamic: ReviewAction = "allow"
    """Code that is made at run time (`eval`, `exec`, `__import__`), or reached in a roundabout
    way: what it does can't be read."""
    process: ReviewAction = "allow"
    """A process is started: `subprocess`, `os.system`, `os.fork`, `!`."""
    network: ReviewAction = "warn"
    """A client of the network is imported, or an address is read. It fails in the sandbox."""
    install: ReviewAction = "warn"
    """A package is to be installed. It fails in the sandbox."""
    loop: ReviewAction = "warn"
    """A loop or a recursion without an end, or a loop that takes longer than the cell has."""
    size: ReviewAction = "warn"
    """A value that is larger than the memory of the session."""
    bomb: ReviewAction = "warn"
    """Processes or threads that are started without an end."""
    write: ReviewAction = "warn"
    """A file is written outside of /workspace, /tmp and the home folder. It fails in the
    sandbox."""
    tool: ReviewAction = "allow"
    """A tool of an MCP server, or a function of the host, is called."""
    unread: ReviewAction | None = None
    """Code that is too long or nested too deep to be read; if it is not set, "warn", or whatever
    of the others is the most severe."""
    syntax: ReviewAction | None = None
    """Code that is no Python; if it is not set, "allow", or "ask" or "deny" where one of the
    others says so."""


@dataclass(frozen=True, slots=True)
class ReviewSettings:
    """The `[review]` table."""

    enabled: bool = True
    """Code is looked at before it runs."""
    imports: Annotated[
        tuple[PatternText, ...],
        one_or_more,
        Described('a list of patterns over modules, such as ["pandas", "numpy"] or ["!ctypes"]'),
        Check("", bool),
    ] = ("*",)
    """Modules that may be imported, with all that is below them: patterns; `!` in front takes
    away."""
    rules: ReviewRules = field(default_factory=ReviewRules)
    """What happens about each kind of finding: the table [review.rules]."""
    _wanted: Patterns | None = field(init=False, repr=False, compare=False)
    _unwanted: Patterns | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        wanted = [text for text in self.imports if not text.startswith("!")]
        unwanted = [text[1:] for text in self.imports if text.startswith("!")]
        everything = not wanted or "*" in wanted
        object.__setattr__(self, "_wanted", None if everything else Patterns(wanted))
        object.__setattr__(self, "_unwanted", Patterns(unwanted) if unwanted else None)

    @property
    def limits_imports(self) -> bool:
        """Whether there is a module that may not be imported."""
        return self._wanted is not None or self._unwanted is not None

    def lets_in(self, module: str) -> bool:
        """Return whether a module may be imported, by its dotted name."""
        parts = module.split(".")[:MAX_PARTS]
        names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
        if self._unwanted is not None and any(map(self._unwanted.matches, names)):
            return False
        return self._wanted is None or any(map(self._wanted.matches, names))

    def action(self, kind: ReviewKind) -> ReviewAction:
        """Return what happens about a kind of finding."""
        if kind == "unread":
            return self.rules.unread or worst("warn", self._strictest)
        if kind == "syntax":
            strictest = self._strictest
            return self.rules.syntax or (strictest if strictest in ("ask", "deny") else "allow")
        found: ReviewAction = getattr(self.rules, "imports" if kind == "import" else kind)
        return found

    @property
    def _strictest(self) -> ReviewAction:
        """The most severe action about what can be read. What can't be might be any of that."""
        unless = {"unread", "syntax"} if self.limits_imports else {"unread", "syntax", "imports"}
        names = [item.name for item in dataclasses.fields(self.rules) if item.name not in unless]
        return worst(*(getattr(self.rules, name) for name in names))
