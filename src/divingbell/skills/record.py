"""Records of skills: what is known of one beside what it says itself."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

from divingbell.journal import tokens
from divingbell.skills.skill import SCRIPTS, Skill

Origin = Literal["session", "added", "imported", "catalogue"]
State = Literal["ready", "changed", "failed", "untried"]
"""- ready: it is offered.
- changed: a tool that it calls has changed; it is tried again before it is offered.
- failed: it was tried again, and its example failed.
- untried: it has code that never ran here, as of skills that were taken over; it is offered, and
  says so."""
OFFERED: frozenset[State] = frozenset({"ready", "untried"})


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of one version of a skill."""

    origin: Origin
    source: str = ""
    """The session, folder or catalogue that it came from."""
    key: str = ""
    """The publisher's key, where it was signed."""
    tools: Mapping[str, str] = field(default_factory=dict)
    """The tools that it calls, `server.tool`, each with the digest of its definition."""
    labels: tuple[str, ...] = ()
    """The tools, `server.tool`, whose flow labels the session carried that saved it."""
    state: State = "ready"
    reason: str = ""
    """Why it is in this state, in words for people."""
    replaced: int = 0
    """Tokens that the code cost whoever wrote it: what a use of the skill saves."""

    def to_json(self) -> str:
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Record":
        """Read a record that was kept.

        Raises:
            ValueError: it is damaged.
        """
        value: Any = json.loads(text)
        try:
            value["labels"] = tuple(value["labels"])
            record = cls(**value)
        except (TypeError, KeyError) as error:
            raise ValueError(f"the record of a skill is damaged: {error}") from None
        if record.state not in get_args(State) or record.origin not in get_args(Origin):
            raise ValueError("the record of a skill is damaged")
        return record


@dataclass(frozen=True, slots=True)
class Usage:
    """How often a skill was used, over all its versions, and what it was worth."""

    uses: int = 0
    failures: int = 0
    """Uses in cells that then failed."""
    tokens_saved: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.uses + other.uses,
            self.failures + other.failures,
            self.tokens_saved + other.tokens_saved,
        )

    @property
    def success_rate(self) -> float | None:
        """The share of uses that went well; None before the first."""
        return None if not self.uses else (self.uses - self.failures) / self.uses


@dataclass(frozen=True, slots=True)
class Summary:
    """What lists and searches need of the version of a skill that is offered."""

    name: str
    version: int
    description: str
    digest: str
    record: Record
    saved_at: float
    usage: Usage = Usage()
    has_code: bool = True
    """It can be imported; else it is instructions, in a folder of files."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A version of a skill, as it is kept."""

    skill: Skill
    version: int
    record: Record
    saved_at: float
    """Seconds since 1970."""
    current: bool = True
    """It is the one that is offered."""


def first_record(origin: Origin, skill: Skill, source: str = "") -> Record:
    """Return what is known of a skill that comes from outside: its code has never run here."""
    has_code = any(path.startswith(f"{SCRIPTS}/") for path in skill.files)
    state: State = "untried" if has_code else "ready"
    return Record(origin, source, state=state, replaced=tokens.count(skill.code or ""))
