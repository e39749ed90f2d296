"""Divingbell behind a Pydantic AI agent: `pip install "pydantic-ai-slim[mcp]"`.

A scripted model stands in for a real one, so that this runs as it is. In its place write
`Agent("anthropic:claude-…", toolsets=[bell])`.
"""

import asyncio

from fastmcp.client.transports import StdioTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

CELLS = ["depths = [12, 40, 7]", "print(sum(depths))"]

bell = MCPToolset(
    StdioTransport("divingbell", ["serve"]),
    include_instructions=True,  # how tools are found and called from code
    init_timeout=30,  # until it answers; by default 5 s
    read_timeout=600,  # for one cell; by default 300 s
)


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Run the cells one after the other, then say what the last one printed."""
    parts = [part for message in messages for part in message.parts]
    done = [part for part in parts if part.part_kind == "tool-return"]
    if not done:
        print("The model is told:", "execute_python" in (info.instructions or ""))
    if len(done) < len(CELLS):
        return ModelResponse([ToolCallPart("execute_python", {"code": CELLS[len(done)]})])
    return ModelResponse([TextPart(f"The cell answered: {done[-1].content['output']}")])


async def main() -> None:
    agent = Agent(FunctionModel(scripted), toolsets=[bell])
    async with agent:  # one Divingbell, and one session, for all runs in this block
        print((await agent.run("How deep were the dives in all?")).output)


asyncio.run(main())
