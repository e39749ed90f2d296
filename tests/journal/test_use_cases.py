"""Use cases: the rules, one by one and in their order."""

import pytest

from divingbell.journal.use_cases import USE_CASES, UseCase, use_of
from divingbell.models import Ledger, Result, ToolCall


def cell(*calls: str, brought: int = 0, read: int = 0) -> Result:
    """A cell that has made these calls, written as `tool argument`."""
    made = tuple(ToolCall(*call.split(), "ok") for call in calls)
    return Result("ok", calls=made, ledger=Ledger(output_tokens=read, direct_call_tokens=brought))


@pytest.mark.parametrize(
    ("use", "result"),
    [
        ("computing", cell()),
        ("polling", cell("a.status 1", "a.status 1", "a.status 1")),
        ("polling", cell("a.status 1", "b.log 2", "a.status 1", "b.log 3", "a.status 1")),
        ("workflow", cell("a.read 1", "b.write 1", brought=1000, read=1)),
        ("filtering", cell("a.list 1", "a.list 2", "a.list 3", brought=1000, read=500)),
        ("calling", cell("a.list 1", brought=1000, read=501)),
        ("calling", Result("ok", calls=(ToolCall("a.list", "{}", "ok"),))),
    ],
)
def test_the_first_rule_that_fits_counts(use: UseCase, result: Result) -> None:
    assert use_of(result) == use and use in USE_CASES
