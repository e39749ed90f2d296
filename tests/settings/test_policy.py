"""What the rules at the door let pass, and how mistakes in them are told."""

import inspect
import json
import re
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell.errors import ConfigError, ToolFailed
from divingbell.models import MB
from divingbell.settings.policy import MAX_MESSAGE, Decision, Policy, denied
from divingbell.tool import Tool


def policy(text: str) -> Policy:
    return Policy.from_mapping(tomllib.loads(text)["policy"], "divingbell.toml")


def tool(full_name: str, *arguments: str, **schema: Any) -> Tool:
    server, _, name = full_name.partition(".")
    made = {
        "type": "object",
        "properties": {argument: {"type": "string"} for argument in arguments},
        "required": list(arguments),
    }
    return Tool(server, name, server, name, input_schema=made | schema)


def action(
    rules: Policy, name: str, arguments: dict[str, Any] | None = None, user: str = "u"
) -> str:
    return rules.decide(tool(name), arguments or {}, user, "s").action


# Reading


def test_the_whole_table_can_be_read() -> None:
    made = policy(
        """
        [policy]
        default = "deny"
        calls_per_session = 5
        calls_per_cell = 0
        calls_per_user = 7
        rate_per_session = "60/minute"
        rate_per_user = "5/second; 600 per hour"
        max_arguments = "10KB"
        max_result = "16MB"
        calls_at_once = 3
        tool_timeout = 5
        approval_timeout = 0.5
        elicitation = "decline"
        pin = false
        [[policy.rules]]
        tools = "a.*"
        action = "ask"
        reason = "because"
        users = ["x*", "!xy"]
        when = { path = "/etc/*", "labels[].name" = "!x*" }
        [policy.bound]
        "crm.get_orders.user_id" = "{user}"
        """
    )
    assert made.default == "deny" and made.calls_per_session == 5 and made.pin is False
    assert made.max_arguments == 10 * 1024 and made.max_result == MAX_MESSAGE < 16 * MB
    assert made.tool_timeout == 5.0 and made.rules[0].tools == ("a.*",)
    assert made.bound[0].tool == "crm.get_orders" and made.bound[0].argument == "user_id"


def test_an_empty_table_is_the_default() -> None:
    assert Policy.from_mapping({}, "x") == Policy()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("defualt = 'ask'", r"f.toml, \[policy\]: there is no setting 'defualt'; did you mean 'd"),
        ("zzz = 1", "there is no setting 'zzz': there are default, "),
        ("default = 'maybe'", 'default must be "allow" or "deny" or "ask", not \'maybe\''),
        ("default = []", "default must be"),
        ("calls_per_session = -1", r"0 \(no limit\) or more, not -1"),
        ("calls_at_once = 0", "1 or more, not 0"),
        ("calls_per_cell = true", "a whole number"),
        ("calls_per_cell = 1.5", "a whole number"),
        ("rate_per_user = '60'", 'such as "60/minute"'),
        ("rate_per_user = '0/minute'", 'such as "60/minute"'),
        ("rate_per_user = '6/fortnight'", 'such as "60/minute"'),
        ("rate_per_user = 60", 'such as "60/minute"'),
        (
            "max_result = '17MB'",
            "max_result must be a size, more than 0 and at most 16MB, not '17MB'",
        ),
        ("max_result = 'much'", "max_result: 'much' is not a size"),
        ("max_arguments = 0", "more than 0"),
        ("tool_timeout = 0", "seconds, more than 0"),
        ("tool_timeout = nan", "seconds, more than 0"),
        ("tool_timeout = '5'", "seconds, more than 0"),
        ("pin = 'yes'", "true or false"),
        (
            "sampling = 'decline'",
            "no setting 'sampling' any more: .* always declined, so leave it out",
        ),
        ("rules = 3", r"\[\[policy.rules\]\]"),
        ("rules = [3]", "rule 1 must be a table"),
        ("rules = [{ tools = ['a.*'] }]", "rule 1 has no 'action'"),
        ("rules = [{ action = 'ask' }]", "rule 1 has no 'tools'"),
        ("rules = [{ tools = [], action = 'ask' }]", "list of patterns"),
        ("rules = [{ tools = [1], action = 'ask' }]", "1 is no pattern"),
        ("rules = [{ tools = ['!'], action = 'ask' }]", "'!' is no pattern"),
        ("rules = [{ tools = ['github'], action = 'ask' }]", r'write "github\.\*"'),
        ("rules = [{ tools = ['a.*'], action = 'no' }]", "rule 1: action must be"),
        ("rules = [{ tools = ['a.*'], action = 'ask', wen = {} }]", "did you mean 'when'"),
        (
            "rules = [{ tools = ['a.*'], action = 'ask', when = 'x' }]",
            "when must be a table, such as",
        ),
        ("rules = [{ tools = ['a.*'], action = 'ask', when = { a = 1 } }]", "when a: 1 is no"),
        ("rules = [{ tools = ['a.*'], action = 'ask', reason = 1 }]", "reason must be a text"),
        ("bound = 1", r"\[policy\.bound\] must be a table, such as"),
        ("bound = { 'crm.user' = 'x' }", "server.tool.argument"),
        ("bound = { 'crm.get.' = 'x' }", "server.tool.argument"),
        ("bound = { crm.get.user = 'x' }", "server.tool.argument"),
        ("bound = { 'crm.get.id' = '{usr}' }", r"\{usr\} is unknown; there are \{user\} and"),
        ("bound = { 'crm.get.id' = 2020-01-01 }", "must be JSON"),
    ],
)
def test_mistakes_are_told_with_their_place(text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        Policy.from_mapping(tomllib.loads(text), "f.toml")


def test_something_else_than_a_table_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"\[policy\] must be a table"):
        Policy.from_mapping([], "f.toml")


