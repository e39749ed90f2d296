# mypy: ignore-errors
# Walk all that Python holds, then all that the process holds. There is no token to find either:
# who calls is known by the line that the call comes by.
import gc
import re
import sys

from preamble import judge

FORM = re.compile("promise-[0-9a-f]{32}")
found = []
texts = 0


def look(value, where):
    global texts
    if isinstance(value, bytes | bytearray):
        value = bytes(value).decode("latin-1")
    if isinstance(value, str):
        texts += 1
        if FORM.search(value):
            found.append(where)


gc.unfreeze()  # what came with the zygote is set aside
for thing in gc.get_objects():
    for inner in gc.get_referents(thing):
        look(inner, type(thing).__name__)
for frame in sys._current_frames().values():
    while frame is not None:
        for name, value in {**frame.f_globals, **frame.f_locals}.items():
            look(value, name)
        frame = frame.f_back

pattern = re.compile(FORM.pattern.encode())
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as memory:
    for line in maps:
        span, rights, *_ = line.split()
        if not rights.startswith("rw") or "[v" in line:
            continue
        start, end = (int(part, 16) for part in span.split("-"))
        for at in range(start, end, 1 << 22):
            try:
                memory.seek(at)
                piece = memory.read(min((1 << 22) + 64, end - at))
            except (OSError, ValueError):
                continue
            if pattern.search(piece):
                found.append(hex(at))
judge(found, f"{texts} texts and the whole memory")
