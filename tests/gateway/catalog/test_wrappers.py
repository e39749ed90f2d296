"""Every tool becomes a module that is typed, documented, and nothing but a wrapper."""

import ast
import inspect
import typing
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from divingbell.gateway.catalog.naming import identifier, unique
from divingbell.gateway.catalog.wrappers import (
    MAX_MODULE,
    MAX_README,
    MAX_SIGNATURE,
    first_sentence,
    index_readme,
    module_source,
    package_source,
    readme,
    signature,
)
from divingbell.tool import Tool
from divingbell_inside.tools import UNSET
from tests.tool_lists import tool_lists

WORDS = {
    *("Any", "Literal", "NotRequired", "TypedDict"),
    *("str", "int", "float", "bool", "list", "dict"),
}


def _tool(
    schema: Any = None,
    *,
    name: str = "create_issue",
    description: str = "Create an issue.",
    output: Any = None,
) -> Tool:
    return Tool("github", name, "github", identifier(name), description, schema, output)


def _assert_annotation(node: ast.AST, classes: set[str]) -> None:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            assert inner.id in WORDS | classes
        else:
            allowed = (ast.Subscript, ast.BinOp, ast.BitOr, ast.Constant, ast.Tuple, ast.Load)
            assert isinstance(inner, (*allowed, ast.UnaryOp, ast.USub))


def _assert_is_only_a_wrapper(source: str, tool: Tool) -> None:
    docstring, *middle, function = ast.parse(source).body
    assert isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant)
    classes: set[str] = set()
    for node in middle:
        if isinstance(node, ast.ImportFrom):
            assert node.module in ("typing", "divingbell_inside.tools")
        elif isinstance(node, ast.ClassDef):
            assert ast.unparse(node).startswith(f"class {node.name}(TypedDict")
            assert not node.decorator_list
            for field in node.body:
                assert isinstance(field, ast.AnnAssign) and field.value is None
                _assert_annotation(field.annotation, classes)
            classes.add(node.name)
        else:
            assert isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
            assert ast.unparse(node.value.func) == "TypedDict"
            name, fields = node.value.args
            assert isinstance(name, ast.Constant) and isinstance(fields, ast.Dict)
            for key, value in zip(fields.keys, fields.values, strict=True):
                assert isinstance(key, ast.Constant)
                _assert_annotation(value, classes)
            classes.add(name.value)
    assert isinstance(function, ast.FunctionDef)
    assert function.name == tool.function and not function.decorator_list
    taken = [*function.args.args, *function.args.kwonlyargs]
    for argument in taken:
        assert argument.annotation is not None
        _assert_annotation(argument.annotation, classes)
    assert not function.args.defaults
    for default in function.args.kw_defaults:
        assert default is not None
        ast.literal_eval(default) if ast.unparse(default) != "UNSET" else None
    assert function.returns is not None
    _assert_annotation(function.returns, classes)
    explained, returned = function.body
    assert isinstance(explained, ast.Expr) and isinstance(explained.value, ast.Constant)
    assert isinstance(returned, ast.Return) and isinstance(returned.value, ast.Call)
    assert ast.unparse(returned.value.func) == "call" and not returned.value.keywords
    called, arguments = returned.value.args
    assert isinstance(called, ast.Constant) and called.value == tool.full_name
    assert isinstance(arguments, ast.Dict)
    names = {argument.arg for argument in taken}
    for key, value in zip(arguments.keys, arguments.values, strict=True):
        assert isinstance(value, ast.Name)
        if key is None:
            assert function.args.kwarg is not None and value.id == function.args.kwarg.arg
        else:
            assert isinstance(key, ast.Constant) and value.id in names


def _load(tool: Tool) -> tuple[Callable[..., Any], list[tuple[str, dict[str, Any]]]]:
    source = module_source(tool)
    source.encode()
    assert len(source) <= MAX_MODULE
    _assert_is_only_a_wrapper(source, tool)
    calls: list[tuple[str, dict[str, Any]]] = []
    namespace: dict[str, Any] = {"__name__": "servers.wrapper"}
    exec(compile(source, "wrapper", "exec", dont_inherit=True), namespace)
    namespace["call"] = lambda name, arguments: calls.append((name, arguments))
    function: Callable[..., Any] = namespace[tool.function]
    typing.get_type_hints(function)
    return function, calls


