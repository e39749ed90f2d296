"""People who use a service at the same time, for locust: see load.py, which starts it.

Each has a name and a token of their own, runs a cell, looks at its answer, and pauses. Each cell
has a name of its own in a comment, by which its record is found in the audit log; what became of it
is written down, line by line.
"""

import itertools
import json
import os
import random
from pathlib import Path
from typing import Any

from locust import between, task
from locust.contrib.fasthttp import FastHttpUser

ABOUT = json.loads(Path(os.environ["LOAD_ABOUT"]).read_text())
"""The tokens, and whether cells are run or only the health is asked for."""
TOKENS = itertools.cycle(ABOUT["tokens"])
NUMBERS = itertools.count(1)
SHORT = ("1+1", "sum(range(100))", "[n * n for n in range(10)][-1]")
PANDAS = """
import pandas as pd
frame = pd.DataFrame({"city": ["Oslo", "Lima", "Kyoto"] * 2_000, "units": range(6_000)})
int(frame.groupby("city").units.sum().max())
"""
PLOT = "import matplotlib.pyplot as plt; plt.plot(range(50)); plt.show()"
TOOL = "from servers.bench import echo; echo(text='hello')"
FILE = b"city,units\nOslo,12\nLima,7\n" * 2_000


def _write_down(run: str, what: str) -> None:
    with open(ABOUT["runs"], "a", encoding="utf-8") as file:
        file.write(f"{run} {what}\n")


def _outcome(response: Any) -> str:
    """Say what became of a run, in one word: see load.py."""
    if response.status_code == 200:
        return str(response.json()["status"])
    if response.status_code:
        return "refused"
    return "shut" if isinstance(response.error, ConnectionRefusedError) else "unanswered"


class Person(FastHttpUser):
    """One user with one session."""

    abstract = True
    wait_time = between(1, 3)
    connection_timeout = network_timeout = 120.0

    def on_start(self) -> None:
        self._headers = {"Authorization": f"Bearer {next(TOKENS)}"}


class Analyst(Person):
    """Runs cells of all kinds, and moves files."""

    abstract = ABOUT["kind"] != "cells"

    def on_start(self) -> None:
        super().on_start()
        opened = {"id": "work"}
        self.client.post("/api/v1/sessions", json=opened, headers=self._headers, name="session")

    @task(10)
    def short(self) -> None:
        """Run a cell that takes no time."""
        code = random.choice(SHORT)
        self._run("short cell", code, eval(code))

    @task(4)
    def pandas(self) -> None:
        """Group a small table."""
        self._run("pandas", PANDAS, sum(range(2, 6_000, 3)))

    @task(1)
    def plot(self) -> None:
        """Draw a figure."""
        self._run("plot", PLOT, None, has_image=True)

    @task(2)
    def tool(self) -> None:
        """Call a tool of a server."""
        self._run("tool", TOOL, "hello")

    @task(2)
    def file(self) -> None:
        """Store a file, and read it back."""
        path = "/api/v1/sessions/work/files/sales.csv"
        stored = self._send("PUT", path, "file up", data=FILE)
        if stored is not None:
            self._send("GET", path, "file down", expected=FILE)

    def _run(self, name: str, code: str, value: Any, *, has_image: bool = False) -> None:
        path, run = "/api/v1/sessions/work/execute", f"{ABOUT['kind']}-{next(NUMBERS)}"
        _write_down(run, "sent")
        given = {"code": f"# run {run}\n{code}"}
        with self.client.post(
            path, json=given, headers=self._headers, name=name, catch_response=True
        ) as response:
            _write_down(run, _outcome(response))
            if response.status_code != 200:
                response.failure(f"{response.status_code}: {(response.text or '')[:200]}")
                return
            result = response.json()
            images = [each for each in result["outputs"] if each["type"] == "image/png"]
            if result["status"] != "ok" or result["value"] != value or bool(images) != has_image:
                response.failure(f"{result['status']}: {result['error'] or result['value']}"[:200])

    def _send(self, method: str, path: str, name: str, **request: Any) -> bytes | None:
        expected = request.pop("expected", None)
        with self.client.request(
            method, path, headers=self._headers, name=name, catch_response=True, **request
        ) as response:
            if response.status_code >= 300:
                response.failure(f"{response.status_code}: {(response.text or '')[:200]}")
                return None
            content = response.content or b""
            if expected is not None and content != expected:
                response.failure("the file is another one")
            return bytes(content)


class Prober(Person):
    """Asks only whether the service is well: the noise of the machine, without any cell."""

    abstract = ABOUT["kind"] != "health"

    @task
    def health(self) -> None:
        """Ask once."""
        self.client.get("/healthz", headers=self._headers, name="/healthz")
