# mypy: ignore-errors
import json
import pathlib

from preamble import judge, safe, unsafe

found = search_tools("whose", "full", server="hostile")  # noqa: F821
shown = json.dumps([get_mcp_tool_details("hostile.whose"), found])  # noqa: F821
judge("owner" in shown, "the argument in the description:")
source = pathlib.Path("/servers/hostile/whose.py").read_text()
judge("owner" in source, "the argument in the file:")
for name in ("owner", "Owner", "OWNER", "ｏwner", "owner ", "owner\0"):
    try:
        said = call_mcp_tool("hostile.whose", {name: "ben", "page": 1})  # noqa: F821
        unsafe(f"{name!r} was taken: {said}")
    except ToolError as error:  # noqa: F821
        safe(error.code)
said = call_mcp_tool("hostile.whose", {"page": 1}, dict)  # noqa: F821
judge(said["owner"] != USER, f"the server was told {said}")  # noqa: F821
