"""The least that is a server of the older protocol, by hand: for servers that misbehave."""

import json
import sys
from collections.abc import Callable
from typing import Any

Handler = Callable[[dict[str, Any]], Any]

TOOL = {"name": "work", "inputSchema": {"type": "object"}}


class Refusal(Exception):
    """Raised by a handler whose request is answered with an error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, "data": data}


def say(message: dict[str, Any]) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def serve(handlers: dict[str, Handler], capabilities: dict[str, Any] | None = None) -> None:
    """Answer each request with what its handler returns; other requests are not known."""
    for line in sys.stdin:
        answer(json.loads(line), handlers, capabilities)


def answer(
    request: dict[str, Any],
    handlers: dict[str, Handler] | None = None,
    capabilities: dict[str, Any] | None = None,
) -> None:
    """Answer one request."""

    def initialize(_: dict[str, Any]) -> Any:
        return {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {}} if capabilities is None else capabilities,
            "serverInfo": {"name": "rough", "version": "1"},
        }

    known: dict[str, Handler] = {
        "initialize": initialize,
        "tools/list": lambda _: {"tools": [TOOL]},
        **(handlers or {}),
    }
    handler = known.get(request.get("method", ""))
    if "id" not in request:
        if handler is not None:
            handler(request.get("params", {}))
    elif handler is None:
        error = {"code": -32601, "message": "Method not found"}
        say({"id": request["id"], "error": error})
    else:
        try:
            say({"id": request["id"], "result": handler(request.get("params", {}))})
        except Refusal as refusal:
            say({"id": request["id"], "error": refusal.error})


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}
