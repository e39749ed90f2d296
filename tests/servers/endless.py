"""A server whose answers are as long as they are asked to be, with their number where it is."""

import json
import sys

import rough

PIECE = "x" * (1 << 20)

for line in sys.stdin:
    request = json.loads(line)
    given = request.get("params", {}).get("arguments", {})
    if request.get("method") != "tools/call":
        rough.answer(request)
        continue
    at = given["id"]
    number = {"first": request["id"], "not asked": 10_000}.get(at)
    first = "" if number is None else f'"id": {number}, '
    last = f', "id": {request["id"]}' if at == "last" else ""
    sys.stdout.write('{"jsonrpc": "2.0", ' + first + '"result": {"content": [{"type": "text", ')
    sys.stdout.write('"text": "')
    for _ in range(given["megabytes"]):
        sys.stdout.write(PIECE)
    sys.stdout.write('"}]}' + last + "}\n")
    sys.stdout.flush()
