"""A server that takes its time to start: `slow_server.py SECONDS`.

By hand and without the SDK, whose import takes most of a second of processor time: ten servers at
once would measure the number of cores.
"""

import json
import sys
import time

ANSWERS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "slow", "version": "1"},
    },
    "tools/list": {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]},
}

time.sleep(float(sys.argv[1]))
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    answer = {"jsonrpc": "2.0", "id": request["id"]}
    if request["method"] in ANSWERS:
        answer["result"] = ANSWERS[request["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "Method not found"}
    print(json.dumps(answer), flush=True)
