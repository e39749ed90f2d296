"""The command, with a cluster of the nodes that TEST_NODES names."""

import os
import sys

from divingbell.scale.cluster import NodeAddress
from divingbell.surfaces.cli import main
from tests.scale.nodes import FixedCluster, used


def addresses() -> list[NodeAddress]:
    found = []
    for each in filter(None, os.environ.get("TEST_NODES", "").split(",")):
        name, host, port, secret = each.split("|")
        found.append(NodeAddress(name, host, int(port), secret))
    return found


if __name__ == "__main__":
    with used(FixedCluster(addresses())):
        sys.exit(main())
