"""Values of tokens arrive in constants exactly as they are, and nowhere else."""

import ast
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from divingbell_inside.tokens import TokenValues, to_json

TOKEN = "[EMAIL_482715]"
HOSTILE = '\'"""\n\\\'); raise SystemExit #{0}%s\0\ud83d\ude00[NAME_100000]'


def _values(values: dict[str, str]) -> TokenValues:
    made = TokenValues()
    made.take(to_json(values))
    return made


def _run(source: str, values: dict[str, str]) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(_values(values).visit(ast.parse(source)), "<cell>", "exec"), names)
    return names


@pytest.mark.parametrize(
    "source",
    [
        "found = '[EMAIL_482715]'",
        "found = f'[EMAIL_482715]'",
        "found = f'{chr(49)}[EMAIL_482715]'[1:]",
        "found = f'''{1:>{len('[EMAIL_482715]') * 0}}{'[EMAIL_482715]'}'''[1:]",
        "found = b'[EMAIL_482715]'.decode('utf-8', 'surrogatepass')",
        "found = next(iter({'[EMAIL_482715]': 1}))",
        "def f(x='[EMAIL_482715]', *, y=0): return x\nfound = f()",
        "def f() -> '[EMAIL_482715]': pass\nfound = f.__annotations__['return']",
        "class C:\n    x = '[EMAIL_482715]'\nfound = C.x",
        "found = (lambda: [each for each in ['[EMAIL_482715]']])()[0]",
        "x = '[EMAIL_482715]' + ''\nmatch x:\n    case '[EMAIL_482715]' as found: pass",
        "x = {'[EMAIL_482715]' + '': 1}\nmatch x:\n    case {'[EMAIL_482715]': 1}: found, = x",
        "found = '[EMAIL_4' '82715]'",
    ],
)
def test_it_arrives_wherever_a_constant_may_stand(source: str) -> None:
    assert _run(source, {TOKEN: HOSTILE})["found"] == HOSTILE


def test_it_may_stand_in_a_longer_text_and_in_a_docstring() -> None:
    source = "def f():\n    'Mails [EMAIL_482715] now.'\ntext = 'a[EMAIL_482715][NAME_123456]]b'"
    found = _run(source, {TOKEN: "ada@example.com", "[NAME_123456]": "Ada"})
    assert found["f"].__doc__ == "Mails ada@example.com now."
    assert found["text"] == "aada@example.comAda]b"


def test_a_value_that_looks_like_a_token_is_no_token() -> None:
    values = {TOKEN: "[NAME_123456]", "[NAME_123456]": TOKEN}
    assert _run("x = '[EMAIL_482715][NAME_123456]'", values)["x"] == "[NAME_123456][EMAIL_482715]"


def test_what_did_not_come_with_the_cell_stays_as_it_is() -> None:
    found = _run("x = '[EMAIL_999999] [1, 2] []'; y = b'[EMAIL_999999]'; z = 1", {TOKEN: "a"})
    assert (found["x"], found["y"], found["z"]) == (
        "[EMAIL_999999] [1, 2] []",
        b"[EMAIL_999999]",
        1,
    )


@pytest.mark.parametrize(
    "call",
    [
        "get_ipython().system('mail [EMAIL_482715]')",
        "x = get_ipython().getoutput('mail [EMAIL_482715]')",
        "get_ipython().run_line_magic('env', 'A=[EMAIL_482715]')",
        "get_ipython().run_cell_magic('bash', '', 'mail [EMAIL_482715]')",
    ],
)
def test_what_ipython_is_told_stays_as_it_is(call: str) -> None:
    tree = _values({TOKEN: HOSTILE}).visit(ast.parse(f"{call}\ny = '[EMAIL_482715]'"))
    assert ast.unparse(tree.body[0]) == call
    assert ast.literal_eval(tree.body[1].value) == HOSTILE  # type: ignore[attr-defined]


def test_code_that_is_nested_more_deeply_than_python_recurses_is_gone_through() -> None:
    tree = _values({TOKEN: "a"}).visit(ast.parse("+".join(["'[EMAIL_482715]'"] * 2000)))
    found = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)]
    assert found == ["a"] * 2000


def test_without_tokens_a_tree_is_not_looked_at() -> None:
    values = _values({TOKEN: "a"})
    values.take(b"")
    tree = ast.parse("x = '[EMAIL_482715]'")
    assert values.visit(tree) is tree and ast.unparse(tree) == "x = '[EMAIL_482715]'"


@given(st.text(st.characters(), max_size=50))
def test_any_text_arrives_exactly(value: str) -> None:
    assert _run("x = '[EMAIL_482715]'", {TOKEN: value})["x"] == value
