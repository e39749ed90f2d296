# mypy: ignore-errors
# Each bomb is looked at, called with what fits and with what does not.
from preamble import judge, safe

NAMES = ("itself", "ring", "everything", "remote", "named", "pattern", "names", "choice",
         "doubling", "deep", "wide", "long", "default", "types")  # fmt: skip
VALUES = ("a" * 40 + "b", {"a" * 40 + "b": 1}, [1] * 100, 7, {"x": {"x": {"x": {}}}}, None)
answers = []
for name in NAMES:
    details = get_mcp_tool_details(f"hostile.bomb_{name}")  # noqa: F821
    answers.append(len(details["signature"]))
for name in NAMES:
    for value in VALUES[:3] if name in ("itself", "pattern", "doubling") else VALUES[:1]:
        try:
            answers.append(call_mcp_tool(f"hostile.bomb_{name}", {"x": value}))  # noqa: F821
        except ToolError as error:  # noqa: F821
            answers.append(error.code)
found = search_tools("tick", "full", 100)  # noqa: F821
judge(not found, "a search over all of them is answered:")
safe(f"{len(answers)} answers")
