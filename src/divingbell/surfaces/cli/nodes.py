"""`divingbell nodes`: the nodes of a Ray cluster, for those who run it."""

import json
from collections.abc import Mapping
from typing import Any

from divingbell.amounts import amount
from divingbell.settings.config import Settings
from divingbell.surfaces.cli import exit_status
from divingbell.surfaces.cli.terminal.notes import tell

NONE = (
    "There are none. A Ray node has one that was started with --resources='{\"divingbell\": 1}', "
    "once a program has used the cluster."
)


async def show(settings: Settings, *, as_json: bool) -> int:
    """Print what there is to say of each node.

    Raises:
        ConfigError: the cluster lets anybody in, or not us.
        SandboxUnavailable: there is none.
    """
    from divingbell.scale.ray import RayCluster

    found = await RayCluster(settings).overview()
    if as_json:
        print(json.dumps(found, indent=2))
        return exit_status.OK
    for node in found:
        print(_line(node))
    if not found:
        tell(NONE)
    return exit_status.OK


async def drain(settings: Settings, name: str) -> int:
    """Have a node end once its sessions have.

    Raises:
        InvalidInput: there is no such node.
    """
    from divingbell.scale.ray import RayCluster

    tell(f"{name} gets no more sessions. Waiting for those that it has: Ctrl-C leaves it to itself")
    await RayCluster(settings).drain(name)
    tell(f"{name} has ended.")
    return exit_status.OK


def _line(node: Mapping[str, Any]) -> str:
    if not node["name"]:
        reason = f": {node['reason']}" if node["reason"] else ""
        return f"{node['state']} on the Ray node {node['ray_node'][:8]}{reason}"
    return (
        f"{node['name']}  {node['state']}  {node['sessions']} of "
        f"{amount(node['places'], 'session')}, {node['free_memory'] >> 20:,} MB of memory free, "
        f"{node['backend']}, at {node['machine']}"
    )
