"""One answer over three servers: notes in files, sums in a database, the time somewhere else.

The servers are server-filesystem, mcp-server-sqlite and mcp-server-time; ask_three_servers.json
starts them with `npx` and `uvx`, and EXAMPLE_MCP_CONFIG names another mcp.json.
"""

import asyncio
import os
import tempfile
from pathlib import Path

from conversation import model_of, show

from divingbell import Divingbell
from divingbell.agent.opening import open_agent
from divingbell.agent.scripted import Says

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
DIVES = {
    "monday.txt": "depth 18\ndepth 24\n",
    "tuesday.txt": "depth 31\n",
    "friday.txt": "depth 9\n",
}
CODE = """
import ast
from servers.files import list_directory, read_text_file, write_file
from servers.sqlite import create_table, read_query, write_query
from servers.time import convert_time

create_table("CREATE TABLE dives (day TEXT, depth INTEGER)")
for line in list_directory(folder)["content"].splitlines():
    name = line.split()[-1]
    if name.endswith(".txt"):
        for dive in read_text_file(f"{folder}/{name}")["content"].splitlines():
            write_query(f"INSERT INTO dives VALUES ('{name[:-4]}', {dive.split()[1]})")
deepest = ast.literal_eval(read_query("SELECT day, max(depth) AS depth FROM dives"))[0]
told = convert_time(source_timezone="Europe/Oslo", time="12:00", target_timezone="UTC")
write_file(f"{folder}/report.md", f"deepest dive: {deepest['depth']} m on {deepest['day']}")
print(deepest, "noon in Oslo is", told["time_difference"], "from UTC")
"""
SCRIPT = [
    Says("I read the notes, and let the database sum up.", CODE),
    Says("The deepest dive was on Tuesday, 31 m. It is in report.md."),
]


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    for name, text in DIVES.items():
        Path(folder, name).write_text(text)
    async with Divingbell(mcp_config=CONFIG) as bell, bell.session() as session:
        await session.set("folder", folder)
        agent = await open_agent(bell, session, model_of(SCRIPT), mode="code")
        await show(agent, "Which dive was the deepest? Write it into report.md.")
    print(Path(folder, "report.md").read_text())


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
