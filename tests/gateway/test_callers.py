"""Whom a server's question reaches: never another user."""

import asyncio
import sys
from pathlib import Path

import mcp_types

from divingbell import Divingbell
from tests.waiting import until

ASKING = """
import json, sys, threading, time
def say(message): print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "wait")]
waiting = None
for line in sys.stdin:
    got = json.loads(line)
    if got.get("id") == "question":
        text = json.dumps(got.get("result") or got.get("error"))
        say({"id": waiting, "result": {"content": [{"type": "text", "text": text}]}})
    elif got.get("method") == "initialize":
        say({"id": got["id"], "result": {"protocolVersion": "2025-06-18",
             "capabilities": {"tools": {}}, "serverInfo": {"name": "old", "version": "1"}}})
    elif got.get("method") == "tools/list":
        say({"id": got["id"], "result": {"tools": TOOLS}})
    elif got.get("method") == "tools/call" and got["params"]["name"] == "ask":
        waiting = got["id"]
        say({"id": "question", "method": "elicitation/create", "params": {
             "message": "about ann", "requestedSchema": {"type": "object", "properties": {}}}})
    elif got.get("method") == "tools/call":
        open(sys.argv[1], "w").close()
    elif got.get("method") == "server/discover":
        say({"id": got["id"], "error": {"code": -32601, "message": "unknown"}})
"""


class Person:
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def elicit(self, params: mcp_types.ElicitRequestParams) -> mcp_types.ElicitResult:
        self.asked.append(params.message)
        return mcp_types.ElicitResult(action="accept", content={})


async def test_two_users_with_the_same_session_id_are_two(tmp_path: Path) -> None:
    his_call = tmp_path / "his call"
    entry = {"command": sys.executable, "args": ["-c", ASKING, str(his_call)]}
    ann, bob = Person(), Person()
    async with (
        Divingbell(pool=0, preload=[], servers={"old": entry}) as bell,
        bell.session("work", user="ann") as hers,
        bell.session("work", user="bob") as his,
    ):
        waiting = asyncio.create_task(his.run("servers.old.wait()", asker=bob))
        await until(his_call.exists, "his call is with the server")
        result = await hers.run("servers.old.ask()", asker=ann, timeout=20)
        # With calls of two users on their way it can't be known whose question it is.
        assert ann.asked == bob.asked == []
        assert "can't be said which caller this is for" in str(result.value)
        await his.interrupt()
        await waiting
        result = await hers.run("servers.old.ask()", asker=ann)
        assert ann.asked == ["old asks: about ann"] and bob.asked == []
        assert "accept" in str(result.value)
