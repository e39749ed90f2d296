# mypy: ignore-errors
from preamble import judge, safe, unsafe

NAMES = (
    "owner", "Owner", "OWNER", "owner ", " owner", "owner\t", "owner\0", "owner\u200b",
    "own\u00ader", "\ufeffowner", "owner\u2060", "owner\u3164", "owner\ufe0f", "owner\U000e0041",
    "o_wner", "own-er", "ｏwner", "ówner", "оwner", "owner[]", "owner[0]", "owner.id", "owner\0x",
)  # fmt: skip
for name in NAMES:
    try:
        said = call_mcp_tool("hostile.lenient", {name: "ben", "page": 1})  # noqa: F821
        unsafe(f"{name!r} was taken: {said}")
    except ToolError as error:  # noqa: F821
        judge(error.code != "tool_denied", f"{name!r}: {error.code}")
said = call_mcp_tool("hostile.lenient", {"page": 1, "anything": 2}, dict)  # noqa: F821
judge(said != {"page": 1, "anything": 2, "owner": USER}, f"the server was told {said}")  # noqa: F821
safe(f"{len(NAMES)} spellings refused")
