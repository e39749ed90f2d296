"""Explanations say the same as the pipeline does."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.settings.explanation import Explanation, explain
from divingbell.settings.policy import Policy
from divingbell.tool import Tool

POLICY = Policy.from_mapping(
    {
        "rules": [
            {"tools": "files.write", "action": "allow", "when": {"path": "/srv/*"}},
            {"tools": "files.write", "action": "deny", "reason": "only /srv"},
            {"tools": "files.*", "action": "ask", "users": "ben"},
            {"tools": "crm.*", "action": "deny", "when": {"all": "true"}},
        ],
        "bound": {"crm.*.tenant": "acme", "crm.get.user": "{user}"},
        "flow": [
            {"from": "crm.*", "to": ["slack.*", "files.read"], "action": "deny"},
            {"from": "host.*", "to": "slack.*", "action": "ask", "users": ["!ben"]},
        ],
    },
    "x",
)


def explained(name: str, user: str = "", after: tuple[str, ...] = (), **given: Any) -> Explanation:
    server, _, own = name.partition(".")
    return explain(POLICY, Tool(server, own, server, own), user, given.get("arguments"), after)


def test_without_arguments_it_depends_where_rules_look_at_them() -> None:
    found = explained("files.write")
    assert (found.action, found.rule) == ("depends", None)
    assert [number for number, _ in found.rules] == [1, 2]


@pytest.mark.parametrize(
    ("path", "action", "rule"), [("/srv/x", "allow", 1), ("/etc/x", "deny", 2)]
)
def test_with_arguments_it_is_decided(path: str, action: str, rule: int) -> None:
    found = explained("files.write", arguments={"path": path})
    assert (found.action, found.rule) == (action, rule)


def test_users_and_the_default_have_their_part() -> None:
    assert explained("files.read").action == "allow"
    assert (explained("files.read", "ben").action, explained("files.read", "ben").rule) == (
        "ask",
        3,
    )


def test_where_all_rules_say_the_same_nothing_depends_on_arguments() -> None:
    deny = {"tools": "a.*", "action": "deny"}
    policy = Policy.from_mapping({"rules": [{**deny, "when": {"x": "1"}}, deny]}, "x")
    found = explain(policy, Tool("a", "b", "a", "b"), "")
    assert (found.action, found.rule) == ("deny", 2)


def test_bound_arguments_are_shown_and_refused_where_they_are_given() -> None:
    assert explained("crm.get", "ann").bound == {"tenant": "acme", "user": "ann"}
    found = explained("crm.get", arguments={"Tenant": "mine"})
    assert found.action == "deny" and "tenant is set by the host" in found.reason


def test_flows_are_told_from_both_ends_and_only_restrict() -> None:
    found = explained("slack.post")
    assert found.action == "allow" and [each.number for each in found.flows] == [1, 2]
    assert [number for number, _ in explained("crm.get").sets_off] == [1]
    asked = explained("slack.post", after=("host.put_file", "time.now"))
    assert asked.action == "ask" and asked.flows[1].after == ("host.put_file",)
    assert explained("slack.post", after=("host.put_file", "crm.get")).action == "deny"
    assert explained("slack.post", "ben", after=("host.put_file",)).action == "allow"
    assert explained("files.read", "ben", after=("crm.get",)).action == "deny"


@given(
    st.sampled_from(["files.write", "files.read", "crm.get", "slack.post"]),
    st.sampled_from(["", "ben"]),
    st.dictionaries(st.sampled_from(["path", "all"]), st.sampled_from(["/srv/x", "/etc", True])),
)
def test_what_holds_without_arguments_holds_with_any(
    name: str, user: str, arguments: dict[str, Any]
) -> None:
    whole, one = explained(name, user), explained(name, user, arguments=arguments)
    assert whole.action in ("depends", one.action)
    tool = Tool(*name.split("."), *name.split("."))
    decision = POLICY.decide(tool, POLICY.bind(tool, arguments, user, ""), user)
    assert (one.action, one.rule) == (decision.action, decision.rule)
