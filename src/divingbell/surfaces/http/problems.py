"""Problems: what went wrong with a request, in the form of RFC 9457."""

import math
from collections.abc import Mapping
from http import HTTPStatus

import msgspec
from starlette.types import Receive, Scope, Send

from divingbell import logs
from divingbell.errors import CapacityError, DivingbellError, RateExceeded
from divingbell.surfaces.http.answers import Answer
from divingbell.text import one_line

log = logs.logger("divingbell")

MEDIA_TYPE = "application/problem+json"
MAX_DETAIL = 4_000
AGAIN = 1.0
"""Seconds after which whoever met a full house may try again."""
STATUSES: Mapping[str, int] = {
    "config": 422,
    "sandbox_unavailable": 503,
    "profile": 503,
    "capacity": 503,
    "rate_exceeded": 429,
    "session_closed": 409,
    "invalid_input": 422,
    "not_recorded": 503,
    "unknown_token": 503,
    "file_refused": 422,
    "file_missing": 404,
    "file_too_large": 413,
    "disk_full": 507,
    "skill_refused": 422,
    "skill_missing": 404,
    "tool_unknown": 404,
    "tool_denied": 403,
    "tool_arguments": 422,
    "tool_unavailable": 503,
    "tool_timeout": 503,
}
"""By the code of an error. What is not here is our own fault: 500."""
COUNT = "divingbell.count"
"""Where a request has the function that counts refusals by their code."""
INTERNAL = "something went wrong inside: the log of divingbell says more"


class Problem(msgspec.Struct, kw_only=True, frozen=True):
    """A problem, as clients read it."""

    type: str
    title: str
    status: int
    detail: str
    code: str
    request_id: str


class Refused(Exception):
    """Raised for a request that is not done; its words say what to do next."""

    def __init__(
        self, status: int, code: str, detail: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.headers = dict(headers or {})

    def retry_after(self, seconds: float) -> "Refused":
        """Say when to try again; returns itself."""
        self.headers["Retry-After"] = str(max(1, math.ceil(seconds)))
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request with it."""
        await self.answer(scope)(scope, receive, send)

    def answer(self, scope: Scope) -> Answer:
        """Return it as the answer to a request, and have it counted."""
        count(scope, self.code)
        problem = Problem(
            type=f"urn:divingbell:problem:{self.code}",
            title=HTTPStatus(self.status).phrase,
            status=self.status,
            detail=str(self)[:MAX_DETAIL],
            code=self.code,
            request_id=request_id(scope),
        )
        body = msgspec.json.encode(problem)
        return Answer(body, self.status, MEDIA_TYPE, self.headers)


def count(scope: Scope, code: str) -> None:
    """Count a refusal, where somebody does."""
    if COUNT in scope:
        scope[COUNT](code)


def request_id(scope: Scope) -> str:
    """Return the name that the guard has given to a request."""
    name: str = scope.get("divingbell.request", "")
    return name


def of_error(error: BaseException) -> Refused:
    """Return what a client is told of an error; of one that is none of ours, nothing."""
    if isinstance(error, Refused):
        return error
    status = STATUSES.get(error.code) if isinstance(error, DivingbellError) else None
    if status is None:
        log.error("a request failed", exc_info=error)
        return Refused(500, "internal", INTERNAL)
    assert isinstance(error, DivingbellError)
    refused = Refused(status, error.code, str(error))
    if isinstance(error, RateExceeded):
        return refused.retry_after(error.retry_after)
    if isinstance(error, CapacityError) and error.of_user:
        return Refused(429, error.code, str(error))  # time alone frees nothing of theirs
    return refused.retry_after(AGAIN) if status == 503 else refused


def missing(what: str, name: str) -> Refused:
    """Return the answer about something that is not there, or that is another's."""
    return Refused(404, "not_found", f"there is no {what} {one_line(name, 100)!r} of yours")
