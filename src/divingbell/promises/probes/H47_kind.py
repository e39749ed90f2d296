# mypy: ignore-errors
import json
import time

from preamble import frame, tether

line = tether()
for kind in (
    "../../../etc/cron.d/x",
    "text/html\r\nSet-Cookie: x",
    "image/\x1b[31m",
    "x" * 100_000,
):
    head = {"event": "display", "parts": [[kind, 1]], "id": "x", "update": True}
    line.sendall(frame(json.dumps(head).encode(), b"x"))
time.sleep(0.2)
