"""What `divingbell doctor` finds wrong in a cluster: other versions, a failed node, closed ports.

In a process of its own: Ray loads threads and handlers of forks into the one that speaks to it.
"""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile

import pytest

from tests.scale.ray_machines import environment
from tests.surfaces.cli.command import PATIENCE

PROGRAM = """
import asyncio, dataclasses, json, os, socket, sys, ray
from divingbell.scale import ray_doctor
from divingbell.scale.cluster import NodeAddress

installed = ray_doctor.versions

def otherwise():
    return {**installed(), "Divingbell": f"0.0.{os.getpid()}"}  # another one in each process

async def main():
    machine = ray.get_runtime_context().get_node_id()
    found = [await ray_doctor._machine(machine)]
    ray_doctor.versions = otherwise
    found.append(await ray_doctor._machine(machine))
    failed = {"name": "", "ray_node": machine, "state": "failed"}
    failed["reason"] = "the profile is not ready"
    found += ray_doctor._node(failed)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        address = NodeAddress("far", "127.0.0.1", listening.getsockname()[1], "s")
        found.append(await ray_doctor._port(address))  # nobody listens yet
        listening.listen()
        found.append(await ray_doctor._port(address))
    print(json.dumps([dataclasses.asdict(each) for each in found]))

ray.init(num_cpus=1, include_dashboard=False, log_to_driver=False, logging_level="ERROR",
         object_store_memory=80 << 20)
try:
    asyncio.run(main())
finally:
    ray.shutdown()
"""


def test_what_is_wrong_with_a_cluster_is_named_with_what_to_do() -> None:
    if importlib.util.find_spec("ray") is None:
        assert not os.environ.get("CI"), "Ray is not installed"
        pytest.skip("Ray is not installed: .venv/bin/uv pip install -r requirements/ray.txt")
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            capture_output=True,
            text=True,
            env=environment(folder),
            timeout=2 * PATIENCE,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    same, other, failed, closed, listening = json.loads(done.stdout.splitlines()[-1])
    assert same["state"] == listening["state"] == "ok"
    assert other["state"] == failed["state"] == closed["state"] == "missing"
    assert "it has Divingbell 0.0." in other["detail"] and "(here 0.0." in other["detail"]
    assert "same versions on all machines" in other["advice"]
    assert failed["detail"] == "the profile is not ready" and "doctor" in failed["advice"]
    assert "can't be reached" in closed["detail"] and "node_port" in closed["advice"]
