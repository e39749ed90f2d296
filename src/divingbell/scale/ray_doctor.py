"""What is in the way of a Ray cluster: looked at from this machine, for `divingbell doctor`."""

import asyncio
from collections.abc import Iterator, Mapping
from typing import Any

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from divingbell.errors import DivingbellError
from divingbell.host.finding import Finding
from divingbell.scale.cluster import NodeAddress
from divingbell.scale.ray import RayCluster
from divingbell.scale.ray_actors import versions, why
from divingbell.scale.ray_directory import offering

LOOK_TIMEOUT = 60.0
"""Seconds for a machine to say what is installed there: Ray starts a process for it first."""
REACH_TIMEOUT = 5.0


async def findings(cluster: RayCluster) -> list[Finding]:
    """Look at a cluster, and at each of its machines."""
    try:
        await asyncio.to_thread(cluster.connect_only)
    except DivingbellError as error:
        return [Finding("Ray", "missing", str(error))]
    found = [Finding("Ray", "ok", f"connected, version {ray.__version__}")]
    machines = await asyncio.to_thread(offering)
    if not machines:
        found.append(
            Finding(
                "Ray nodes",
                "missing",
                "none offers the resource divingbell",
                "on each machine that shall run sessions: ray start … "
                "--resources='{\"divingbell\": 1}'",
            )
        )
    for told in await asyncio.gather(*(_machine(machine.id) for machine in machines)):
        found.append(told)
    for node in await cluster.overview():
        found += _node(node)
    for address in await cluster.known_nodes():
        found.append(await _port(address))
    return found


async def _machine(ray_id: str) -> Finding:
    """Compare what is installed on a machine with what is here."""
    name = f"Ray node {ray_id[:8]}"
    strategy = NodeAffinitySchedulingStrategy(ray_id, soft=False)
    asked = ray.remote(versions).options(num_cpus=0, scheduling_strategy=strategy).remote()
    try:
        async with asyncio.timeout(LOOK_TIMEOUT):
            theirs: Mapping[str, str] = await asked
    except (RayError, TimeoutError) as error:
        advice = "install divingbell[ray] there, for the Python that runs Ray"
        return Finding(name, "missing", f"it does not say what is installed: {why(error)}", advice)
    others = [
        f"{what} {theirs[what]} (here {ours})"
        for what, ours in versions().items()
        if theirs.get(what) != ours
    ]
    if others:
        advice = "install the same versions on all machines"
        return Finding(name, "missing", f"it has {', '.join(others)}", advice)
    return Finding(name, "ok", ", ".join(f"{what} {ours}" for what, ours in theirs.items()))


def _node(node: Mapping[str, Any]) -> Iterator[Finding]:
    name = node["name"] or f"Ray node {node['ray_node'][:8]}"
    if node["state"] == "failed":
        # For instance a profile that could not be prepared, or walls below the minimum.
        yield Finding(name, "missing", node["reason"], "run `divingbell doctor` on that machine")
    elif node["state"] in ("given up", "starting", "draining"):
        yield Finding(name, "warn", f"it is {node['state']}")
    else:
        yield Finding(name, "ok", f"{node['state']}, {node['backend']}, at {node['machine']}")


async def _port(address: NodeAddress) -> Finding:
    name = f"Line to {address.name}"
    try:
        async with asyncio.timeout(REACH_TIMEOUT):
            _, writer = await asyncio.open_connection(address.host, address.port)
    except (OSError, TimeoutError) as error:
        return Finding(
            name,
            "missing",
            f"{address.host}:{address.port} can't be reached: {error or 'no answer'}",
            "open that port between the machines; the setting node_port gives it a number",
        )
    writer.close()
    return Finding(name, "ok", f"{address.host}:{address.port} answers")