# Rules

RULES = """
[policy]
default = "deny"
[[policy.rules]]
tools = ["github.*", "!github.get_*"]
action = "ask"
reason = "writes to GitHub"
users = ["!robot"]
[[policy.rules]]
tools = ["github.delete_*"]
action = "deny"
[[policy.rules]]
tools = ["github.*", "time.*"]
action = "allow"
"""


def test_the_first_rule_that_matches_decides() -> None:
    rules = policy(RULES)
    made = rules.decide(tool("github.delete_repo"), {}, "anna", "s")
    assert made == Decision("ask", "writes to GitHub", 1)
    assert rules.decide(tool("github.delete_repo"), {}, "robot", "s").rule == 2
    assert action(rules, "github.get_me") == "allow"
    assert action(rules, "other.tool") == "deny"


def test_a_server_can_not_pass_for_another_by_the_names_of_its_tools() -> None:
    rules = policy(RULES)
    assert action(rules, "evil.github.get_me") == "deny"
    assert action(rules, "evil.time.now") == "deny"
    assert action(rules, "GitHub.get_me") == "deny"


def test_what_a_server_says_of_itself_is_not_consulted() -> None:
    rules = policy(RULES)
    harmless = Tool("github", "x", "github", "x", annotations={"readOnlyHint": True})
    assert rules.decide(harmless, {}, "anna").action == "ask"


def test_a_tool_that_is_denied_whatever_the_arguments_is_not_visible() -> None:
    rules = policy(
        """
        [policy]
        [[policy.rules]]
        tools = ["a.hidden"]
        action = "deny"
        users = ["guest"]
        [[policy.rules]]
        tools = ["a.partly"]
        action = "deny"
        when = { x = "1" }
        """
    )
    assert not rules.visible(tool("a.hidden"), "guest")
    assert rules.visible(tool("a.hidden"), "anna")
    assert rules.visible(tool("a.partly"), "guest")
    assert policy(RULES).visible(tool("github.delete_repo"), "anna")
    assert not policy(RULES).visible(tool("github.delete_repo"), "robot")
    assert not policy(RULES).visible(tool("other.tool"), "anna")


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], "everyone"),
        ([("deny", "*", "")], "nobody"),
        ([("deny", "*", "x = '1'")], "everyone"),
        ([("allow", "*", ""), ("deny", "*", "")], "everyone"),
        ([("deny", "guest", "")], "some"),
        ([("deny", "!root", "")], "some"),
        ([("ask", "ann", ""), ("deny", "*", "")], "some"),
        ([("ask", "*", "x = '1'"), ("deny", "*", "")], "everyone"),
        ([("deny", "guest", "x = '1'")], "everyone"),
        ([("deny", "guest", ""), ("allow", "*", "")], "some"),
    ],
)
def test_who_may_call_a_tool_is_known_without_a_user(
    rules: list[tuple[str, str, str]], expected: str
) -> None:
    lines = [
        f'[[policy.rules]]\ntools = ["a.*"]\naction = "{action}"\nusers = ["{users}"]\n'
        f"when = {{ {when} }}"
        for action, users, when in rules
    ]
    made = policy("\n".join(["[policy]", *lines]))
    assert made.audience(tool("a.b")) == expected
    assert made.audience(tool("other.b")) == "everyone"
    closed = policy('[policy]\ndefault = "deny"')
    assert closed.audience(tool("a.b")) == "nobody"


