"""One question from the command line, and its answer: as text, or as one JSON object."""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from divingbell.agent.events import (
    AgentEvent,
    CellEnded,
    CellStarted,
    Done,
    Notice,
    StopReason,
    Text,
)
from divingbell.agent.model import ModelFailed
from divingbell.border.vault import tokens
from divingbell.escapes import clean
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.costs import cost_of_answer, words_for

_STATUSES: dict[StopReason, int] = {
    "answered": exit_status.OK,
    "turns": exit_status.LIMIT,
    "tokens": exit_status.LIMIT,
    "money": exit_status.LIMIT,
    "failing": exit_status.FAILED,
    "length": exit_status.MODEL,
    "refused": exit_status.MODEL,
    "cut": exit_status.MODEL,
    "empty": exit_status.MODEL,
}


@dataclass
class Collected:
    """An answer as a program reads it."""

    model: str = ""
    cells: list[dict[str, Any]] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    done: Done | None = None
    failure: ModelFailed | None = None
    said: str = ""
    """The words of a reply that has not ended."""

    def take(self, event: AgentEvent) -> None:
        """Take note of an event."""
        if isinstance(event, Text):
            self.said += event.text
        elif isinstance(event, CellStarted):
            self.said = ""
            self.cells.append({"code": event.code})
        elif isinstance(event, CellEnded):
            result = event.result
            said = None if result.error is None else f"{result.error.type}: {result.error.message}"
            self.cells[-1] |= {"status": result.status, "output": result.text, "error": said}
        elif isinstance(event, Notice):
            self.notices.append(event.text)
        elif isinstance(event, Done):
            self.done = event

    @property
    def status(self) -> int:
        """The exit status."""
        return exit_status.MODEL if self.done is None else _STATUSES[self.done.reason]

    @property
    def notes(self) -> list[str]:
        """What the person should know in the end, besides what was told at once."""
        if self.done is None:
            return []
        words = words_for(self.done)
        return [*([words] if words else []), cost_of_answer(self.done)]

    def printed(self, values: Mapping[str, str], *, as_json: bool) -> list[str]:
        """Return what goes to stdout, with these values in the places of their tokens."""
        if as_json:
            return [tokens.replaced(self.to_json(), lambda token: _in_json(token, values))]
        # A pipe may lead to a terminal: there, words must not act on it either.
        text = clean(self.said if self.done is None else self.done.text).strip()
        return [tokens.replaced(text, lambda token: values.get(token, token))] if text else []

    def to_json(self) -> str:
        """Return everything as one JSON object."""
        done = self.done or Done("empty", self.said)
        failure = self.failure
        return json.dumps(
            {
                "answer": done.text,
                "reason": done.reason if failure is None else "failed",
                "model": self.model,
                "requests": done.turns,
                "usage": dataclasses.asdict(done.total),
                "cells": self.cells,
                "notices": self.notices,
                "error": failure and {"kind": failure.kind, "message": str(failure)},
            },
            ensure_ascii=False,
        )


def _in_json(token: str, values: Mapping[str, str]) -> str:
    return json.dumps(values.get(token, token), ensure_ascii=False)[1:-1]
