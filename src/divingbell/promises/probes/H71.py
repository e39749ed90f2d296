# mypy: ignore-errors
# Calls at once, whose arguments are small to send and large to hold.
from preamble import frame, tether

from divingbell_inside import frames

body = b'{"many":[' + b"[]," * 19_000 + b"1," * 200_000 + b"[]]}"
line = tether()
numbers = range(1 << 40, (1 << 40) + 12)
for number in numbers:
    line.sendall(frame(b'{"event":"call","id":%d,"name":"hostile.hold"}' % number, body))
sum(frames.receive(line)[0].get("ok") is True for _ in numbers)
