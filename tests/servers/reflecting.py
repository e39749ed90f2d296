"""A web server that says back what it should not: `/401` quotes the Authorization header, `/away`
redirects to another port, `/bomb` never ends its answer, `/zip` compresses it, `/values` and
`/events` answer with a million lists."""

import gzip
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

seen: list[str] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        given = str(self.headers.get("authorization"))
        request = json.loads(body or b"{}")
        if self.path == "/401":
            error = {"code": -32000, "message": f"your header was {given}"}
            self._answer(401, {"jsonrpc": "2.0", "id": request.get("id"), "error": error})
        elif self.path == "/away":
            self.send_response(307)
            self.send_header("Location", f"http://127.0.0.1:{sys.argv[2]}/thief")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path == "/zip":
            self._raw(gzip.compress(b"{}"), ("Content-Encoding", "gzip"))
        elif self.path in ("/values", "/events"):
            lists = b"[" + b"[]," * 1_000_000 + b"[]]"
            answer = b'{"jsonrpc":"2.0","id":%d,"result":%s}' % (request["id"], lists)
            if self.path == "/values":
                self._raw(answer, ("X-Nothing", "-"))
            else:
                self._raw(b"data: %s\n\n" % answer, ("X-Nothing", "-"), kind="text/event-stream")
        else:
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b" " * (1 << 20))
            except OSError:
                self.close_connection = True

    def _answer(self, status: int, document: object) -> None:
        self._raw(json.dumps(document).encode(), ("X-Nothing", "-"), status)

    def _raw(
        self,
        data: bytes,
        header: tuple[str, str],
        status: int = 200,
        kind: str = "application/json",
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.send_header(*header)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
