# mypy: ignore-errors
# Whatever a person could not see: it must be written out wherever code or a model reads it.
import json
import pathlib
import re

from preamble import judge

HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e0fff]"
)


def hidden(value):
    if isinstance(value, dict):
        return {key for pair in value.items() for part in pair for key in hidden(part)}
    if isinstance(value, list):
        return {found for item in value for found in hidden(item)}
    return set(map(ascii, HIDDEN.findall(value))) if isinstance(value, str) else set()


for level in ("name_only", "with_description", "full"):
    judge(hidden(search_tools("adds", level, 100, "hostile")), f"search, {level}:")  # noqa: F821
details = get_mcp_tool_details("hostile.poisoned")  # noqa: F821
judge(hidden(details), "details:")
judge("\\U000e006f" not in json.dumps(details).replace("\\\\", "\\"), "written out in the details:")
judge(hidden(list_mcp_tools()), "names:")  # noqa: F821
for path in pathlib.Path("/servers").rglob("*.*"):
    if found := hidden(path.read_text()):
        judge(found, path)
try:
    servers.hostile.poisoned()  # noqa: F821
except ToolError as error:  # noqa: F821
    judge(hidden(str(error)), "error:")
