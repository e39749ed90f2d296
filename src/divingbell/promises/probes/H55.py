# mypy: ignore-errors
# Calls that are refused with long words, without end, by code that reads none of the answers.
import json

from preamble import frame, tether

line = tether()
body = json.dumps({"query": "x", "detail_level": "y" * 900_000}).encode()
number = 1 << 40
while True:
    number += 1
    line.sendall(frame(b'{"event":"call","id":%d,"name":"search_tools"}' % number, body))
