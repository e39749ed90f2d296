# mypy: ignore-errors
# Large results at once, which are not read for a while.
import time

from preamble import frame, tether

from divingbell_inside import frames

line = tether()
numbers = range(1 << 40, (1 << 40) + 9)
for number in numbers:
    line.sendall(frame(b'{"event":"call","id":%d,"name":"hostile.long"}' % number, b"{}"))
time.sleep(0.5)
codes = [frames.receive(line)[0].get("code", "ok") for _ in numbers]
len(codes), sorted(set(codes) - {"ok", "tool_result"})
