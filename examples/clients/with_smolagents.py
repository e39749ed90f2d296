"""Divingbell behind an agent of smolagents: `pip install "smolagents[mcp]" "mcp<2"`.

A scripted model stands in for a real one, so that this runs as it is. In its place write
`InferenceClientModel()`, for instance.
"""

import asyncio
from typing import Any

from mcp import ClientSession, StdioServerParameters, stdio_client
from smolagents import MCPClient, Model, ToolCallingAgent
from smolagents.models import (
    ChatMessage,
    ChatMessageToolCall,
    ChatMessageToolCallFunction,
    MessageRole,
)

CELLS = ["depths = [12, 40, 7]", "print(sum(depths))"]

bell = StdioServerParameters(command="divingbell", args=["serve"])


async def introduction() -> tuple[str, dict[str, list[str]]]:
    """Return what the client of smolagents does not keep: how tools are found and called from code,
    and which arguments each of ours needs."""
    async with stdio_client(bell) as (read, write), ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        return hello.instructions or "", {
            tool.name: tool.inputSchema.get("required", []) for tool in tools
        }


class Scripted(Model):
    """Runs the cells one after the other, then says what the last one printed."""

    def generate(self, messages: list[ChatMessage], **more: Any) -> ChatMessage:
        done = [each for each in messages if each.role == MessageRole.TOOL_RESPONSE]
        if not done:
            print("The model is told:", TOLD in messages[0].content[0]["text"])
        if len(done) < len(CELLS):
            return self.call("execute_python", {"code": CELLS[len(done)]}, len(done))
        printed = done[-1].content[0]["text"].split("Observation:\n")[-1].strip()
        return self.call("final_answer", {"answer": f"The cell answered: {printed}"}, len(done))

    @staticmethod
    def call(name: str, arguments: dict[str, str], number: int) -> ChatMessage:
        function = ChatMessageToolCallFunction(arguments, name)
        calls = [ChatMessageToolCall(function, f"call-{number}", "function")]
        return ChatMessage(MessageRole.ASSISTANT, tool_calls=calls)


TOLD, NEEDED = asyncio.run(introduction())

# One Divingbell, and one session, for all runs in this block.
with MCPClient(
    bell,
    structured_output=False,  # what the cell showed, as text
    # For each request, cells among them: a float. The default, a whole number, limits nothing.
    adapter_kwargs={"client_session_timeout_seconds": 600.0},
) as tools:
    for tool in tools:
        for name, argument in tool.inputs.items():
            argument["nullable"] = name not in NEEDED[tool.name]  # else it asks for all of them
    agent = ToolCallingAgent(tools, Scripted(), instructions=TOLD, verbosity_level=0)
    print(agent.run("How deep were the dives in all?"))