def _sent(calls: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
    ((_, arguments),) = calls
    return {key: value for key, value in arguments.items() if value is not UNSET}


RICH = {
    "type": "object",
    "properties": {
        "labels": {"type": "array", "items": {"type": "string"}},
        "owner": {"type": "string", "description": "Repository owner"},
        "title": {"type": "string"},
        "state": {"enum": ["open", "closed"], "default": "open"},
        "page": {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None},
        "per_page": {"type": "integer", "minimum": 1, "maximum": 100},
        "body": {"type": "string", "default": None},
        "auth-method": {"type": "string", "description": "How to sign in"},
        "assignee": {
            "type": "object",
            "properties": {
                "login": {"type": "string", "description": "The\nname"},
                "node-id": {"type": ["string", "null"]},
            },
            "required": ["login"],
        },
        "from": {"$ref": "#/$defs/Place"},
        "fields": {"type": "object", "additionalProperties": {"type": "number"}},
        "tree": {"$ref": "#/$defs/Tree"},
    },
    "required": ["owner", "title"],
    "$defs": {
        "Place": {"type": "object", "properties": {"line": {"type": "integer"}}},
        "Tree": {
            "type": "object",
            "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
        },
    },
}
RESULT = {"type": "object", "properties": {"number": {"type": "integer"}}, "required": ["number"]}

SOURCE = '''"""Create an issue."""

from typing import Any, Literal, NotRequired, TypedDict

from divingbell_inside.tools import UNSET, call


Assignee = TypedDict(
    "Assignee",
    {
        "login": str,  # The name
        "node-id": NotRequired[str | None],
    },
)


class Place(TypedDict, total=False):
    line: int


class Tree(TypedDict, total=False):
    children: list[Any]


class Result(TypedDict):
    number: int


def create_issue(
    owner: str,
    title: str,
    *,
    labels: list[str] = UNSET,
    state: Literal["open", "closed"] = "open",
    page: int | None = None,
    per_page: int = UNSET,
    body: str = UNSET,
    auth_method: str = UNSET,
    assignee: Assignee = UNSET,
    from_: Place = UNSET,
    fields: dict[str, float] = UNSET,
    tree: Tree = UNSET,
) -> Result:
    """Create an issue.

    Args:
        owner: Repository owner
        per_page: (at least 1, at most 100)
        auth_method: (sent as "auth-method") How to sign in
        from_: (sent as "from")
    """
    return call(
        "github.create_issue",
        {
            "owner": owner,
            "title": title,
            "labels": labels,
            "state": state,
            "page": page,
            "per_page": per_page,
            "body": body,
            "auth-method": auth_method,
            "assignee": assignee,
            "from": from_,
            "fields": fields,
            "tree": tree,
        },
    )
'''


def test_a_wrapper_reads_as_if_somebody_had_written_it() -> None:
    assert module_source(_tool(RICH, output=RESULT)) == SOURCE


def test_a_wrapper_sends_what_it_was_given_and_the_defaults() -> None:
    function, calls = _load(_tool(RICH, output=RESULT))
    function("me", title="x", auth_method="token", from_={"line": 1})
    assert calls[0][0] == "github.create_issue"
    assert _sent(calls) == {
        "owner": "me",
        "title": "x",
        "state": "open",
        "page": None,
        "auth-method": "token",
        "from": {"line": 1},
    }
    with pytest.raises(TypeError, match="title"):
        function("me")
    with pytest.raises(TypeError, match="labls"):
        function("me", "x", labls=[])


def test_a_signature_is_short_and_needs_no_other_classes() -> None:
    schema = {
        "properties": {
            "owner": {"type": "string"},
            "to": {"type": "object", "properties": {"a": {}}},
        },
        "required": ["owner"],
    }
    assert signature(_tool(schema, output=RESULT)) == (
        "create_issue(owner: str, *, to: dict[str, Any] = UNSET) -> dict[str, Any]"
    )
    assert len(signature(_tool(RICH)).splitlines()) == 15
    many = {"properties": {f"a_parameter_{number}": {} for number in range(150)}}
    assert len(signature(_tool(many))) <= MAX_SIGNATURE


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (None, "(**arguments: Any) -> Any"),
        ({}, "(**arguments: Any) -> Any"),
        ({"type": "object"}, "(**arguments: Any) -> Any"),
        ({"type": "object", "additionalProperties": False}, "() -> Any"),
        ({"type": "object", "properties": {}}, "() -> Any"),
        (
            {"properties": {"a": {}}, "additionalProperties": True},
            "(*, a: Any = UNSET, **others: Any) -> Any",
        ),
        (
            {"properties": {"others": {}}, "additionalProperties": {}},
            "(*, others: Any = UNSET, **others_: Any) -> Any",
        ),
        ({"required": ["x"], "properties": {}}, "(x: Any) -> Any"),
        (
            {"$ref": "#/$defs/a", "$defs": {"a": {"properties": {"n": {"const": 1}}}}},
            "(*, n: Literal[1] = UNSET) -> Any",
        ),
        (
            {"properties": {"call": {}, "UNSET": {}, "self": {}}},
            "(*, call_: Any = UNSET, UNSET_: Any = UNSET, self: Any = UNSET) -> Any",
        ),
    ],
    ids=str,
)
def test_schemas_of_all_kinds_give_a_signature(schema: Any, expected: str) -> None:
    assert signature(_tool(schema)) == f"create_issue{expected}"
    _load(_tool(schema))


