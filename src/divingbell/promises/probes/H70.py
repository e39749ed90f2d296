# mypy: ignore-errors
from preamble import frame, safe, tether, unsafe

from divingbell_inside import frames

NAMES = (
    b"search_tools", b"list_mcp_tools", b"get_mcp_tool_details", b"await_server", b"list_resources",
    b"read_resource", b"list_prompts", b"get_prompt", b"hostile.count", b"nowhere.nothing",
)  # fmt: skip
BODIES = (b'{"query":"' + b"x" * (15 << 20) + b'"}', b'{"query":[' + b"[]," * 300_000 + b"[]]}")
line = tether()
number = 1 << 40
for name in NAMES:
    for body in BODIES if name == b"search_tools" else BODIES[1:]:
        number += 1
        line.sendall(frame(b'{"event":"call","id":%d,"name":"%s"}' % (number, name), body))
        answer, _ = frames.receive(line)
        (safe if answer.get("code") == "tool_limit" else unsafe)(f"{name}: {answer.get('code')}")
