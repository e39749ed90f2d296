# mypy: ignore-errors
# As many calls as may wait, and then cancels without end for calls that there are not.
from preamble import frame, tether

line = tether()
for number in range(1 << 40, (1 << 40) + 9_000):
    line.sendall(
        frame(b'{"event":"call","id":%d,"name":"hostile.slow"}' % number, b'{"seconds": 10}')
    )
cancels = b"".join(frame(b'{"event":"cancel","id":%d}' % number) for number in range(10_000))
while True:
    line.sendall(cancels)
