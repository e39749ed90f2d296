"""Git repositories over https: git's own `http-backend`, behind a small server with TLS."""

import contextlib
import os
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import trustme

from tests.skills.catalogues import git
from tests.waiting import PATIENCE

Answer = Callable[["Handler"], bool]
"""Answers a request in another way, and returns whether it did."""


class GitServer(ThreadingHTTPServer):
    """Serves the repositories of a folder, to read and to write, to everybody."""

    daemon_threads = True

    def __init__(self, folder: Path) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder = folder
        self.asked: list[str] = []
        """The first line of each request."""
        self.answer: Answer = lambda handler: False

    def address(self, repository: str, scheme: str = "https") -> str:
        return f"{scheme}://localhost:{self.server_port}/{repository}"


class Handler(BaseHTTPRequestHandler):
    """Hands a request to git, as a web server does by CGI."""

    server: GitServer
    protocol_version = "HTTP/1.1"
    timeout = PATIENCE

    def do_GET(self) -> None:
        self.server.asked.append(self.requestline)
        self.close_connection = True
        given = self._given()
        if self.server.answer(self):
            return
        path, _, query = self.path.partition("?")
        about = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": str(len(given)),
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "REMOTE_ADDR": self.client_address[0],
            "PATH": os.environ["PATH"],
        }
        done = subprocess.run(
            ["git", "http-backend"], input=given, env=about, capture_output=True, check=True
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().splitlines())
        self.say(int(fields.pop("Status", "200").split()[0]), body, **fields)

    do_POST = do_GET

    def say(self, status: int, body: bytes = b"", **fields: str) -> None:
        self.send_response(status)
        for name, text in {**fields, "Content-Length": str(len(body))}.items():
            self.send_header(name, text)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)

    def _given(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while size := int(self.rfile.readline(), 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def git_server(folder: Path, authority: trustme.CA) -> Iterator[GitServer]:
    """A server of an empty repository, `catalogue.git`, with a certificate for localhost."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--bare", "catalogue.git")
    git(folder / "catalogue.git", "config", "http.receivepack", "true")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with GitServer(folder) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