def test_denied_says_why() -> None:
    made = denied(tool("a.b"), Decision("deny", "too dear", 1))
    assert (str(made), made.code) == ("a.b is denied by policy: too dear", "tool_denied")
    assert "no rule allows it" in str(denied(tool("a.b"), Decision("deny")))
    assert "rule 4" in str(denied(tool("a.b"), Decision("deny", "", 4)))


# Arguments


def when(conditions: str, action: str = "deny") -> Policy:
    default = "deny" if action == "allow" else "allow"
    return policy(
        f'[policy]\ndefault = "{default}"\n[[policy.rules]]\ntools = ["*"]\n'
        f'action = "{action}"\nwhen = {{ {conditions} }}'
    )


@pytest.mark.parametrize(
    ("conditions", "arguments", "expected"),
    [
        ("path = '/etc/*'", {"path": "/etc/passwd"}, "deny"),
        ("path = '/etc/*'", {"path": "/tmp/x"}, "allow"),
        ("path = '/etc/*'", {}, "allow"),
        ("path = '/etc/*'", {"path": ["/tmp/x", "/etc/passwd"]}, "deny"),
        ("path = '/etc/*'", {"path": [["/tmp/x", ["/etc/passwd"]]]}, "deny"),
        ("path = '!/workspace/*'", {"path": "/etc/passwd"}, "deny"),
        ("path = '!/workspace/*'", {"path": ["/workspace/x", "/etc/passwd"]}, "deny"),
        ("path = '!/workspace/*'", {"path": "/workspace/x"}, "allow"),
        ("path = '!/workspace/*'", {}, "deny"),
        ("'labels[].name' = 'x*'", {"labels": [{"name": "a"}, {"name": "xy"}]}, "deny"),
        ("'labels[].name' = 'x*'", {"labels": {"name": "xy"}}, "deny"),
        ("'labels.name' = 'x*'", {"labels": [{"name": "xy"}]}, "deny"),
        ("'labels[].name' = 'x*'", {"labels": [{"name": "a"}, {}, None]}, "allow"),
        ("'labels[].name' = 'x*'", {"labels": [{"name": "a"}, 3]}, "deny"),
        ("'labels[].name' = 'x*'", {"labels": "x"}, "deny"),
        ("'labels[].name' = 'x*'", {"labels": '[{"name": "xy"}]'}, "deny"),
        ("path = '/etc/*'", {"path": '["/tmp/x", "/etc/passwd"]'}, "deny"),
        ("path = '/etc/*'", {"path": '\ufeff\n["/etc/passwd"] '}, "deny"),
        ("path = '/etc/*'", {"path": r'["[\"/etc/passwd\"]"]'}, "deny"),
        ("path = '/etc/*'", {"path": '["/tmp/x"]'}, "allow"),
        ("path = '/etc/*'", {"path": "[a page](/etc/passwd)"}, "allow"),
        ("'labels[].name' = '!x*'", {"labels": [{"name": "xy"}, 3]}, "deny"),
        ("'labels[].name' = '!x*'", {"labels": [{"name": "xy"}, {}]}, "deny"),
        ("path = '/etc/*'", {"path": "/tmp/x", "Path": "/etc/passwd"}, "deny"),
        ("path = '/etc/*'", {"path\u200b": "/etc/passwd"}, "deny"),
        ("'a.b' = 'x'", {"A": {"B ": "x"}}, "deny"),
        ("'a.b' = 'x'", {"a[b]": "x"}, "deny"),
        ("'a.b.c' = 'x'", {"a": {"b.c": "x"}}, "deny"),
        ("'a.b.c' = 'x'", {"a.b": {"c": "x"}}, "deny"),
        ("'a.b' = 'x'", {"a.b": "x"}, "deny"),
        ("a = '1', b = '2'", {"a": 1, "b": 2}, "deny"),
        ("a = '1', b = '2'", {"a": 1, "b": 3}, "allow"),
        ("a = '1'", {"a": 1.0}, "deny"),
        ("a = '0.5'", {"a": 0.5}, "deny"),
        ("a = 'true'", {"a": True}, "deny"),
        ("a = 'null'", {"a": None}, "deny"),
        ("a = '*\"é\":1*'", {"a": {"b": 2, "é": 1}}, "deny"),
    ],
)
def test_a_rule_that_refuses_is_meant_if_one_value_is_of_that_kind(
    conditions: str, arguments: dict[str, Any], expected: str
) -> None:
    assert action(when(conditions), "a.b", arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"path": "/workspace/x"}, "allow"),
        ({"path": ["/workspace/x", "/workspace/y"]}, "allow"),
        ({"path": ["/workspace/x", "/etc/passwd"]}, "deny"),
        ({"path": []}, "deny"),
        ({"path": ["/workspace/x", []]}, "deny"),
        ({}, "deny"),
        ({"path": "/workspace/x", "Path": "/etc/shadow"}, "deny"),
        ({"path": "/workspace/x", "Path": "/workspace/y"}, "allow"),
        ({"path": "/workspace/x", "path\u200b": "/etc/shadow"}, "deny"),
        ({"path": "/workspace/x", "path[0]": "/etc/shadow"}, "deny"),
        ({"path": "/workspace/x", "other": "/etc/shadow"}, "allow"),
        ({"PATH": "/workspace/x"}, "deny"),
        ({"path": '["/workspace/x"]'}, "deny"),
    ],
)
def test_a_rule_that_allows_is_meant_only_if_all_values_are(
    arguments: dict[str, Any], expected: str
) -> None:
    assert action(when("path = '/workspace/*'", "allow"), "a.b", arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({"files": [{"path": "/srv/shared/x"}]}, "allow"),
        ({"files": {"path": "/srv/shared/x"}}, "allow"),
        ({"files.path": "/srv/shared/x"}, "allow"),
        ({"files": [{"path": "/srv/shared/x"}, "/etc/shadow"]}, "deny"),
        ({"files": [{"path": "/srv/shared/x"}, {"name": "/etc/shadow"}]}, "deny"),
        ({"files": [{"path": "/srv/shared/x"}, None]}, "deny"),
        ({"files": [{"path": "/srv/shared/x"}, []]}, "deny"),
        ({"files": [{"path": "/srv/shared/x", "PATH": "/etc/shadow"}]}, "deny"),
        ({"files": [{"path": "/srv/shared/x"}], "Files": "/etc/shadow"}, "deny"),
        ({"files": [{"path": "/srv/shared/x"}], "files.path": "/etc/shadow"}, "deny"),
    ],
)
def test_an_item_without_the_argument_is_not_one_that_is_allowed(
    arguments: dict[str, Any], expected: str
) -> None:
    assert action(when("'files[].path' = '/srv/shared/*'", "allow"), "a.b", arguments) == expected


