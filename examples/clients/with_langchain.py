"""Divingbell behind a LangChain agent: `pip install langchain langchain-mcp-adapters`.

A scripted model stands in for a real one, so that this runs as it is. In its place write
`create_agent("anthropic:claude-…", tools)`.
"""

import asyncio
from datetime import timedelta
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools

CELLS = ["depths = [12, 40, 7]", "print(sum(depths))"]

client = MultiServerMCPClient(
    {
        "divingbell": {
            "transport": "stdio",
            "command": "divingbell",
            "args": ["serve"],
            # For one cell; by default there is no limit.
            "session_kwargs": {"read_timeout_seconds": timedelta(minutes=10)},
        }
    }
)


class Scripted(GenericFakeChatModel):
    """Says what it was given to say, whatever the tools."""

    def bind_tools(self, tools: object, **more: object) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *more: Any, **named: Any) -> ChatResult:
        if len(messages) == 2:  # the first time
            print("The model is told:", "execute_python" in messages[0].text)
        return super()._generate(messages, *more, **named)


def cell(number: int, code: str) -> AIMessage:
    call = {"name": "execute_python", "args": {"code": code}, "id": f"call-{number}"}
    return AIMessage("", tool_calls=[call])


async def main() -> None:
    script = [*(cell(number, code) for number, code in enumerate(CELLS)), AIMessage("Done.")]
    # `client.get_tools()` would start a Divingbell for each call, and nothing would stay from one
    # to the next. A session keeps one, for as long as the block lasts.
    async with client.session("divingbell", auto_initialize=False) as session:
        hello = await session.initialize()
        tools = await load_mcp_tools(session)
        # How tools are found and called from code: LangChain does not pass it on by itself.
        agent = create_agent(
            Scripted(messages=iter(script)), tools, system_prompt=hello.instructions
        )
        answer = await agent.ainvoke({"messages": [("user", "How deep were the dives in all?")]})
    results = [message for message in answer["messages"] if message.type == "tool"]
    print("The cell answered:", results[-1].text.strip())


asyncio.run(main())
