"""Reviewing: whether a cell may run, by what is read off its code before."""

from dataclasses import dataclass

from divingbell.errors import ToolFailed
from divingbell.gateway.context import CallContext
from divingbell.models import Failure
from divingbell.review.finding import Review
from divingbell.session.calls import ToolGateway

REFUSED = "CodeRefused"
"""The type of the failure of a cell that did not run."""
MAX_NOTES = 5
MAX_ASKED = 20
"""Findings that a result, or a question, tells of."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a cell may run, and what its result has to tell."""

    notes: tuple[str, ...] = ()
    refusal: Failure | None = None


async def verdict_on(review: Review, gateway: ToolGateway | None, context: CallContext) -> Verdict:
    """Return the verdict on a cell; where the rules say so, the person is asked for it."""
    notes = tuple(review.notes[:MAX_NOTES])
    if review.refusal:
        return Verdict(notes, Failure(REFUSED, review.refusal))
    asked = review.of("ask")
    if asked:
        findings = "\n".join(str(finding) for finding in asked[:MAX_ASKED])
        kinds = ", ".join(sorted({finding.kind for finding in asked}))
        try:
            if gateway is None:
                raise ToolFailed("the code needs approval, and there is nobody to ask")
            await gateway.approve_code(context, findings, kinds)
        except ToolFailed as error:
            instead = " ".join(dict.fromkeys(finding.instead for finding in asked))
            words = f"the code was not run: {error}. {asked[0]}. {instead}"
            return Verdict(notes, Failure(REFUSED, words))
    return Verdict(notes)