def test_a_text_is_allowed_only_if_what_it_may_be_parsed_to_is() -> None:
    rules = when("path = '!/etc/*'", "allow")
    assert action(rules, "a.b", {"path": '["/tmp/x"]'}) == "allow"
    assert action(rules, "a.b", {"path": '["/tmp/x", "/etc/passwd"]'}) == "deny"


def test_texts_that_would_take_long_to_parse_are_not_compared() -> None:
    nested = "x"
    for _ in range(300):  # each level a little longer than the one within
        quoted = nested.replace("\\", "\\u005c").replace('"', "\\u0022")
        nested = f'["{quoted}"]'
    for bad in (
        "[" + "0," * 20_000,
        "[" * 5_000,
        "[" * 1_200 + "]" * 1_200,
        nested,
        "[" + " " * (11 << 20),
    ):
        with pytest.raises(ToolFailed) as caught:
            when("a = 'x'").decide(tool("a.b"), {"a": bad}, "u", "s")
        assert caught.value.code == "tool_arguments"
        assert action(when("b = 'x'"), "a.b", {"a": bad}) == "allow"  # nobody looks at it


def test_the_docs_table_of_conditions_is_what_the_code_does() -> None:
    """Each cell: whether a rule with this action and pattern is meant for these arguments."""
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text("utf-8")
    rows = re.findall(r"^\| .*\| `(\{.*\})` \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) >= 8
    columns = [("allow", "x*"), ("allow", "!x*"), ("deny", "x*"), ("deny", "!x*")]
    for arguments, cells in rows:
        for (effect, pattern), cell in zip(columns, cells.split(" | "), strict=True):
            for named in {effect, "ask" if effect == "deny" else effect}:
                rules = when(f"'items.path' = '{pattern}'", named)
                made = rules.decide(tool("a.b"), json.loads(arguments), "u")
                assert (made.rule == 1) is (cell == "yes"), (arguments, named, pattern)


def test_as_many_items_as_are_allowed_are_compared() -> None:
    assert action(when("a = 'x'"), "a.b", {"a": [0] * 9_000 + ["x"]}) == "deny"


def test_names_without_end_are_not_compared() -> None:
    for bad in ({f"n{number}": 1 for number in range(20_000)}, {"n" * 100_000: 1}):
        with pytest.raises(ToolFailed) as caught:
            when("a = 'x'").decide(tool("a.b"), bad, "u", "s")
        assert caught.value.code == "tool_arguments"


def test_arguments_that_can_not_be_compared_are_refused() -> None:
    deep: Any = 0
    for _ in range(100_000):
        deep = {"a": deep}
    for bad in (10**5000, {"x": {1, 2}}, deep):
        with pytest.raises(ToolFailed) as caught:
            when("a = 'x'").decide(tool("a.b"), {"a": bad}, "u", "s")
        assert caught.value.code == "tool_arguments"


def test_arrays_too_long_or_deep_to_be_compared_are_refused() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    for bad in (deep, [0] * 100_000, [[0] * 300] * 300):
        with pytest.raises(ToolFailed, match="more than 10,000 items") as caught:
            when("a = 'x'").decide(tool("a.b"), {"a": bad}, "u", "s")
        assert caught.value.code == "tool_arguments"
        assert action(when("b = 'x'"), "a.b", {"a": bad}) == "allow"  # nobody looks at it


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab."), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text("ab.", max_size=3), JSON, max_size=4))
def test_any_arguments_get_a_decision(arguments: dict[str, Any]) -> None:
    for effect in ("allow", "deny", "ask"):
        assert action(when("'a.b' = '*x*', b = '!y'", effect), "a.b", arguments)


# Bound arguments

SPELLINGS = [
    "User_ID", "ｕser_id", "userId", "user-id", "user_id ", "user_id\u200b", "us\u00ader_id",
    "user_id[0]",
]  # fmt: skip
BOUND = policy(
    """
    [policy]
    [policy.bound]
    "crm.get_orders.user_id" = "{user}"
    "crm.*.tenant" = "t-{session}-{user}"
    "crm.count.limit" = 10
    """
)


def test_a_bound_argument_is_set_by_the_host() -> None:
    orders = tool("crm.get_orders", "user_id", "since")
    given = {"since": "2026"}
    assert BOUND.bind(orders, given, "anna", "s1") == {"since": "2026", "user_id": "anna"}
    assert given == {"since": "2026"}
    assert BOUND.bind(tool("crm.list", "tenant"), {}, "u", "s") == {"tenant": "t-s-u"}
    assert BOUND.bind(tool("crm.count", "limit"), {}, "u", "s") == {"limit": 10}
    assert BOUND.bind(tool("other.get_orders", "user_id"), {"user_id": "x"}, "u", "s") == {
        "user_id": "x"
    }


@pytest.mark.parametrize("name", ["user_id", *SPELLINGS])
def test_the_code_can_not_set_it_under_any_spelling(name: str) -> None:
    with pytest.raises(ToolFailed, match="user_id is set by the host: leave it out") as caught:
        BOUND.bind(tool("crm.get_orders", "user_id"), {name: "someone else"}, "anna", "s")
    assert caught.value.code == "tool_denied" and "anna" not in str(caught.value)


def test_a_schema_shows_no_spelling_of_a_bound_argument() -> None:
    shown = BOUND.without_bound(tool("crm.get_orders", "since", "user_id", *SPELLINGS)).input_schema
    assert shown is not None and list(shown["properties"]) == ["since"]


def test_names_without_end_are_refused() -> None:
    many = {f"n{number}": 1 for number in range(100_000)}
    with pytest.raises(ToolFailed, match="more than 1,000 arguments"):
        BOUND.bind(tool("crm.get_orders", "user_id"), many, "u", "s")


def test_values_are_filled_in_once() -> None:
    made = BOUND.bind(tool("crm.list", "tenant"), {}, "{session}", "{user}")
    assert made == {"tenant": "t-{user}-{session}"}


def test_a_number_is_sent_where_the_tool_wants_one() -> None:
    orders = tool("crm.get_orders", properties={"user_id": {"type": "integer"}})
    assert BOUND.bind(orders, {}, "42", "s") == {"user_id": 42}
    assert BOUND.bind(orders, {}, "anna", "s") == {"user_id": "anna"}


def test_a_tool_that_has_lost_its_bound_argument_is_refused() -> None:
    renamed = tool("crm.get_orders", "customer_id")
    with pytest.raises(ToolFailed, match="has no argument user_id any more") as caught:
        BOUND.bind(renamed, {"customer_id": "someone else"}, "anna", "s")
    assert caught.value.code == "tool_denied"
    assert BOUND.bind(tool("crm.ping", "text"), {"text": "x"}, "u", "s") == {"text": "x"}


def test_a_tool_without_declared_arguments_gets_the_bound_one() -> None:
    assert BOUND.bind(Tool("crm", "get_orders", "crm", "get_orders"), {}, "u", "s") == {
        "user_id": "u",
        "tenant": "t-s-u",
    }


def test_the_code_does_not_see_bound_arguments() -> None:
    orders = tool(
        "crm.get_orders",
        "user_id",
        "since",
        anyOf=[{"required": ["user_id"]}, {"properties": {"user_id": {}, "x": {}}}, True],
    )
    shown = BOUND.without_bound(orders).input_schema
    assert shown == {
        "type": "object",
        "properties": {"since": {"type": "string"}},
        "required": ["since"],
        "anyOf": [{"required": []}, {"properties": {"x": {}}}, True],
    }
    assert "user_id" in (orders.input_schema or {})["properties"]
    untouched = tool("other.tool", "user_id")
    assert BOUND.without_bound(untouched) is untouched
    without_schema = Tool("crm", "get_orders", "crm", "get_orders")
    assert BOUND.without_bound(without_schema) is without_schema


# Sizes


def test_sizes_are_checked_with_words_that_help() -> None:
    small = policy('[policy]\nmax_arguments = "1KB"\nmax_result = 2000')
    small.check_arguments("a.b", b" " * 1024)
    small.check_result_size("a.b", 2000)
    with pytest.raises(ToolFailed, match="1,025 bytes, 1,024 are allowed") as caught:
        small.check_arguments("a.b", b" " * 1025)
    assert caught.value.code == "tool_limit"
    with pytest.raises(ToolFailed, match="The call was made") as caught:
        small.check_result_size("a.b", 2001)
    assert caught.value.code == "tool_result"


def test_arguments_of_very_many_values_are_refused_by_their_weight() -> None:
    as_text = b'{"x":"' + b"[]," * 300_000 + b'"}'
    Policy().check_arguments("a.b", as_text)
    with pytest.raises(ToolFailed, match=r"too many lists.*send fewer") as caught:
        Policy().check_arguments("a.b", as_text.replace(b'"', b""))
    assert caught.value.code == "tool_limit"


# The page about it


def test_the_table_in_the_docs_is_that_of_the_code() -> None:
    page = (Path(__file__).parents[2] / "docs" / "policy.md").read_text("utf-8")
    rows = re.findall(r"^\| `(\w+)` \| `(.+?)` \| (.*) \|$", page, re.MULTILINE)
    source = inspect.getsource(Policy)
    settings = {item.name for item in fields(Policy) if item.init} - {"rules", "bound", "flow"}
    assert {name for name, _, _ in rows} == settings
    for name, _, meaning in rows:
        assert re.search(rf'^    {name}: .*\n    """{re.escape(meaning)}"""$', source, re.MULTILINE)
    table = tomllib.loads("\n".join(f"{name} = {default}" for name, default, _ in rows))
    assert Policy.from_mapping(table, "docs") == Policy()
