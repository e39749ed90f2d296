"""Records: what the log says of each event of the journal."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal

from divingbell.audit.screening import LEFT_OUT, MOST_PARTS, Screening
from divingbell.audit.segments import now
from divingbell.audit.signing import Key
from divingbell.journal.events import (
    ApprovalAnswered,
    ApprovalAsked,
    CallDecided,
    CallEnded,
    CallSent,
    CellEnded,
    CellRefused,
    CellStarted,
    CommandEnded,
    CommandStarted,
    ExecutionRefused,
    Intent,
    JournalEvent,
    Revealed,
    SessionEnded,
    SessionOpened,
    SignedIn,
    SignInFailed,
    SkillChanging,
    SkillRemoved,
    SkillSaved,
    SkillUsed,
)
from divingbell.models import Usage
from divingbell.principal import Principal
from divingbell.shares import weight

MOST_CODE = 16_000
"""Characters of code and of commands."""
MOST_ARGUMENTS = 4_000
MOST_REFUSED = 1_000
"""Characters of arguments that were sent nowhere: these cost their sender nothing."""
LONG = 8_000
"""Characters; where there are more, they are looked through beside the event loop."""
LONG_CODE = 1_000
"""The same of code and commands, which are read as well. Measured: 40 ms where somebody has made it
to be much."""
MOST_NAME = 200
MOST_USERS = 1_000
Record = dict[str, Any]
Sort = Literal["refusal", "question", "approval"]
Approval = ApprovalAsked | ApprovalAnswered
ALLOWING = ("yes", "always", "session")
"""Answers after which a call is made."""
Countable = CallEnded | CellRefused | ExecutionRefused | Approval
"""What may cost its sender nothing."""


class Records:
    """Makes records of events.

    `bound` tells which arguments of a tool the host sets: their values are not written.
    """

    def __init__(
        self, screening: Screening, key: Key | None, bound: Callable[[str], frozenset[str]]
    ) -> None:
        self._screening = screening
        self._key = key
        self._bound = bound
        self._decided: dict[int, Record] = {}
        self._started: set[int] = set()
        """Calls that have a record of their start, and are to have one of their end."""
        self._short = lru_cache(MOST_USERS)(lambda text: screening.name(text, MOST_NAME))
        self._whole = lru_cache(MOST_USERS)(self._identity)
        self._makers: Mapping[type[Any], Callable[[Any], Record | None]] = {
            SessionOpened: self._session_opened,
            SessionEnded: self._session_ended,
            CellStarted: self._cell_started,
            CellEnded: self._cell_ended,
            CellRefused: self._cell_refused,
            ExecutionRefused: self._execution_refused,
            CommandStarted: self._command_started,
            CommandEnded: self._command_ended,
            CallDecided: self._call_decided,
            CallSent: self._call_sent,
            CallEnded: self._call_ended,
            ApprovalAsked: self._approval_asked,
            ApprovalAnswered: self._approval_answered,
            SignedIn: self._signed_in,
            SignInFailed: self._sign_in_failed,
            Revealed: self._revealed,
            SkillChanging: self._skill_changing,
            SkillSaved: self._skill_saved,
            SkillUsed: self._skill_used,
            SkillRemoved: self._skill_removed,
        }

    def of(self, event: JournalEvent) -> Record | None:
        """Return the record of an event; None for those that have none."""
        maker = self._makers.get(type(event))
        made = None if maker is None else maker(event)
        return None if made is None else {"at": now(event.at), **made}

    def _name(self, text: str) -> str:
        return self._short(text[: MOST_NAME + 1])  # which is one more than is kept

    def is_long(self, event: Intent) -> bool:
        """Return whether the record of an intent is more work than an event loop should do."""
        if isinstance(event, CallSent):
            return weight.is_large(event.arguments, MOST_PARTS, LONG)
        if isinstance(event, Revealed | SkillChanging):
            return False
        return len(event.code if isinstance(event, CellStarted) else event.command) > LONG_CODE

    def sort_of(self, event: Countable) -> Sort | None:
        """Return the sort of what costs its sender nothing: it has gone nowhere, and has no other
        record. None for all else."""
        if isinstance(event, Approval):
            # A yes lets a call leave, so that it has a record whatever else was asked before.
            is_yes = isinstance(event, ApprovalAnswered) and event.word in ALLOWING
            return None if is_yes else "approval"
        if not isinstance(event, CallEnded):
            return "refusal"
        if event.sent or event.call in self._started:
            return None
        return "refusal" if event.outcome in ("denied", "refused") else "question"

    def in_short(self, event: Countable) -> Record:
        """Return what is said of those that are only counted: neither code nor arguments."""
        if isinstance(event, Approval):
            said = self._makers[type(event)](event)
            assert said is not None
            return {"at": now(event.at), **said}
        said = {"at": now(event.at), "kind": "call.ended", **self._who(event.principal)}
        said["session"] = self._whole(event.key)
        if isinstance(event, CallEnded):
            decision = self._decided.pop(event.call, None)
            said |= {"tool": self._name(event.name), "outcome": event.outcome, "code": event.code}
            said["reason"] = "" if decision is None else decision["reason"]
            return said
        is_command = isinstance(event, ExecutionRefused) and event.kind == "command"
        said["kind"] = "command.refused" if is_command else "execution.refused"
        return said | {"status": "refused", "reason": self._name(event.reason)}

    # Whose it is

    def _identity(self, name: str) -> str:
        """Return the name of a user or session. In place of what is personal in it stands its kind;
        then what follows tells it from others."""
        shown = self._screening.name(name, MOST_NAME)
        if shown == name or self._key is None:
            return shown
        return f"{shown} {self._key.tag(name)}"

    def _who(self, principal: Principal) -> Record:
        return {
            "user": self._whole(principal.user),
            "client": principal.client,
            "conversation": self._whole(principal.conversation),
        }

    # One for each kind of event

    def _session_opened(self, event: SessionOpened) -> Record:
        return {
            "kind": "session.opened",
            **self._who(event.principal),
            "session": self._whole(event.key),
        }

    def _session_ended(self, event: SessionEnded) -> Record:
        said = {"session": self._whole(event.key), "reason": self._name(event.reason)}
        return {"kind": "session.ended", **self._who(event.principal), **said}

    def _cell_started(self, event: CellStarted) -> Record:
        code = self._screening.code(event.code, event.principal, MOST_CODE)
        where = {"session": self._whole(event.key), "cell": event.cell}
        return {"kind": "execution.started", **self._who(event.principal), **where, "code": code}

    def _cell_ended(self, event: CellEnded) -> Record:
        result = event.result
        said: Record = {"session": self._whole(event.key), "cell": event.cell, "status": "left"}
        if result is not None:
            said |= {"status": result.status, "limit": result.limit, "usage": _usage(result.usage)}
            said["error"] = None if result.error is None else self._name(result.error.type)
        return {"kind": "execution.ended", **self._who(event.principal), **said}

    def _cell_refused(self, event: CellRefused) -> Record:
        # Noted and not intended, so that the event loop does it: as much as of a refused call.
        code = self._screening.code(event.code[:LONG], event.principal, MOST_REFUSED)
        said = {"session": self._whole(event.key), "cell": event.cell, "code": code}
        said |= {"status": "refused", "reason": self._name(event.reason)}
        return {"kind": "execution.refused", **self._who(event.principal), **said}

    def _execution_refused(self, event: ExecutionRefused) -> Record:
        kind = "execution.refused" if event.kind == "cell" else "command.refused"
        said = {"session": self._whole(event.key), "status": "refused"}
        said["reason"] = self._name(event.reason)
        return {"kind": kind, **self._who(event.principal), **said}

    def _command_started(self, event: CommandStarted) -> Record:
        command = self._screening.code(event.command, event.principal, MOST_CODE)
        where = {"session": self._whole(event.key), "command_number": event.number}
        return {"kind": "command.started", **self._who(event.principal), **where, "code": command}

    def _command_ended(self, event: CommandEnded) -> Record:
        result = event.result
        said: Record = {"session": self._whole(event.key), "command_number": event.number}
        if result is None:
            said["status"] = "not started"
        else:
            said |= {"status": result.status, "limit": result.limit, "usage": _usage(result.usage)}
            said["exit_code"] = result.exit_code
        return {"kind": "command.ended", **self._who(event.principal), **said}

    def _call_decided(self, event: CallDecided) -> None:
        # Kept for the call's next record: it has an end, whatever becomes of it.
        self._decided[event.call] = {
            "action": event.action,
            "rule": event.rule,
            "reason": self._name(event.reason),
            "flow": event.flow,
            "source": self._name(event.source),
        }

    def _call(self, event: CallSent | CallEnded, name: str) -> Record:
        return {
            **self._who(event.principal),
            "session": self._whole(event.key),
            "cell": event.cell,
            "call": event.call,
            "by": event.by,
            "asked": event.kind,
            "tool": self._name(name),
        }

    def _call_sent(self, event: CallSent) -> Record:
        self._started.add(event.call)
        said = {"decision": self._decided.get(event.call)}
        said["arguments"] = self._screening.arguments(
            event.arguments,
            event.principal,
            MOST_ARGUMENTS,
            self._bound(event.tool),
            event.tool,
        )
        return {"kind": "call.started", **self._call(event, event.tool), **said}

    def _call_ended(self, event: CallEnded) -> Record:
        decision = self._decided.pop(event.call, None)
        self._started.discard(event.call)
        said: Record = {
            "outcome": event.outcome,
            "code": event.code,
            "sent": event.sent,
            "milliseconds": round(1000 * event.seconds, 3),
            "bytes": len(event.body),
        }
        if not event.sent:  # else the record of its start has them
            said["decision"] = decision
            said["arguments"] = self._refused(event)
        return {"kind": "call.ended", **self._call(event, event.name), **said}

    def _refused(self, event: CallEnded) -> Record:
        """Return the arguments of a call that went nowhere, unless they are much work."""
        if weight.is_large(event.arguments, MOST_PARTS, LONG):
            return {"text": LEFT_OUT}
        who, bound = event.principal, self._bound(event.name)
        return self._screening.arguments(event.arguments, who, MOST_REFUSED, bound, event.name)

    def _approval_asked(self, event: ApprovalAsked) -> Record:
        return {"kind": "approval.asked", **self._approval(event)}

    def _approval_answered(self, event: ApprovalAnswered) -> Record:
        said = {"answer": event.word, "comment": self._name(event.comment)}
        return {"kind": "approval.answered", **self._approval(event), **said}

    def _approval(self, event: Approval) -> Record:
        return {
            "user": self._whole(event.user),
            "session": self._whole(event.key),
            "cell": event.cell,
            "approval": event.approval,
            "tool": self._name(event.tool),
        }

    def _signed_in(self, event: SignedIn) -> Record:
        said = {"server": self._name(event.server), "outcome": "ok"}
        return {"kind": "signed_in", **self._who(event.principal), **said}

    def _sign_in_failed(self, event: SignInFailed) -> Record:
        said = {"server": self._name(event.server), "outcome": "failed"}
        said["reason"] = self._name(event.reason)
        return {"kind": "sign_in.failed", **self._who(event.principal), **said}

    def _revealed(self, event: Revealed) -> Record:
        said = {"count": event.count, "by": event.by}
        return {"kind": "revealed", **self._who(event.principal), **said}

    def _skill_changing(self, event: SkillChanging) -> Record:
        where = {"session": self._whole(event.key), "cell": event.cell}
        said = {"skill": self._name(event.name), "change": event.change}
        return {"kind": "skill.changing", **self._who(event.principal), **where, **said}

    def _skill_saved(self, event: SkillSaved) -> Record:
        said = {"digest": event.digest, "origin": event.origin}
        return {"kind": "skill.saved", **self._skill(event), **said}

    def _skill_used(self, event: SkillUsed) -> Record:
        return {"kind": "skill.used", **self._skill(event)}

    def _skill(self, event: SkillSaved | SkillUsed) -> Record:
        return {
            **self._who(event.principal),
            "session": self._whole(event.key),
            "cell": event.cell,
            "skill": self._name(event.name),
            "version": event.version,
        }

    def _skill_removed(self, event: SkillRemoved) -> Record:
        said = {"skill": self._name(event.name), "versions": event.versions}
        return {"kind": "skill.removed", **self._who(event.principal), **said}


def _usage(usage: Usage) -> Record:
    return {
        "wall_ms": usage.wall_ms,
        "cpu_ms": usage.cpu_ms,
        "memory_peak": usage.memory_peak,
        "output_bytes": usage.output_bytes,
    }
