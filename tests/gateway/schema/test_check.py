"""Values are checked against schemas that may be anything."""

import threading
from collections import Counter
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.gateway.schema.check import (
    AT_ONCE,
    BUDGET,
    check,
    checked,
    unknown_names,
)
from divingbell.gateway.schema.members import members_of
from divingbell.gateway.schema.reference import resolve
from divingbell.gateway.schema.walk import MAX_PROBLEMS, Walk
from divingbell.shares import weight
from divingbell.shares.turns import Turns
from tests.tool_lists import tool_lists

ISSUE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "owner": {"type": "string", "minLength": 1},
        "state": {"type": "string", "enum": ["open", "closed"]},
        "page": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}]},
        "labels": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"name": {"type": "string"}},
                "required": ["name"],
                "additionalProperties": False,
            },
            "maxItems": 3,
        },
        "auth-method": {"type": "string"},
    },
    "required": ["owner"],
}


def _said(value: Any, schema: Any) -> list[str]:
    return [str(problem) for problem in check(value, schema)]


def test_a_value_that_fits_has_no_problems() -> None:
    value = {"owner": "me", "state": "open", "page": None, "labels": [{"name": "bug"}], "x": 1}
    assert check(value, ISSUE) == []


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({}, "owner is required"),
        ({"owner": 3}, "owner must be a string, not int"),
        ({"owner": None}, "owner must be a string, not None"),
        ({"owner": ""}, "owner must have at least 1 characters, not 0"),
        (
            {"owner": "x", "state": "opened"},
            "state must be one of 'open', 'closed', not 'opened' (did you mean 'open'?)",
        ),
        ({"owner": "x", "page": 0}, "page must be at least 1, not 0"),
        ({"owner": "x", "page": "1"}, "page must be an integer or None, not str"),
        ({"owner": "x", "page": True}, "page must be an integer or None, not bool"),
        ({"owner": "x", "labels": "bug"}, "labels must be a list, not str"),
        (
            {"owner": "x", "labels": [{"name": "a"}, {"name": 2}]},
            "labels[1].name must be a string, not int",
        ),
        (
            {"owner": "x", "labels": [{"name": "a", "nme": 2}]},
            "labels[0].nme is not a name that is known here (did you mean 'name'?)",
        ),
        ({"owner": "x", "labels": [{"name": ""}] * 4}, "labels must have at most 3 items, not 4"),
        ({"owner": "x", "auth-method": 1}, "['auth-method'] must be a string, not int"),
        ([], "the value must be a dict, not list"),
    ],
    ids=str,
)
def test_a_problem_names_the_place_and_what_is_wanted(value: Any, problem: str) -> None:
    assert _said(value, ISSUE) == [problem]


