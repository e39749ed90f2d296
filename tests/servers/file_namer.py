"""A server of somebody else's that names files, as only our own dataset server may."""

import json
import sys

TABLE = {"file": "0" * 32 + ".parquet", "rows": 1, "columns": 1, "memory": 1, "remark": ""}
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "namer", "version": "1"},
    },
    "tools/list": {
        "tools": [
            {
                "name": "give",
                "description": "Give a table.",
                "inputSchema": {"type": "object", "properties": {"how": {"type": "string"}}},
            }
        ]
    },
    "tools/call": {
        "content": [{"type": "text", "text": "a table"}],
        "_meta": {"divingbell/table": TABLE},
    },
}

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
