"""Posts bodies of 15 MB that are all small values, without end: `body_flood.py PORT TOKEN`."""

import http.client
import sys

port, token = int(sys.argv[1]), sys.argv[2]
body = b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[' + b"[1]," * 3_900_000 + b"[1]]}}"
headers = {
    "Authorization": f"Bearer {token}",
    "Content-Type": "application/json",
    "Accept": "application/json, text/event-stream",
}
while True:
    connection = http.client.HTTPConnection("127.0.0.1", port)
    try:
        connection.request("POST", "/mcp", body, headers)
        connection.getresponse().read()
    except OSError:
        pass  # the server hangs up on it, and that is well
    connection.close()
