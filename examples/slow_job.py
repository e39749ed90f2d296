"""Wait for a slow job by asking again and again, without a word to the model.

The job is a task of this program that leaves its result in a folder after a while; the code sees
that folder through server-filesystem. slow_job.json starts it with `npx`, and EXAMPLE_MCP_CONFIG
names another mcp.json.
"""

import asyncio
import json
import os
import tempfile
from pathlib import Path

from divingbell import Divingbell

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
SECONDS = 2.0

# What a model would write: a plain loop. Standing in it costs no tokens, however long it takes.
CODE = """
import json, time
from servers.files import list_directory, read_text_file, write_file

write_file(f"{folder}/order.json", json.dumps({"depth": 40}))
while "result.json" not in list_directory(folder)["content"]:
    time.sleep(0.2)
result = json.loads(read_text_file(f"{folder}/result.json")["content"])
print(f"the job is {result['state']}: {result['minutes']} minutes at {result['depth']} m")
"""


async def job(folder: Path) -> None:
    """Wait for an order, take some time, leave a result."""
    order = folder / "order.json"
    while not order.exists():  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    await asyncio.sleep(SECONDS)
    depth = json.loads(order.read_text())["depth"]
    done = folder / "result.part"
    done.write_text(json.dumps({"state": "done", "depth": depth, "minutes": 9}))
    done.rename(folder / "result.json")


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    async with Divingbell(mcp_config=CONFIG) as bell, asyncio.TaskGroup() as group:
        working = group.create_task(job(Path(folder)))
        result = await bell.execute(CODE, context={"folder": folder})
        working.cancel()
    print(result.text, end="")
    if result.error is not None:
        raise SystemExit(str(result.error))
    assert result.ledger is not None
    looks = sum(call.name == "files.list_directory" for call in result.calls)
    print(f"looked {looks} times in {result.usage.wall_ms / 1000:.0f} s")
    print(f"read by the model: {result.ledger.output_tokens} tokens of output")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
