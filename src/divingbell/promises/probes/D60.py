# mypy: ignore-errors
import importlib
import json
import pathlib

from preamble import judge, safe, unsafe

WORD = "Only the one user"
files = list(pathlib.Path("/servers/hostile").iterdir())
judge(any(path.name == "private.py" for path in files), "the file:")
judge(
    any(WORD in path.read_text() or '"private"' in path.read_text() for path in files), "in files:"
)
found = [search_tools(words, "full", 100, "hostile") for words in ("private", "")]  # noqa: F821
judge(WORD in json.dumps(found), "in searches:")
judge("hostile.private" in list_mcp_tools(), "in the list:")  # noqa: F821
judge("private" in dir(importlib.import_module("servers.hostile")), "in the package:")
for name, arguments in (
    ("hostile.privat", {}), ("hostile.privates", {}), ("hostile.private", {"x": 1}),
    ("get_mcp_tool_details", {"name": "hostile.privat"}),
    ("get_mcp_tool_details", {"name": "hostile.private"}),
):  # fmt: skip
    try:
        unsafe(f"{name}: {call_mcp_tool(name, arguments)}")  # noqa: F821
    except ToolError as error:  # noqa: F821
        judge("hostile.private?" in str(error) or "hostile.private," in str(error), str(error))
told = call_mcp_tool("await_server", {"server": "hostile", "tool": "private"}, dict)  # noqa: F821
judge(told["source"] is not None, "its source is told:")
try:
    importlib.import_module("servers.hostile.private")
    unsafe("it can be imported")
except (ImportError, ToolError):  # noqa: F821
    safe("neither in files, searches, lists nor hints, and not to be imported")
