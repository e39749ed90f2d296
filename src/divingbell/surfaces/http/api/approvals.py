"""Approvals: calls that wait for a person's word."""

from starlette.types import ASGIApp

from divingbell.gateway.policy.approvals import Answer
from divingbell.surfaces.http import pages
from divingbell.surfaces.http.answers import as_json, nothing
from divingbell.surfaces.http.operations import Call, Operation
from divingbell.surfaces.http.problems import missing
from divingbell.surfaces.http.wire import ApprovalsTold, LongPage, WordGiven


async def listed(call: Call, given: LongPage) -> ASGIApp:
    """List the questions about calls that wait for the user's word."""
    names = {
        session.key: name for name, session in call.service.bell.owned.of(call.visitor.principal())
    }
    found = call.service.pending.of(call.visitor.user)
    part, after = pages.page(found, given, lambda each: str(each.approval.identifier))
    items = [each.told(names.get(each.approval.key, each.approval.session)) for each in part]
    return as_json(ApprovalsTold(items=items, next=after))


async def answer(call: Call, given: WordGiven) -> ASGIApp:
    """Answer a question; the first answer counts, wherever it comes from."""
    number = call.parameter("id")
    said = Answer(given.word, given.comment)
    if not call.service.pending.answer(call.visitor.user, number, said):
        raise missing("open question", number)
    return nothing()


OPERATIONS = (
    Operation("GET", "/approvals", "approve", listed, query=LongPage, answers=ApprovalsTold),
    Operation("POST", "/approvals/{id}", "approve", answer, WordGiven, status=204),
)
