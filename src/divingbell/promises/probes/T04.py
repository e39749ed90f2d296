# mypy: ignore-errors
# Frames made by hand: what is refused here is refused by the gateway, since nothing else is asked.
import json

from preamble import frame, safe, tether, unsafe

from divingbell_inside import frames

NAMES = (
    "hostile.forbidden", "mcp__hostile__forbidden", "hostile.forbidden ", "hostile.forbidden\0",
    "hostile..forbidden", "hostile/forbidden", "HOSTILE.forbidden", "other.tool", "mirror.tool",
    "stop", "answer", "gateway.stop", "fleet.stop", "_search_tools", "__class__", "__init__",
    "hostile.__class__", "../../x", "", ".", "hostile", "hostile.", "mcp__", "mcp__hostile__",
    "initialize", "tools/call", "hostile.tools/call", "resources/read", "x" * 100_000,
)  # fmt: skip
OWN = (
    ("search_tools", {"visit": 1}), ("search_tools", {"self": 1}), ("search_tools", {"limit": -1}),
    ("await_server", {"server": "other"}), ("read_resource", {"server": "other", "uri": "x"}),
    ("get_mcp_tool_details", {"name": "hostile.forbidden"}), ("list_prompts", {"server": "../x"}),
)  # fmt: skip
line = tether()
for number, (name, arguments) in enumerate([*((name, {}) for name in NAMES), *OWN], 1 << 40):
    head = json.dumps({"event": "call", "id": number, "name": name}).encode()
    line.sendall(frame(head, json.dumps(arguments).encode()))
    answer, _ = frames.receive(line)
    if answer.get("id") != number or answer.get("ok"):
        unsafe(f"{name[:40]!r} {arguments}: {answer}")
for query in ("forbidden", "nobody may call it"):
    head = json.dumps({"event": "call", "id": 7 << 40, "name": "search_tools"}).encode()
    line.sendall(frame(head, json.dumps({"query": query, "limit": 100}).encode()))
    if b'"hostile.forbidden"' in frames.receive(line)[1]:
        unsafe("a search shows a tool that nobody may call")
safe(f"{len(NAMES) + len(OWN)} calls refused")
