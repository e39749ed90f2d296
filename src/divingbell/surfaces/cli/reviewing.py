"""`divingbell review`: what code would try to do, and what would happen about it."""

import json
from collections.abc import Iterator, Mapping

from divingbell.review.finding import Review
from divingbell.review.reviewer import Reviewer
from divingbell.settings.config import Settings
from divingbell.settings.review import ReviewAction
from divingbell.surfaces.cli import exit_status

_OUTCOMES: Mapping[ReviewAction, str] = {
    "allow": "it would run",
    "warn": "it would run, and its result would tell of this",
    "ask": "a person would be asked before it runs",
    "deny": "it would be refused",
}
_STOPS: tuple[ReviewAction, ...] = ("ask", "deny")


def show(code: str, settings: Settings, *, as_json: bool) -> int:
    """Print the review of a piece of code; the status is 1 if it would not simply run."""
    review = Reviewer(settings.review).review(code, settings.limits)
    action = review.action if settings.review.enabled else "allow"
    if as_json:
        plain = {**review.to_dict(), "action": action, "enabled": settings.review.enabled}
        print(json.dumps(plain, indent=2))
    else:
        print("\n".join(_lines(review, action, settings)))
    return exit_status.FAILED if action in _STOPS else exit_status.OK


def _lines(review: Review, action: ReviewAction, settings: Settings) -> Iterator[str]:
    yield _OUTCOMES[action]
    if not settings.review.enabled:
        yield "  · these settings have the review turned off ([review], enabled)"
    for finding in review.findings:
        yield f"  · {finding.action} ({finding.kind}): {finding}"
        if finding.action != "allow":
            yield f"    {finding.instead}"
    if review.tools:
        yield f"  · tools: {', '.join(review.tools)}"