@pytest.mark.parametrize(
    ("value", "schema", "fits"),
    [
        (3.0, {"type": "integer"}, True),
        (3.5, {"type": "integer"}, False),
        (True, {"type": "integer"}, False),
        (True, {"type": "number"}, False),
        (1, {"enum": [True]}, False),
        (1.0, {"enum": [1]}, True),
        ({"a": [1]}, {"const": {"a": [1.0]}}, True),
        (["constant", 1], {"const": ["constant", True]}, False),
        (None, {"type": "string", "nullable": True}, True),
        (None, {"type": ["string", "null"]}, True),
        ([1, 1.0], {"uniqueItems": True}, False),
        ([1, True], {"uniqueItems": True}, True),
        ([1, "x"], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, True),
        ([1, 2], {"prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, False),
        (0.3, {"multipleOf": 0.1}, True),
        (7, {"multipleOf": 2}, False),
        (5, {"exclusiveMinimum": 5}, False),
        ({"a": 1}, {"minProperties": 2}, False),
        ({"a": "x"}, {"additionalProperties": {"type": "integer"}}, False),
        (1, {"oneOf": [{"type": "integer"}, {"minimum": 0}]}, False),
        ("x", {"oneOf": [{"pattern": "a"}, {"pattern": "x"}]}, True),
        ("x", {"not": {"pattern": "a"}}, True),
        (1, {"not": {"type": "integer"}}, False),
        (1, False, False),
        (1, True, True),
        (1, {"allOf": [{"minimum": 0}, {"maximum": 0}]}, False),
    ],
    ids=str,
)
def test_keywords(value: Any, schema: Any, fits: bool) -> None:
    assert (check(value, schema) == []) is fits


def test_references_within_the_schema_are_followed() -> None:
    schema = {
        "$ref": "#/$defs/a~1b",
        "$defs": {"a/b": {"type": "array", "items": {"$ref": "#/definitions/n"}}},
        "definitions": {"n": {"type": "integer"}},
    }
    assert check([1, 2], schema) == []
    assert _said([1, "x"], schema) == ["[1] must be an integer, not str"]
    tree = {"properties": {"child": {"$ref": "#"}, "n": {"type": "integer"}}}
    assert _said({"child": {"child": {"n": "x"}}}, tree) == [
        "child.child.n must be an integer, not str"
    ]


def test_the_branch_that_was_meant_is_explained() -> None:
    schema = {
        "anyOf": [
            {"type": "string"},
            {
                "properties": {"kind": {"const": "circle"}, "radius": {"type": "number"}},
                "required": ["kind", "radius"],
            },
            {
                "properties": {"kind": {"const": "square"}, "side": {"type": "number"}},
                "required": ["kind", "side"],
            },
        ]
    }
    assert _said({"kind": "square", "side": "1"}, schema) == ["side must be a number, not str"]


def test_only_the_first_few_problems_are_told() -> None:
    assert len(check(["x"] * 100, {"items": {"type": "integer"}})) == MAX_PROBLEMS


def _nested(keyword: str, leaf: Any, depth: int = 60) -> Any:
    schema = leaf
    for _ in range(depth):
        schema = {keyword: [schema, schema]}
    return schema


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#"},
        {"allOf": [{"$ref": "#"}, {"$ref": "#"}]},
        {"anyOf": [{"$ref": "#/anyOf/1"}, {"$ref": "#/anyOf/0"}]},
        {"not": {"$ref": "#"}},
        _nested("anyOf", {"type": "string"}),
        _nested("oneOf", {"type": "integer"}),
        _nested("allOf", True),
        {"$ref": "https://example.com/schema.json"},
        {"$ref": "file:///etc/passwd"},
        {"$ref": "#/nothing"},
        {"$ref": 3},
        {"pattern": "(a+)+$", "patternProperties": {"(a+)+$": False}, "format": "regex"},
        {"type": 3, "enum": "x", "required": 7, "properties": [], "items": "x", "anyOf": {}},
        {"type": ["nonsense"] * 100_000},
        {"type": [["integer"], {}]},
        {"minimum": "x", "multipleOf": 0, "minLength": None, "maxItems": "3"},
        {"allOf": [{"properties": {}}] * 100_000},
        "nonsense",
        None,
        7,
    ],
    # As text, some of them would fill the universe.
    ids=lambda schema: " ".join(schema) if isinstance(schema, dict) else str(schema),
)
def test_what_can_not_be_decided_is_accepted(schema: Any) -> None:
    assert check("a" * 40 + "!", schema) == []
    check({"a" * 40 + "!": [1, {}]}, schema)
    check(10**5000, schema)


def test_a_problem_before_the_budget_ends_is_still_told() -> None:
    schema = {"allOf": [{"required": ["x"]}, _nested("allOf", True, 40)]}
    assert _said({}, schema) == ["x is required"]


OBJECT = {"type": "object", "required": ["path"], "minProperties": 1}


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (OBJECT, "filter must be a dict, not str"),
        ({"anyOf": [OBJECT, {"type": "null"}]}, "filter must be a dict or None, not str"),
        ({"$ref": "#/$defs/filter"}, "filter must be a dict, not str"),
    ],
)
def test_a_long_argument_keeps_no_other_from_being_looked_at(wanted: Any, words: str) -> None:
    integers = {"type": "array", "items": {"type": "integer"}, "maxItems": 50_000, "minItems": 1}
    schema = {"properties": {"items": integers, "filter": wanted}, "$defs": {"filter": OBJECT}}
    long = [0] * 30_000
    assert _said({"items": long, "filter": "{}"}, schema) == [words]
    assert check({"items": long, "filter": {"path": "x"}}, schema) == []
    assert check({"items": long, "filter": {}}, schema) == []  # its kind is right: no more is said