@pytest.mark.parametrize(
    ("schema", "annotation"),
    [
        ({"type": "string"}, "str"),
        ({"type": ["null", "integer"]}, "int | None"),
        ({"type": "string", "nullable": True}, "str | None"),
        ({"enum": ["a", 1, None, True]}, "Literal['a', 1, True] | None"),
        ({"enum": [None]}, "None"),
        ({"enum": [1.5, 2]}, "float | int"),
        ({"enum": [str(number) for number in range(10_000)]}, "str"),
        ({"enum": [10**400]}, "int"),
        ({"enum": []}, "Any"),
        ({"const": {"a": 1}}, "dict[str, Any]"),
        (
            {"anyOf": [{"const": str(number)} for number in range(9)]},
            "Literal['0', '1', '2', '3', '4', '5', '6', '7', '8']",
        ),
        (
            {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
            "str | list[str]",
        ),
        ({"anyOf": [{"enum": ["a | None"]}, {"type": "null"}]}, "Literal['a | None'] | None"),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, "dict[str, Any]"),
        ({"allOf": [{"type": "integer"}]}, "int"),
        ({"type": "array"}, "list[Any]"),
        ({"type": "array", "items": [{"type": "string"}]}, "list[Any]"),
        ({"$ref": "https://example.com/x"}, "Any"),
        ({"$ref": "#"}, "dict[str, Any]"),
        ({"type": "nonsense"}, "Any"),
        (True, "Any"),
        ("nonsense", "Any"),
    ],
    ids=lambda value: str(value)[:50],
)
def test_annotations(schema: Any, annotation: str) -> None:
    tool = _tool({"properties": {"x": schema}, "required": ["x"]})
    _load(tool)
    assert signature(tool).replace('"', "'") == f"create_issue(x: {annotation}) -> Any"


def test_a_typed_dict_knows_what_is_required() -> None:
    function, _ = _load(_tool(RICH))
    assignee = typing.get_type_hints(function)["assignee"]
    assert assignee.__required_keys__ == {"login"}
    assert assignee.__optional_keys__ == {"node-id"}


