"""A server with a list of many pages, the last of which points back to the first."""

import sys

import rough

END = "" if len(sys.argv) > 1 and sys.argv[1] == "ends" else "1"


def page(params: dict[str, str]) -> object:
    number = int(params.get("cursor") or 0)
    tools = [{"name": f"tool_{number}_{n}", "inputSchema": {"type": "object"}} for n in range(5)]
    following = str(number + 1) if number < 3 else END
    return {"tools": tools, "nextCursor": following} if following else {"tools": tools}


rough.serve({"tools/list": page})
