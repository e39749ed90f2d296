"""Everything that leaves for a client crosses the border, by whichever transport and in both eras.

A server has one word in every place that the protocol has, and so has the code. The border puts
another in its place; all bytes that the client gets are searched for the first.
"""

import asyncio
import contextlib
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.gateway.upstreams import free_port, listening
from tests.surfaces.mcp.conftest import Era
from tests.surfaces.mcp.stamped import BIRD, STAMP
from tests.waiting import PATIENCE

PROGRAM = ("-m", "tests.surfaces.mcp.stamped")
ROOT = Path(__file__).parents[3]
FAILING = f"def f(): raise ValueError('{BIRD}')\nf()"
# The word is put together where the code runs: what the model writes has it only by its stamp.
CODE = f"""
import sys, warnings
bird = "canary-" + "5b1f"
print(bird, flush=True)
print(bird, file=sys.stderr, flush=True)
warnings.warn(bird)
open(bird + ".txt", "w").write(bird)
servers.bird.murmur()
assert servers.bird.echo(text="{STAMP}") == '{{"text": "' + bird + '"}}', "the code has the word"
display({{"text/html": bird, "text/plain": bird}}, raw=True)
{{"value": bird}}
"""
# Each output has a part of the word only; their client reads them as one.
JOINED = """
import sys
print("canary-", end="", flush=True)
print("5b1f", end="", file=sys.stderr, flush=True)
"""


class Ear:
    """A client that keeps all that it hears, and whose model answers with the stamp."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def options(self) -> dict[str, Any]:
        return {
            "logging_callback": self._log,
            "elicitation_callback": self._elicit,
            "sampling_callback": self._sample,
            "message_handler": self._message,
            "log_level": "debug",
            "cache": None,
        }

    async def _log(self, params: Any) -> None:
        self.heard.append(("log", _plain(params)))

    async def _elicit(self, context: Any, params: Any) -> types.ElicitResult:
        self.heard.append(("elicitation", _plain(params)))
        return types.ElicitResult(action="accept", content={"name": "x"})

    async def _sample(self, context: Any, params: Any) -> types.CreateMessageResult:
        self.heard.append(("sampling", _plain(params)))
        content = types.TextContent(text=f"about {STAMP}")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def _message(self, message: Any) -> None:
        if hasattr(message, "model_dump"):
            self.heard.append(("message", _plain(message)))

    async def progress(self, progress: float, total: float | None, message: str | None) -> None:
        self.heard.append(("progress", message))

    async def take(self, what: str, way: Any) -> Any:
        try:
            found = await way
        except Exception as error:
            self.heard.append((what, [str(error), str(getattr(error, "data", None))]))
            return None
        self.heard.append((what, _plain(found)))
        return found

    async def ask_for_everything(self, client: Client) -> None:
        call = client.call_tool
        for name in ("say", "fail", "measure", "murmur", "ask", "sample"):
            await self.take(name, call(name, {}, progress_callback=self.progress))
        await self.take("echo", call("echo", {"text": STAMP}))
        await self.take(
            "run", call("execute_python", {"code": CODE}, progress_callback=self.progress)
        )
        await self.take("joined", call("execute_python", {"code": JOINED, "session_id": STAMP}))
        await self.take("kept", call("execute_python", {"code": "x = 1", "session_id": STAMP}))
        await self.take("closed", call("close_session", {"session_id": STAMP}))
        await self.take("no server", call("search_tools", {"query": "a", "server": STAMP}))
        await self.take("fail inside", call("execute_python", {"code": FAILING}))
        await self.take("wrong", call("execute_python", {"code": 5, "session_id": f"{BIRD}!"}))
        await self.take("missing", call(f"no {BIRD}", {}))
        await self.take("sessions", call("list_sessions", {}))
        await self.take("resources", client.list_resources())
        await self.take("templates", client.list_resource_templates())
        await self.take("resource", client.read_resource(f"note://{STAMP}"))
        file = f"divingbell://sessions/default/files/{STAMP}.txt"
        await self.take("file", client.read_resource(file))
        await self.take("no file", client.read_resource(f"{file}.none"))
        await self.take("prompts", client.list_prompts())
        await self.take("prompt", client.get_prompt("plan", {"topic": STAMP}))
        reference = types.PromptReference(name="plan")
        await self.take("complete", client.complete(reference, {"name": "topic", "value": STAMP}))

    def of(self, what: str) -> str:
        return "\n".join(json.dumps(said) for kind, said in self.heard if kind == what)


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def judge(ear: Ear) -> None:
    for kind, said in ear.heard:
        assert BIRD not in json.dumps(said), f"{kind} has not crossed the border: {said}"
    everything = (
        *("say", "fail", "measure", "sample", "run", "fail inside", "missing"),
        *("resources", "templates", "resource", "file", "no file", "prompts", "prompt", "complete"),
        *("joined", "kept", "closed"),
        *("progress", "log", "elicitation", "sampling", "echo"),
    )
    silent = [what for what in everything if STAMP not in ear.of(what)]
    assert silent == [], f"these did not say the word at all: {silent}"
    # What the models wrote has come in as it was meant: the server and the code have had the word.
    assert "the code has the word" not in ear.of("run")


@contextlib.asynccontextmanager
async def served(port: int) -> AsyncIterator[str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *PROGRAM, "http", str(port), cwd=ROOT, stderr=asyncio.subprocess.DEVNULL
    )
    try:
        await listening(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        async with asyncio.timeout(PATIENCE * 3):
            await process.wait()


async def test_over_stdio(era: Era) -> None:
    ear = Ear()
    parameters = StdioServerParameters(
        command=sys.executable, args=list(PROGRAM), cwd=str(ROOT), env=dict(os.environ)
    )
    parameters.args.append("stdio")
    async with Client(parameters, mode=era, **ear.options()) as client:
        await ear.ask_for_everything(client)
    judge(ear)


async def test_over_http(era: Era) -> None:
    ear = Ear()
    async with (
        served(free_port()) as url,
        httpx2.AsyncClient(timeout=PATIENCE) as inner,
    ):
        transport = streamable_http_client(url, http_client=inner)
        async with Client(transport, mode=era, **ear.options()) as client:
            await ear.ask_for_everything(client)
    judge(ear)


async def test_an_exit_that_is_missed_is_seen() -> None:
    ear = Ear()
    ear.heard.append(("say", f"said {BIRD}"))
    with pytest.raises(AssertionError, match="say has not crossed the border"):
        judge(ear)
