"""A provider of models that says the same to everyone: one cell, then a last word.

Those who offer tools get a call of `execute_python`, others a block of code in the text. It speaks
the protocol of OpenAI, in a thread of this process.
"""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CODE = "print(6 * 7 * 10101)"
SHOWN = b"424242"
"""What the cell prints, and nobody else writes."""


@contextmanager
def serving() -> Iterator[str]:
    """Serve while the block lasts; yields the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self._send(json.dumps({"object": "list", "data": []}).encode(), "application/json")

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = _reply(asked)
        if asked.get("stream"):
            self._send(b"".join(_events(said)), "text/event-stream")
        else:
            whole = {"index": 0, "message": said, "finish_reason": _ending(said)}
            self._send(json.dumps(_whole([whole])).encode(), "application/json")

    def _send(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing."""


def _reply(asked: dict[str, Any]) -> dict[str, Any]:
    if SHOWN.decode() in json.dumps(asked["messages"]):
        return {"role": "assistant", "content": "That is all."}
    if not asked.get("tools"):
        return {"role": "assistant", "content": f"```ipython\n{CODE}\n```"}
    function = {"name": "execute_python", "arguments": json.dumps({"code": CODE})}
    call = {"index": 0, "id": "call_1", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def _ending(said: dict[str, Any]) -> str:
    return "tool_calls" if "tool_calls" in said else "stop"


def _events(said: dict[str, Any]) -> Iterator[bytes]:
    for choice in (
        {"index": 0, "delta": said, "finish_reason": None},
        {"index": 0, "delta": {}, "finish_reason": _ending(said)},
    ):
        yield f"data: {json.dumps(_whole([choice], 'chat.completion.chunk'))}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _whole(choices: list[Any], kind: str = "chat.completion") -> dict[str, Any]:
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return {
        "id": "said",
        "object": kind,
        "created": 0,
        "model": "said",
        "choices": choices,
        "usage": usage,
    }
