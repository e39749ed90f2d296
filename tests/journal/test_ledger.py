"""The books of a session: what the model read, and what it was spared."""

import json
from typing import Any

import mcp_types
import pytest

from divingbell.journal import ledger
from divingbell.journal.ledger import OTHERS, Accountant, Definitions, definition
from divingbell.journal.tokens import count
from divingbell.models import Ledger, ToolUse
from divingbell.tool import Tool
from tests.tool_lists import tool_lists

TOOLS = [
    Tool("a", "one", "a", "one", "The first", {"type": "object", "properties": {}}),
    Tool("a", "two", "a", "two", "Zwei „zweite“", {"type": "object", "properties": {}}),
]


def test_the_definitions_of_real_servers_have_the_known_number_of_tokens() -> None:
    tools = [
        Tool(server, one["name"], server, "f", one.get("description", ""), one.get("inputSchema"))
        for server, listed in tool_lists().items()
        for one in listed
    ]
    assert Definitions().count(tools) == pytest.approx(673_310, rel=0.001)


def test_a_definition_is_compact_and_keeps_its_letters() -> None:
    assert definition(TOOLS[1]) == (
        '{"name":"two","description":"Zwei „zweite“",'
        '"input_schema":{"type":"object","properties":{}}}'
    )


def test_a_definition_without_end_is_counted_by_its_words() -> None:
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert definition(Tool("a", "b", "a", "b", "words", deep)) == "b words"


async def test_definitions_are_counted_once_and_again_when_they_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counted = []
    monkeypatch.setattr(ledger.tokens, "count", lambda text: counted.append(text) or len(text))
    definitions = Definitions()
    total = await definitions.count_later(TOOLS)
    assert total == sum(len(definition(tool)) for tool in TOOLS)
    assert await definitions.count_later(TOOLS) == definitions.count(TOOLS) == total
    assert len(counted) == 2
    changed = Tool("a", "one", "a", "one", "Changed")
    await definitions.count_later([changed, TOOLS[1]])
    assert len(counted) == 3


async def test_texts_of_one_result_are_counted_as_lines() -> None:
    texts = [mcp_types.TextContent(text=f"item {number}") for number in range(50)]
    several, joined = Accountant(Definitions()), Accountant(Definitions())
    several.note_result("a.one", b"{}", mcp_types.CallToolResult(content=[*texts]), b"")
    joined.note_call("a.one", b"{}", "\n".join(text.text for text in texts))
    of_several, of_joined = [await each.close_execution("", "") for each in (several, joined)]
    assert of_several.direct_call_tokens == of_joined.direct_call_tokens


async def test_an_execution_has_its_tokens_on_both_sides() -> None:
    accountant = Accountant(Definitions())
    accountant.open_conversation("execute_python runs code")
    accountant.note_shown("found: a.one")
    result = json.dumps([{"row": number} for number in range(1000)])
    accountant.note_call("a.one", '{"x":1}', result)
    accountant.note_call("a.one", b'{"x":2}', b'{"small":true}', images=1)
    accountant.note_call("a.two", "{}", "null")
    made = await accountant.close_execution("print(len(one(x=1)))", "1000\n", TOOLS, images=2)
    assert made.code_tokens == count("print(len(one(x=1)))")
    assert made.output_tokens == count("1000\n")
    assert made.overhead_tokens == count("execute_python runs code\nfound: a.one\n")
    assert made.direct_definition_tokens == Definitions().count(TOOLS)
    calls = (
        f'{{"name":"a.one","arguments":{{"x":1}}}}\n{result}\n'
        '{"name":"a.one","arguments":{"x":2}}\n{"small":true}\n'
    )
    assert made.tools == (
        ToolUse("a.one", 2, count(calls)),
        ToolUse("a.two", 1, count('{"name":"a.two","arguments":{}}\nnull\n')),
    )
    assert made.direct_call_tokens == sum(use.tokens for use in made.tools)
    assert (made.calls, made.images, made.direct_images) == (3, 2, 1)
    assert made.image_tokens == 2000 and not made.estimated
    assert made.saved == made.direct - made.read > 0
    assert 0.9 < made.ratio < 1


async def test_where_no_model_reads_no_definition_is_spared() -> None:
    accountant = Accountant(Definitions())
    accountant.note_call("a.one", "{}", "some words of a result")
    made = await accountant.close_execution("1", "1", TOOLS)
    assert made.direct_definition_tokens == 0 == made.overhead_tokens
    assert made.calls == 1 and made.direct == made.direct_call_tokens > 0


async def test_definitions_and_the_surface_are_counted_with_the_first_execution_only() -> None:
    accountant = Accountant(Definitions())
    accountant.open_conversation("words")
    first = await accountant.close_execution("1", "1", TOOLS)
    second = await accountant.close_execution("1", "1", TOOLS)
    assert first.direct_definition_tokens and first.overhead_tokens
    assert second == Ledger(code_tokens=1, output_tokens=1)
    assert second.saved == -2 and second.ratio == 0.0


async def test_long_results_are_estimated_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "one two three four five six seven\n" * 1000
    exact = count(text)
    monkeypatch.setattr(ledger, "MOST_KEPT", len(text) // 4)
    accountant = Accountant(Definitions())
    accountant.note_call("a.one", "{}", text)
    accountant.note_call("a.two", "{}", text)
    made = await accountant.close_execution("", "")
    assert made.estimated and made.calls == 2
    assert made.tools[0].tokens == pytest.approx(exact, rel=0.05)
    assert made.tools[1].tokens > exact  # nothing of it was kept: a rule of thumb


async def test_many_tools_are_counted_together() -> None:
    accountant = Accountant(Definitions())
    for number in range(ledger.MOST_TOOLS + 50):
        accountant.note_call(f"a.t{number}", "{}", "1")
    made = await accountant.close_execution("", "")
    assert len(made.tools) == ledger.MOST_TOOLS + 1
    assert made.tools[-1].name == OTHERS and made.tools[-1].calls == 50


async def test_searches_without_end_take_no_memory_and_are_counted_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ledger, "MOST_KEPT", 1000)
    accountant = Accountant(Definitions())
    for _ in range(100):
        accountant.note_shown("a few words " * 10)
    made = await accountant.close_execution("", "")
    assert made.estimated
    assert made.overhead_tokens == pytest.approx(100 * count("a few words " * 10), rel=0.1)


async def test_large_books_are_counted_off_the_loop() -> None:
    accountant = Accountant(Definitions())
    text = "some words of a result\n" * 5000
    accountant.note_call("a.one", "{}", text)
    made = await accountant.close_execution("x", "y")
    assert made.direct_call_tokens > count(text)


async def test_counting_that_fails_breaks_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> int:
        raise RuntimeError("no")

    monkeypatch.setattr(ledger.tokens, "measure", fail)
    accountant = Accountant(Definitions())
    accountant.note_call("a.one", "{}", "1")
    assert await accountant.close_execution("x", "y") == Ledger(calls=1, estimated=True)


def test_the_plain_form_is_json() -> None:
    made = Ledger(
        code_tokens=1,
        output_tokens=2,
        direct_definition_tokens=90,
        direct_call_tokens=10,
        calls=1,
        tools=(ToolUse("a.one", 1, 10),),
    )
    plain = json.loads(json.dumps(made.to_dict()))
    assert plain["tools"] == [{"name": "a.one", "calls": 1, "tokens": 10}]
    assert (plain["read"], plain["direct"], plain["saved"], plain["ratio"]) == (3, 100, 97, 0.97)
