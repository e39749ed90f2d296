"""docs/mcp.md: the entries for clients are entries that can be used."""

import json
import re
from pathlib import Path

from divingbell.session import ownership
from divingbell.settings.mcp_json import entries_of_list
from divingbell.settings.servers import Server
from divingbell.surfaces.mcp import file_reads, suspended_calls
from divingbell.surfaces.mcp.definitions import texts

PAGE = (Path(__file__).parents[3] / "docs/mcp.md").read_text("utf-8")
WORDS = " ".join(PAGE.split())


def test_the_entries_for_clients_are_what_clients_read() -> None:
    found = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    assert len(found) == 3
    for text in found:
        [entry] = entries_of_list(json.loads(text), Path("mcp.json"), {})
        assert isinstance(entry, Server)
        assert entry.url or (entry.command, entry.args) == ("divingbell", ("serve",))


def test_the_table_of_tools_has_every_tool_and_parameter() -> None:
    for tool in texts().tools:
        needed = tool.input_schema.get("required", [])
        given = [name if name in needed else f"{name}?" for name in tool.input_schema["properties"]]
        assert f"`{tool.name}({', '.join(given)})`" in PAGE


def test_the_limits_are_those_of_the_code() -> None:
    assert f"several, up to {ownership.MAX_SESSIONS};" in WORDS
    assert f"up to {file_reads.MAX_READ >> 20} MB can be read" in WORDS
    assert suspended_calls.PATIENCE == 600 and "up to ten minutes" in WORDS
