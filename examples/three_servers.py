"""One workflow over three servers in one cell: a history from git, sums in a database, a report.

The servers are mcp-server-git, mcp-server-sqlite and server-filesystem; three_servers.json starts
them with `uvx` and `npx`, and EXAMPLE_MCP_CONFIG names another mcp.json. `git` makes the history.
"""

import asyncio
import os
import subprocess
import tempfile
from pathlib import Path

from divingbell import Divingbell

CONFIG = os.environ.get("EXAMPLE_MCP_CONFIG") or str(Path(__file__).with_suffix(".json"))
HISTORY = [
    ("Ada", "feat: a pump"),
    ("Ben", "fix: the valve sticks"),
    ("Ada", "fix: the hose leaks"),
    ("Cleo", "docs: how to dive"),
    ("Ada", "feat: a second pump"),
    ("Ben", "fix: the valve sticks again"),
]

# What a model would write. No result of a call is seen by it, only the last line.
CODE = """
import ast, re
from servers.files import write_file
from servers.git import git_log
from servers.sqlite import create_table, read_query, write_query

log = git_log(f"{folder}/project", max_count=100)
commits = re.findall(r"Author: (.+)\\n.*\\nMessage: (\\w+):", log)

create_table("CREATE TABLE commits (author TEXT, kind TEXT)")
for author, kind in commits:
    write_query(f"INSERT INTO commits VALUES ('{author}', '{kind}')")
rows = ast.literal_eval(read_query(
    "SELECT kind, count(*) AS count, group_concat(DISTINCT author) AS authors "
    "FROM commits GROUP BY kind ORDER BY count DESC, kind"
))

lines = [f"- {row['kind']}: {row['count']} ({row['authors']})" for row in rows]
write_file(f"{folder}/report.md", "# Commits by kind\\n\\n" + "\\n".join(lines) + "\\n")
print(f"report.md: {len(commits)} commits, {len(rows)} kinds")
"""


def make_history(folder: Path) -> None:
    subprocess.run(["git", "init", "--quiet", folder], check=True)
    for author, message in HISTORY:
        person = ["-c", f"user.name={author}", "-c", "user.email=diver@example.org"]
        commit = ["commit", "--quiet", "--allow-empty", "-m", message]
        subprocess.run(["git", "-C", folder, *person, *commit], check=True)


async def main(folder: str) -> None:
    os.environ["EXAMPLE_FOLDER"] = folder
    make_history(Path(folder, "project"))
    async with Divingbell(mcp_config=CONFIG) as bell:
        result = await bell.execute(CODE, context={"folder": folder})
    print(result.text, end="")
    if result.error is not None:
        raise SystemExit(str(result.error))
    servers = sorted({call.name.partition(".")[0] for call in result.calls})
    print(f"{len(result.calls)} calls of {', '.join(servers)}")
    print(Path(folder, "report.md").read_text(), end="")


with tempfile.TemporaryDirectory() as folder:
    asyncio.run(main(folder))