def test_values_that_are_deep_or_huge_do_not_hurt() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = [deep]
    schema = {"items": {"$ref": "#"}, "uniqueItems": True}
    assert check(deep, schema) == []
    assert check(deep, {"const": 1}) == []
    assert len(check([1, 1] * 100_000, {"uniqueItems": True})) == 1
    assert check(list(range(200_000)), {"items": {"type": "integer"}}) == []
    assert _said(10**5000, {"maximum": 1}) == [
        "the value must be at most 1, not a number of many digits"
    ]


def test_a_long_enum_is_told_in_short() -> None:
    schema = {"enum": [f"value-{number}" for number in range(10_000)]}
    assert check("value-9999", schema) == []
    (problem,) = check("nothing", schema)
    assert "… (10,000 values)" in problem.message
    assert len(problem.message) < 600


def test_messages_show_text_of_servers_and_code_safely() -> None:
    (problem,) = check("\x1b[31m\u202e" + "x" * 1000, {"enum": ["a\x1b[2J\n\u200bb"]})
    assert problem.message.isprintable()
    assert len(problem.message) < 300
    (problem,) = check({"\u202e\n": 1}, {"additionalProperties": False})
    assert str(problem).isprintable()


def test_misspelt_arguments_are_told_where_the_schema_lists_names() -> None:
    assert [str(found) for found in unknown_names({"owner": "x", "Labels": []}, ISSUE)] == [
        "Labels is not a name that is known here (did you mean 'labels'?)"
    ]
    assert unknown_names({"authMethod": 1}, ISSUE)[0].message.endswith(
        "(did you mean 'auth-method'?)"
    )
    assert len(unknown_names({f"x{number}": 1 for number in range(1000)}, ISSUE)) == MAX_PROBLEMS


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"a": {}}, "additionalProperties": True},
        {"properties": {"a": {}}, "additionalProperties": {"type": "integer"}},
        {"properties": {"a": {}}, "patternProperties": {"^x": {}}},
        {"properties": {"a": {}}, "allOf": [{"$ref": "https://example.com"}]},
        {"properties": {"a": {}}, "anyOf": [{"properties": {"x": {}}}]},
        {"properties": {}},
        {"type": "object"},
        {"$ref": "#"},
        True,
        None,
    ],
    ids=str,
)
def test_names_that_may_be_right_are_not_called_unknown(schema: Any) -> None:
    assert unknown_names({"x": 1}, schema) == []


def test_members_are_collected_over_the_parts_of_a_schema() -> None:
    schema = {
        "allOf": [{"$ref": "#/$defs/base"}, {"properties": {"b": {}}, "required": ["b"]}],
        "anyOf": [{"required": ["a"]}, {"properties": {"c": {}}, "required": ["c"]}],
        "$defs": {"base": {"properties": {"a": {"type": "string"}}, "required": ["a"]}},
    }
    members = members_of(schema)
    assert members is not None
    assert list(members.properties) == ["a", "b", "c"]
    assert list(members.required) == ["a", "b"]


