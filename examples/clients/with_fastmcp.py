"""Divingbell from FastMCP's client, without a model: `pip install fastmcp`.

It puts a file in, works on it, and fetches what came of it.
"""

import asyncio
import base64
from pathlib import Path

from fastmcp import Client
from fastmcp.client.transports import StdioTransport

FILES = "divingbell://sessions/default/files"
PLOT = """
import matplotlib.pyplot as plt
plt.plot(depths)
plt.savefig("depths.png")
"""


async def put(client: Client, path: Path) -> None:
    """Copy a file into /workspace; a request may have 16 MB."""
    data = base64.b64encode(path.read_bytes()).decode()
    code = f"import base64; open({path.name!r}, 'wb').write(base64.b64decode({data!r}))"
    await client.call_tool("execute_python", {"code": code})


async def get(client: Client, name: str) -> bytes:
    """Return a file of /workspace, of 8 MB at most."""
    [found] = await client.read_resource(f"{FILES}/{name}")
    return base64.b64decode(found.blob) if hasattr(found, "blob") else found.text.encode()


async def heard(progress: float, total: float | None, message: str | None) -> None:
    print("…", message)


async def main() -> None:
    client = Client(
        StdioTransport("divingbell", ["serve"]),
        timeout=600,  # for one request, cells among them; by default there is no limit
        init_timeout=30,  # until it answers; by default there is none
    )
    Path("depths.txt").write_text("12\n40\n7\n")
    async with client:
        await put(client, Path("depths.txt"))
        code = "depths = [int(line) for line in open('depths.txt')]"
        await client.call_tool("execute_python", {"code": code})
        code = "print(sum(depths))"
        result = await client.call_tool("execute_python", {"code": code}, progress_handler=heard)
        print("The cell answered:", result.content[0].text)
        await client.call_tool("execute_python", {"code": PLOT})
        Path("depths.png").write_bytes(await get(client, "depths.png"))


asyncio.run(main())
