"""Labels: who holds which, how long, and what that costs."""

import logging

import pytest

from divingbell.gateway.context import CallContext, Holder
from divingbell.gateway.policy import labels
from divingbell.gateway.policy.labels import Labels, Source
from divingbell.principal import Principal
from divingbell.settings.flows import Flow

DENY = Flow(("crm.*",), ("slack.*",), "deny")
ASK = Flow(("hr.*", "crm.*"), ("slack.*", "mail.*"), "ask", users=("ann",))
HERE, THERE = Principal("ann", "one", "http"), Principal("ann", "two", "http")
GET = Source("crm.get", 3)


def context(holder: Holder, user: str = "ann") -> CallContext:
    if isinstance(holder, Principal):
        return CallContext(holder, "", "direct", "client", 7)
    return CallContext(Principal(user, holder), "s", holder)


def numbers(kept: Labels, holder: Holder, tool: str = "slack.post", user: str = "ann") -> list[int]:
    return [match.number for match in kept.matches(context(holder, user), tool)]


def test_a_rule_holds_for_the_one_who_set_it_off_and_names_the_first_call() -> None:
    kept = Labels([ASK, DENY])
    assert numbers(kept, "a") == []
    kept.add("a", "ann", GET)
    kept.add("a", "ann", Source("crm.list", 4))
    assert numbers(kept, "a") == [2, 1], "those that deny come first"
    assert numbers(kept, "a", "mail.send") == [1]
    assert numbers(kept, "a", "crm.get") == [] == numbers(kept, "b")
    [_, asked] = kept.matches(context("a"), "slack.post")
    assert asked.source == GET and str(GET) == "crm.get (called in cell 3)"


def test_a_rule_for_some_users_holds_for_them() -> None:
    kept = Labels([ASK])
    kept.add("b", "ben", GET)
    assert numbers(kept, "b", user="ben") == []


def test_a_client_and_the_sessions_that_it_reaches_are_one_also_for_what_comes_later() -> None:
    kept = Labels([DENY])
    kept.join(HERE, "mine")
    kept.join(HERE, "shared")
    kept.add(THERE, "ann", GET)
    assert numbers(kept, "shared") == []
    kept.join(THERE, "shared")
    assert [numbers(kept, each) for each in ("shared", "mine", HERE, THERE)] == [[1]] * 4
    assert numbers(kept, "other") == []


def test_what_others_of_the_conversation_hold_stays_when_one_ends() -> None:
    kept = Labels([DENY])
    kept.join(HERE, "first")
    kept.add("first", "ann", GET)
    kept.forget("first")
    kept.join(HERE, "second")
    kept.leave("one")
    assert numbers(kept, "second") == [1] and numbers(kept, HERE) == []
    kept.join(THERE, "second")
    assert numbers(kept, THERE) == [1]
    kept.forget("second")
    kept.leave("two")
    assert len(kept) == 0 and not kept._counts


def test_nothing_is_kept_of_what_no_rule_is_about() -> None:
    kept = Labels([DENY])
    kept.add("a", "ann", Source("time.now"))
    assert len(kept) == 0
    without = Labels([])
    without.add("a", "ann", GET)
    without.join(HERE, "a")
    assert len(without) == 0 and not without._ends


def test_a_conversation_keeps_a_line_for_each_rule_and_no_more() -> None:
    kept = Labels([DENY] * 100)
    for number in range(1_000):
        kept.add("a", "ann", Source(f"crm.tool{number}"))
    assert len(kept._conversations["a"].sources) == 100
    assert len(numbers(kept, "a")) == 100


def test_patterns_are_compared_once_for_each_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    kept, compared = Labels([DENY] * 100), 0
    matches = Flow.leads_to

    def counting(self: Flow, name: str) -> bool:
        nonlocal compared
        compared += 1
        return matches(self, name)

    monkeypatch.setattr(Flow, "leads_to", counting)
    kept.add("a", "ann", GET)
    for _ in range(50):
        assert len(numbers(kept, "a")) == 100
    assert compared == 200, "two tools, a hundred rules"
    monkeypatch.setattr(labels, "MAX_KNOWN", 5)
    for number in range(20):
        numbers(kept, "a", f"slack.tool{number}")
        assert len(kept._ends) <= 5


def test_more_than_can_be_told_apart_share_their_labels_and_none_is_forgotten(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(labels, "MAX_HOLDERS", 3)
    kept = Labels([DENY])
    with caplog.at_level(logging.WARNING, "divingbell.gateway"):
        for number in range(6):
            kept.add(f"s{number}", "ann", GET)
    assert len(kept) == 3 and caplog.text.count("share their labels") == 1
    assert all(numbers(kept, f"s{number}") == [1] for number in range(6))
    kept.forget("s0")
    assert numbers(kept, "s5") == [1], "there is room again, and still nothing is forgotten"
    assert numbers(kept, "new") == [1], "nobody knows that it was not here before"
    assert numbers(kept, "new", user="ben") == [], "the others feel nothing"
    kept.join(HERE, "s1")
    kept.add(HERE, "ann", GET)
    assert numbers(kept, HERE) == numbers(kept, "s1") == [1]


def test_users_do_not_share_anything() -> None:
    kept = Labels([DENY])
    kept.add(Principal("ann", "", "http"), "ann", GET)
    assert numbers(kept, Principal("ben", "", "http")) == []
