"""`divingbell review`: what code would try to do, and what would happen about it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from divingbell.errors import InvalidInput
from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.settings.config import Settings
from divingbell.settings.review import ReviewAction, worst
from divingbell.surfaces.cli import exit_status

NOTEBOOK = ".ipynb"
_OUTCOMES: Mapping[ReviewAction, str] = {
    "allow": "it would run",
    "warn": "it would run, and its result would tell of this",
    "ask": "a person would be asked before it runs",
    "deny": "it would be refused",
}
_NO_PYTHON = "it would fail: it is no Python"
_STOPS: tuple[ReviewAction, ...] = ("ask", "deny")


def cells_of(code: str, name: str) -> list[str]:
    """Return the cells of the code in a file: those of a notebook, or all of it.

    Raises:
        InvalidInput: its name is that of a notebook, and it is none.
    """
    if not name.lower().endswith(NOTEBOOK):
        return [code]
    try:
        cells = json.loads(code)["cells"]
        return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidInput(
            f"{name} is no notebook: no JSON with `cells`, each with `cell_type` and `source`"
        ) from None


def show(cells: Sequence[str], settings: Settings, *, as_json: bool) -> int:
    """Print the review of code, cell by cell; the status is 1 if it would not simply run."""
    reviewer, enabled = Reviewer(settings.review), settings.review.enabled
    reviews = [reviewer.review(cell, settings.limits) for cell in cells]
    action = worst(*(review.action for review in reviews if enabled))
    is_python = not any(found.kind == "syntax" for each in reviews for found in each.findings)
    if as_json:
        print(json.dumps({**_plain(reviews), "action": action, "enabled": enabled}, indent=2))
    else:
        print(_OUTCOMES[action] if is_python or action in _STOPS else _NO_PYTHON)
        for line in _lines(reviews, settings):
            print(line)
    return exit_status.FAILED if action in _STOPS or not is_python else exit_status.OK


def _plain(reviews: Sequence[Review]) -> dict[str, Any]:
    if len(reviews) == 1:
        return reviews[0].to_dict()
    return {"cells": [review.to_dict() for review in reviews]}


def _lines(reviews: Sequence[Review], settings: Settings) -> Iterator[str]:
    if not settings.review.enabled:
        yield "  · these settings have the review turned off ([review], enabled)"
    for number, review in enumerate(reviews, 1):
        place = f"code cell {number}, " if len(reviews) > 1 else ""
        for finding in review.findings:
            yield f"  · {finding.action} ({finding.kind}): {place}{finding}"
            if finding.action != "allow":
                yield f"    {finding.instead}"
    if tools := sorted({tool for review in reviews for tool in review.tools}):
        yield f"  · tools: {', '.join(tools)}"
