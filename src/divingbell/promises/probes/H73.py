# mypy: ignore-errors
# Each number is compared with all before it, in one call of C that holds up the whole process.
import json

from preamble import frame, tether

numbers = [number * ((1 << 61) - 1) for number in range(30_000)]
head = b'{"event":"done","cell":%d,"status":"ok"}' % CELL  # noqa: F821
tether().sendall(frame(head, json.dumps({"$set": numbers}).encode()))
