"""The same task done directly and in code, with both ledgers side by side.

Which service has logged the most errors? The logs lie in thirty files behind server-filesystem.
Directly, a client puts every definition and every result into the context of its model; in code,
only what is printed gets there. side_by_side.json starts the server with `npx`, and
EXAMPLE_MCP_CONFIG names another mcp.json.
"""

import asyncio
import json
import os
import random
import tempfile
from collections import Counter
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp_types import TextContent

from divingbell import Divingbell
from divingbell.host.requirements import at_hand
from divingbell.journal import tokens
from divingbell.surfaces.mcp import definitions

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
SERVICES = ("gauge", "hatch", "pump", "sonar", "winch")

# What a model would write.
CODE = """
from collections import Counter
from servers.files import list_directory, read_text_file

errors = Counter()
for line in list_directory(folder)["content"].splitlines():
    text = read_text_file(f"{folder}/{line.removeprefix('[FILE] ')}")["content"]
    errors.update(row.split()[1] for row in text.splitlines() if " ERROR " in row)
print("most errors:", *errors.most_common(1)[0])
"""


class Context:
    """What a model has to read, counted."""

    def __init__(self) -> None:
        self.definitions = self.calls = 0
        self.made = 0

    async def load(self, client: Client) -> None:
        for tool in (await client.list_tools()).tools:
            shown = {"name": tool.name, "description": tool.description, "input": tool.input_schema}
            self.definitions += tokens.count(json.dumps(shown, separators=(",", ":")))

    async def call(self, client: Client, name: str, arguments: dict[str, str]) -> str:
        result = await client.call_tool(name, arguments)
        text = "".join(block.text for block in result.content if isinstance(block, TextContent))
        self.calls += tokens.count(json.dumps({"name": name, "arguments": arguments}))
        self.calls += tokens.count(text)
        self.made += 1
        return text


async def directly(folder: str) -> tuple[str, Context]:
    """Do what a client without code does; counting the errors is what its model would do."""
    entry = json.loads(os.path.expandvars(Path(CONFIG).read_text()))["mcpServers"]["files"]
    context, errors = Context(), Counter[str]()
    server = StdioServerParameters(command=entry["command"], args=entry["args"])
    # The server says on stderr that it has started.
    with open(os.devnull, "w") as nowhere:  # noqa: ASYNC230
        async with Client(stdio_client(server, errlog=nowhere)) as client:
            await context.load(client)
            listed = await context.call(client, "list_directory", {"path": folder})
            for line in listed.splitlines():
                path = f"{folder}/{line.removeprefix('[FILE] ')}"
                text = await context.call(client, "read_text_file", {"path": path})
                errors.update(row.split()[1] for row in text.splitlines() if " ERROR " in row)
    service, count = errors.most_common(1)[0]
    return f"most errors: {service} {count}", context


def make_logs(folder: Path) -> None:
    chance = random.Random(2)
    for day in range(1, 31):
        lines: list[str] = []
        for hour in range(24):
            service = chance.choice(SERVICES)
            level = "ERROR" if chance.random() < (0.3 if service == "winch" else 0.1) else "INFO"
            lines.append(f"{hour:02}:00 {service} {level} pressure {chance.randint(1, 40)} bar")
        (folder / f"day-{day:02}.log").write_text("\n".join(lines) + "\n")


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    make_logs(Path(folder))
    answer, context = await directly(folder)
    async with Divingbell(mcp_config=CONFIG) as bell:
        result = await bell.execute(CODE, context={"folder": folder})
    if result.error is not None:
        raise SystemExit(str(result.error))
    ledger = result.ledger
    assert ledger is not None
    own_tools = tokens.count(definitions.texts(["files"], at_hand(())).as_read())
    print(f"directly  {answer} ({context.made} calls)")
    print(f"in code   {result.text.strip()} ({ledger.calls} calls)")
    print(f"{'tokens':28}{'directly':>10}{'in code':>10}")
    for name, one, other in (
        ("definitions of tools", context.definitions, own_tools),
        ("calls and their results", context.calls, 0),
        ("code and what it prints", 0, ledger.read),
        ("all", context.definitions + context.calls, own_tools + ledger.read),
    ):
        print(f"{name:28}{one:>10,}{other:>10,}")
    print(f"the ledger puts the direct calls at {ledger.direct:,}")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
