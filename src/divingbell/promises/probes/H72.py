# mypy: ignore-errors
# A call that is cancelled in the same breath: the clock must not wait for its end.
import time

from preamble import frame, tether

call = frame(b'{"event":"call","id":%d,"name":"hostile.hold"}' % (1 << 40), b"{}")
tether().sendall(call + frame(b'{"event":"cancel","id":%d}' % (1 << 40)))
time.sleep(60)