HOSTILE = [
    '"""\nimport os\nos.system("x")\n"""',
    'ends with a quote"',
    'ends with two""',
    '""""""""',
    "ends with a backslash\\",
    '\\""" + __import__(\'os\').system(\'x\') + """',
    "\\N{nonsense} \\x \\u12",
    "{call} %s {0}",
    "a\r\nb\rc\x0cd\x0be\x1cf",
    "\0",
    "\x1b[2J\x1b]0;x\x07",
    "\ud800 \U000e0041 \u202e \u2028",
    "# -*- coding: utf-7 -*-\n# coding: utf-7",
    "]\nimport os",
    "')\nimport os",
    "x: int = __import__('os')",
    " ",
    "",
    "y" * 200_000,
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:30])
def test_no_text_of_a_server_gets_out_of_its_place(text: str) -> None:
    inner = {
        "type": "object",
        "title": text,
        "description": text,
        "properties": {text: {"enum": [text], "description": text}},
        "required": [text],
    }
    schema = {
        "type": "object",
        "description": text,
        "properties": {
            text[:5000]: {"type": "string", "description": text, "default": text, "format": text},
            "choice": {"enum": [text, f"{text}2"], "default": text},
            "default": {"default": [text], "minimum": text},
            "inner": inner,
            "referred": {"$ref": f"#/$defs/{text}"},
        },
        "required": [text[:5000]],
        "$defs": {text: inner},
    }
    tool = _tool(schema, name=text[:5000], description=text, output=inner)
    function, calls = _load(tool)
    if "arguments" in inspect.signature(function).parameters:
        function(**{text[:5000]: 1})
    else:
        function(1)
    assert calls[0][0] == tool.full_name
    assert _sent(calls)[text[:5000]] == 1
    for shown in (function.__doc__ or "", module_source(tool), signature(tool)):
        assert "\x1b" not in shown and "\u202e" not in shown and "\U000e0041" not in shown
    named = [tool]
    ast.parse(package_source(text[:100], "github", named, text))
    readme(text, "github", named, text).encode()
    index_readme([(text, "github", 1)]).encode()


def test_parameters_that_would_have_the_same_name_are_kept_apart() -> None:
    schema = {"properties": {"a-b": {}, "a_b": {}, "a.b": {}, "A b": {}}}
    function, calls = _load(_tool(schema))
    function(**dict.fromkeys(inspect.signature(function).parameters, 1))
    assert _sent(calls) == {"a-b": 1, "a_b": 1, "a.b": 1, "A b": 1}


def _wide(depth: int) -> Any:
    if depth == 0:
        return {"type": "string", "description": "x" * 500}
    return {
        "type": "object",
        "properties": {f"field_{depth}_{n}": _wide(depth - 1) for n in range(6)},
    }


@pytest.mark.parametrize(
    "schema",
    [
        {"properties": {"x": {"$ref": "#"}}},
        {"properties": {"x": {"$ref": "#/properties/x"}}},
        {"properties": {"x": {"allOf": [{"$ref": "#/properties/x"}, {"$ref": "#"}]}}},
        {"properties": {f"x{number}": {"description": "y" * 999} for number in range(200)}},
        {"properties": {f"x{number}": {} for number in range(10_000)}},
        {"properties": {"x": _wide(5)}},
        {"properties": {"x": {"enum": ["z" * 1000] * 1000}}, "description": "d" * 1_000_000},
        {"required": [str(number) for number in range(10_000)], "properties": {"a": {}}},
    ],
    ids=range(8),
)
def test_schemas_that_are_bombs_give_a_small_module(schema: Any) -> None:
    tool = _tool(schema, output=schema)
    _load(tool)
    assert len(signature(tool)) <= MAX_SIGNATURE


def test_a_deep_schema_is_cut_off() -> None:
    schema: Any = {"type": "string"}
    for _ in range(5_000):
        schema = {"type": "array", "items": schema}
    _load(_tool({"properties": {"x": schema}}))


def test_a_function_without_a_safe_name_is_refused() -> None:
    for name in ("x y", "class", "../x", "__init__", ""):
        tool = Tool("s", "t", "p", name)
        with pytest.raises(ValueError, match="naming"):
            module_source(tool)
        with pytest.raises(ValueError, match="naming"):
            package_source("s", "p", [tool], None)


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    | st.sampled_from(["string", "object", "array", "null", "#", "#/$defs/a", '"""', "\\"]),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            [
                *("type", "properties", "required", "items", "anyOf", "allOf", "enum", "const"),
                *("default", "description", "$ref", "$defs", "additionalProperties", "nullable"),
                *("a", "class", "a-b", "format", "minimum"),
            ]
        )
        | st.text(max_size=4),
        inner,
        max_size=5,
    ),
    max_leaves=25,
)  # fmt: skip
parameters = st.dictionaries(st.text(max_size=6), junk, max_size=5)


