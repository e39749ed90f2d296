"""A server that writes down each call that it gets: `python audit_called_server.py FOLDER`.

The numbers are in FOLDER/sent-PID, which is locked as long as the process lives.
"""

import fcntl
import os
import sys

from mcp.server import MCPServer

mcp = MCPServer("shop", log_level="ERROR")
made = os.open(f"{sys.argv[1]}/sent-{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
fcntl.flock(made, fcntl.LOCK_EX)


@mcp.tool()
def refund(order: int) -> int:
    """Pay an order back."""
    os.write(made, f"{order}\n".encode())
    return order


if __name__ == "__main__":
    mcp.run()