def test_a_reference_points_into_the_schema_or_to_nothing() -> None:
    root = {"a": [{"b c": 1}], "%": 2}
    assert resolve(root, "#") is root
    assert resolve(root, "#/a/0/b%20c") == 1
    for reference in ["", "a", "#a", "#/a/1", "#/a/-1", "#/a/99999999999", "http://x/#/a", "#/x"]:
        assert resolve(root, reference) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.5, 1.0, -2.0])
    | st.sampled_from(["", "a", "bb"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
KINDS = ["string", "integer", "number", "boolean", "object", "array", "null"]
schemas = st.recursive(
    st.booleans() | st.fixed_dictionaries({"type": st.sampled_from(KINDS)}),
    lambda inner: st.fixed_dictionaries(
        {},
        optional={
            "type": st.sampled_from(KINDS)
            | st.lists(st.sampled_from(KINDS), min_size=1, max_size=3, unique=True),
            "enum": st.lists(json_values, min_size=1, max_size=3),
            "const": json_values,
            "properties": st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
            "required": st.lists(st.sampled_from("abc"), max_size=2, unique=True),
            "additionalProperties": inner,
            "items": inner,
            "prefixItems": st.lists(inner, min_size=1, max_size=2),
            "minimum": st.integers(-2, 2),
            "exclusiveMaximum": st.integers(-2, 2),
            "multipleOf": st.sampled_from([1, 2, 0.5]),
            "minLength": st.integers(0, 2),
            "maxItems": st.integers(0, 2),
            "minProperties": st.integers(0, 2),
            "uniqueItems": st.booleans(),
            "anyOf": st.lists(inner, min_size=1, max_size=3),
            "oneOf": st.lists(inner, min_size=1, max_size=3),
            "allOf": st.lists(inner, min_size=1, max_size=3),
            "not": inner,
            "$ref": st.sampled_from(["#/$defs/x", "#/$defs/y"]),
        },
    ),
    max_leaves=5,
)


@settings(max_examples=500, deadline=None, database=None)
@given(json_values, schemas, schemas)
def test_it_agrees_with_the_reference_where_all_can_be_decided(
    value: Any, schema: Any, referred: Any
) -> None:
    whole = {"allOf": [schema], "$defs": {"x": {"items": referred}, "y": {"type": "integer"}}}
    if "$ref" in str(referred):
        return
    expected = jsonschema.Draft202012Validator(whole).is_valid(value)
    assert (check(value, whole) == []) is expected


junk = st.recursive(
    json_values,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("type", "enum", "const", "properties", "required", "additionalProperties"),
                    *("items", "prefixItems", "minimum", "multipleOf", "minLength", "uniqueItems"),
                    *("anyOf", "oneOf", "not", "$ref", "$defs"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(max_examples=300, deadline=None, database=None)
@given(json_values, junk)
def test_no_schema_makes_it_fail(value: Any, schema: Any) -> None:
    for problem in check(value, schema):
        assert str(problem).isprintable()
    unknown_names(value if isinstance(value, dict) else {}, schema)


def test_defaults_of_real_tools_mostly_fit_their_own_schemas() -> None:
    # Not null, which many give as the default of what must be a string.
    wrong = total = 0
    for tools in tool_lists().values():
        for tool in tools:
            for schema in (tool["inputSchema"].get("properties") or {}).values():
                if schema.get("default") is not None and "$ref" not in str(schema):
                    total += 1
                    wrong += bool(check(schema["default"], schema))
    assert total > 500
    assert wrong < total / 20


DOUBLING = {"$ref": "#/$defs/x", "$defs": {"x": {"allOf": [{"$ref": "#/$defs/x"}] * 2}}}


async def test_a_long_check_is_made_beside_the_event_loop_and_charged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    steps: Counter[int] = Counter()
    spend = Walk.spend

    def counted(walk: Walk, number: int) -> None:
        steps[threading.get_ident()] += number
        spend(walk, number)

    monkeypatch.setattr(Walk, "spend", counted)
    charged: list[float] = []
    turns = Turns("session")
    monkeypatch.setattr(turns, "charge", charged.append)
    weight.TURNS.set(turns)
    assert await checked([], ISSUE) != [] and not charged
    assert await checked(1, DOUBLING) == []
    here = steps.pop(threading.get_ident())
    assert here <= 2 * AT_ONCE < BUDGET < sum(steps.values())
    assert len(charged) == 1 and charged[0] > 0


def test_the_members_of_a_schema_are_collected_within_a_budget_of_properties() -> None:
    wide = {"properties": dict.fromkeys(map(str, range(5_000)), True)}
    assert members_of({"allOf": [wide] * 2}) is not None
    assert members_of({"$defs": {"b": wide}, "allOf": [{"$ref": "#/$defs/b"}] * 250}) is None
