"""A Ray cluster on this machine: a head and two nodes that offer our resource.

As a command it is that cluster, for as long as its input is open: it answers `kill N`, `add` and
`behead` with one line of JSON. In a process of its own, because who starts a raylet has to reap it:
the workers of one that is dead and not reaped take it for alive.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

TOKEN = "a-token-for-tests-" + "0" * 32
QUICK = {"initial_delay_ms": 500, "period_ms": 500, "failure_threshold": 3}
"""Ray's health checks: else it takes 14 s to notice that a raylet was killed. How long one may take
to answer is not shorter than usual: on a busy machine those that live would be taken for dead."""
START_TIMEOUT = 120
PLACES = 20
"""Sessions of each node: a user may have 32 in all."""
SETTINGS: Mapping[str, Any] = {
    "max_sessions": PLACES,
    "open_timeout": 2.0,
    "pool": 1,
    "copy_after": 0.05,
    "interrupt_grace": 0.5,
}
"""The settings of nodes, for all who use the cluster: the first one says how they are."""
LITTLE = 80 << 20
"""Bytes of the object store of each: what is in it is our few calls."""


def environment(folder: str, auth: str = "token") -> dict[str, str]:
    """Return the environment of Ray and of those who connect to it."""
    checks = {f"RAY_health_check_{name}": str(value) for name, value in QUICK.items()}
    return {
        **os.environ,
        **checks,
        "RAY_AUTH_MODE": auth,
        "RAY_AUTH_TOKEN": TOKEN,
        "RAY_TMPDIR": folder,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_metrics_report_interval_ms": "1000",
        "RAY_raylet_start_wait_time_s": str(START_TIMEOUT),
        "PATH": f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}",
    }


class Machines:
    """The cluster, from outside."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.address: str = self._read()["address"]

    def kill(self, number: int) -> None:
        """Kill the raylet of a node, as when its machine is switched off, and reap it."""
        self._ask(f"kill {number}")

    def add(self) -> None:
        """Start another node."""
        self._ask("add")

    def behead(self) -> None:
        """Kill what runs on the head, as when its machine is switched off."""
        self._ask("behead")

    def _ask(self, word: str) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{word}\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                found: dict[str, Any] = json.loads(line)
                return found
        raise AssertionError("the Ray cluster did not start")


@contextmanager
def running() -> Iterator[Machines]:
    """A cluster until the block ends; connected to with the environment that it changes."""
    before = dict(os.environ)
    with folder_for_ray() as folder:
        os.environ.update(environment(folder))
        try:
            with started(os.environ, 2) as machines:
                try:
                    yield machines
                finally:
                    import ray

                    ray.shutdown()
        finally:
            os.environ.clear()
            os.environ.update(before)


def folder_for_ray() -> "tempfile.TemporaryDirectory[str]":
    # The paths of Ray's sockets below it may have 107 bytes.
    return tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp")


@contextmanager
def started(env: Mapping[str, str], nodes: int) -> Iterator[Machines]:
    """A cluster until the block ends, with so many nodes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.scale.ray_machines", str(nodes)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=env,
    )
    try:
        yield Machines(process)
    finally:
        try:
            process.communicate(timeout=START_TIMEOUT)
        finally:
            process.kill()


def main() -> None:
    from ray.cluster_utils import Cluster

    few = {"num_cpus": 8, "object_store_memory": LITTLE}
    cluster = Cluster(initialize_head=True, head_node_args={**few, "include_dashboard": False})

    def add() -> Any:
        return cluster.add_node(wait=False, **few, resources={"divingbell": 1})

    def kill(node: Any, *kinds: str) -> None:
        for kind in kinds:
            for each in node.all_processes[kind]:
                each.process.kill()
                each.process.wait()

    nodes = [add() for _ in range(int(sys.argv[1]))]
    cluster.wait_for_nodes(timeout=START_TIMEOUT)
    print(json.dumps({"address": cluster.address}), flush=True)
    for line in sys.stdin:
        word, _, number = line.strip().partition(" ")
        match word:
            case "kill":
                kill(nodes[int(number)], "raylet")
            case "add":
                nodes.append(add())
            case "behead":
                kill(cluster.head_node, "gcs_server", "raylet")
        print("{}", flush=True)
    cluster.shutdown()


if __name__ == "__main__":
    main()
