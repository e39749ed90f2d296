# mypy: ignore-errors
# The line is another's in name only: who calls is not in the frame.
import json

from preamble import frame, safe, tether, unsafe

from divingbell_inside import frames

line = tether()
for number, more in enumerate(
    (
        {"session": OTHER, "user": OWNER},  # noqa: F821  (given by the host)
        {"key": repr((OWNER, OTHER)), "owner": OWNER, "token": OTHER},  # noqa: F821
        {"visit": {"session": OTHER, "user": OWNER}, "run": 1, "asker": None},  # noqa: F821
    ),
    1 << 40,
):
    head = {"event": "call", "id": number, "name": "hostile.whose", **more}
    line.sendall(frame(json.dumps(head).encode(), b'{"page": 1}'))
    answer, body = frames.receive(line)
    said = json.loads(json.loads(body)["content"][0]["text"]) if answer["ok"] else answer
    (safe if said.get("owner") == "ben" else unsafe)(f"the call was {said.get('owner')}'s")
for number in range(300):
    head = {"event": "cancel", "id": number, "session": OTHER, "user": OWNER}  # noqa: F821
    line.sendall(frame(json.dumps(head).encode()))
