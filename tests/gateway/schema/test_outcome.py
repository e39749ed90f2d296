"""From what a server sent to what the code gets."""

from typing import Any

import mcp_types
import pytest

from divingbell.errors import ToolFailed
from divingbell.gateway.schema.outcome import MAX_MESSAGE, wire_of
from divingbell.tool import Tool

PLAIN = Tool("shop", "get", "shop", "get")
TYPED = Tool(
    "shop",
    "get",
    "shop",
    "get",
    output_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
)
WRAPPED = Tool(
    "shop",
    "get",
    "shop",
    "get",
    output_schema={
        "type": "object",
        "title": "getOutput",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/N"}}},
        "$defs": {"N": {"type": "integer"}},
    },
)


def text(*texts: str) -> list[Any]:
    return [mcp_types.TextContent(text=one) for one in texts]


def result(*texts: str, **more: Any) -> mcp_types.CallToolResult:
    return mcp_types.CallToolResult(content=text(*texts), **more)


async def test_text_without_a_schema_stays_text() -> None:
    assert await wire_of(PLAIN, result('{"n": 1}')) == {
        "content": [{"type": "text", "text": '{"n": 1}'}]
    }


async def test_text_is_parsed_where_the_schema_says_so() -> None:
    assert (await wire_of(TYPED, result('{"n": 1}')))["structured"] == {"n": 1}


async def test_text_beside_a_structured_value_is_not_sent_twice() -> None:
    wire = await wire_of(TYPED, result('{"n": 1}', structured_content={"n": 1}))
    assert wire == {"structured": {"n": 1}, "content": []}


async def test_an_image_beside_a_structured_value_is_kept() -> None:
    image = mcp_types.ImageContent(data="AAAA", mime_type="image/png")
    sent = mcp_types.CallToolResult(content=[image], structured_content={"n": 1})
    assert (await wire_of(TYPED, sent))["content"][0]["mimeType"] == "image/png"


async def test_a_value_that_the_sdk_has_wrapped_is_unwrapped() -> None:
    sent = result("1", "2", structured_content={"result": [1, 2]})
    assert (await wire_of(WRAPPED, sent))["structured"] == [1, 2]
    schema = WRAPPED.result_schema
    assert schema is not None and schema["type"] == "array" and schema["$defs"]


@pytest.mark.parametrize(
    "sent",
    [
        result("no JSON"),
        result('{"n": "one"}'),
        result("x", structured_content={"n": "one"}),
        result("1", "2"),
        mcp_types.CallToolResult(content=[]),
    ],
)
async def test_a_result_that_breaks_its_schema_is_a_typed_failure(
    sent: mcp_types.CallToolResult,
) -> None:
    with pytest.raises(ToolFailed, match="The call was made") as caught:
        await wire_of(TYPED, sent)
    assert caught.value.code == "tool_result"


async def test_a_failure_has_the_servers_words_cut_and_visible() -> None:
    with pytest.raises(ToolFailed) as caught:
        await wire_of(PLAIN, result("\x1b[31mno" + "!" * 5 * MAX_MESSAGE, is_error=True))
    words = str(caught.value)
    assert words.startswith("no!") and len(words) <= MAX_MESSAGE and "cut" in words
    with pytest.raises(ToolFailed, match="did not say why"):
        await wire_of(PLAIN, mcp_types.CallToolResult(content=[], is_error=True))
