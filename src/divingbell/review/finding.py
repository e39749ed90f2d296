"""Findings: what a review has seen in a piece of code, and what happens about it."""

from dataclasses import asdict, dataclass
from typing import Any

from divingbell.settings.review import ReviewAction, ReviewKind, worst

MAX_REFUSED = 5
"""Findings that a refusal names."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the code will try to do."""

    kind: ReviewKind
    action: ReviewAction
    line: int
    """The line of the code, from 1."""
    what: str
    """What it does, in words that follow "it"."""
    instead: str
    """What to do about it: a sentence."""
    subject: str = ""
    """The module, function, path or tool that it is about."""

    def __str__(self) -> str:
        return f"line {self.line} {self.what}"


@dataclass(frozen=True, slots=True)
class Review:
    """All findings about one piece of code."""

    findings: tuple[Finding, ...] = ()
    """In the order of their lines; of the same things the first."""
    tools: tuple[str, ...] = ()
    """The tools that it calls, as `server.tool` with the names that code has for them."""

    @property
    def action(self) -> ReviewAction:
        """What happens about the code: the most severe of the findings' actions."""
        return worst(*(finding.action for finding in self.findings))

    def of(self, action: ReviewAction) -> list[Finding]:
        """Return the findings about which this happens."""
        return [finding for finding in self.findings if finding.action == action]

    @property
    def notes(self) -> list[str]:
        """The warnings, in words for whoever reads the result."""
        return [f"before it ran: {finding}. {finding.instead}" for finding in self.of("warn")]

    @property
    def refusal(self) -> str:
        """Why the code does not run as it is, and what else to do; empty if nothing is denied."""
        denied = self.of("deny")
        if not denied:
            return ""
        parts = [f"{finding}. {finding.instead}" for finding in denied[:MAX_REFUSED]]
        left = len(denied) - len(parts)
        more = f" There are {left:,} more lines like these." if left else ""
        return "the code was not run, because the rules here forbid it: " + " ".join(parts) + more

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "action": self.action,
            "findings": [asdict(finding) for finding in self.findings],
            "tools": list(self.tools),
        }