@settings(max_examples=250, deadline=None, database=None)
@given(st.text(), st.text(), parameters, junk, junk)
def test_any_tool_is_only_a_wrapper(
    name: str, description: str, properties: Any, extra: Any, output: Any
) -> None:
    schema = {**(extra if isinstance(extra, dict) else {}), "properties": properties}
    result = output if isinstance(output, dict) else None
    tool = _tool(schema, name=name, description=description, output=result)
    function, _ = _load(tool)
    assert f"{tool.function}(" in signature(tool)
    taken = inspect.signature(function).parameters
    # A part of the schema that can't be read leaves the names open.
    assert list(taken) == ["arguments"] or len(taken) >= len(properties)


def _real_tools() -> dict[str, list[Tool]]:
    found = {}
    for server, tools in tool_lists().items():
        functions = unique(tool["name"] for tool in tools)
        found[server] = [
            Tool(
                server,
                tool["name"],
                identifier(server),
                functions[tool["name"]],
                tool.get("description") or "",
                tool.get("inputSchema"),
                tool.get("outputSchema"),
            )
            for tool in tools
        ]
    return found


def _filled(function: Callable[..., Any]) -> dict[str, Any]:
    return {
        name: f"value of {name}"
        for name, parameter in inspect.signature(function).parameters.items()
        if parameter.default is parameter.empty and parameter.kind is not parameter.VAR_KEYWORD
    }


def test_every_tool_of_real_servers_is_importable_with_the_right_signature() -> None:
    number = 0
    for tools in _real_tools().values():
        for tool in tools:
            schema = tool.input_schema or {}
            properties = schema.get("properties", {})
            required = set(schema.get("required", ()))
            function, calls = _load(tool)
            taken = inspect.signature(function).parameters
            function(**_filled(function))
            ((name, arguments),) = calls
            assert name == tool.full_name
            assert set(arguments) == set(properties) | required
            names = unique([*required, *properties], reserved={"call", "UNSET"})
            for key in arguments:
                parameter = taken[names[key]]
                assert (parameter.default is parameter.empty) == (key in required), tool
                if key in required:
                    assert arguments[key] == f"value of {names[key]}"
                else:
                    assert arguments[key] is parameter.default
                    assert parameter.kind is parameter.KEYWORD_ONLY
                    default = properties[key].get("default", UNSET)
                    assert parameter.default is UNSET or parameter.default == default
            assert len(signature(tool)) <= MAX_SIGNATURE
            number += 1
    assert number > 2000


def test_every_real_server_has_a_package_and_a_short_readme() -> None:
    servers = _real_tools()
    for server, tools in servers.items():
        source = package_source(server, identifier(server), tools, "Be kind.")
        *_, served = ast.parse(source).body
        functions = ", ".join(repr(tool.function) for tool in tools)
        assert ast.unparse(served) == (
            f"serve_package(__name__, {server!r}, ({functions}{',' * (len(tools) == 1)}))"
        )
        text = readme(server, identifier(server), tools, "Be kind.")
        assert len(text) < MAX_README + 200
        assert f"{len(tools)} tool" in text and "> Be kind." in text
    index = index_readme((name, identifier(name), len(tools)) for name, tools in servers.items())
    assert "- aws_iam: " in index and "(of aws-iam)" in index


def test_a_server_without_tools_has_a_package_too() -> None:
    *_, served = ast.parse(package_source("none", "none", [], None)).body
    assert ast.unparse(served) == "serve_package(__name__, 'none', ())"
    assert "0 tools" in readme("none", "none", [], None)
    assert "No servers" in index_readme([])


def test_the_first_sentence_is_one_line() -> None:
    assert first_sentence("Adds two\nnumbers. And more.\n\nExamples") == "Adds two numbers."
    assert first_sentence("No full stop\n\nNext") == "No full stop"
    assert len(first_sentence("word " * 1000)) == 200
    assert first_sentence("") == ""


def test_one_tool_is_not_called_tools() -> None:
    shown = index_readme([("fetch", "fetch", 1), ("git", "git", 2)])
    assert "- fetch: 1 tool\n- git: 2 tools\n" in shown
