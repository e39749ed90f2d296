"""Kernels over Jupyter's protocol, ours and those of jupyter-kernel-gateway: `./dev bench jupyter`.

One client speaks to both in turns. A first result is that of `1+1`, from the wish for a kernel on;
a warm one is that of a kernel that has run before. Code in ipykernel runs without any walls.
"""

import json
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import apart
import httpx2
import lists
import table
from environments import ROOT, environment
from runner import Amount, Benchmark
from turns import Turns, Unable
from websockets.asyncio.client import ClientConnection, connect

COMMAND = str(Path(sys.executable).with_name("divingbell"))
LOCK = ROOT / "requirements" / "jupyter-peer.txt"
OURS, PEER = "divingbell", "jupyter-kernel-gateway, ipykernel"
FIRST_TIMES, WARM_TIMES = 20.0, 10.0
BATCH = 10
"""Warm cells in a row before it is the other one's turn."""


async def measured(rounds: int, *, install: bool) -> list[table.Row]:
    """Both, in turns: the first results, then the warm ones."""
    async with _served() as ours:
        try:
            python = environment(LOCK, install, "./dev bench jupyter")
        except Unable as error:
            return [table.Row("a first result", PEER, f"– ({error})")]
        async with _gateway(python) as peer:
            first = await Turns({OURS: partial(_first, ours), PEER: partial(_first, peer)}).take(
                rounds
            )
            async with _warm(ours) as mine, _warm(peer) as other:
                warm = await Turns({OURS: mine, PEER: other}).take(rounds)
    return [
        *_rows("a first result", first, FIRST_TIMES),
        *_rows("a warm 1+1", warm, WARM_TIMES),
    ]


def _rows(measure: str, turns: Turns, wanted: float) -> list[table.Row]:
    ratio = turns.ratio(PEER, OURS)
    words, target = f"{ratio:.1f}× as fast", table.at_least(ratio, wanted)
    return [
        table.times(measure, OURS, turns.times(OURS), ratio=words, target=target),
        table.times(measure, PEER, turns.times(PEER), ratio="1"),
    ]


async def _first(url: str) -> list[float]:
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        started = time.perf_counter()
        made = await http.post("/api/kernels", json={"name": "python3"})
        kernel = made.json()["id"]
        async with _opened(url, kernel) as socket:
            await _run(socket, 0)
            taken = time.perf_counter() - started
        await http.delete(f"/api/kernels/{kernel}")
    return [taken]


@asynccontextmanager
async def _warm(url: str) -> AsyncIterator[Any]:
    async with httpx2.AsyncClient(base_url=url, timeout=60) as http:
        kernel = (await http.post("/api/kernels", json={"name": "python3"})).json()["id"]
        async with _opened(url, kernel) as socket:

            async def batch() -> list[float]:
                return [await _run(socket, number) for number in range(BATCH)]

            yield batch
        await http.delete(f"/api/kernels/{kernel}")


@asynccontextmanager
async def _opened(url: str, kernel: str) -> AsyncIterator[ClientConnection]:
    address = f"{url.replace('http', 'ws', 1)}/api/kernels/{kernel}/channels"
    async with connect(address, compression=None, max_size=None) as socket:
        yield socket


async def _run(socket: ClientConnection, number: int) -> float:
    """Run `1+1`; return the seconds until the reply is there and the kernel is idle again."""
    name = f"{time.monotonic_ns()}-{number}"
    header = {"msg_id": name, "msg_type": "execute_request", "session": "bench", "username": "",
              "date": "2026-01-01T00:00:00.000000Z", "version": "5.4"}  # fmt: skip
    content = {"code": "1+1", "silent": False, "store_history": True, "user_expressions": {},
               "allow_stdin": False, "stop_on_error": True}  # fmt: skip
    message = {"header": header, "parent_header": {}, "metadata": {}, "content": content}
    started = time.perf_counter()
    await socket.send(json.dumps(message | {"channel": "shell"}))
    left, shown = {"execute_reply", "idle"}, ""
    while left:
        told = json.loads(await socket.recv())
        if told["parent_header"].get("msg_id") != name:
            continue
        left -= {told["msg_type"], told["content"].get("execution_state")}
        if told["msg_type"] == "execute_result":
            shown = told["content"]["data"]["text/plain"]
    taken = time.perf_counter() - started
    assert shown == "2", shown
    return taken


@asynccontextmanager
async def _served() -> AsyncIterator[str]:
    port = lists.free_port()
    with lists.running([COMMAND, "serve", "--http", "--no-token", f"--port={port}"]):
        await lists.listening(port)
        url = f"http://127.0.0.1:{port}/jupyter"
        async with httpx2.AsyncClient(timeout=60) as http:  # it waits until the sandbox is up
            made = await http.post(f"{url}/api/kernels")
            await http.delete(f"{url}/api/kernels/{made.json()['id']}")
        yield url


@asynccontextmanager
async def _gateway(python: str) -> AsyncIterator[str]:
    port = lists.free_port()
    with _running(python, port):
        await lists.listening(port)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def _running(python: str, port: int) -> Iterator[None]:
    command = [python, "-m", "jupyter", "kernelgateway", "--KernelGatewayApp.ip=127.0.0.1",
               f"--KernelGatewayApp.port={port}"]  # fmt: skip
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd="/", stdin=silent, stdout=silent, stderr=silent)
    try:
        yield
    finally:
        process.terminate()  # it ends its kernels
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


BENCHMARK = Benchmark(
    "jupyter",
    __doc__,
    parts={"kernels": lambda chosen: measured(chosen.rounds, install=not chosen.no_install)},
    amounts={"rounds": Amount("turns of each", 20, 2)},
    within=[apart.home],
    flags={"no_install": "leave the peer out if it is not installed yet (200 MB)"},
)

if __name__ == "__main__":
    BENCHMARK.main()
