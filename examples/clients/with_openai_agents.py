"""Divingbell behind an agent of the OpenAI Agents SDK: `pip install openai-agents`.

A scripted model stands in for a real one, so that this runs as it is. Leave `model` out to use
OpenAI's.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

CELLS = ["depths = [12, 40, 7]", "print(sum(depths))"]

bell = MCPServerStdio(
    {"command": "divingbell", "args": ["serve"]},
    # For each request, cells among them. The default is 5 s: a cell that takes longer, and the
    # very first one, which may wait for the sandbox, would fail.
    client_session_timeout_seconds=600,
)


class Scripted(Model):
    """Runs the cells one after the other, then says what the last one printed."""

    async def get_response(self, **request: Any) -> ModelResponse:
        done = [item for item in request["input"] if item.get("type") == "function_call_output"]
        said: Any
        if not done:
            print("The model is told:", request["system_instructions"] == bell.session.instructions)
        if len(done) < len(CELLS):
            said = ResponseFunctionToolCall(
                type="function_call",
                call_id=f"call-{len(done)}",
                name="execute_python",
                arguments=json.dumps({"code": CELLS[len(done)]}),
            )
        else:
            text = f"The cell answered: {done[-1]['output'][0]['text']}"
            said = ResponseOutputMessage(
                id="message",
                type="message",
                role="assistant",
                status="completed",
                content=[ResponseOutputText(type="output_text", text=text, annotations=[])],
            )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, **request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError("nothing here asks for a stream")


async def main() -> None:
    set_tracing_disabled(True)
    async with bell:  # one Divingbell, and one session, for all runs in this block
        agent = Agent(
            name="diver",
            instructions=bell.session.instructions,  # how tools are found and called from code
            model=Scripted(),
            mcp_servers=[bell],
        )
        print((await Runner.run(agent, "How deep were the dives in all?")).final_output)


asyncio.run(main())
