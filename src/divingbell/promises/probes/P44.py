# mypy: ignore-errors
import os
import stat

from preamble import judge

found = {}
for name in os.listdir("/proc/self/fd"):
    try:
        found[int(name)] = os.readlink(f"/proc/self/fd/{name}"), os.fstat(int(name)).st_mode
    except OSError:
        continue  # the listing itself
strange = {
    number: target
    for number, (target, mode) in found.items()
    # 0, 1, 2; and, above 200, the runner's own: the tether, the cradle, the output pipe.
    if not (number < 3 or (200 <= number < 210 and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode))))
}
# Descriptors that this session has opened itself lie on its own files.
strange = {n: t for n, t in strange.items() if not t.startswith(("/workspace", "/tmp"))}
judge(strange, "inherited descriptors:")
judge(found[0][0] != "/dev/null", "standard input:")
