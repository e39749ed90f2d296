# mypy: ignore-errors
import os
import struct
import time

from preamble import frame, tether

line = tether()
call = frame(b'{"event":"call","id":1099511627776,"name":"hostile.echo"}', b'{"text": "x"}')
if KIND == "half":  # noqa: F821  (given by the host)
    line.sendall(call[:-5])
elif KIND == "drip":  # noqa: F821
    for at in range(len(call) - 1):
        line.sendall(call[at : at + 1])
        time.sleep(0.01)
elif KIND == "garbage":  # noqa: F821
    line.sendall(call + os.urandom(1 << 16))
elif KIND == "length":  # noqa: F821
    line.sendall(struct.pack("!II", 60, 0xFFFFFFFF) + call[8:] * 1000)
elif KIND == "lie":  # noqa: F821
    line.sendall(call[:-5] + call * 10)
time.sleep(100)
