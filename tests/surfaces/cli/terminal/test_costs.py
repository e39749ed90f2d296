"""What is told of costs, in words."""

from divingbell.agent.events import HelperEnded, HelperStarted
from divingbell.agent.model import ModelUsage
from divingbell.surfaces.cli.terminal.costs import words_on_helper


def test_a_helper_has_a_line_when_it_begins_and_one_with_its_cost() -> None:
    begun = HelperStarted(1, "Read\x1b[2J it", ("host.read_letter",), 20_000)
    assert words_on_helper(begun) == (
        "helper 1 (Read it) begins, with host.read_letter and at most 20,000 tokens"
    )
    assert "with no tools" in words_on_helper(HelperStarted(2, "Think", (), 5))
    ended = HelperEnded(1, "Read it", "answered", ModelUsage(900, 40, cost=0.0123), 2)
    assert words_on_helper(ended) == (
        "helper 1 (Read it): answered after 2 requests, 900 tokens read, 40 written, $0.0123"
    )
