# mypy: ignore-errors
# Between two cells: events that carry nothing, from a thread that goes on.
import threading

from preamble import frame, tether

line = tether()


def flood() -> None:
    packed = frame(b'{"event":"stdout"}') * 1000
    for _ in range(300):
        line.sendall(packed)


threading.Thread(target=flood).start()
