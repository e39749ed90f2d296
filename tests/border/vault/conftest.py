"""A real Redis for the vault, on a socket of its own."""

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

PATIENCE = 20.0


class Server:
    """A redis-server that can be stopped and started again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.url = f"unix://{folder}/redis.sock"

    def start(self) -> None:
        path = self._folder / "redis.sock"
        self._process = subprocess.Popen(
            [
                "redis-server",
                "--port",
                "0",
                "--unixsocket",
                path,
                "--save",
                "",
                "--dir",
                path.parent,
            ],
            stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + PATIENCE
        while True:
            with socket.socket(socket.AF_UNIX) as line:
                try:
                    line.connect(str(path))
                    return
                except OSError:
                    assert time.monotonic() < deadline, "redis-server did not start"
                    time.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(PATIENCE)
            self._process = None


@pytest.fixture
def redis_server() -> Iterator[Server]:
    if shutil.which("redis-server") is None:
        if os.environ.get("CI"):
            pytest.fail("redis-server is not installed")
        pytest.skip("redis-server is not installed: apt install redis-server")
    # The path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(prefix="divingbell-redis-") as folder:
        server = Server(Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.stop()
